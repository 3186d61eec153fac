//! What a character was promised, and whether the server kept it.
//!
//! Promises are made by `saved` alone. A [`Proof`] watches one character over every session, connection and process it
//! meets, and holds each `welcome` and `inventory` against what was promised before.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uo_proto::{
    CoinSerial, CombatEvent, EntityId, Inventory, ObjectKey, Pos, REGION_SIZE, RegionId, ServerMsg,
};
use uo_sdk::{Event, LocalWorld};

/// Inventories remembered until one of them is saved.
const INVENTORIES_MAX: usize = 64;
/// Failures of one character that are kept.
const FAILURES_MAX: usize = 20;
/// Places remembered; one every 50 ms is the most that a server tells.
const TRAIL_MAX: usize = 2_000;

/// Something that was promised and is not so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Of what kind.
    pub kind: Kind,
    /// In words.
    pub text: String,
}

/// What kind of promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A coin that was saved is gone.
    Coin,
    /// A coin is with two characters.
    Doubled,
    /// An order or an inventory that was saved is not what the server has, or a place is too old.
    Saved,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Proof {
    name: String,
    /// The highest order of this session that is saved.
    saved_seq: u64,
    /// The highest order of this session that was sent.
    sent_seq: u64,
    /// The newest inventory that is saved.
    saved: Inventory,
    /// Inventories that were told and are not known to be saved, by version.
    told: BTreeMap<u64, Inventory>,
    /// Objects seen to break in the own region, with the order whose saving covers that.
    breaking: Vec<(ObjectKey, u64)>,
    /// Objects whose breaking is saved.
    pub broken: BTreeSet<ObjectKey>,
    /// Where the own body was, with the time in milliseconds, newest last.
    trail: VecDeque<(u64, Pos)>,
    /// Promises not kept.
    pub failures: Vec<Broken>,
    /// Promises received.
    pub promises: u64,
}

impl Proof {
    /// Watches the character `name`.
    pub fn new(name: &str) -> Proof {
        Proof {
            name: name.into(),
            ..Proof::default()
        }
    }

    /// An order went out under this number.
    pub fn sent(&mut self, seq: u64) {
        self.sent_seq = self.sent_seq.max(seq);
    }

    /// Everything that was saved of what this character carries: for looking at it across characters.
    pub fn coins(&self) -> &[CoinSerial] {
        &self.saved.coins
    }

    /// An event arrived at `now_ms`; `world` has taken it already. `kept_ms` is how old a place may be where
    /// a session goes on after a crash; none where the character may have gone on meanwhile, so that its place tells
    /// nothing.
    pub fn event(&mut self, now_ms: u64, event: &Event, world: &LocalWorld, kept_ms: Option<u64>) {
        match event {
            Event::Welcomed { welcome, resumed } => {
                if *resumed {
                    self.resumed(welcome.last_order, Pos::new(welcome.x, welcome.y), kept_ms);
                } else {
                    (self.saved_seq, self.sent_seq) = (0, 0);
                    self.breaking.clear();
                }
            }
            Event::Message(ServerMsg::Saved(saved)) => self.saved(saved.seq, saved.inventory),
            Event::Message(ServerMsg::Inventory(message)) => self.inventory(&message.inventory),
            Event::Message(ServerMsg::Event(event)) => self.combat(&event.combat, world),
            Event::Message(_) => {}
            _ => return,
        }
        if let Some(me) = world.me() {
            let pos = me.state.pos();
            if self.trail.back().is_none_or(|&(_, last)| last != pos) {
                self.trail.push_back((now_ms, pos));
            }
            if self.trail.len() > TRAIL_MAX {
                self.trail.pop_front();
            }
        }
    }

    fn resumed(&mut self, last_order: u64, pos: Pos, kept_ms: Option<u64>) {
        if last_order < self.saved_seq {
            self.fail(
                Kind::Saved,
                format!(
                    "order {} was saved, and the server goes on after {last_order}",
                    self.saved_seq
                ),
            );
        }
        let Some(kept_ms) = kept_ms else {
            return;
        };
        // The place where it stood when the window began counts too.
        let newest = self.trail.back().map_or(0, |&(at, _)| at);
        let first = self
            .trail
            .partition_point(|&(at, _)| at + kept_ms < newest)
            .saturating_sub(1);
        // A place between two deltas may never have been shown: one step of slack.
        let known = self
            .trail
            .iter()
            .skip(first)
            .any(|&(_, was)| was.distance(pos) <= 1);
        if !known && !self.trail.is_empty() {
            self.fail(
                Kind::Saved,
                format!("it is at {pos:?}, where it was not in the last {kept_ms} ms"),
            );
        }
    }

    fn saved(&mut self, seq: u64, version: u64) {
        self.promises += 1;
        self.saved_seq = self.saved_seq.max(seq);
        let covered = self
            .breaking
            .extract_if(.., |(_, needs)| *needs <= seq)
            .map(|(key, _)| key);
        self.broken.extend(covered);
        if let Some(inventory) = self.told.remove(&version) {
            self.saved = inventory;
            self.told = self.told.split_off(&version);
        }
    }

    fn inventory(&mut self, now: &Inventory) {
        if now.version < self.saved.version {
            self.fail(
                Kind::Saved,
                format!(
                    "inventory {} was saved, and the server has {}",
                    self.saved.version, now.version
                ),
            );
        }
        let lost: Vec<String> = self
            .saved
            .coins
            .iter()
            .filter(|coin| now.coins.binary_search(coin).is_err())
            .map(ToString::to_string)
            .collect();
        if !lost.is_empty() {
            self.fail(
                Kind::Coin,
                format!("saved coins are lost: {}", lost.join(", ")),
            );
        }
        if now.version == self.saved.version && *now != self.saved && self.saved.version > 0 {
            self.fail(
                Kind::Saved,
                format!(
                    "inventory {} is not what was saved under this version",
                    now.version
                ),
            );
        }
        if self.told.len() == INVENTORIES_MAX {
            self.told.pop_first();
        }
        self.told.insert(now.version, now.clone());
    }

    /// Only the own region's objects: a character's `saved` says nothing of its neighbours' writes.
    fn combat(&mut self, event: &CombatEvent, world: &LocalWorld) {
        let CombatEvent::Broke { object, .. } = event else {
            return;
        };
        let (Some(map), Some(me)) = (world.map(), world.me()) else {
            return;
        };
        let pos = me.state.pos();
        let deep = |at: u16| (16..REGION_SIZE - 16).contains(&(at % REGION_SIZE));
        if !object.is_runtime()
            && deep(pos.x)
            && deep(pos.y)
            && RegionId::at(map.size, pos) == object.region()
        {
            self.breaking.push((*object, self.sent_seq + 1));
        }
    }

    fn fail(&mut self, kind: Kind, what: String) {
        // The first ones tell most.
        if self.failures.len() < FAILURES_MAX {
            let text = format!("{}: {what}", self.name);
            self.failures.push(Broken { kind, text });
        }
    }
}

/// Coins that are with two characters at once, and twice with one.
pub fn doubled<'a>(purses: impl Iterator<Item = (EntityId, &'a [CoinSerial])>) -> Vec<Broken> {
    let mut seen = BTreeMap::new();
    let mut doubled = Vec::new();
    for (who, coins) in purses {
        for coin in coins {
            if let Some(other) = seen.insert(*coin, who) {
                doubled.push(Broken {
                    kind: Kind::Doubled,
                    text: format!("coin {coin} is with {other} and with {who}"),
                });
            }
        }
    }
    doubled
}
