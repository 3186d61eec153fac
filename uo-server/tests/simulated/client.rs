//! A client that believes nothing: it speaks the protocol and checks every number that it is given.

use std::collections::BTreeMap;

use uo_proto::{
    CharId, Delta, EntityId, EntityInfo, EntityState, ErrorCode, Inventory, InventoryMsg, Missed,
    MissedCount, NumberedOrder, ObjectKey, ObjectState, Order, Pos, Said, Saved, ServerMsg,
    Snapshot, Welcome, close,
};
use uo_server::Millis;
use uo_server::gateway::core::ConnId;

use super::counted::Stats;
use super::hearing::Expected;
use super::ledger::Ledger;

/// How long messages are on their way at most.
const LENIENT_MS: Millis = 6_000;

/// What breaks a promise, in words.
pub type Checked = Result<(), String>;

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// `login` or `resume` is on its way.
    Opening,
    /// `welcome` came.
    Welcomed,
    /// `snapshot` came: there is a world to see.
    InWorld,
}

/// The connection that a player reads.
#[derive(Clone, Debug)]
pub struct Wire {
    pub id: ConnId,
    pub gateway: usize,
    /// Which start of the gateway.
    pub life: u32,
    pub opened_at: Millis,
    pub stage: Stage,
    /// The gateway's tick of the last delta.
    tick: u64,
}

/// The number of the next message of a reliable stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Is(u64),
    /// Some were missed, nobody knows how many.
    Above(u64),
}

impl Next {
    fn last(self) -> u64 {
        match self {
            Next::Is(next) => next - 1,
            Next::Above(last) => last,
        }
    }

    fn take(&mut self, number: u64, stream: &str) -> Checked {
        let is_right = match *self {
            Next::Is(next) => number == next,
            Next::Above(last) => number > last,
        };
        if !is_right {
            return Err(format!("{stream} message {number} when {self:?} was next"));
        }
        *self = Next::Is(number + 1);
        Ok(())
    }

    fn miss(&mut self, missed: MissedCount) {
        *self = match missed {
            MissedCount::Count(count) => Next::Is(self.last() + count + 1),
            MissedCount::Unknown => Next::Above(self.last()),
        };
    }
}

/// A session as its player knows it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Which login of this player it came from.
    pub login: u32,
    pub token: Option<String>,
    public: Next,
    private: Next,
    pub next_order: u64,
    /// Orders that are not known to be durable: a resume sends again what the owner does not have.
    pub kept: BTreeMap<u64, Order>,
    /// The highest order known to be applied. None: a crash may have taken some back.
    applied: Option<u64>,
    pub saved: Option<Saved>,
    /// The gateway that served it last.
    gateway: Option<(usize, u32)>,
    /// Its owner crashed since the last `welcome`.
    crashed: bool,
    /// What was said around it.
    pub expected: Expected,
}

impl Session {
    fn new(login: u32) -> Session {
        Session {
            login,
            token: None,
            public: Next::Is(1),
            private: Next::Is(1),
            next_order: 1,
            kept: BTreeMap::new(),
            applied: Some(0),
            saved: None,
            gateway: None,
            crashed: false,
            expected: Expected::default(),
        }
    }

    /// Orders that are not known to be applied; none: nobody can tell.
    pub fn unapplied(&self) -> Option<Vec<u64>> {
        let applied = self.applied.filter(|_| !self.crashed)?;
        Some(
            self.kept
                .range(applied + 1..)
                .map(|(&seq, _)| seq)
                .collect(),
        )
    }

    /// For `resume`.
    pub fn last_seen(&self) -> (u64, u64) {
        (self.public.last(), self.private.last())
    }
}

