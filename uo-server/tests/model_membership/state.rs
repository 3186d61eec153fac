//! The nodes, the store, and what is on its way between them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use uo_server::cluster::core::{ClusterCore, Ticket};
use uo_server::identity::BootId;
use uo_server::store::row::{self, NodeLoad, NodeRow, NodeState, Role};

use super::bounds::{Faults, Outage};

/// A core that is shared between states until it changes, and hashed once.
#[derive(Clone)]
pub struct Shared {
    core: Arc<ClusterCore>,
    hash: u64,
}

impl Shared {
    pub fn new(core: ClusterCore) -> Shared {
        let mut hasher = DefaultHasher::new();
        core.hash(&mut hasher);
        Shared {
            core: Arc::new(core),
            hash: hasher.finish(),
        }
    }

    /// One that is to be made canonical, and is hashed then.
    pub fn changed(core: ClusterCore) -> Shared {
        Shared {
            core: Arc::new(core),
            hash: 0,
        }
    }

    pub fn is_changed(&self) -> bool {
        self.hash == 0
    }

    pub fn take(self) -> ClusterCore {
        Arc::unwrap_or_clone(self.core)
    }
}

impl std::ops::Deref for Shared {
    type Target = ClusterCore;

    fn deref(&self) -> &ClusterCore {
        &self.core
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        self.hash == other.hash && self.core == other.core
    }
}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.hash.hash(hasher);
    }
}

/// A node, and the process that runs there.
#[derive(Clone, PartialEq, Hash)]
pub struct Node {
    /// None: no process runs.
    pub core: Option<Shared>,
    /// It takes no step; ticks that passed meanwhile.
    pub paused: Option<u64>,
    /// It acted until the tick that is.
    pub acted: bool,
    pub slow: u8,
    pub fast: u8,
}

/// A life register. A dead one keeps its number only for a store that is asked about the number alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Register {
    Alive(u64),
    Dead(u64),
}

/// A row of `nodes`, as far as it says anything about life and death.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    pub beat: u64,
    pub life: u64,
    pub state: NodeState,
}

impl Row {
    pub fn of(bytes: &[u8]) -> Row {
        let row: NodeRow = row::decode(bytes).expect("a core wrote it");
        Row {
            beat: row.beat,
            life: row.life,
            state: row.state,
        }
    }

    pub fn bytes(self) -> Vec<u8> {
        row::encode(&NodeRow {
            beat: self.beat,
            role: Role::Sim,
            life: self.life,
            state: self.state,
            peer: None,
            clients: Vec::new(),
            up_ms: 0,
            starts: 1,
            load: NodeLoad::default(),
            is_cut_off: false,
        })
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { beat, life, state } = self;
        write!(f, "{state:?} beat {beat} life {life}")
    }
}

/// Which loop of a core asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Beat,
    Nodes,
    OwnLife,
    Death,
}

/// What the store is asked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    Beat(BootId, Row),
    Nodes,
    Begin(BootId),
    Read(BootId),
    /// From and to a life; from none: no row; to none: dead.
    Cas(BootId, Option<u64>, Option<u64>),
}

/// What it answers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    Done,
    Rows(Vec<(BootId, Row)>),
    /// None: no row; zero: dead.
    Life(Option<u64>),
    Cas(bool, Option<u64>),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    Asked(Ask),
    Answered(Answer),
}

/// A request or its answer, on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flight {
    pub node: usize,
    pub kind: Kind,
    /// None: nobody waits for an answer.
    pub ticket: Option<Ticket>,
    pub what: What,
}

/// Everything.
#[derive(Clone, PartialEq, Hash)]
pub struct State {
    pub nodes: Vec<Node>,
    pub lives: Vec<(BootId, Register)>,
    /// With the ticks since each was written, where that matters.
    pub rows: Vec<(BootId, Row, u8)>,
    pub flights: Vec<Flight>,
    /// Boots that acted: leases may name them.
    pub named: Vec<BootId>,
    pub outage: bool,
    pub faults: Faults,
    /// What must never happen, and did.
    pub broken: Option<String>,
}

impl State {
    pub fn register(&self, boot: BootId) -> Option<Register> {
        let found = self.lives.iter().find(|(it, _)| *it == boot);
        found.map(|(_, register)| *register)
    }

    pub fn set_register(&mut self, boot: BootId, register: Register) {
        match self.lives.iter_mut().find(|(it, _)| *it == boot) {
            Some((_, old)) => *old = register,
            None => {
                self.lives.push((boot, register));
                self.lives.sort_unstable_by_key(|(it, _)| *it);
            }
        }
    }

