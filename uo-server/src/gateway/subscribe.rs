//! Which regions the gateway needs, who holds them, and whether their feeds are without a hole.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{AOI_RADIUS, Pos, REGION_SIZE, RegionId};

use super::core::{Alarm, Asked, GatewayCore};
use super::interest::{CellId, Kind, look};
use super::session::{Greeting, Phase};
use super::told;
use crate::Millis;
use crate::identity::{Holder, NodeName};
use crate::limits::{FEED_WAIT_MS, LINGER_MS, SUBSCRIBE_MARGIN, SUBSCRIPTION_LINGER_MS};
use crate::peer::ToSim;
use crate::peer::message::{FeedDelta, FeedFull, Leases, Told};
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, Right, StoreError};

/// Who was last said to hold a region, and under which epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hint {
    epoch: u64,
    pub(super) holder: Option<Holder>,
}

/// The regions that overlap the area of interest around a place and a margin: columns and rows of regions, inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    from: (u8, u8),
    to: (u8, u8),
}

impl Needs {
    /// What a session at `centre` needs.
    pub fn around(map_size: u16, centre: Pos) -> Needs {
        let reach = AOI_RADIUS + SUBSCRIBE_MARGIN;
        let low = |at: u16| (at.saturating_sub(reach) / REGION_SIZE) as u8;
        let high = |at: u16| (at.saturating_add(reach).min(map_size - 1) / REGION_SIZE) as u8;
        Needs {
            from: (low(centre.x), low(centre.y)),
            to: (high(centre.x), high(centre.y)),
        }
    }

    /// Each region.
    pub fn regions(self, map_size: u16) -> impl Iterator<Item = RegionId> {
        let per_row = u32::from(map_size / REGION_SIZE);
        let row = move |y: u8| {
            let regions = self.from.0..=self.to.0;
            regions.map(move |x| RegionId(u32::from(y) * per_row + u32::from(x)))
        };
        (self.from.1..=self.to.1).flat_map(row)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The store is asked who holds it.
    Asking(Ticket),
    /// Nobody does, or it could not be told; the next try begins then.
    Waiting(Millis),
    /// Its holder was asked for the feed; given up then.
    Subscribed(Millis),
    /// The feed runs.
    Fed,
}

/// The feed of one region, however many sessions need it.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    needs: u32,
    idle_since: Option<Millis>,
    holder: Option<Holder>,
    epoch: u64,
    tick: u64,
    /// Public events that its feed had, as of the newest frame; none: no frame came.
    told: Option<Told>,
    stage: Stage,
    tries: u32,
}

impl Subscription {
    pub(super) fn is_fed(&self) -> bool {
        self.stage == Stage::Fed
    }

    /// Whether a snapshot may do without it: it is here, or nobody holds it.
    fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Fed => true,
            Stage::Waiting(_) => self.holder.is_none(),
            Stage::Asking(_) => self.tries > 0,
            Stage::Subscribed(_) => false,
        }
    }
}

impl GatewayCore {
    /// A session looks from `centre` now (none: from nowhere).
    pub(super) fn set_centre(&mut self, key: u32, centre: Option<Pos>) {
        let sight = &mut self.sessions[key].sight;
        let before = std::mem::replace(&mut sight.centre, centre);
        if before == centre {
            return;
        }
        if centre.is_none() {
            // From here on it hears nothing, whatever happens where it was.
            self.sessions[key].reliable.miss_public();
        }
        let (from, to) = (before.map(CellId::at), centre.map(CellId::at));
        if from != to {
            if let Some(cell) = from {
                self.view.grid.remove(Kind::Sessions, key, cell);
            }
            if let Some(cell) = to {
                self.view.grid.insert(Kind::Sessions, key, cell);
            }
        }
        self.mark(key, look::ENTITIES | look::OBJECTS);
        let map_size = self.config.world.size();
        let needs = centre.map(|centre| Needs::around(map_size, centre));
        let held = std::mem::replace(&mut self.sessions[key].needs, needs);
        if held != needs {
            let regions = |needs: Option<Needs>| {
                needs
                    .into_iter()
                    .flat_map(move |needs| needs.regions(map_size))
            };
            regions(needs).for_each(|region| self.need(region));
            regions(held).for_each(|region| self.let_go(region));
        }
    }

