//! Three rights and what two sims have of them: the leases of two regions, and a character that stands in one of them.

use std::fmt;

use uo_server::cluster::claim::{Attempt, Claim};
use uo_server::identity::BootId;
use uo_server::store::{ClaimRow, Seen};

use crate::model::claim::state::{Role, brief};

/// Which right: the region where the character stands, the other region, the character.
pub type Right = usize;
/// The region where the character stands.
pub const HERE: Right = 0;
/// The region beside it.
pub const THERE: Right = 1;
pub const CHARACTER: Right = 2;
pub const RIGHTS: usize = 3;

/// One claim of a node. Of a region a node has one at most, as [`Role::Owned`], whatever state it is in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    pub role: Role,
    pub claim: Claim,
    /// Who offered it.
    pub source: Option<BootId>,
    /// In the battle of which region it is, or was before it became outgoing.
    pub battle: Right,
}

impl Slot {
    pub fn new(role: Role) -> Slot {
        Slot {
            role,
            claim: Claim::Free,
            source: None,
            battle: HERE,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    pub boot: BootId,
    pub fenced: bool,
    /// It stops in order: it takes nothing, and gives everything away.
    pub stopping: bool,
    /// By right, then by role.
    pub slots: [Vec<Slot>; RIGHTS],
}

impl Node {
    pub fn new(boot: BootId) -> Node {
        Node {
            boot,
            fenced: false,
            stopping: false,
            slots: Default::default(),
        }
    }

    pub fn slot(&self, right: Right, role: Role) -> Option<&Slot> {
        self.slots[right].iter().find(|slot| slot.role == role)
    }

    pub fn slot_mut(&mut self, right: Right, role: Role) -> Option<&mut Slot> {
        self.slots[right].iter_mut().find(|slot| slot.role == role)
    }

    pub fn take_slot(&mut self, right: Right, role: Role) -> Option<Slot> {
        let slots = &mut self.slots[right];
        let at = slots.iter().position(|slot| slot.role == role)?;
        Some(slots.remove(at))
    }

    pub fn put_slot(&mut self, right: Right, slot: Slot) {
        self.slots[right].push(slot);
        self.slots[right].sort_by_key(|slot| slot.role);
    }

    /// Whether the region is held and open here.
    pub fn serves(&self, region: Right) -> bool {
        self.slot(region, Role::Owned)
            .is_some_and(|slot| slot.claim.held().is_some())
    }

    /// Whether it may begin something new.
    pub fn is_open(&self) -> bool {
        !self.fenced && !self.stopping
    }

    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Vec::is_empty)
    }
}

/// A message about one right.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    Offer { to: BootId, seen: Seen },
    Refuse { to: BootId, number: u64 },
    Accept { to: BootId, number: u64 },
}

impl Message {
    pub fn to(&self) -> BootId {
        match self {
            Message::Offer { to, .. } | Message::Refuse { to, .. } | Message::Accept { to, .. } => {
                *to
            }
        }
    }

    pub fn to_mut(&mut self) -> &mut BootId {
        match self {
            Message::Offer { to, .. } | Message::Refuse { to, .. } | Message::Accept { to, .. } => {
                to
            }
        }
    }
}

/// One register, and what is under way about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Register {
    pub row: Option<ClaimRow>,
    /// Compare-and-sets that nobody waits for.
    pub air: Vec<Attempt>,
    pub messages: Vec<Message>,
}

impl Register {
    pub fn number(&self) -> u64 {
        self.row.as_ref().map_or(0, |row| row.number)
    }

    pub fn owner(&self) -> Option<BootId> {
        Some(self.row.as_ref()?.holder.as_ref()?.boot)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    /// A region or a character is simulated twice.
    TwoAct,
    /// Somebody acts whom the row does not name.
    ActsUnnamed,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub registers: [Register; RIGHTS],
    pub nodes: Vec<Node>,
    pub dead: Vec<BootId>,
    pub crashes_left: u8,
    pub fences_left: u8,
    pub losses_left: u8,
    pub stops_left: u8,
    pub drains_left: u8,
    pub retires_left: u8,
    pub broken: Option<Broken>,
}

impl State {
    pub fn is_dead(&self, boot: BootId) -> bool {
        self.dead.contains(&boot)
    }

    pub fn node_of(&self, boot: BootId) -> Option<usize> {
        self.nodes.iter().position(|node| node.boot == boot)
    }

    /// Who holds the region, as the nodes tell each other.
    pub fn holder_of(&self, region: Right) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| node.is_open() && node.serves(region))
    }

    /// Whether every right is held by somebody who may act, and the character is in a battle that runs.
    pub fn is_all_held(&self) -> bool {
        let is_held = |right| {
            self.nodes.iter().any(|node| {
                let slot = node.slot(right, Role::Owned);
                let is_held = slot.is_some_and(|slot| slot.claim.held().is_some());
                let runs = right != CHARACTER || slot.is_some_and(|slot| node.serves(slot.battle));
                !node.fenced && is_held && runs
            })
        };
        (0..RIGHTS).all(is_held)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; RIGHTS] = ["here", "there", "character"];
        for (register, name) in self.registers.iter().zip(NAMES) {
            match register.owner() {
                None => write!(f, "{name} {}: nobody, ", register.number())?,
                Some(boot) => write!(f, "{name} {}: boot {}, ", register.number(), boot.0)?,
            }
        }
        for node in &self.nodes {
            write!(f, "| boot {}", node.boot.0)?;
            for (is_so, word) in [
                (node.fenced, " fenced"),
                (node.stopping, " stopping"),
                (self.is_dead(node.boot), " dead"),
            ] {
                if is_so {
                    write!(f, "{word}")?;
                }
            }
            for (slots, name) in node.slots.iter().zip(NAMES) {
                for slot in slots {
                    match name {
                        "character" => write!(
                            f,
                            " {name} {:?} {} in {}",
                            slot.role,
                            brief(&slot.claim),
                            NAMES[slot.battle]
                        )?,
                        _ => write!(f, " {name} {}", brief(&slot.claim))?,
                    }
                }
            }
            write!(f, " ")?;
        }
        Ok(())
    }
}