/// One player.
#[derive(Debug)]
pub struct Client {
    pub name: String,
    pub char_id: CharId,
    pub wire: Option<Wire>,
    pub session: Option<Session>,
    pub logins: u32,
    pub entities: BTreeMap<EntityId, (EntityInfo, EntityState)>,
    pub objects: BTreeMap<ObjectKey, ObjectState>,
    /// Inventories by version, as far as they are known.
    pub inventories: BTreeMap<u64, Inventory>,
    /// The inventory version that was promised to be durable.
    pub inventory_saved: u64,
    /// How often each line was heard through each start of a gateway: another one may be behind, and tell it again.
    heard: BTreeMap<((usize, u32), String), u32>,
    /// When its owner crashed last, and until when acks of before that may still arrive.
    crashed_at: Millis,
    lenient_until: Millis,
    pub stats: Stats,
}

impl Client {
    pub fn new(name: &str) -> Client {
        Client {
            name: name.to_owned(),
            char_id: CharId::of_name(name),
            wire: None,
            session: None,
            logins: 0,
            entities: BTreeMap::new(),
            objects: BTreeMap::new(),
            inventories: BTreeMap::new(),
            inventory_saved: 0,
            heard: BTreeMap::new(),
            crashed_at: 0,
            lenient_until: 0,
            stats: Stats::default(),
        }
    }

