//! For model checkers: states that behave alike are made equal, so that there are finitely many of them.
//!
//! Beats and lives are numbers that grow for ever, but only their order matters, and of lives whether one follows
//! another. Tickets only find answers back to who asked. Nothing here runs in a server.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::asking::Asked;
use super::nodes::Peer;
use super::own::Phase;
use super::reach::Reach;
use super::regions::Regions;
use super::{ClusterCore, Ticket};
use crate::cluster::observer::Observer;
use crate::identity::BootId;
use crate::store::row::{self, NodeState};

/// A number that others know as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Number {
    /// Of a row in `nodes`.
    Beat(u64),
    /// Of a life register.
    Life(u64),
}

impl ClusterCore {
    /// Every number that is kept here, and of which boot it is.
    pub fn numbers(&self, see: &mut dyn FnMut(BootId, Number)) {
        let me = self.config.me.boot;
        see(me, Number::Beat(self.beats));
        self.life
            .clone()
            .renumber(|life| seen(life, &mut |it| see(me, it)));
        for (boot, peer) in &self.peers {
            if let Some(row) = &peer.row {
                see(*boot, Number::Beat(row.beat));
                see(*boot, Number::Life(row.life));
            }
        }
        for (boot, dying) in &self.deaths {
            let mut death = dying.death.clone();
            death.renumber(|life| seen(life, &mut |it| see(*boot, it)));
        }
        for (boot, life) in self.observer.fenced() {
            see(boot, Number::Life(life));
        }
    }

    /// Replaces each of these numbers by what `rank` makes of it.
    pub fn renumber(&mut self, rank: &dyn Fn(BootId, Number) -> u64) {
        let me = self.config.me.boot;
        self.beats = rank(me, Number::Beat(self.beats));
        self.life.renumber(|life| rank(me, Number::Life(life)));
        for (boot, peer) in &mut self.peers {
            peer.renumber(&|number| rank(*boot, number));
        }
        for (boot, dying) in &mut self.deaths {
            let life = |life| rank(*boot, Number::Life(life));
            dying.renumber(life);
        }
        self.observer
            .renumber_lives(|boot, life| rank(boot, Number::Life(life)));
    }

    /// Forgets what has no effect on fence, lives and deaths: the true time, the order of what was asked, members and
    /// regions. Returns what became of each ticket; the answer to one that is missing there is of no interest.
    pub fn canonicalize(&mut self) -> BTreeMap<Ticket, Ticket> {
        self.now = 0;
        self.starts = 1;
        self.members.clear();
        self.dead_order = self.dead.iter().copied().collect();
        for peer in self.peers.values_mut() {
            peer.stands_still();
        }
        // What a window knows is what the last read showed, however often the row had moved until then.
        self.observer.renumber(|_, _| 0);
        let config = &self.config;
        self.regions = Regions::new(config.regions, config.demand_driven, config.planted);
        self.regions.ask_nothing();
        self.reach = Reach::default();
        self.canonicalize_tickets()
    }

    fn canonicalize_tickets(&mut self) -> BTreeMap<Ticket, Ticket> {
        let mut asked: Vec<(Asked, Ticket)> = std::mem::take(&mut self.asked)
            .into_iter()
            .map(|(ticket, asked)| (asked, ticket))
            .filter(|(asked, _)| !asked.is_about_regions())
            .collect();
        asked.sort_unstable();
        let renamed: BTreeMap<Ticket, Ticket> = asked
            .iter()
            .zip(0..)
            .map(|((_, old), new)| (*old, Ticket(new)))
            .collect();
        self.asked = asked
            .into_iter()
            .map(|(asked, old)| (renamed[&old], asked))
            .collect();
        self.next_ticket = renamed.len() as u64;
        for asking in [&mut self.own_life, &mut self.beat, &mut self.nodes] {
            asking.rename(&renamed);
        }
        for dying in self.deaths.values_mut() {
            dying.rename(&renamed);
        }
        renamed
    }

    /// Whether anything is kept of that boot, other than that it is dead.
    pub fn knows(&self, boot: BootId) -> bool {
        boot == self.config.me.boot
            || self.observer.knows(boot)
            || self.peers.contains_key(&boot)
            || self.deaths.contains_key(&boot)
    }

    /// Forgets a dead boot that nothing names any more.
    pub fn forget(&mut self, boot: BootId) {
        self.dead.remove(&boot);
        self.dead_order.retain(|dead| *dead != boot);
        self.past.remove(&boot);
    }

    /// About whose life the request is that goes by this ticket.
    pub fn asks_about(&self, ticket: Ticket) -> Option<BootId> {
        match self.asked.get(&ticket)? {
            Asked::OwnLife => Some(self.config.me.boot),
            Asked::Death(boot) => Some(*boot),
            _ => None,
        }
    }

    /// What this core has observed.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// What the row of `boot` said when it was read last. None: there was no row, or a newer build wrote it.
    pub fn state_of(&self, boot: BootId) -> Option<NodeState> {
        let row = self.peers.get(&boot)?.row.as_ref()?;
        Some(row.state)
    }

    /// Whether it still looks if another beats under its name.
    pub fn is_watching(&self) -> bool {
        self.phase == Phase::Watching
    }
}

fn seen(life: u64, see: &mut dyn FnMut(Number)) -> u64 {
    see(Number::Life(life));
    life
}

impl Peer {
    fn renumber(&mut self, rank: &dyn Fn(Number) -> u64) {
        if let Some(row) = &mut self.row {
            row.beat = rank(Number::Beat(row.beat));
            row.life = rank(Number::Life(row.life));
            self.bytes = row::encode(row);
        }
    }
}
