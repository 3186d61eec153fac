//! What cargo itself does: format, clippy, documentation, tests, benchmarks.

use std::process::Command;

use anyhow::{Context, bail};

use crate::command::{ask, cargo, run, run_watched};
use crate::report::Tally;
use crate::suite::Depth;
use crate::workspace::Workspace;

/// Simulator seeds of a nightly run.
const DEEP_SEEDS: &str = "5000";
/// Cases of each property test in a nightly run.
const DEEP_PROPERTY_CASES: &str = "10000";

/// Lines of failed tests that the summary repeats.
const FAILURES_MAX: usize = 50;

const ONE: Tally = Tally::of(1, 0);

/// Whether `cargo NAME` works.
pub fn has_component(workspace: &Workspace, name: &str) -> bool {
    ask(&mut cargo(workspace, [name, "--version"])).is_ok()
}

/// Installs a component of the pinned toolchain.
pub fn add_component(workspace: &Workspace, name: &str) -> anyhow::Result<()> {
    let mut rustup = Command::new("rustup");
    rustup
        .args(["component", "add", name])
        .current_dir(workspace.root());
    run(&mut rustup).context("it comes with rustup; elsewhere install it with the Rust toolchain")
}

/// `cargo fmt --check`.
pub fn format(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    run(&mut cargo(workspace, ["fmt", "--all", "--check"])).context("`cargo fmt` formats it")?;
    Ok(ONE)
}

/// Clippy on every target; warnings are errors.
pub fn clippy(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    run(&mut cargo(workspace, arguments))?;
    Ok(ONE)
}

/// The API documentation; warnings are errors.
pub fn rustdoc(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let mut command = cargo(
        workspace,
        [
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
        ],
    );
    run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(ONE)
}

/// Every crate's tests. All are run, whatever fails, so that one run shows everything.
pub fn test(workspace: &Workspace, depth: Depth) -> anyhow::Result<Tally> {
    let mut command = cargo(
        workspace,
        ["test", "--workspace", "--locked", "--no-fail-fast"],
    );
    if depth == Depth::Deep {
        command
            .env("UO_SEEDS", DEEP_SEEDS)
            .env("PROPTEST_CASES", DEEP_PROPERTY_CASES);
    }
    counted(&mut command)
}

/// Rules that are left out of the cores on purpose: simulator and models have to miss each of them. What they found is
/// printed.
pub fn planted(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let arguments = [
        "test",
        "--locked",
        "--package",
        "uo-server",
        "--features",
        "planted-bugs",
        "--test",
        "simulated",
        "--test",
        "model",
        "--test",
        "model_membership",
        "planted",
        "--",
        "--show-output",
    ];
    counted(&mut cargo(workspace, arguments))
}

/// The models within their deep bounds. In release: there are many millions of states. What was explored is printed.
pub fn models(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let arguments = [
        "test",
        "--locked",
        "--release",
        "--package",
        "uo-server",
        "--test",
        "model",
        "--test",
        "model_membership",
        "--",
        "--nocapture",
    ];
    counted(cargo(workspace, arguments).env("UO_MODEL", "deep"))
}

/// A server killed under load, fifty times, and held to what it had promised.
pub fn crash(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let packages = ["--package", "uo-server", "--package", "uo-loadtest"];
    run(cargo(workspace, ["build", "--release", "--locked"]).args(packages))?;
    let folder = workspace.root().join("target/crash");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot empty the folder of the last run")?;
    }
    let mut command = Command::new(workspace.root().join("target/release/uo-loadtest"));
    command.args(["crash", "--times", "50", "--bots", "100", "--dir"]);
    run(command.arg(folder))?;
    Ok(ONE)
}

/// The line of a test that failed, as test programs print it.
fn is_failure(line: &str) -> bool {
    line.starts_with("test ") && line.contains(" ... FAILED")
}

/// Runs tests and adds up what their programs say in their closing lines.
pub fn counted(command: &mut Command) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let succeeded = run_watched(command, |line| {
        if let Some(counted) = tally_of_line(line) {
            tally.add(counted);
        } else if is_failure(line) && tally.failures.len() < FAILURES_MAX {
            tally.failures.push(line.to_owned());
        }
    })?;
    if !succeeded && tally.failed == 0 {
        bail!("the tests did not build, or a test process died: see above");
    }
    Ok(tally)
}

/// Every benchmark.
pub fn bench_all(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    bench(workspace, &[])?;
    Ok(ONE)
}

/// `cargo bench` with `arguments`, of the whole workspace when they name no crate.
pub fn bench(workspace: &Workspace, arguments: &[String]) -> anyhow::Result<()> {
    let mut command = cargo(workspace, ["bench", "--locked"]);
    let names_a_crate = |argument: &String| argument == "-p" || argument.starts_with("--package");
    if !arguments.iter().any(names_a_crate) {
        command.arg("--workspace");
    }
    run(command.args(arguments))
}

/// Reads `test result: ok. 3 passed; 0 failed; ...`, the closing line of a test program.
fn tally_of_line(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        let part = counts
            .split(';')
            .find(|part| part.trim_end().ends_with(word))?;
        part.trim().split(' ').next()?.parse().ok()
    };
    Some(Tally::of(number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_test_programs_are_counted() {
        let line = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(tally_of_line(line), Some(Tally::of(12, 0)));
        let line = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(tally_of_line(line), Some(Tally::of(1, 2)));
        assert_eq!(tally_of_line("test order::tests::parses ... ok"), None);
        assert!(!is_failure("test order::tests::parses ... ok"));
        assert!(is_failure(
            "test order::tests::parses ... FAILED (1.0 s): why"
        ));
    }
}