    /// Whether it can resume.
    pub fn has_token(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.token.is_some())
    }

    pub fn is_in_world(&self) -> bool {
        self.wire
            .as_ref()
            .is_some_and(|w| w.stage == Stage::InWorld)
    }

    /// Where it believes to stand.
    pub fn pos(&self) -> Option<Pos> {
        self.entities
            .get(&self.char_id.entity())
            .map(|(_, state)| state.pos())
    }

    /// A connection begins; `fresh`: with a login.
    pub fn connect(&mut self, now: Millis, id: ConnId, gateway: (usize, u32), fresh: bool) {
        self.wire = Some(Wire {
            id,
            gateway: gateway.0,
            life: gateway.1,
            opened_at: now,
            stage: Stage::Opening,
            tick: 0,
        });
        if fresh {
            self.logins += 1;
            self.session = Some(Session::new(self.logins));
        }
    }

    /// Numbers an order. It is kept until it is known to be durable.
    pub fn give(&mut self, order: Order, ledger: &mut Ledger) -> Option<NumberedOrder> {
        let session = self.session.as_mut()?;
        let seq = session.next_order;
        session.next_order += 1;
        let order = match order {
            Order::Say { .. } => {
                let text = format!("{}/{}/{seq}", self.name, session.login);
                ledger.sent(&text);
                Order::Say { text }
            }
            order => order,
        };
        session.kept.insert(seq, order.clone());
        Some(NumberedOrder { seq, order })
    }

    /// Its owner crashed: what is not known to be durable may be forgotten, and done again.
    pub fn note_crash(&mut self, now: Millis, ledger: &mut Ledger) {
        self.crashed_at = now;
        self.lenient_until = now + LENIENT_MS;
        self.inventories
            .retain(|version, _| *version <= self.inventory_saved);
        if let Some(session) = &mut self.session {
            session.crashed = true;
            session.applied = None;
            for order in session.kept.values() {
                if let Order::Say { text } = order {
                    ledger.may_repeat(text);
                }
            }
        }
    }

    /// A gateway was stopped from `since` on: what it had of before a crash arrives only now.
    pub fn note_delay(&mut self, since: Millis, now: Millis) {
        if self.lenient_until >= since && self.crashed_at > 0 {
            self.lenient_until = now + LENIENT_MS;
        }
    }

    /// Reads a message of its connection. What is to be sent in answer.
    pub fn read(
        &mut self,
        now: Millis,
        message: ServerMsg,
        ledger: &Ledger,
    ) -> Result<Vec<NumberedOrder>, String> {
        match message {
            ServerMsg::Welcome(welcome) => return self.welcome(now, *welcome),
            ServerMsg::Snapshot(snapshot) => self.snapshot(snapshot)?,
            ServerMsg::Delta(delta) => self.delta(now, delta)?,
            ServerMsg::Event(event) => {
                self.stats.events += 1;
                self.session()?.public.take(event.seq, "public")?;
            }
            ServerMsg::Said(said) => self.said(said, ledger)?,
            ServerMsg::Saved(saved) => self.saved(saved)?,
            ServerMsg::Missed(missed) => self.missed(missed)?,
            ServerMsg::Inventory(inventory) => self.inventory(now, inventory)?,
            ServerMsg::Error(error) => match error.private {
                Some(private) => self.private(private)?,
                None if error.code == ErrorCode::Invalid => {
                    return Err(format!("refused as invalid: {}", error.message));
                }
                None => {
                    // Not taken: it was as good as never sent.
                    if let (Some(seq), Some(session)) = (error.seq, &mut self.session) {
                        session.kept.remove(&seq);
                    }
                }
            },
            other => {
                if let Some(private) = other.private() {
                    self.private(private)?;
                }
            }
        }
        Ok(Vec::new())
    }

    fn session(&mut self) -> Result<&mut Session, String> {
        self.session
            .as_mut()
            .ok_or_else(|| "a message without a session".to_owned())
    }

    fn private(&mut self, number: u64) -> Checked {
        self.stats.privates += 1;
        self.session()?.private.take(number, "private")
    }

    fn welcome(&mut self, now: Millis, welcome: Welcome) -> Result<Vec<NumberedOrder>, String> {
        self.stats.welcomes += 1;
        if welcome.char_id != self.char_id {
            return Err("welcomed as somebody else".into());
        }
        let Some(wire) = self.wire.as_mut().filter(|w| w.stage == Stage::Opening) else {
            return Err("a second welcome".into());
        };
        wire.stage = Stage::Welcomed;
        let gateway = (wire.gateway, wire.life);
        let is_lenient = now < self.lenient_until;
        let session = self.session()?;
        session.token = Some(welcome.token);
        session.gateway = Some(gateway);
        let last = welcome.last_order;
        if last >= session.next_order {
            return Err(format!(
                "order {last} was applied, and {} would be the next to be given",
                session.next_order
            ));
        }
        if let Some(saved) = session.saved.filter(|saved| saved.seq > last) {
            return Err(format!(
                "order {} was saved, and the owner knows {last}",
                saved.seq
            ));
        }
        if let Some(applied) = session.applied.filter(|&applied| applied > last) {
            return Err(format!(
                "order {applied} was applied, and the owner knows {last}"
            ));
        }
        // One that was written before a crash says nothing about what the next owner knows.
        session.crashed &= is_lenient;
        session.applied = (!session.crashed).then_some(last);
        let again: Vec<NumberedOrder> = session
            .kept
            .range(last + 1..)
            .map(|(&seq, order)| NumberedOrder {
                seq,
                order: order.clone(),
            })
            .collect();
        self.stats.resent += again.len() as u64;
        Ok(again)
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Checked {
        let Some(wire) = self.wire.as_mut().filter(|w| w.stage != Stage::Opening) else {
            return Err("a snapshot before the welcome".into());
        };
        wire.stage = Stage::InWorld;
        let before = self.pos();
        self.entities = snapshot
            .entities
            .into_iter()
            .map(|enter| (enter.state.id, (enter.info, enter.state)))
            .collect();
        self.objects = snapshot.objects.into_iter().map(|o| (o.key, o)).collect();
        self.note_moved(before)?;
        // Oneself may still be missing: a gateway does not wait for ever for a region that stands still.
        Ok(())
    }

    fn delta(&mut self, now: Millis, delta: Delta) -> Checked {
        self.stats.deltas += 1;
        let Some(wire) = self.wire.as_mut().filter(|w| w.stage == Stage::InWorld) else {
            return Err("a delta before the snapshot".into());
        };
        if delta.tick <= wire.tick {
            return Err(format!("delta {} after {}", delta.tick, wire.tick));
        }
        wire.tick = delta.tick;
        let before = self.pos();
        for id in delta.leave {
            if self.entities.remove(&id).is_none() {
                return Err(format!("{id:?} left and was not there"));
            }
        }
        for enter in delta.enter {
            // One that is known already is told whole again: it may have come back between two frames.
            self.entities
                .insert(enter.state.id, (enter.info, enter.state));
        }
        for state in delta.update {
            match self.entities.get_mut(&state.id) {
                Some((_, known)) => *known = state,
                None => return Err(format!("{:?} changed and was not there", state.id)),
            }
        }
        for object in delta.objects {
            self.objects.insert(object.key, object);
        }
        self.note_moved(before)?;
        let is_lenient = now < self.lenient_until;
        let session = self.session()?;
        if delta.ack >= session.next_order {
            return Err(format!("ack {} of an order never given", delta.ack));
        }
        if let Some(applied) = session.applied.filter(|_| !is_lenient) {
            if delta.ack < applied {
                return Err(format!("ack {} after {applied}", delta.ack));
            }
            session.applied = Some(delta.ack);
        } else if !is_lenient && !session.crashed {
            session.applied = Some(delta.ack);
        }
        Ok(())
    }

    fn note_moved(&mut self, before: Option<Pos>) -> Checked {
        let now = self.pos();
        self.session()?.expected.moved(before, now);
        Ok(())
    }

    fn said(&mut self, said: Said, ledger: &Ledger) -> Checked {
        self.stats.said += 1;
        self.session()?.public.take(said.seq, "public")?;
        let text = said.speech.text;
        self.session()?.expected.heard(&text);
        let Some(times) = ledger.times(&text) else {
            return Err(format!("{text:?} was heard, and nobody said it"));
        };
        let through = self.wire.as_ref().map(|wire| (wire.gateway, wire.life));
        let through = through.ok_or("a line without a connection")?;
        let heard = self.heard.entry((through, text.clone())).or_default();
        *heard += 1;
        if *heard > times {
            return Err(format!(
                "{text:?} was heard {heard} times: an order was applied twice"
            ));
        }
        Ok(())
    }

    fn saved(&mut self, saved: Saved) -> Checked {
        self.stats.saved += 1;
        let inventory_saved = self.inventory_saved.max(saved.inventory);
        let session = self.session()?;
        if saved.seq >= session.next_order {
            return Err(format!("order {} is saved and was never given", saved.seq));
        }
        if let Some(before) = session.saved
            && (before.seq > saved.seq || before.inventory > saved.inventory)
        {
            return Err(format!("{saved:?} after {before:?}"));
        }
        session.saved = Some(saved);
        session.kept = session.kept.split_off(&(saved.seq + 1));
        self.inventory_saved = inventory_saved;
        Ok(())
    }

    fn missed(&mut self, missed: Missed) -> Checked {
        self.stats.missed += 1;
        let session = self.session()?;
        session.public.miss(missed.public);
        if missed.public != MissedCount::Count(0) {
            session.expected.clear();
        }
        session.private.miss(missed.private);
        Ok(())
    }

    fn inventory(&mut self, now: Millis, message: InventoryMsg) -> Checked {
        self.private(message.private)?;
        let inventory = message.inventory;
        // What was under way when a newer one became durable is still told, until that one was.
        let newest = self.inventories.keys().next_back().copied();
        if inventory.version < self.inventory_saved.min(newest.unwrap_or_default()) {
            return Err(format!(
                "inventory {} was saved, and {} came back",
                self.inventory_saved, inventory.version
            ));
        }
        if now < self.lenient_until {
            return Ok(()); // It may tell of what a crash has taken back since.
        }
        let version = inventory.version;
        match self.inventories.insert(version, inventory.clone()) {
            Some(known) if known != inventory => {
                Err(format!("two inventories of version {version}"))
            }
            _ => Ok(()),
        }
    }

    /// Its connection was closed by the gateway.
    pub fn closed(&mut self, code: u16) {
        self.wire = None;
        match code {
            close::UNAUTHORISED => {
                self.stats.unauthorised += 1;
                self.session = None;
            }
            close::SUPERSEDED => {
                // Opened elsewhere, by ourselves: whichever of the two it was, the next one logs in.
                self.stats.superseded += 1;
                self.session = None;
            }
            1000 => self.session = None,
            _ => {}
        }
    }

    /// Its connection is gone, and it says so itself or notices.
    pub fn disconnected(&mut self) {
        self.wire = None;
    }
}
