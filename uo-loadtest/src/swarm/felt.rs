//! What one player feels of crossings, failures and restarts, told from its side of the socket alone.
//!
//! **Gaps.** A character that steps says how: a run takes 250 ms, a walk 500, and then it is shown again, on its next tile
//! or standing. The gap of a step is one tick plus what it came too late, so that a step in time has a gap of 50 ms: the
//! time between two frames, as at the server. Where a connection is lost, or the server says that the world moves or
//! stands still, the gap runs from the last delta (or the end of the step that was under way, if that is earlier) to the
//! first state shown afterwards. What is measured after wounds is left out for a while: they slow steps.
//!
//! **Resumes** run from the loss of a connection to the first snapshot or delta on the next.
//!
//! **Fights.** A player sees whom it fights. One that loses its target while both live and are in view, without having
//! ordered anything that would end the fight and without being refused, has had it reset. Cooldowns cannot be seen.

use std::collections::BTreeMap;

use uo_proto::{
    Action, EntityId, EntityState, Order, Pos, REGION_SIZE, RegionId, ServerMsg, TICK_MS,
    WorldStatus,
};
use uo_sdk::{Event, LocalWorld};

/// Why there was a gap, as far as a client can know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// It had gone far enough into another region: the longest of the steps around the handoff.
    Crossing,
    /// The server said that its part of the world moves: its sim was lost.
    Crash,
    /// Its connection was lost.
    Gateway,
    /// The server said that the world stands still.
    Store,
    /// None of these, while whoever runs the servers was moving regions from one to another; no client can tell.
    Drain,
    /// None of these: a late tick, a busy machine. Only those above [`OTHER_US_MIN`] are kept.
    Other,
}

impl Cause {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Crossing => "crossing",
            Cause::Crash => "crash",
            Cause::Gateway => "gateway",
            Cause::Store => "store",
            Cause::Drain => "drain",
            Cause::Other => "other",
        }
    }
}

const TICK_US: u64 = TICK_MS * 1_000;
/// Gaps of steps that nothing explains are kept from here on.
pub const OTHER_US_MIN: u64 = 100_000;
/// A step that ends this much too early has ended in time: frames come a little early and late.
const EARLY_US: u64 = 35_000;
/// A region hands a character over from this depth behind its border.
const DEPTH: u16 = 2;
/// The steps of which one is the crossing.
const CROSSING_STEPS: u32 = 3;
/// After a wound steps may be slow for so long.
const SLOWED_US: u64 = 10_000_000;
/// What was ordered so shortly before may have ended a fight, and a refusal may come this late.
const FIGHT_US: u64 = 1_000_000;

/// Whoever was shown nothing for longer was not waiting for anything.
const FRESH_US: u64 = 500_000;

/// What was felt at one event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Felt {
    /// Gaps that ended, in microseconds.
    pub gaps: Vec<(Cause, u64)>,
    /// A resume that was complete.
    pub resume_us: Option<u64>,
    /// A fight began.
    pub fights: u64,
    /// A fight was reset.
    pub fights_reset: u64,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    to: Pos,
    due_us: u64,
}

/// A time without a view of the own character.
#[derive(Clone, Copy, Debug)]
struct Outage {
    cause: Cause,
    since_us: u64,
    /// The server said, or a new connection shows, that it is over: the next state ends it.
    is_over: bool,
}

/// A target that is gone without a reason so far.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    target: EntityId,
    until_us: u64,
}

/// Feels for one player. Times are microseconds on one clock.
#[derive(Clone, Debug, Default)]
pub struct Senses {
    own: Option<EntityState>,
    step: Option<Step>,
    /// In whose battle it is believed to be.
    battle: Option<RegionId>,
    crossing: Option<(u32, Option<u64>)>,
    outage: Option<Outage>,
    lost_us: Option<u64>,
    delta_us: u64,
    wounded_us: Option<u64>,
    /// Orders that steer and were not taken yet, and when the last one was sent.
    steering: BTreeMap<u64, u64>,
    steered_us: Option<u64>,
    refused_us: Option<u64>,
    suspicion: Option<Suspicion>,
}

