//! What a run comes to: `report.json`, and what people read of it.
//!
//! Reading order:
//! - [`run`]: the report, whose names are stable; [`figures`]: what its times are told by; [`series`]: every second of it;
//! - [`bar`]: what a figure must not exceed;
//! - [`mod@text`]: what a person reads of it in a terminal;
//! - [`page`]: the same as a page with plots; [`charts`]: which plots; [`plot`]: how they are drawn.

pub mod bar;
mod charts;
pub mod figures;
mod page;
mod plot;
pub mod run;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod schema;
pub mod series;
mod text;

pub use bar::Bar;
pub use figures::{Quantiles, Spread, ms_text};
pub use run::Report;
pub use text::{Style, grouped, text};

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// Writes a report as JSON.
pub fn write_json(report: &impl Serialize, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(report)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the report as one page that needs nothing from elsewhere.
pub fn write_html(report: &Report, path: &Path) -> anyhow::Result<()> {
    std::fs::write(path, page::html(report))
        .with_context(|| format!("cannot write {}", path.display()))
}
