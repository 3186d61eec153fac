//! `node_life`, the register that turns presumption into fact: of this boot ([`OwnLife`]) and of others ([`Death`]).
//!
//! A life is a number that its boot raises with each thaw, and that anybody may end by a compare-and-set from exactly the
//! number it read. A taker reads the number *before* it sends its last evidence read, so whoever acts again after that
//! read has raised the number, and the taker's compare-and-set fails; or the taker's comes first, and the thaw does. One
//! of the two wins, and both sides learn which.
//!
//! Declaring dead needs no nonce, because dead is final: repeating it does no harm.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::identity::{BootId, NodeName};
use crate::planted::{Planted, PlantedBug};
use crate::store::{Life, Request};

/// What is asked of a life register. Every compare-and-set names the number and `dead = false`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LifeAsk {
    /// Insert life 1, if there is no row.
    Begin,
    /// Read it (serial).
    Read,
    /// From exactly `from` (none: no row) to `to`.
    Cas {
        /// What it is now.
        from: Option<Life>,
        /// What it becomes.
        to: Life,
    },
}

impl LifeAsk {
    /// The request to the store, about `boot` of `node`.
    pub fn request(self, node: &NodeName, boot: BootId) -> Request {
        match self {
            LifeAsk::Begin => Request::LifeBegin {
                node: node.clone(),
                boot,
            },
            LifeAsk::Read => Request::LifeRead { boot },
            LifeAsk::Cas { from, to } => Request::LifeCas { boot, from, to },
        }
    }
}

/// What an answer means for one's own life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OwnNews {
    /// Nothing; ask again with [`OwnLife::ask`].
    Open,
    /// It has begun. Nothing may be done before the first beat is acknowledged.
    Begun,
    /// The thaw succeeded: lift the fence, everything goes on where it stood.
    Thawed,
    /// The fence lapsed meanwhile, or the number was another: thaw again with [`OwnLife::ask`].
    ThawAgain,
    /// This boot is dead. It drops whatever it has, and starts over as another.
    Dead,
}

/// This boot's own life. The caller has one request under way at most, and sends a thaw only while the fence has fallen
/// and is fresh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OwnLife {
    state: OwnState,
    planted: Planted,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum OwnState {
    /// To be inserted. Until that is answered nothing of this boot can be seen by anybody, so nobody can end it.
    Beginning,
    Alive {
        life: u64,
    },
    /// A compare-and-set from `from` to `from + 1` was sent at least once.
    Thawing {
        from: u64,
        /// The fence lapsed since it was sent for the first time.
        lapsed_since_first: bool,
        /// The fence lapsed since it was sent last.
        lapsed_since_last: bool,
    },
    /// It declares itself dead.
    Ending {
        from: Option<u64>,
    },
    Dead,
}

impl OwnLife {
    /// The life of a new boot, not yet inserted.
    pub fn new(planted: Planted) -> OwnLife {
        OwnLife {
            state: OwnState::Beginning,
            planted,
        }
    }

    /// What to send now: the beginning, a thaw (or the same one again), or the end. None: there is nothing to ask.
    pub fn ask(&mut self) -> Option<LifeAsk> {
        match &mut self.state {
            OwnState::Beginning => Some(LifeAsk::Begin),
            OwnState::Alive { life } => {
                let from = *life;
                self.state = OwnState::Thawing {
                    from,
                    lapsed_since_first: false,
                    lapsed_since_last: false,
                };
                Some(self.thaw_from(from))
            }
            OwnState::Thawing {
                from,
                lapsed_since_last,
                ..
            } => {
                *lapsed_since_last = false;
                let from = *from;
                Some(self.thaw_from(from))
            }
            OwnState::Ending { from } => Some(LifeAsk::Cas {
                from: from.map(Life::Alive),
                to: Life::Dead,
            }),
            OwnState::Dead => None,
        }
    }

    fn thaw_from(&self, life: u64) -> LifeAsk {
        if self.planted.has(PlantedBug::ThawBySerialRead) {
            return LifeAsk::Read;
        }
        LifeAsk::Cas {
            from: Some(Life::Alive(life)),
            to: Life::Alive(life + 1),
        }
    }

    /// Takes in whether the fence is fresh. To be called after each [`Fence::elapse`](super::fence::Fence::elapse),
    /// before anything else that happens is looked at.
    pub fn note(&mut self, fence_is_fresh: bool) {
        if let OwnState::Thawing {
            lapsed_since_first,
            lapsed_since_last,
            ..
        } = &mut self.state
            && !fence_is_fresh
        {
            *lapsed_since_first = true;
            *lapsed_since_last = true;
        }
    }

