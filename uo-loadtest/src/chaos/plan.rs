//! Whether steps can be done, one after the other, to a cluster of these nodes.
//!
//! A mistake is told before anything is started: a run of minutes shall not end with a node that was killed twice.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::{Step, What};

/// What can be done to a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stage {
    /// Its nodes. All run.
    pub nodes: Vec<String>,
    /// The nodes of its database. All run.
    pub databases: Vec<String>,
    /// Whether more can be done to those than to cut them off.
    pub databases_are_ours: bool,
    /// Its nodes are one process: none can be paused, cut off or slowed.
    pub one_process: bool,
    /// It is one node on a store of its own: there is no way to cut.
    pub alone: bool,
    /// A node that keeps the whole world in its memory: it must not end.
    pub forgets: bool,
}

/// Why a step cannot be done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mistake {
    /// Nobody is called that.
    #[error("{step}: there is no node {node:?}; there are {known}")]
    NoNode {
        /// The step.
        step: String,
        /// Whom it names.
        node: String,
        /// Who there is.
        known: String,
    },
    /// Of a database that this program did not start.
    #[error(
        "{step}: the database is not ours to disturb; say --databases SCRIPT to let the scenario do so"
    )]
    NotOurs {
        /// The step.
        step: String,
    },
    /// A thread of this process cannot be paused, nor its sockets cut.
    #[error(
        "{step}: all nodes of --store inproc live in one process and share its memory, so none can be paused, cut off \
         or slowed; it takes nodes that are processes of their own, with --store scylla://host:9042"
    )]
    OneProcess {
        /// The step.
        step: String,
    },
    /// There is nobody to be cut off from.
    #[error(
        "{step}: the one node of this store talks to nobody; it takes several, with --store scylla://host:9042"
    )]
    Alone {
        /// The step.
        step: String,
    },
    /// It would lose the world, as it should.
    #[error(
        "{step}: a world that is kept with --store mem is gone with its process, and every promise with it; \
         try --store local"
    )]
    Forgets {
        /// The step.
        step: String,
    },
    /// The node is not in a state for this.
    #[error("{step}: {node} {is} then")]
    Wrong {
        /// The step.
        step: String,
        /// Whom it names.
        node: String,
        /// How it is.
        is: &'static str,
    },
    /// Nodes that are down or stand still cannot take their turn.
    #[error("{step}: {node} {is} then, and every node takes its turn")]
    Rolling {
        /// The step.
        step: String,
        /// Who.
        node: String,
        /// How it is.
        is: &'static str,
    },
}

/// How a node is between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Standing {
    is_down: bool,
    is_paused: bool,
    is_disturbed: bool,
}

impl Stage {
    /// The steps in the order of time, if all of them can be done.
    pub fn check(&self, mut steps: Vec<Step>) -> Result<Vec<Step>, Mistake> {
        steps.sort_by_key(|step| step.second);
        let all = self.nodes.iter().chain(&self.databases);
        let mut nodes: BTreeMap<&str, Standing> = all
            .map(|name| (name.as_str(), Standing::default()))
            .collect();
        for step in &steps {
            match &step.node {
                None => self.check_rolling(step, &nodes)?,
                Some(node) => {
                    self.check_possible(step, node)?;
                    let standing = nodes
                        .get_mut(node.as_str())
                        .ok_or_else(|| self.nobody(step, node))?;
                    standing.take(step, node)?;
                }
            }
        }
        Ok(steps)
    }

    fn nobody(&self, step: &Step, node: &str) -> Mistake {
        let step = step.to_string();
        let known: Vec<&str> = self
            .nodes
            .iter()
            .chain(&self.databases)
            .map(String::as_str)
            .collect();
        Mistake::NoNode {
            step,
            node: node.into(),
            known: known.join(", "),
        }
    }

    fn check_possible(&self, step: &Step, node: &str) -> Result<(), Mistake> {
        let is_end = matches!(step.what, What::Kill | What::Stop);
        let takes_processes = matches!(
            step.what,
            What::Pause | What::Resume | What::Cut | What::Heal | What::Slow(_)
        );
        let takes_ways = matches!(step.what, What::Cut | What::Heal | What::Slow(_));
        let is_known = self.nodes.iter().any(|known| known == node);
        let is_database = self.databases.iter().any(|known| known == node);
        let step = step.to_string();
        if self.one_process && takes_processes {
            return Err(Mistake::OneProcess { step });
        }
        if self.alone && takes_ways && is_known {
            return Err(Mistake::Alone { step });
        }
        if is_database && !takes_ways && !self.databases_are_ours {
            return Err(Mistake::NotOurs { step });
        }
        if self.forgets && is_end && is_known {
            return Err(Mistake::Forgets { step });
        }
        Ok(())
    }

    fn check_rolling(&self, step: &Step, nodes: &BTreeMap<&str, Standing>) -> Result<(), Mistake> {
        let step = step.to_string();
        if self.forgets {
            return Err(Mistake::Forgets { step });
        }
        let ours = self.nodes.iter().map(String::as_str);
        for node in ours {
            if let Some(is) = nodes[node].why_not_rolling() {
                let node = node.into();
                return Err(Mistake::Rolling { step, node, is });
            }
        }
        Ok(())
    }
}

