//! This boot: its beats, its fence and its life, from the first look around to the end.
//!
//! A new process first watches whether another beats under its name. Then it begins its life, beats, and may act with the
//! first acknowledgement. Whenever the fence has fallen and beats are acknowledged again it thaws; if its life was ended
//! meanwhile it goes on as another boot.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::asking::Asked;
use super::{ClusterCore, Effect, ExitReason, Fence, OwnLife, Ticket};
use crate::cluster::age::Age;
use crate::cluster::life::OwnNews;
use crate::identity::BootId;
use crate::planted::PlantedBug;
use crate::store::row::{self, NodeRow, NodeState};
use crate::store::{Reply, Request, StoreError};

/// Where this process is between its start and its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// It looks whether another beats under its name, and writes nothing.
    Watching,
    /// It begins its life, and beats.
    Living,
    /// Its boot is dead; it waits for the next.
    Unborn,
    /// It declares itself dead, and says so with a last beat.
    Ending { why: ExitReason, said: bool },
    /// It asked to exit.
    Ended,
}

impl ClusterCore {
    /// The watch is over: nobody else beats under this name.
    pub(super) fn start_living(&mut self) {
        if self.phase == Phase::Watching {
            self.phase = Phase::Living;
        }
    }

    pub(super) fn drive_own(&mut self) {
        if self.phase == Phase::Watching && self.config.others_are_dead {
            self.start_living();
        }
        self.drive_life();
        self.drive_beat();
        self.drive_end();
    }

    fn drive_life(&mut self) {
        if !self.has_life() || !self.own_life.is_idle() {
            return;
        }
        let is_due = match self.phase {
            Phase::Living => {
                let may_thaw = self.fence.is_fallen() && self.fence.is_fresh(&self.config.timing);
                self.life.is_beginning() || may_thaw
            }
            Phase::Ending { .. } => !self.life.is_dead(),
            Phase::Watching | Phase::Unborn | Phase::Ended => false,
        };
        if !is_due {
            return;
        }
        if let Some(ask) = self.life.ask() {
            let request = ask.request(&self.config.me.node, self.config.me.boot);
            let ticket = self.ask(request, Asked::OwnLife);
            self.own_life.sent(ticket);
        }
    }

    pub(super) fn own_life_answered(&mut self, reply: Result<Reply, StoreError>) {
        self.own_life.answered();
        let news = match reply {
            Ok(Reply::Life(row)) => self.life.shown(row),
            Ok(Reply::LifeCas { applied: true, .. }) => self.life.applied(),
            Ok(Reply::LifeCas { row, .. }) => self.life.refused(row),
            Ok(_) | Err(_) => OwnNews::Open,
        };
        match news {
            OwnNews::Open => self.own_life.failed(),
            OwnNews::Begun | OwnNews::ThawAgain => {}
            OwnNews::Thawed => self.fence.thawed(),
            OwnNews::Dead => self.own_death(),
        }
    }

    /// This boot is dead. What it held goes with it; the process goes on as another, unless it is ending anyway.
    fn own_death(&mut self) {
        self.fence.latch();
        if let Phase::Ending { .. } = self.phase {
            return;
        }
        self.drop_own_requests();
        if self.stopping {
            self.finish(ExitReason::Stopped);
        } else {
            self.phase = Phase::Unborn;
            self.effects.push(Effect::WantBoot);
        }
    }

    /// Goes on as `boot`.
    pub(super) fn reborn(&mut self, boot: BootId) {
        if self.phase != Phase::Unborn {
            return;
        }
        let old = std::mem::replace(&mut self.config.me.boot, boot);
        self.past.insert(old);
        self.fence = Fence::new(self.config.planted);
        self.life = OwnLife::new(self.config.planted);
        self.since_beat = Age::of(self.config.timing.beat_ms);
        self.beats = 0;
        self.up = Age::ZERO;
        self.told_alive = false;
        self.told_fallen = false;
        self.phase = Phase::Living;
        self.regions.reset();
        let me = self.config.me.clone();
        self.effects.push(Effect::Reborn { me });
        self.died(old);
    }

    fn drop_own_requests(&mut self) {
        let dropped: [Option<Ticket>; 2] = [self.own_life.dropped(), self.beat.dropped()];
        for ticket in dropped.into_iter().flatten() {
            self.asked.remove(&ticket);
        }
    }