impl Senses {
    /// An order was sent.
    pub fn sent(&mut self, now_us: u64, seq: u64, order: &Order) {
        let steers = !matches!(
            order,
            Order::Say { .. } | Order::Look { .. } | Order::Inventory | Order::Potion
        );
        if steers {
            self.steering.insert(seq, now_us);
            self.steered_us = Some(now_us);
        }
    }

    /// Something happened, and `world` has taken it.
    pub fn event(&mut self, now_us: u64, event: &Event, world: &LocalWorld) -> Felt {
        let mut felt = Felt::default();
        match event {
            Event::Disconnected { .. } => {
                self.lost_us.get_or_insert(now_us);
                self.begin_outage(now_us, Cause::Gateway);
            }
            Event::Welcomed { resumed, .. } => self.welcomed(*resumed),
            Event::Message(ServerMsg::ServerStatus(status)) => match status.world {
                WorldStatus::Ok => {
                    if let Some(outage) = &mut self.outage {
                        outage.is_over |= outage.cause != Cause::Gateway;
                    }
                }
                WorldStatus::Moving => self.begin_outage(now_us, Cause::Crash),
                WorldStatus::Frozen => self.begin_outage(now_us, Cause::Store),
            },
            Event::Message(ServerMsg::Snapshot(_)) => {
                if let Some(outage) = &mut self.outage {
                    outage.is_over = true;
                }
                self.shown(now_us, world, &mut felt);
            }
            Event::Message(ServerMsg::Delta(delta)) => {
                self.steering.retain(|&seq, _| seq > delta.ack);
                self.shown(now_us, world, &mut felt);
            }
            Event::Message(ServerMsg::Respawned(_)) => self.step = None,
            // It may be the refusal that ended the fight. It comes before the state that shows so, or after.
            Event::Message(ServerMsg::Error(_)) => {
                self.suspicion = None;
                self.refused_us = Some(now_us);
            }
            _ => {}
        }
        felt
    }

    fn welcomed(&mut self, resumed: bool) {
        if !resumed {
            let (outage, lost_us) = (self.outage, self.lost_us);
            *self = Senses {
                outage,
                lost_us,
                ..Senses::default()
            };
        }
        self.battle = None;
    }

    fn begin_outage(&mut self, now_us: u64, cause: Cause) {
        let step = self.step.take();
        if self.own.is_none() && self.outage.is_none() {
            return; // It never was in the world.
        }
        self.crossing = None;
        // Around somebody who stands about nothing may have happened for long, and nothing was missed.
        let waits = step.is_some() || now_us < self.delta_us + FRESH_US;
        let seen_us = if waits { self.delta_us } else { now_us };
        let since_us = step.map_or(seen_us, |step| step.due_us.min(seen_us));
        match &mut self.outage {
            // It goes on; the loss of the connection is what counts then.
            Some(outage) => {
                outage.is_over = false;
                if cause == Cause::Gateway {
                    outage.cause = cause;
                }
            }
            None => {
                self.outage = Some(Outage {
                    cause,
                    since_us,
                    is_over: false,
                });
            }
        }
    }

    /// A state was shown.
    fn shown(&mut self, now_us: u64, world: &LocalWorld, felt: &mut Felt) {
        if let Some(lost_us) = self.lost_us.take() {
            felt.resume_us = Some(now_us - lost_us);
        }
        if let Some(outage) = self.outage.take_if(|outage| outage.is_over) {
            let gap_us = now_us.saturating_sub(outage.since_us);
            felt.gaps.push((outage.cause, gap_us));
            self.battle = None;
        }
        self.delta_us = now_us;
        if let Some(me) = world.me().map(|me| me.state) {
            let before = self.own.replace(me);
            if before != Some(me) {
                self.own_changed(now_us, before, me, world, felt);
            }
        }
        self.judge_fight(now_us, world, felt);
    }

    fn own_changed(
        &mut self,
        now_us: u64,
        before: Option<EntityState>,
        me: EntityState,
        world: &LocalWorld,
        felt: &mut Felt,
    ) {
        if before.is_some_and(|before| me.hits < before.hits) {
            self.wounded_us = Some(now_us);
        }
        self.look_at_step(now_us, before, me, world, felt);
        let was = before.and_then(|before| before.target);
        felt.fights += u64::from(was.is_none() && me.target.is_some());
        if let Some(target) = was.filter(|_| me.target != was && me.hits > 0) {
            let is_recent = |at: Option<u64>| at.is_some_and(|at| now_us < at + FIGHT_US);
            let has_reason = is_recent(self.steered_us) || is_recent(self.refused_us);
            if !has_reason && self.steering.is_empty() {
                let until_us = now_us + FIGHT_US;
                self.suspicion = Some(Suspicion { target, until_us });
            }
        }
    }