    /// The register, as a beginning or a read shows it.
    pub fn shown(&mut self, row: Option<Life>) -> OwnNews {
        match (&self.state, row) {
            (OwnState::Beginning, Some(Life::Alive(life))) => {
                self.state = OwnState::Alive { life };
                OwnNews::Begun
            }
            // Only planted: a read does not keep a taker's compare-and-set from applying.
            (
                &OwnState::Thawing {
                    lapsed_since_last, ..
                },
                Some(Life::Alive(life)),
            ) => self.raised(life, lapsed_since_last),
            (OwnState::Beginning, None) | (OwnState::Alive { .. }, Some(Life::Alive(_))) => {
                OwnNews::Open
            }
            (OwnState::Ending { .. }, Some(Life::Alive(_)) | None) => OwnNews::Open,
            // A register that was there and is gone is no life to act under either.
            _ => self.died(),
        }
    }

    /// The compare-and-set under way applied: it counts from its own sending.
    pub fn applied(&mut self) -> OwnNews {
        match &self.state {
            &OwnState::Thawing {
                from,
                lapsed_since_last,
                ..
            } => self.raised(from + 1, lapsed_since_last),
            OwnState::Ending { .. } => self.died(),
            OwnState::Beginning | OwnState::Alive { .. } | OwnState::Dead => OwnNews::Open,
        }
    }

    /// The compare-and-set under way did not apply, and this stood against it.
    pub fn refused(&mut self, row: Option<Life>) -> OwnNews {
        match (&self.state, row) {
            (
                &OwnState::Thawing {
                    from,
                    lapsed_since_first,
                    ..
                },
                Some(Life::Alive(life)),
            ) => {
                if life == from + 1 {
                    // An earlier sending applied, nobody knows which: it counts from the first.
                    let ignored = self.planted.has(PlantedBug::ThawByRefusal);
                    self.raised(life, lapsed_since_first && !ignored)
                } else if life == from {
                    OwnNews::Open
                } else {
                    self.raised(life, true)
                }
            }
            (OwnState::Ending { .. }, Some(Life::Alive(life))) => {
                self.state = OwnState::Ending { from: Some(life) };
                OwnNews::Open
            }
            (OwnState::Ending { .. }, None) => {
                self.state = OwnState::Ending { from: None };
                OwnNews::Open
            }
            (OwnState::Thawing { .. } | OwnState::Ending { .. }, _) => self.died(),
            (OwnState::Beginning | OwnState::Alive { .. } | OwnState::Dead, _) => OwnNews::Open,
        }
    }

    /// The register stands at `life` by our own hand.
    fn raised(&mut self, life: u64, lapsed: bool) -> OwnNews {
        self.state = OwnState::Alive { life };
        if lapsed {
            OwnNews::ThawAgain
        } else {
            OwnNews::Thawed
        }
    }

    fn died(&mut self) -> OwnNews {
        self.state = OwnState::Dead;
        OwnNews::Dead
    }

    /// Declares it dead, from now on: [`OwnLife::ask`] says how. The latch of the fence must have fallen.
    pub fn end(&mut self) {
        let from = match self.state {
            OwnState::Beginning => None,
            OwnState::Alive { life } => Some(life),
            OwnState::Thawing { from, .. } => Some(from),
            OwnState::Ending { .. } | OwnState::Dead => return,
        };
        self.state = OwnState::Ending { from };
    }

    /// The number, as far as it is known, for one's own row; 0: there is none yet.
    pub fn life(&self) -> u64 {
        match self.state {
            OwnState::Alive { life } => life,
            OwnState::Thawing { from, .. } => from,
            OwnState::Ending { from } => from.unwrap_or(0),
            OwnState::Beginning | OwnState::Dead => 0,
        }
    }

    /// Replaces each number by what `rank` makes of it. For model checkers, like [`Death::renumber`].
    pub fn renumber(&mut self, mut rank: impl FnMut(u64) -> u64) {
        match &mut self.state {
            OwnState::Alive { life: number }
            | OwnState::Thawing { from: number, .. }
            | OwnState::Ending { from: Some(number) } => *number = rank(*number),
            OwnState::Beginning | OwnState::Ending { from: None } | OwnState::Dead => {}
        }
    }

    /// Whether it is to be inserted still.
    pub fn is_beginning(&self) -> bool {
        self.state == OwnState::Beginning
    }

    /// Whether it is over.
    pub fn is_dead(&self) -> bool {
        self.state == OwnState::Dead
    }
}

/// What an answer means for the life of another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeathNews {
    /// Nothing is decided: wait for evidence.
    Waiting,
    /// Ask this (the same once more, after a pause, if it was asked before).
    Ask(LifeAsk),
    /// It is dead for ever: its leases and characters may be taken.
    Dead,
}

/// One boot being declared dead. The caller has one request under way at most: what is to be asked replaces it, and its
/// answer is not waited for any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Death {
    state: DeathState,
    planted: Planted,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum DeathState {
    /// Its life is being read.
    Reading,
    /// Its life was read.
    Known {
        life: Option<u64>,
        /// That was before the newest evidence read was sent.
        armed: bool,
    },
    /// The compare-and-set was sent at least once.
    Killing { from: Option<u64> },
    /// Its life is being read, to be ended from whatever it is. Only planted.
    ReadingToKill,
}