    fn need(&mut self, region: RegionId) {
        if let Some(subscription) = self.regions.get_mut(&region) {
            subscription.needs += 1;
            subscription.idle_since = None;
            return;
        }
        let subscription = Subscription {
            needs: 1,
            idle_since: None,
            holder: None,
            epoch: 0,
            tick: 0,
            told: None,
            stage: Stage::Waiting(self.now),
            tries: 0,
        };
        self.regions.insert(region, subscription);
        self.find_holder(region);
    }

    fn let_go(&mut self, region: RegionId) {
        let subscription = self
            .regions
            .get_mut(&region)
            .expect("what is let go was needed");
        subscription.needs -= 1;
        if subscription.needs == 0 {
            subscription.idle_since = Some(self.now);
        }
    }

    pub(super) fn sweep_regions(&mut self) {
        let now = self.now;
        let is_over = |idle: Option<Millis>| {
            idle.is_some_and(|since| now.saturating_sub(since) >= SUBSCRIPTION_LINGER_MS)
        };
        let over = self
            .regions
            .iter()
            .filter(|(_, held)| is_over(held.idle_since));
        let over: Vec<RegionId> = over.map(|(&region, _)| region).collect();
        for region in over {
            let subscription = self.regions.remove(&region).expect("it was just seen");
            if let Some(holder) = subscription.holder {
                self.send(&holder.node, ToSim::Unsubscribe { region });
            }
            self.view.drop_region(now, region);
        }
    }

    /// Subscribes at the holder that is known, else asks the store who it is.
    fn find_holder(&mut self, region: RegionId) {
        if let Some(holder) = self.holder_of(region) {
            self.subscribe(region, holder);
            return;
        }
        let request = Request::ClaimRead {
            right: Right::Region(region),
            serial: false,
        };
        let ticket = self.ask_store(Asked::Region(region), request);
        if let Some(subscription) = self.regions.get_mut(&region) {
            subscription.stage = Stage::Asking(ticket);
        }
    }

    fn subscribe(&mut self, region: RegionId, holder: Holder) {
        let until = self.now + FEED_WAIT_MS;
        let Some(subscription) = self.regions.get_mut(&region) else {
            return;
        };
        subscription.stage = Stage::Subscribed(until);
        subscription.holder = Some(holder.clone());
        self.set_alarm(until, Alarm::Region(region));
        self.send(&holder.node, ToSim::Subscribe { region });
    }

    /// The feed of a region is gone, and what it showed stays until a new one begins.
    fn lose_region(&mut self, region: RegionId, holder_is_known_bad: bool) {
        if holder_is_known_bad {
            self.hints.remove(&region);
        }
        let Some(subscription) = self.regions.get_mut(&region) else {
            return;
        };
        subscription.holder = None;
        subscription.tries += 1;
        let at = self.now + self.jitter.wait_ms(subscription.tries);
        subscription.stage = Stage::Waiting(at);
        self.set_alarm(at, Alarm::Region(region));
    }

    pub(super) fn region_overdue(&mut self, region: RegionId) {
        match self.regions.get(&region).map(|held| held.stage) {
            Some(Stage::Waiting(at)) if at <= self.now => self.find_holder(region),
            Some(Stage::Subscribed(until)) if until <= self.now => self.lose_region(region, true),
            _ => {}
        }
    }

    pub(super) fn region_read(
        &mut self,
        region: RegionId,
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    ) {
        let is_current = |held: &Subscription| held.stage == Stage::Asking(ticket);
        if !self.regions.get(&region).is_some_and(is_current) {
            return;
        }
        if let Ok(Reply::Claim(Some(row))) = reply {
            self.learn(region, row.number, row.holder);
        }
        match self.holder_of(region) {
            Some(holder) => self.subscribe(region, holder),
            None => self.lose_region(region, false),
        }
    }