    fn drive_beat(&mut self) {
        let is_due = match self.phase {
            Phase::Living => {
                let has_begun = !self.has_life() || !self.life.is_beginning();
                has_begun && self.since_beat.reached(self.config.timing.beat_ms)
            }
            Phase::Ending { said, .. } => !said,
            Phase::Watching | Phase::Unborn | Phase::Ended => false,
        };
        if !is_due || !self.beat.is_idle() {
            return;
        }
        self.beats += 1;
        let request = Request::NodeBeat {
            node: self.config.me.node.clone(),
            boot: self.config.me.boot,
            beat: self.beats,
            row: row::encode(&self.own_row()),
            ttl_s: self.config.timing.node_ttl_s,
        };
        let ticket = self.ask(request, Asked::Beat);
        self.beat.sent(ticket);
        self.since_beat = Age::ZERO;
        self.fence.beat_sent();
        self.observer.own_beat_sent();
    }

    pub(super) fn beat_answered(&mut self, is_done: bool) {
        self.beat.answered();
        if let Phase::Ending { said, .. } = &mut self.phase {
            *said = true;
            return;
        }
        if is_done {
            self.fence.acknowledged(&self.config.timing);
            self.observer.own_beat_acknowledged();
        } else {
            self.fence.beat_failed();
            self.observer.own_beat_failed();
        }
    }

    /// What this boot says of itself.
    pub(super) fn own_row(&self) -> NodeRow {
        let timing = &self.config.timing;
        let is_well = self.up.reached(timing.starts_window_ms);
        NodeRow {
            beat: self.beats,
            role: self.config.role,
            life: self.life.life(),
            state: self.own_state(),
            peer: self.config.peer.clone(),
            clients: self.config.clients.clone(),
            up_ms: self.up.ms(),
            starts: if is_well { 1 } else { self.starts },
            load: self.load,
            is_cut_off: self.is_cut_off(),
        }
    }

    pub(super) fn own_state(&self) -> NodeState {
        if let Phase::Ending { .. } | Phase::Ended = self.phase {
            return NodeState::Done;
        }
        if self.has_life() && self.fence.is_starting() {
            // It has not acted, so nothing can have stopped. The acknowledgement may be on its way, and with it the right
            // to act under the very life that somebody would end.
            if self.config.planted.has(PlantedBug::StartingSaysFenced) {
                return NodeState::Fenced;
            }
            return NodeState::Starting;
        }
        if self.has_life() && self.fence.is_fallen() {
            return NodeState::Fenced;
        }
        if self.stopping {
            return NodeState::Stopping;
        }
        NodeState::Running
    }

    /// Tells what has become of the right to act, if it has changed.
    pub(super) fn tell_fence(&mut self) {
        let may_act = match self.phase {
            Phase::Living if self.has_life() => self.fence.may_act(),
            // A gateway acts on nobody's behalf: it is there once it is seen.
            Phase::Living => !self.fence.is_starting(),
            _ => false,
        };
        if may_act && !self.told_alive {
            self.told_alive = true;
            self.effects.push(Effect::Alive);
            self.tell_members();
        }
        let has_fallen = self.told_alive && self.has_life() && !may_act;
        if has_fallen != self.told_fallen {
            self.told_fallen = has_fallen;
            self.effects.push(Effect::Fence { fallen: has_fallen });
            // Whoever was frozen looks at the leases first.
            self.regions.look_now();
        }
    }

    /// Latch first, then declare this boot dead, say so, and exit.
    pub(super) fn end(&mut self, why: ExitReason) {
        match self.phase {
            Phase::Ending { .. } | Phase::Ended => return,
            // Nothing was written: nobody knows of this boot.
            Phase::Watching | Phase::Unborn => return self.finish(why),
            Phase::Living => {}
        }
        self.fence.latch();
        self.drop_own_requests();
        self.life.end();
        let said = self.beats == 0;
        self.phase = Phase::Ending { why, said };
    }

    fn drive_end(&mut self) {
        if let Phase::Ending { why, said: true } = self.phase
            && (!self.has_life() || self.life.is_dead())
        {
            self.finish(why);
        }
    }

    pub(super) fn finish(&mut self, why: ExitReason) {
        self.phase = Phase::Ended;
        self.effects.push(Effect::Exit { why });
    }
}