impl Death {
    /// Begins with [`LifeAsk::Read`].
    pub fn new(planted: Planted) -> Death {
        Death {
            state: DeathState::Reading,
            planted,
        }
    }

    /// An evidence read goes out: a life that is known by now is from before it.
    pub fn read_sent(&mut self) {
        if let DeathState::Known { armed, .. } = &mut self.state {
            *armed = true;
        }
    }

    /// The register, as read.
    pub fn shown(&mut self, row: Option<Life>) -> DeathNews {
        let life = match row {
            Some(Life::Dead) => return DeathNews::Dead,
            Some(Life::Alive(life)) => Some(life),
            None => None,
        };
        match self.state {
            DeathState::Reading => {
                let armed = self.planted.has(PlantedBug::AbsentWindowBeforeLease);
                self.state = DeathState::Known { life, armed };
                DeathNews::Waiting
            }
            DeathState::ReadingToKill => self.kill(life),
            DeathState::Known { .. } | DeathState::Killing { .. } => DeathNews::Waiting,
        }
    }

    /// The evidence read shows that it is presumed gone.
    pub fn presumed_gone(&mut self) -> DeathNews {
        match self.state {
            DeathState::Known { .. } | DeathState::Reading
                if self.planted.has(PlantedBug::LifeReadAfterEvidence) =>
            {
                self.state = DeathState::ReadingToKill;
                DeathNews::Ask(LifeAsk::Read)
            }
            DeathState::Known { life, armed: true } => self.kill(life),
            _ => DeathNews::Waiting,
        }
    }

    /// Its own row said at `life` that it is done, or for long enough that it is fenced. That needs no reading: from
    /// exactly this life it cannot act again without raising it.
    pub fn said(&mut self, life: u64) -> DeathNews {
        let named = (life > 0).then_some(life);
        match self.state {
            DeathState::Killing { .. } | DeathState::ReadingToKill => DeathNews::Waiting,
            DeathState::Reading | DeathState::Known { .. }
                if self.planted.has(PlantedBug::FencedKillsAnyLife) =>
            {
                self.state = DeathState::ReadingToKill;
                DeathNews::Ask(LifeAsk::Read)
            }
            // Lives only rise: a row that names an older one is stale.
            DeathState::Known { life: known, .. } if known > named => DeathNews::Waiting,
            DeathState::Reading | DeathState::Known { .. } => self.kill(named),
        }
    }

    fn kill(&mut self, from: Option<u64>) -> DeathNews {
        self.state = DeathState::Killing { from };
        DeathNews::Ask(cas_to_dead(from))
    }

    /// The compare-and-set under way applied.
    pub fn applied(&mut self) -> DeathNews {
        match self.state {
            DeathState::Killing { .. } => DeathNews::Dead,
            _ => DeathNews::Waiting,
        }
    }

    /// The compare-and-set under way did not apply, and this stood against it.
    pub fn refused(&mut self, row: Option<Life>) -> DeathNews {
        let DeathState::Killing { from } = self.state else {
            return DeathNews::Waiting;
        };
        let life = match row {
            Some(Life::Dead) => return DeathNews::Dead,
            Some(Life::Alive(life)) => Some(life),
            None => None,
        };
        if life == from {
            return DeathNews::Ask(cas_to_dead(from));
        }
        // It has thawed since. The refusal is a reading of its life as good as any, and new evidence has to follow it.
        self.state = DeathState::Known { life, armed: false };
        DeathNews::Waiting
    }

    /// The request under way failed, or nobody knows whether it did: ask again, after a pause.
    pub fn failed(&self) -> DeathNews {
        match self.state {
            DeathState::Reading | DeathState::ReadingToKill => DeathNews::Ask(LifeAsk::Read),
            DeathState::Known { .. } => DeathNews::Waiting,
            DeathState::Killing { from } => DeathNews::Ask(cas_to_dead(from)),
        }
    }

    /// Replaces each number by what `rank` makes of it. For model checkers: states whose numbers differ by name only are to
    /// be equal.
    pub fn renumber(&mut self, mut rank: impl FnMut(u64) -> u64) {
        match &mut self.state {
            DeathState::Known {
                life: Some(number), ..
            }
            | DeathState::Killing { from: Some(number) } => *number = rank(*number),
            _ => {}
        }
    }

    /// Whether the compare-and-set was sent.
    pub fn is_killing(&self) -> bool {
        matches!(self.state, DeathState::Killing { .. })
    }
}

fn cas_to_dead(from: Option<u64>) -> LifeAsk {
    LifeAsk::Cas {
        from: from.map(Life::Alive),
        to: Life::Dead,
    }
}

#[cfg(test)]
mod tests;
