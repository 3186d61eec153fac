//! Links and commands in the documentation lead somewhere.
//!
//! Reading order:
//! - [`markdown`]: the links, anchors and commands in a page;
//! - [`links`]: relative links and anchors exist;
//! - [`commands`]: `cargo` commands name packages, targets and tasks that exist.

mod commands;
mod links;
mod markdown;

use crate::report::Tally;
use crate::suite::Depth;
use crate::suites::findings::Findings;
use crate::workspace::Workspace;

/// Checks every Markdown page.
pub fn run(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let mut findings = Findings::default();
    let catalogue = commands::Catalogue::read(workspace)?;
    for path in workspace.files("", "md")? {
        let text = workspace.read(&path)?;
        for (line, target) in markdown::links(&text) {
            findings.check(
                format_args!("{path}:{line}"),
                links::check(workspace, &path, &target),
            );
        }
        for (line, command) in markdown::commands(&text) {
            findings.check(format_args!("{path}:{line}"), catalogue.check(&command));
        }
    }
    Ok(findings.tell())
}
