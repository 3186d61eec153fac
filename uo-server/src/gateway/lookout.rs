//! What a process without a sim knows of the cluster: it beats, reads who else does, and tells its gateway and its links.
//!
//! It takes the inputs of a [`member`](crate::sim::member) and answers with its effects, so that store, links and admin
//! need not know which of the two they serve. It has neither fence nor life, and holds nothing.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde_json::{Value, json};

use crate::Millis;
use crate::cluster::core::{self as cluster, ClusterConfig, ClusterCore};
use crate::cluster::directory::Directory;
use crate::identity::Holder;
use crate::sim::member::{Effect, Input, Ticket};
use crate::store::row::Role;

/// See the module.
pub struct Lookout {
    cluster: ClusterCore,
    directory: Directory,
    /// It is seen by others.
    is_there: bool,
    beats: u64,
    /// Messages of nodes that take this one for a sim.
    misled: u64,
}

impl Lookout {
    /// A lookout that begins with its first input.
    pub fn new(cluster: ClusterConfig, now: Millis) -> Lookout {
        debug_assert_eq!(cluster.role, Role::Gateway);
        Lookout {
            cluster: ClusterCore::new(cluster, now),
            directory: Directory::default(),
            is_there: false,
            beats: 0,
            misled: 0,
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        let input = match input {
            Input::Tick { .. } => cluster::Input::Tick,
            Input::Store {
                ticket: Ticket::Cluster(ticket),
                reply,
            } => cluster::Input::Store { ticket, reply },
            Input::Linked { nodes } => {
                self.directory.linked_are(nodes);
                self.linked()
            }
            Input::PeerLost { node } => {
                self.directory.link_lost(&node);
                self.linked()
            }
            Input::Load(load) => cluster::Input::Load(load),
            Input::Stop => {
                self.cluster(now, cluster::Input::Stop, effects);
                // There is nothing to hand over first.
                cluster::Input::Drained
            }
            Input::Peer { .. } => {
                self.misled += 1;
                return;
            }
            // It asked for none of these.
            Input::Store { .. } | Input::NewBoot { .. } | Input::Release { .. } => return,
        };
        self.cluster(now, input, effects);
        let reach = self.directory.news(self.cluster.me());
        effects.extend(reach.map(Effect::Reach));
    }

    fn linked(&self) -> cluster::Input {
        let nodes = self.directory.linked().to_vec();
        cluster::Input::Linked { nodes }
    }

    fn cluster(&mut self, now: Millis, input: cluster::Input, effects: &mut Vec<Effect>) {
        let mut wanted = Vec::new();
        self.cluster.handle(now, input, &mut wanted);
        for effect in wanted {
            match effect {
                cluster::Effect::Store { ticket, request } => {
                    let is_beat = matches!(request, crate::store::Request::NodeBeat { .. });
                    self.beats += u64::from(is_beat);
                    let ticket = Ticket::Cluster(ticket);
                    effects.push(Effect::Store { ticket, request });
                }
                cluster::Effect::Alive => self.is_there = true,
                cluster::Effect::Members(members) => {
                    self.directory.members_are(members);
                    let peers = self.directory.addresses(self.cluster.me());
                    effects.push(Effect::Peers { peers });
                }
                cluster::Effect::Exit { why } => effects.push(Effect::Exit { why }),
                // These are said to who may act, and that is never a gateway.
                cluster::Effect::Fence { .. }
                | cluster::Effect::Dead { .. }
                | cluster::Effect::Take { .. }
                | cluster::Effect::Retire { .. }
                | cluster::Effect::Drain { .. }
                | cluster::Effect::GiveUp
                | cluster::Effect::ReadBack { .. }
                | cluster::Effect::WantBoot
                | cluster::Effect::Reborn { .. } => {}
            }
        }
    }

    /// Who this is.
    pub fn me(&self) -> &Holder {
        self.cluster.me()
    }

    /// Whether it is seen, and every sim that runs can be reached.
    pub fn is_ready(&self) -> bool {
        self.is_there && self.directory.reaches_all_sims(self.me())
    }

    /// Itself, for `/state` and `/metrics`, in the shape that a member has.
    pub fn observe(&self) -> Value {
        let cluster = self.cluster.observe();
        let mut state = json!({
            "ready": self.is_ready(),
            "fenced": false,
            "boot": cluster.boot,
            "life": cluster.life,
            "sim": null,
            "cluster": cluster,
        });
        state["cluster"]["counters"] = json!({"beats": self.beats, "misled": self.misled});
        state["cluster"]["gauges"] = json!({"members": cluster.members.len()});
        state
    }
}

#[cfg(test)]
mod tests;
