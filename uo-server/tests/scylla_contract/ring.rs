//! The nodes of a ring on this machine, and what can be done to them.

use std::process::Command;

/// How `deploy/cassandra/cassandra` is called for the ring under test.
#[derive(Clone, Debug)]
pub struct Ring {
    call: Vec<String>,
}

impl Ring {
    /// The ring that may be disturbed, if there is one.
    pub fn from_environment() -> Option<Ring> {
        let call = std::env::var("UO_SCYLLA_NODES").ok()?;
        let call: Vec<_> = call.split_whitespace().map(str::to_owned).collect();
        (!call.is_empty()).then_some(Ring { call })
    }

    /// `kill db-2` and the like. Panics if it cannot be done.
    pub async fn order(&self, verb: &'static str, node: &str) {
        let mut command = Command::new(&self.call[0]);
        command.args(&self.call[1..]).args([verb, node]);
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("the task ends").expect("it can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{verb} {node}: {said}");
    }
}
