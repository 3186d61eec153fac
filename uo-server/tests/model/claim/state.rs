//! Everything there is: the store, the requests and messages under way, and what each node has of the right.

use std::fmt;

use uo_server::cluster::claim::Claim;
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::store::{ClaimRow, Seen, Stamp};

use super::store::{Cells, Data, Deeds, Late};

/// In which part a node has the right, as in `sim/claims.rs`: of one character there can be several at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Wanted by somebody, and not ours yet.
    Entering,
    /// Ours, and simulated.
    Owned,
    /// Offered to another, or being taken back.
    Outgoing,
    /// Offered by another, and being claimed.
    Arriving,
    /// Stopped, and being written and released.
    Leaving,
}

/// An answer that is kept back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    Row(Option<ClaimRow>),
    Applied,
    Refused(Option<ClaimRow>),
    Loaded(Data, Option<u64>),
    Sealed,
}

/// A plain write that was not acknowledged yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Write {
    Main { n: u32, deeds: Deeds },
    Object { n: u32, there: bool },
}

impl Write {
    /// The write of a holder with this number.
    pub fn under(&self, number: u64) -> Late {
        match *self {
            Write::Main { n, deeds } => Late::Main {
                stamp: Stamp { number, n },
                deeds,
            },
            Write::Object { n, there } => Late::Object {
                stamp: Stamp { number, n },
                there,
            },
        }
    }
}

/// Which rows of a holder have to be written again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dirty {
    pub main: bool,
    pub object: bool,
}

impl Dirty {
    pub fn is_any(self) -> bool {
        self.main || self.object
    }

    /// The row of this write is not known to be durable.
    pub fn mark(&mut self, write: Option<&Write>) {
        self.main |= matches!(write, Some(Write::Main { .. }));
        self.object |= matches!(write, Some(Write::Object { .. }));
    }
}

/// One claim of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    pub role: Role,
    pub claim: Claim,
    /// Who offered it.
    pub source: Option<BootId>,
    /// The answer to the request of this state, when it was carried out and nobody heard of it yet.
    pub kept: Option<Answer>,
    /// The state of what is claimed: carried, loaded or simulated.
    pub value: Data,
    /// Under which number it is simulated here. A node that is fenced does not, whatever this says.
    pub acts: Option<u64>,
    /// The newest `n` under this number.
    pub n: u32,
    pub write: Option<Write>,
    /// What is not known to be durable, beyond what is being written.
    pub dirty: Dirty,
}

impl Slot {
    pub fn new(role: Role) -> Slot {
        Slot {
            role,
            claim: Claim::Free,
            source: None,
            kept: None,
            value: Data::default(),
            acts: None,
            n: 1,
            write: None,
            dirty: Dirty::default(),
        }
    }

    /// Whether an answer of the store is awaited.
    pub fn waits(&self) -> bool {
        !matches!(
            self.claim,
            Claim::Free | Claim::Held { .. } | Claim::Outgoing { .. }
        )
    }
}

/// A node. It is up all the time: a crash is a new boot that knows nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    pub boot: BootId,
    pub fenced: bool,
    /// At most one of each role, in the order of roles.
    pub slots: Vec<Slot>,
    /// The number of a row that does not name this boot, as a read of the safety net showed it; not acted upon yet.
    pub read_back: Option<u64>,
}

impl Node {
    pub fn new(boot: BootId) -> Node {
        Node {
            boot,
            fenced: false,
            slots: Vec::new(),
            read_back: None,
        }
    }

    pub fn slot(&self, role: Role) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.role == role)
    }

    pub fn slot_mut(&mut self, role: Role) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.role == role)
    }

    pub fn take_slot(&mut self, role: Role) -> Option<Slot> {
        let at = self.slots.iter().position(|slot| slot.role == role)?;
        Some(self.slots.remove(at))
    }

    pub fn put_slot(&mut self, slot: Slot) {
        self.slots.push(slot);
        self.slots.sort_by_key(|slot| slot.role);
    }
}

/// A message between nodes. It arrives at most once, at any time, or never.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// What the source held under `seen`, and its state.
    Offer { to: BootId, seen: Seen, data: Data },
    /// To the source: nothing was claimed.
    Refuse { to: BootId, number: u64 },
    /// To the source: it is claimed and sealed under this number.
    Accept { to: BootId, number: u64 },
    /// Only with a planted bug: the source wrote the target's name into the row itself.
    Given { to: BootId, number: u64, data: Data },
}

