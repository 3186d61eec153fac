//! The nodes of the database under a cluster, disturbed by a script such as `deploy/cassandra/cassandra`.

use std::collections::BTreeSet;

use crate::database;

/// See the module. Dropped, whatever it paused goes on.
#[derive(Debug)]
pub struct Ring {
    script: String,
    paused: BTreeSet<String>,
}

impl Ring {
    /// Nodes that `SCRIPT VERB db-N` disturbs; for the shell.
    pub fn new(script: String) -> Ring {
        Ring {
            script,
            paused: BTreeSet::new(),
        }
    }

    /// Does this to a node of it. Comes back when it is done, which may take many seconds.
    pub async fn perform(&mut self, verb: &'static str, node: &str) -> anyhow::Result<()> {
        match verb {
            // Before: a command that fails may have done it.
            "pause" => drop(self.paused.insert(node.into())),
            "resume" | "kill" => drop(self.paused.remove(node)),
            _ => {}
        }
        let command = format!("{} {verb} {node}", self.script);
        tokio::task::spawn_blocking(move || database::run(&command)).await?
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for node in &self.paused {
            if let Err(error) = database::run(&format!("{} resume {node}", self.script)) {
                eprintln!("{node} is still paused: {error:#}");
            }
        }
    }
}