    /// Who holds a region as far as is known here, if it can be reached.
    pub(super) fn holder_of(&self, region: RegionId) -> Option<Holder> {
        let holder = self.hints.get(&region)?.holder.as_ref()?;
        self.members.contains(holder).then(|| holder.clone())
    }

    pub(super) fn learn(&mut self, region: RegionId, epoch: u64, holder: Option<Holder>) {
        if self
            .hints
            .get(&region)
            .is_none_or(|hint| hint.epoch <= epoch)
        {
            self.hints.insert(region, Hint { epoch, holder });
        }
    }

    /// Who holds regions now, without asking.
    pub(super) fn leases(&mut self, leases: Leases) {
        for (region, epoch, holder) in leases.changes {
            self.learn(region, epoch, holder);
            let holder = self.holder_of(region);
            let is_asked = |held: &Subscription| {
                matches!(held.stage, Stage::Subscribed(_)) && held.holder == holder
            };
            let held = self.regions.get(&region);
            let is_news = held.is_some_and(|held| !held.is_fed() || epoch > held.epoch);
            match holder.clone() {
                Some(holder) if is_news && !held.is_some_and(is_asked) => {
                    self.subscribe(region, holder);
                }
                None if is_news => self.lose_region(region, false),
                _ => {}
            }
            if holder.is_some() {
                let range = (region, 0)..=(region, u32::MAX);
                let waiting: Vec<u32> = self.awaiting.range(range).map(|&(_, key)| key).collect();
                waiting.into_iter().for_each(|key| self.locate(key));
            }
        }
    }

    /// The regions of a sim that cannot be reached.
    pub(super) fn lose_regions_of(&mut self, node: &NodeName) {
        let is_of = |holder: &Option<Holder>| holder.as_ref().is_some_and(|h| h.node == *node);
        let lost = self.regions.iter().filter(|(_, held)| is_of(&held.holder));
        let lost: Vec<RegionId> = lost.map(|(&region, _)| region).collect();
        lost.into_iter()
            .for_each(|region| self.lose_region(region, false));
    }

    /// Sims can be reached that could not: whoever waits tries at once.
    pub(super) fn retry_regions(&mut self) {
        let is_waiting = |held: &Subscription| matches!(held.stage, Stage::Waiting(_));
        let waiting = self.regions.iter().filter(|(_, held)| is_waiting(held));
        let waiting: Vec<RegionId> = waiting.map(|(&region, _)| region).collect();
        waiting
            .into_iter()
            .for_each(|region| self.find_holder(region));
    }

    pub(super) fn feed_full(&mut self, from: Holder, full: &FeedFull) {
        let Some(held) = self.regions.get_mut(&full.region) else {
            let region = full.region;
            self.send(&from.node, ToSim::Unsubscribe { region });
            return;
        };
        if full.epoch < held.epoch {
            self.counters.feeds_stale += 1;
            return;
        }
        self.pulse.fed(self.now, &from.node);
        held.holder = Some(from);
        held.epoch = full.epoch;
        held.tick = full.tick;
        let told_before = held.told.replace(full.told);
        held.stage = Stage::Fed;
        held.tries = 0;
        self.counters.feeds_full += 1;
        if self.view.apply_full(self.now, full).is_err() {
            self.counters.feeds_gaps += 1;
        }
        self.follow_touched();
        if told::is_hole(told_before, full) {
            self.tell_hole(full.region);
        }
        self.tell_events(&full.events);
        let waiting: Vec<u32> = self.unsnapped.iter().copied().collect();
        waiting.into_iter().for_each(|key| self.try_snapshot(key));
    }

