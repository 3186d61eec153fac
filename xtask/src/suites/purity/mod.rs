//! The purity rules bite, and every pure module is under them.
//!
//! Reading order:
//! - [`areas`]: which files are pure, and which of their neighbours are shells and why;
//! - [`scan`]: each of them denies the two lints;
//! - [`fixture`]: a crate that breaks every rule in `clippy.toml`, and must be refused.

mod areas;
mod fixture;
mod scan;

use crate::report::Tally;
use crate::suite::Depth;
use crate::suites::findings::Findings;
use crate::workspace::Workspace;

/// Scans the pure modules, then has clippy judge the fixture.
pub fn run(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let mut findings = Findings::default();
    scan::check(workspace, areas::PURE, &mut findings)?;
    fixture::check(workspace, &mut findings)?;
    Ok(findings.tell())
}
