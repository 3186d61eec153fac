//! Where the world of a scenario is kept, as it is written on a command line.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreChoice {
    /// All nodes in this process.
    Inproc,
    /// One node, in its memory.
    Mem,
    /// One node, in this folder or one of the run.
    Local(Option<PathBuf>),
    /// Nodes that share a database; its nodes as `host:port`.
    Database(Vec<String>),
}

/// A text that names no store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is none of inproc, mem, local, local:DIR and scylla://host:9042,host2")]
pub struct StoreError(String);

impl StoreChoice {
    /// Whether no second node can share it.
    pub fn is_alone(&self) -> bool {
        matches!(self, StoreChoice::Mem | StoreChoice::Local(_))
    }
}

impl FromStr for StoreChoice {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<StoreChoice, StoreError> {
        let unknown = || StoreError(text.into());
        if let Some(hosts) = text.strip_prefix("scylla://") {
            let hosts: Vec<String> = hosts.split(',').map(Into::into).collect();
            // The keyspace is the run's own.
            let is_host = |host: &String| !host.is_empty() && !host.contains('/');
            return match hosts.iter().all(is_host) {
                true => Ok(StoreChoice::Database(hosts)),
                false => Err(unknown()),
            };
        }
        match text.split_once(':') {
            None if text == "inproc" => Ok(StoreChoice::Inproc),
            None if text == "mem" => Ok(StoreChoice::Mem),
            None if text == "local" => Ok(StoreChoice::Local(None)),
            Some(("local", dir)) if !dir.is_empty() => Ok(StoreChoice::Local(Some(dir.into()))),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreChoice::Inproc => f.write_str("inproc"),
            StoreChoice::Mem => f.write_str("mem"),
            StoreChoice::Local(None) => f.write_str("local"),
            StoreChoice::Local(Some(dir)) => write!(f, "local:{}", dir.display()),
            StoreChoice::Database(hosts) => write!(f, "scylla://{}", hosts.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_read_as_it_is_written() {
        for text in ["inproc", "mem", "local", "local:/a/b", "scylla://a:9042,b"] {
            let store: StoreChoice = text.parse().expect(text);
            assert_eq!(store.to_string(), text);
        }
        for text in [
            "redis",
            "local:",
            "scylla://",
            "scylla://a,,b",
            "scylla://a/mine",
        ] {
            let why = StoreChoice::from_str(text).expect_err(text).to_string();
            assert!(why.contains("none of inproc"), "{why}");
        }
    }
}