impl Standing {
    fn why_not_rolling(self) -> Option<&'static str> {
        match self {
            Standing { is_down: true, .. } => Some("does not run"),
            Standing {
                is_paused: true, ..
            } => Some("is paused"),
            Standing {
                is_disturbed: true, ..
            } => Some("is cut off or slow"),
            _ => None,
        }
    }

    /// The standing after a step.
    fn take(&mut self, step: &Step, node: &str) -> Result<(), Mistake> {
        let wrong = |is| {
            Err(Mistake::Wrong {
                step: step.to_string(),
                node: node.into(),
                is,
            })
        };
        match step.what {
            What::Start if !self.is_down => return wrong("runs"),
            What::Kill | What::Stop | What::Pause | What::Resume if self.is_down => {
                return wrong("does not run");
            }
            What::Stop | What::Pause if self.is_paused => return wrong("is paused"),
            What::Resume if !self.is_paused => return wrong("is not paused"),
            What::Heal if !self.is_disturbed => return wrong("is neither cut off nor slow"),
            _ => {}
        }
        match step.what {
            What::Kill | What::Stop => (self.is_down, self.is_paused) = (true, false),
            What::Start => self.is_down = false,
            What::Pause => self.is_paused = true,
            What::Resume => self.is_paused = false,
            What::Cut | What::Slow(_) => self.is_disturbed = true,
            What::Heal => self.is_disturbed = false,
            What::Rolling => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage() -> Stage {
        Stage {
            nodes: ["sim-1", "sim-2", "gw-1"].map(Into::into).into(),
            databases: ["db-1".into()].into(),
            databases_are_ours: true,
            ..Stage::default()
        }
    }

    fn check(stage: &Stage, steps: &str) -> Result<String, String> {
        let steps = steps.split(',').map(|step| step.parse().expect(step));
        let checked = stage.check(steps.collect());
        checked
            .map(|steps| {
                let texts: Vec<String> = steps.iter().map(ToString::to_string).collect();
                texts.join(",")
            })
            .map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn steps_are_done_in_the_order_of_time() {
        let steps = "9:start:sim-1,5:kill:sim-1,12:rolling,1:slow:db-1=5,2:cut:db-1,3:heal:db-1";
        assert_eq!(
            check(&stage(), steps).unwrap(),
            "1:slow:db-1=5,2:cut:db-1,3:heal:db-1,5:kill:sim-1,9:start:sim-1,12:rolling"
        );
        let paused = "1:pause:sim-1,2:kill:sim-1,3:start:sim-1,4:pause:sim-1,5:resume:sim-1";
        assert!(check(&stage(), paused).is_ok());
        let foreign = Stage {
            databases_are_ours: false,
            ..stage()
        };
        assert!(check(&foreign, "1:cut:db-1,2:heal:db-1").is_ok());
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let one_process = Stage {
            one_process: true,
            databases: Vec::new(),
            ..stage()
        };
        let foreign = Stage {
            databases_are_ours: false,
            ..stage()
        };
        let alone = Stage {
            databases: Vec::new(),
            alone: true,
            ..stage()
        };
        let forgetful = Stage {
            forgets: true,
            ..stage()
        };
        let cases = [
            (
                &stage(),
                "1:kill:sim-9",
                "there are sim-1, sim-2, gw-1, db-1",
            ),
            (&stage(), "1:start:sim-1", "1:start:sim-1: sim-1 runs then"),
            (
                &stage(),
                "1:kill:sim-1,2:stop:sim-1",
                "sim-1 does not run then",
            ),
            (
                &stage(),
                "1:pause:sim-1,2:stop:sim-1",
                "sim-1 is paused then",
            ),
            (&stage(), "1:resume:sim-1", "sim-1 is not paused then"),
            (&stage(), "1:heal:sim-1", "neither cut off nor slow"),
            (
                &stage(),
                "1:kill:sim-2,5:rolling",
                "sim-2 does not run then, and every",
            ),
            (
                &stage(),
                "1:cut:gw-1,5:rolling",
                "gw-1 is cut off or slow then, and every",
            ),
            (&one_process, "1:pause:sim-1", "live in one process"),
            (&one_process, "1:slow:sim-1=5", "live in one process"),
            (&one_process, "1:kill:db-1", "there is no node \"db-1\""),
            (&foreign, "1:kill:db-1", "not ours to disturb"),
            (&alone, "1:cut:sim-1", "talks to nobody"),
            (&alone, "1:kill:db-1", "there is no node"),
            (&forgetful, "1:kill:sim-1", "gone with its process"),
            (&forgetful, "1:rolling", "gone with its process"),
        ];
        for (stage, steps, expected) in cases {
            let why = check(stage, steps).expect_err(steps);
            assert!(why.contains(expected), "{steps}: {why}");
        }
    }
}
