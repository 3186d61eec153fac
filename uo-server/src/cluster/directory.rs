//! Who is there, which of them can be reached, and what the gateway and the links of this process have to know of that.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::core::Member;
use crate::identity::{Holder, NodeName};
use crate::peer::PeerAddress;
use crate::store::row::{NodeState, Role};

/// Where a gateway can turn to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// The sims that are believed alive and that can be reached.
    pub sims: Vec<Holder>,
    /// Where clients can connect besides, in the order of the nodes' names.
    pub gateways: Vec<String>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Directory {
    members: Vec<Member>,
    linked: Vec<NodeName>,
    told: Reach,
}

impl Directory {
    /// Everyone that is not presumed gone, this process included.
    pub fn members_are(&mut self, members: Vec<Member>) {
        self.members = members;
    }

    /// The other nodes to which there is a link; replaces what was said before.
    pub fn linked_are(&mut self, nodes: Vec<NodeName>) {
        self.linked = nodes;
    }

    /// The link to a node is gone.
    pub fn link_lost(&mut self, node: &NodeName) {
        self.linked.retain(|linked| linked != node);
    }

    /// Everyone that is not presumed gone.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The other nodes to which there is a link.
    pub fn linked(&self) -> &[NodeName] {
        &self.linked
    }

    /// The other nodes, and where they can be dialed. Of one name there may be several boots.
    pub fn addresses(&self, me: &Holder) -> Vec<PeerAddress> {
        let others = self.members.iter();
        let others = others.filter(|it| it.holder.node != me.node);
        others
            .map(|member| PeerAddress {
                holder: member.holder.clone(),
                role: member.role,
                address: member.peer.clone(),
            })
            .collect()
    }

    /// What the gateway of this process can reach, if that has changed since it was asked for last.
    pub fn news(&mut self, me: &Holder) -> Option<Reach> {
        let reach = self.reach(me);
        if reach == self.told {
            return None;
        }
        self.told = reach.clone();
        Some(reach)
    }

    /// Whether every sim that runs can be reached, and there is one.
    pub fn reaches_all_sims(&self, me: &Holder) -> bool {
        let is_sim =
            |member: &&Member| member.role != Role::Gateway && member.state == NodeState::Running;
        let mut sims = self.members.iter().filter(is_sim).peekable();
        sims.peek().is_some() && sims.all(|sim| self.is_within_reach(sim, me))
    }

    fn reach(&self, me: &Holder) -> Reach {
        let members = self.members.iter();
        let sims = members
            .filter(|member| member.role != Role::Gateway && self.is_within_reach(member, me));
        // Whoever stops sends its clients away; and a client needs no link to get there.
        let others = self
            .members
            .iter()
            .filter(|member| member.holder.node != me.node && member.state != NodeState::Stopping);
        Reach {
            sims: sims.map(|member| member.holder.clone()).collect(),
            gateways: others.flat_map(|it| it.clients.iter().cloned()).collect(),
        }
    }

    fn is_within_reach(&self, member: &Member, me: &Holder) -> bool {
        member.holder == *me || self.linked.contains(&member.holder.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::BootId;

    fn member(node: &str, role: Role, state: NodeState) -> Member {
        Member {
            holder: Holder {
                node: node.into(),
                boot: BootId(1),
            },
            role,
            state,
            peer: Some(format!("{node}:1")),
            clients: match role {
                Role::Sim => Vec::new(),
                _ => vec![format!("ws://{node}")],
            },
        }
    }

    fn names(reach: &Reach) -> Vec<&str> {
        reach.sims.iter().map(|sim| &*sim.node.0).collect()
    }

    /// Red when a sim without a link is named, when this process is missing, or when the same is told twice.
    #[test]
    fn a_gateway_hears_of_sims_once_they_are_linked() {
        let mut directory = Directory::default();
        let me = member("a", Role::All, NodeState::Running).holder;
        directory.members_are(vec![
            member("a", Role::All, NodeState::Running),
            member("b", Role::Sim, NodeState::Running),
            member("g", Role::Gateway, NodeState::Running),
            member("h", Role::Gateway, NodeState::Stopping),
        ]);
        let first = directory.news(&me).expect("there is something to tell");
        assert_eq!(names(&first), ["a"]);
        assert_eq!(first.gateways, ["ws://g"], "neither itself nor who stops");
        assert!(!directory.reaches_all_sims(&me));
        directory.linked_are(vec!["b".into(), "g".into()]);
        let second = directory.news(&me).expect("a sim can be reached");
        assert_eq!(names(&second), ["a", "b"]);
        assert!(directory.news(&me).is_none() && directory.reaches_all_sims(&me));
        directory.link_lost(&"b".into());
        assert_eq!(names(&directory.news(&me).expect("it is lost")), ["a"]);
    }

    #[test]
    fn a_gateway_alone_is_not_ready() {
        let mut directory = Directory::default();
        let me = member("g", Role::Gateway, NodeState::Running);
        directory.members_are(vec![me.clone()]);
        assert!(!directory.reaches_all_sims(&me.holder));
        assert!(directory.addresses(&me.holder).is_empty());
    }
}