    fn look_at_step(
        &mut self,
        now_us: u64,
        before: Option<EntityState>,
        me: EntityState,
        world: &LocalWorld,
        felt: &mut Felt,
    ) {
        let is_stepping = step_us(me.action).is_some();
        if let Some(step) = self.step.take() {
            let is_due = now_us + EARLY_US >= step.due_us;
            if !is_due && is_stepping && me.pos() == step.to {
                self.step = Some(step); // Something else about it has changed.
                return;
            }
            let is_slowed = self.wounded_us.is_some_and(|at| now_us < at + SLOWED_US);
            if is_due && !is_slowed {
                let gap_us = (now_us + TICK_US).saturating_sub(step.due_us);
                self.step_ended(gap_us, felt);
            }
            if !is_stepping {
                self.end_crossing(felt);
            }
        }
        let moved = before.is_some_and(|before| before.pos() != me.pos());
        if let (Some(us), true) = (step_us(me.action), moved) {
            self.step = Some(Step {
                to: me.pos(),
                due_us: now_us + us,
            });
        }
        self.look_at_border(me.pos(), world, felt);
    }

    fn step_ended(&mut self, gap_us: u64, felt: &mut Felt) {
        if let Some((steps_left, longest)) = &mut self.crossing {
            *longest = Some(longest.map_or(gap_us, |longest| longest.max(gap_us)));
            *steps_left -= 1;
            if *steps_left == 0 {
                self.end_crossing(felt);
            }
        } else if gap_us >= OTHER_US_MIN {
            felt.gaps.push((Cause::Other, gap_us));
        }
    }

    fn end_crossing(&mut self, felt: &mut Felt) {
        if let Some((_, Some(longest))) = self.crossing.take() {
            felt.gaps.push((Cause::Crossing, longest));
        }
    }

    /// Whether it is deep enough in another region to be handed over with this step.
    fn look_at_border(&mut self, pos: Pos, world: &LocalWorld, felt: &mut Felt) {
        let Some(map) = world.map() else {
            return;
        };
        let here = RegionId::at(map.size, pos);
        let battle = *self.battle.get_or_insert(here);
        if here != battle && depth(battle.origin(map.size), pos) >= DEPTH {
            self.end_crossing(felt);
            self.battle = Some(here);
            self.crossing = self.step.map(|_| (CROSSING_STEPS, None));
        }
    }

    fn judge_fight(&mut self, now_us: u64, world: &LocalWorld, felt: &mut Felt) {
        let Some(suspicion) = self.suspicion else {
            return;
        };
        let is_there = |id| world.entity(id).is_some_and(|entity| entity.is_alive());
        let lives = world.me().is_some_and(|me| me.is_alive());
        // One that was only not shown for a moment is no loss; one that the player had to order again is.
        let is_back = world.me().and_then(|me| me.state.target) == Some(suspicion.target)
            && self
                .steered_us
                .is_none_or(|at| at + 2 * FIGHT_US < suspicion.until_us);
        if !is_there(suspicion.target) || !lives || is_back {
            self.suspicion = None;
        } else if now_us >= suspicion.until_us {
            self.suspicion = None;
            felt.fights_reset += 1;
        }
    }
}

/// How long a step of this kind takes.
fn step_us(action: Action) -> Option<u64> {
    match action {
        Action::Walk => Some(500_000),
        Action::Run => Some(250_000),
        _ => None,
    }
}

/// How far a tile is outside the region that begins at `origin`.
fn depth(origin: Pos, pos: Pos) -> u16 {
    let past = |from: u16, at: u16| {
        let last = from + REGION_SIZE - 1;
        from.saturating_sub(at).max(at.saturating_sub(last))
    };
    past(origin.x, pos.x).max(past(origin.y, pos.y))
}

#[cfg(test)]
mod tests;
