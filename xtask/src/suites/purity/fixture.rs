//! A crate that breaks every rule in `clippy.toml`, and must be refused.
//!
//! In its pure module each offending line ends with `//~ LINT: PATH`. Clippy must report exactly these, and nothing in
//! its shell module, which does the same things without the attribute; and each path in `clippy.toml` must be among
//! them, so that no rule is there that does not bite.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::command::{cargo, shown};
use crate::suites::findings::Findings;
use crate::workspace::Workspace;

const FIXTURE: &str = "xtask/fixtures/impure";
const PURE_MODULE: &str = "src/pure.rs";
const FILES: [&str; 4] = ["Cargo.toml", "src/lib.rs", PURE_MODULE, "src/shell.rs"];

/// A lint that fired, or that must fire, on a line of a file of the fixture.
type Hit = (String, usize, String);

/// Runs clippy on the fixture and compares.
pub fn check(workspace: &Workspace, findings: &mut Findings) -> anyhow::Result<()> {
    let folder = lay_out(workspace)?;
    let pure_text = workspace.read(format!("{FIXTURE}/{PURE_MODULE}"))?;
    let rules = workspace.read("clippy.toml")?;
    compare(
        &expected(&pure_text),
        &clippy(workspace, &folder)?,
        findings,
    );
    for path in rule_paths(&rules) {
        let proven = pure_text
            .lines()
            .filter_map(marker)
            .any(|(_, marked)| marked == path);
        let problem =
            || format!("no line of {FIXTURE}/{PURE_MODULE} proves the rule about `{path}`");
        findings.check("clippy.toml", if proven { Ok(()) } else { Err(problem()) });
    }
    Ok(())
}

/// Copies the fixture below the build output and gives it the workspace's lock file: it is judged with the very
/// versions that the workspace uses, and writes nothing into the source tree.
fn lay_out(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let folder = workspace.join("target/purity");
    fs::create_dir_all(folder.join("src"))?;
    for file in FILES {
        copy(&workspace.join(FIXTURE).join(file), &folder.join(file))?;
    }
    copy(&workspace.join("Cargo.lock"), &folder.join("Cargo.lock"))?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let text = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
}

/// The lints that clippy reports as errors. Anything else that goes wrong, a crate that does not compile above all, is
/// an error of ours: the fixture must be refused for the right reasons.
fn clippy(workspace: &Workspace, folder: &Path) -> anyhow::Result<BTreeSet<Hit>> {
    let mut command = cargo(workspace, ["clippy", "--quiet", "--message-format", "json"]);
    command
        .current_dir(folder)
        .env("CLIPPY_CONF_DIR", workspace.root())
        .env("CARGO_TARGET_DIR", folder.join("target"));
    println!("$ {} (in {FIXTURE})", shown(&command));
    let output = command.output().context("cannot start clippy")?;
    let mut hits = BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value =
            serde_json::from_str(line).context("clippy printed something that is not JSON")?;
        if let Some(hit) = hit(&message["message"]) {
            hits.insert(hit);
        }
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        !hits.is_empty(),
        "clippy reported nothing on {FIXTURE}: {}",
        complaint.trim()
    );
    Ok(hits)
}

/// The lint or compiler error in a diagnostic; `None` for warnings and closing remarks.
fn hit(diagnostic: &Value) -> Option<Hit> {
    if diagnostic["level"] != "error" {
        return None;
    }
    let span = diagnostic["spans"]
        .as_array()?
        .iter()
        .find(|span| span["is_primary"] == true)?;
    let file = span["file_name"].as_str()?.to_owned();
    let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
    let code = diagnostic["code"]["code"].as_str().unwrap_or("error");
    Some((file, line, code.trim_start_matches("clippy::").to_owned()))
}

/// What the markers say must fire.
fn expected(pure_text: &str) -> BTreeSet<Hit> {
    let lines = pure_text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let (lint, _) = marker(line)?;
            Some((PURE_MODULE.to_owned(), index + 1, lint.to_owned()))
        })
        .collect()
}

/// The lint and the path in a line that ends with `//~ LINT: PATH`.
fn marker(line: &str) -> Option<(&str, &str)> {
    let (_, marker) = line.split_once("//~ ")?;
    marker.trim().split_once(": ")
}

fn compare(expected: &BTreeSet<Hit>, reported: &BTreeSet<Hit>, findings: &mut Findings) {
    for hit @ (file, line, lint) in expected {
        let result = if reported.contains(hit) {
            Ok(())
        } else {
            Err(format!("clippy does not report {lint}"))
        };
        findings.check(format_args!("{FIXTURE}/{file}:{line}"), result);
    }
    for (file, line, lint) in reported.difference(expected) {
        findings.check(
            format_args!("{FIXTURE}/{file}:{line}"),
            Err(format!("clippy reports {lint} here")),
        );
    }
}

/// The paths that `clippy.toml` forbids.
fn rule_paths(rules: &str) -> Vec<&str> {
    let lines = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines
        .filter_map(|line| line.split_once("path = \"")?.1.split('"').next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(lines: &[usize]) -> BTreeSet<Hit> {
        lines
            .iter()
            .map(|line| (PURE_MODULE.into(), *line, "disallowed_types".into()))
            .collect()
    }

    #[test]
    fn a_rule_that_does_not_bite_and_one_that_bites_elsewhere_are_both_problems() {
        let mut findings = Findings::default();
        compare(&hits(&[1, 2]), &hits(&[2, 3]), &mut findings);
        let found = findings.problems();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains(":1: clippy does not report"), "{found:?}");
        assert!(found[1].contains(":3: clippy reports"), "{found:?}");
    }

    #[test]
    fn markers_and_rules_are_read() {
        let line = "    let t = Instant::now(); //~ disallowed_methods: std::time::Instant::now";
        assert_eq!(
            marker(line),
            Some(("disallowed_methods", "std::time::Instant::now"))
        );
        assert_eq!(marker("let x = 1; // plain"), None);
        let rules = "# path = \"no\"\n  { path = \"a::b\", reason = \"because\" },\n";
        assert_eq!(rule_paths(rules), ["a::b"]);
    }
}
