//! Whole scenarios, as a person runs them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs a scenario that leaves its report in `out`.
fn scenario(out: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_uo-loadtest"))
        .args(["scenario", "--out"])
        .arg(out)
        .args(arguments)
        .output()
        .expect("it can be run")
}

/// A sim is lost and comes back, and then every node is replaced: nobody notices more than a pause.
#[test]
fn a_cluster_in_one_process_survives_a_kill_and_a_rolling_restart() {
    let out = tempfile::tempdir().expect("a folder");
    let output = scenario(
        out.path(),
        &[
            "--store=inproc",
            "--sims=3",
            "--gateways=2",
            "--bots=200",
            "--map=512",
            "--ramp=6s",
            "--seconds=60",
            "--chaos=14:kill:sim-3,22:start:sim-3,34:rolling",
            // Beside other tests, on few and busy cores.
            "--held-within-ms=10000",
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    let report = std::fs::read(out.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["sessions"]["lost"], 0, "{text}");
    for name in [
        "coins_lost",
        "coins_duplicated",
        "saved_lost",
        "view_errors",
    ] {
        assert_eq!(report["proof"][name], 0, "{name}: {text}");
    }
    // It has seen what it judged, and nothing was left out.
    assert_eq!(report["chaos"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["failover_ms"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["swarm"]["bots_in"], 200);
    assert!(report["invariants"]["samples"].as_u64() >= Some(50));
    assert!(out.path().join("report.html").exists());
}

#[test]
fn a_mistake_is_told_before_anything_is_started() {
    let out = tempfile::tempdir().expect("a folder");
    for (arguments, sentence) in [
        (&["--chaos=5:pause:sim-1"][..], "live in one process"),
        (&["--chaos=5:start:sim-1"], "sim-1 runs then"),
        (&["--chaos=5:kill:db-1"], "there is no node \"db-1\""),
        (
            &["--chaos=5:kill:sim-1", "--seconds=4"],
            "the run ends after 4 s",
        ),
        (&["--chaos=5:burn:sim-1"], "none of kill, stop"),
        (&["--store=redis"], "none of inproc, mem"),
        (&["--store=mem", "--sims=3"], "leave out --sims"),
        (&["--map=100"], "a multiple of 64"),
        (&["--bar=no_such<=3"], "no figure `no_such`"),
    ] {
        let output = scenario(out.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text.contains(sentence), "{arguments:?}: {text}");
    }
}
