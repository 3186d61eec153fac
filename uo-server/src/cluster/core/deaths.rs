//! Other boots: presumption made a fact.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::asking::{Asked, Asking};
use super::{ClusterCore, Effect, Ticket};
use crate::cluster::life::{Death, DeathNews, LifeAsk};
use crate::cluster::observer::Evidence;
use crate::identity::{BootId, NodeName};
use crate::limits::{DEAD_KEPT_MAX, WATCHED_MAX};
use crate::store::{Life, Reply, StoreError};

/// A boot that may be dead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Dying {
    pub(super) death: Death,
    asking: Asking,
    /// What to ask once nothing is under way and the pause is over.
    next: Option<LifeAsk>,
}

impl Dying {
    pub(super) fn elapse(&mut self, ms: u64, pause_ms: u64) {
        self.asking.elapse(ms, pause_ms);
    }

    /// For model checkers, like [`Death::renumber`].
    pub(super) fn renumber(&mut self, mut rank: impl FnMut(u64) -> u64) {
        self.death.renumber(&mut rank);
        if let Some(LifeAsk::Cas { from, to }) = &mut self.next {
            for life in from.iter_mut().chain([to]) {
                if let Life::Alive(number) = life {
                    *number = rank(*number);
                }
            }
        }
    }

    /// For model checkers, like [`Asking::rename`].
    pub(super) fn rename(&mut self, renamed: &BTreeMap<Ticket, Ticket>) {
        self.asking.rename(renamed);
    }
}

impl ClusterCore {
    /// Somebody needs to know whether this boot is dead.
    pub(super) fn suspect(&mut self, boot: BootId) {
        if boot == self.config.me.boot {
            return;
        }
        if self.is_dead(boot) {
            self.effects.push(Effect::Dead { boot });
            return;
        }
        self.watch(boot);
        self.look_at_suspects();
    }

    /// A row names this boot.
    pub(super) fn watch(&mut self, boot: BootId) {
        let is_of_interest = boot != self.config.me.boot && !self.is_dead(boot);
        if is_of_interest && self.observer.known() < WATCHED_MAX + self.peers.len() {
            self.observer.watch(boot, &self.config.timing);
        }
    }

    /// Begins to learn the lives of those who stand still, and lets go of those who move again.
    pub(super) fn look_at_suspects(&mut self) {
        if !self.has_life() || self.config.others_are_dead {
            return;
        }
        let suspects: Vec<BootId> = self
            .observer
            .suspects(&self.config.timing)
            .filter(|boot| self.peers.get(boot).is_none_or(|peer| peer.has_life()))
            .collect();
        // Whoever beats again is no suspect; what is known of its life would only be older than it has to be.
        self.deaths
            .retain(|boot, dying| dying.death.is_killing() || suspects.binary_search(boot).is_ok());
        for boot in suspects {
            let planted = self.config.planted;
            self.deaths.entry(boot).or_insert_with(|| Dying {
                death: Death::new(planted),
                asking: Asking::default(),
                next: Some(LifeAsk::Read),
            });
        }
    }

    /// Asks what is due.
    pub(super) fn drive_deaths(&mut self) {
        let due: Vec<(BootId, LifeAsk)> = self
            .deaths
            .iter()
            .filter(|(_, dying)| dying.asking.is_idle())
            .filter_map(|(boot, dying)| Some((*boot, dying.next?)))
            .collect();
        for (boot, ask) in due {
            let node = self
                .peers
                .get(&boot)
                .map_or_else(|| NodeName::from(""), |peer| peer.node.clone());
            let ticket = self.ask(ask.request(&node, boot), Asked::Death(boot));
            if let Some(dying) = self.deaths.get_mut(&boot) {
                dying.next = None;
                dying.asking.sent(ticket);
            }
        }
    }

    /// A read gives reason to believe that a boot acts no more. Whoever may not act does not conclude anything from it:
    /// the frozen thaw first.
    pub(super) fn presume(&mut self, evidence: Evidence) {
        let boot = evidence.boot();
        let has_life = self.peers.get(&boot).is_none_or(|peer| peer.has_life());
        if !self.may_act() || !has_life || self.is_dead(boot) {
            return;
        }
        let planted = self.config.planted;
        let dying = self.deaths.entry(boot).or_insert_with(|| Dying {
            death: Death::new(planted),
            asking: Asking::default(),
            next: Some(LifeAsk::Read),
        });
        let news = match evidence {
            Evidence::Gone(_) => dying.death.presumed_gone(),
            Evidence::Fenced(_, life) | Evidence::Done(_, life) => dying.death.said(life),
        };
        if let DeathNews::Ask(_) = news {
            // This replaces what was asked before, and does not wait for its answer.
            if let Some(ticket) = dying.asking.dropped() {
                self.asked.remove(&ticket);
            }
        }
        self.death_goes_on(boot, news);
    }

    pub(super) fn death_answered(&mut self, boot: BootId, reply: Result<Reply, StoreError>) {
        let Some(dying) = self.deaths.get_mut(&boot) else {
            return;
        };
        dying.asking.answered();
        let news = match reply {
            Ok(Reply::Life(row)) => dying.death.shown(row),
            Ok(Reply::LifeCas { applied: true, .. }) => dying.death.applied(),
            Ok(Reply::LifeCas { row, .. }) => {
                dying.asking.failed();
                dying.death.refused(row)
            }
            Ok(_) | Err(_) => {
                dying.asking.failed();
                dying.death.failed()
            }
        };
        self.death_goes_on(boot, news);
    }

    fn death_goes_on(&mut self, boot: BootId, news: DeathNews) {
        match news {
            DeathNews::Waiting => {}
            DeathNews::Ask(ask) => {
                if let Some(dying) = self.deaths.get_mut(&boot) {
                    dying.next = Some(ask);
                }
            }
            DeathNews::Dead => self.died(boot),
        }
    }

    /// That boot is dead for ever.
    pub(super) fn died(&mut self, boot: BootId) {
        self.deaths.remove(&boot);
        self.observer.forget(boot);
        self.peers.remove(&boot);
        if self.dead.insert(boot) {
            self.dead_order.push_back(boot);
        }
        if self.dead.len() > DEAD_KEPT_MAX
            && let Some(oldest) = self.dead_order.pop_front()
        {
            self.dead.remove(&oldest);
        }
        self.effects.push(Effect::Dead { boot });
        self.tell_members();
        self.reopen(boot);
    }
}