    pub(super) fn feed_delta(&mut self, from: Holder, delta: &FeedDelta) {
        let Some(held) = self.regions.get_mut(&delta.region) else {
            return;
        };
        if delta.epoch < held.epoch {
            self.counters.feeds_stale += 1;
            return;
        }
        if held.stage != Stage::Fed {
            return;
        }
        let told = held.told.map(|told| told.count);
        let follows = (held.tick, told) == (delta.base_tick, Some(delta.base_told));
        if delta.epoch != held.epoch || !follows {
            self.counters.feeds_gaps += 1;
            self.subscribe(delta.region, from);
            return;
        }
        held.tick = delta.tick;
        if let Some(told) = &mut held.told {
            told.count = delta.told;
        }
        self.counters.feeds_delta += 1;
        // Speech comes between the ticks, and belongs to no round.
        if !delta.is_speech() {
            self.pulse.fed(self.now, &from.node);
        }
        self.note_removes(&delta.removes);
        if self.view.apply_delta(self.now, delta).is_err() {
            self.counters.feeds_gaps += 1;
            self.subscribe(delta.region, from);
        }
        self.follow_touched();
        if told::has_hole(delta) {
            self.tell_hole(delta.region);
        }
        self.tell_events(&delta.events);
    }

    /// A region is not held there, or not any more.
    pub(super) fn feed_end(&mut self, from: &Holder, region: RegionId, epoch: u64) {
        if self
            .regions
            .get(&region)
            .is_some_and(|held| epoch >= held.epoch)
        {
            // Whoever is believed to have it ought to know, under whatever epoch it had it.
            let is_wrong = self
                .hints
                .get(&region)
                .is_some_and(|hint| hint.epoch <= epoch || hint.holder.as_ref() == Some(from));
            self.lose_region(region, is_wrong);
        }
    }

    /// Sessions follow their characters, and learn which orders were taken.
    pub(super) fn follow_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        self.view.take_touched(&mut touched);
        for char_id in touched.drain(..) {
            let Some(key) = self.sessions.of_char(char_id) else {
                continue;
            };
            let session = &mut self.sessions[key];
            let Some(entity) = self.view.find(char_id.entity()) else {
                if session.conn.is_none() {
                    self.set_centre(key, None);
                }
                continue;
            };
            let (pos, ack, number) = (entity.state.pos(), entity.ack, entity.number);
            // An acknowledgement of more than was ordered is one of the session before.
            let is_ours = session.phase == Phase::Attached && ack <= session.orders.last();
            if is_ours && ack > session.ack {
                session.ack = ack;
                session.orders.acknowledge(ack);
                self.mark(key, look::ACK);
            }
            self.set_centre(key, Some(pos));
            self.note_shown(key, number);
            if self.unsnapped.contains(&key) {
                self.try_snapshot(key);
            }
        }
        self.touched = touched;
    }

    /// Sends the snapshot of a session whose surroundings are in, or have been waited for long enough.
    pub(super) fn try_snapshot(&mut self, key: u32) {
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let (Greeting::Snapshot(until), Some(conn)) = (session.greeting, session.conn) else {
            return;
        };
        let map_size = self.config.world.size();
        let settled = |region: RegionId| {
            self.regions
                .get(&region)
                .is_none_or(|held| held.is_settled())
        };
        let own = self.view.find(session.char_id.entity());
        let is_ready = own.is_some_and(|own| own.number >= session.generation)
            && session
                .needs
                .is_none_or(|needs| needs.regions(map_size).all(settled));
        if is_ready || until <= self.now {
            self.urgent.push(conn);
            self.unsnapped.remove(&key);
            self.sessions[key].greeting = Greeting::Done;
            self.sessions[key].sight.wants_snapshot = true;
            self.sessions[key].reliable.begin_to_hear();
            // No snapshot tells which orders were taken since the welcome.
            self.mark(key, look::ACK);
        }
    }

    /// Sessions without a connection stop looking when their characters have left the world.
    pub(super) fn forget_resting_sight(&mut self, key: u32) {
        let session = &self.sessions[key];
        let rested = self.now.saturating_sub(session.rests_since);
        let is_long = session.conn.is_none() && rested > LINGER_MS + SUBSCRIPTION_LINGER_MS;
        if is_long && session.sight.centre.is_some() {
            self.set_centre(key, None);
        }
    }
}