impl Message {
    pub fn to(&self) -> BootId {
        match self {
            Message::Offer { to, .. }
            | Message::Refuse { to, .. }
            | Message::Accept { to, .. }
            | Message::Given { to, .. } => *to,
        }
    }
}

/// A promise that was not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    /// Two act for the right at a time.
    TwoAct,
    /// Somebody acts whom the row does not name.
    ActsUnnamed,
    /// The number of the row went down, or stayed.
    NumberWentDown,
    /// A load would show something else than what the holder made durable.
    AnotherStateShows,
    /// What was told `saved` is not in what is served next.
    SavedIsLost,
    /// Two writes with one stamp differ.
    StampUsedTwice,
    /// The row names a node that runs and knows nothing of it.
    NamedKnowsNothing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub row: Option<ClaimRow>,
    pub cells: Cells,
    /// Requests that nobody waits for.
    pub air: Vec<Late>,
    pub messages: Vec<Message>,
    pub nodes: Vec<Node>,
    /// Boots that are declared dead.
    pub dead: Vec<BootId>,
    /// Deeds that were told to be saved.
    pub told: Deeds,
    pub crashes_left: u8,
    pub fences_left: u8,
    pub unknown_left: u8,
    pub broken: Option<Broken>,
}

/// The node of every boot: they differ in their boots.
pub fn holder(boot: BootId) -> Holder {
    thread_local! {
        static NAME: NodeName = NodeName::from("n");
    }
    Holder {
        node: NAME.with(NodeName::clone),
        boot,
    }
}

impl State {
    pub fn is_dead(&self, boot: BootId) -> bool {
        self.dead.contains(&boot)
    }

    /// The number of the row; 0: there is none.
    pub fn number(&self) -> u64 {
        self.row.as_ref().map_or(0, |row| row.number)
    }

    pub fn owner(&self) -> Option<BootId> {
        Some(self.row.as_ref()?.holder.as_ref()?.boot)
    }

    /// Every plain write and seal that was sent and may take effect, whoever waits for it.
    pub fn pending_writes(&self) -> Vec<Late> {
        let mut writes: Vec<Late> = self.air.clone();
        writes.retain(|late| !matches!(late, Late::Cas(_)));
        for slot in self.nodes.iter().flat_map(|node| &node.slots) {
            let number = slot.claim.number().unwrap_or(0);
            writes.extend(slot.write.as_ref().map(|write| write.under(number)));
            if let Claim::Sealing { number } = slot.claim {
                let data = slot.value;
                writes.push(Late::Seal { number, data });
            }
        }
        writes
    }

    pub fn node_of(&self, boot: BootId) -> Option<usize> {
        self.nodes.iter().position(|node| node.boot == boot)
    }
}

/// A state in a line, for traces. Nodes change places from one state to the next: they are sorted.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            None => write!(f, "no row")?,
            Some(row) => match &row.holder {
                None => write!(f, "row {}: nobody", row.number)?,
                Some(holder) => write!(f, "row {}: boot {}", row.number, holder.boot.0)?,
            },
        }
        for node in &self.nodes {
            write!(f, " | boot {}", node.boot.0)?;
            if node.fenced {
                write!(f, " fenced")?;
            }
            if self.is_dead(node.boot) {
                write!(f, " dead")?;
            }
            for slot in &node.slots {
                write!(f, " {:?} {}", slot.role, brief(&slot.claim))?;
                if slot.write.is_some() {
                    write!(f, " writes")?;
                }
            }
        }
        if !self.air.is_empty() {
            write!(f, " | {} under way", self.air.len())?;
        }
        if !self.messages.is_empty() {
            write!(f, " | {} messages", self.messages.len())?;
        }
        Ok(())
    }
}

/// A claim in two words.
pub fn brief(claim: &Claim) -> String {
    match claim {
        Claim::Free => "free".to_owned(),
        Claim::Reading => "reading".to_owned(),
        Claim::Claiming { attempt, .. } => format!("claiming {}", attempt.to.number),
        Claim::Loading { number } => format!("loading {number}"),
        Claim::Sealing { number } => format!("sealing {number}"),
        Claim::Held { number } => format!("held {number}"),
        Claim::Outgoing { number } => format!("outgoing {number}"),
        Claim::Releasing { attempt } => format!("releasing to {}", attempt.to.number),
    }
}