    pub fn is_dead(&self, boot: BootId) -> bool {
        matches!(self.register(boot), Some(Register::Dead(_)))
    }

    pub fn row(&self, boot: BootId) -> Option<Row> {
        let found = self.rows.iter().find(|(it, ..)| *it == boot);
        found.map(|(_, row, _)| *row)
    }

    pub fn cores(&self) -> impl Iterator<Item = &ClusterCore> {
        self.nodes.iter().filter_map(|node| node.core.as_deref())
    }

    /// Whether a process runs as this boot.
    pub fn runs(&self, boot: BootId) -> bool {
        self.cores().any(|core| core.me().boot == boot)
    }

    /// Whether this node may act, or what it decided before its fence fell still takes effect. While it is paused it does
    /// nothing, and when it wakes it looks at its fence first.
    pub fn acts(&self, node: usize, acts_on: bool) -> bool {
        let node = &self.nodes[node];
        if node.paused.is_some() {
            return false;
        }
        let may_act = node.core.as_ref().is_some_and(|core| core.may_act());
        may_act || (acts_on && node.acted)
    }
}

/// Which requests an outage fails.
pub fn is_hit(outage: Outage, kind: Kind) -> bool {
    outage == Outage::Everything || kind != Kind::Nodes
}

/// The boot `count` of a node, in a form that reads well: `node.count`.
pub fn boot_id(node: usize, count: u128) -> BootId {
    BootId(((node as u128 + 1) * 16 + count) << 96)
}

/// The node of a boot.
pub fn node_of(boot: BootId) -> usize {
    (boot.0 >> 100) as usize - 1
}

/// A node, for people.
pub fn letter(node: usize) -> char {
    char::from(b'A' + node as u8)
}

/// A boot, for people.
pub fn name(boot: BootId) -> String {
    format!("{}{}", letter(node_of(boot)), (boot.0 >> 96) & 15)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(core) = &node.core else {
                write!(f, "{} is down; ", letter(at))?;
                continue;
            };
            let does = match (node.paused, core.may_act()) {
                (Some(_), _) => "is paused",
                (None, true) => "acts",
                (None, false) if core.is_watching() => "watches",
                (None, false) => "does not act",
            };
            write!(f, "{} {does}; ", name(core.me().boot))?;
        }
        for (boot, register) in &self.lives {
            match register {
                Register::Alive(life) => write!(f, "{} life {life}; ", name(*boot))?,
                Register::Dead(_) => write!(f, "{} dead; ", name(*boot))?,
            }
        }
        for (boot, row, _) in &self.rows {
            write!(f, "row {} {row:?}; ", name(*boot))?;
        }
        let outage = if self.outage { "outage, " } else { "" };
        write!(f, "{outage}{} on the way", self.flights.len())
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = letter(self.node);
        match (&self.what, self.ticket) {
            (What::Asked(ask), Some(_)) => write!(f, "{node} asks: {ask:?}"),
            (What::Asked(ask), None) => write!(f, "{node} asked once: {ask:?}"),
            (What::Answered(answer), _) => write!(f, "to {node}'s {:?}: {answer:?}", self.kind),
        }
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |life: &Option<u64>| life.map_or("no row".to_owned(), |n| n.to_string());
        match self {
            Ask::Beat(boot, row) => write!(f, "write {} = {row:?}", name(*boot)),
            Ask::Nodes => write!(f, "read nodes"),
            Ask::Begin(boot) => write!(f, "insert life of {}", name(*boot)),
            Ask::Read(boot) => write!(f, "read life of {}", name(*boot)),
            Ask::Cas(boot, from, Some(to)) => {
                write!(f, "life of {}: {} -> {to}", name(*boot), shown(from))
            }
            Ask::Cas(boot, from, None) => {
                write!(f, "life of {}: {} -> dead", name(*boot), shown(from))
            }
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |life: &Option<u64>| match life {
            None => "no row".to_owned(),
            Some(0) => "dead".to_owned(),
            Some(life) => life.to_string(),
        };
        match self {
            Answer::Done => write!(f, "done"),
            Answer::Rows(rows) => {
                let rows = rows.iter();
                let rows: Vec<_> = rows
                    .map(|(b, row)| format!("{} {row:?}", name(*b)))
                    .collect();
                write!(f, "rows [{}]", rows.join(", "))
            }
            Answer::Life(life) => write!(f, "life is {}", shown(life)),
            Answer::Cas(true, _) => write!(f, "applied"),
            Answer::Cas(false, life) => write!(f, "refused, it is {}", shown(life)),
        }
    }
}
