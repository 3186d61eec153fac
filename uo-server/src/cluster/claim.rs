//! One claim machine, for the lease of a region and for the ownership of a character.
//!
//! `free -> reading -> claiming -> loading -> sealing -> held -> outgoing | releasing`. The machine decides; its caller
//! carries out what [`Output`] says, one thing at a time, and answers with the next [`Input`].
//!
//! What it keeps, in whatever order and however late the store answers:
//! - it claims only what is released, of a dead boot, its own without being held, or offered by its holder;
//! - every compare-and-set names holder and number of the row it replaces, and raises the number;
//! - a compare-and-set without an answer is repeated *with its nonce* until the row shows that nonce or has changed;
//! - nothing is served before its seal is durable, and nothing goes on under a number that was released.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::identity::{BootId, Holder, Nonce, Nonces};
use crate::planted::{Planted, PlantedBug};
use crate::store::{ClaimRow, Seen};

/// What one right of one node is going through. Times and requests are its caller's affair.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Claim {
    /// Not ours, and nobody here wants it.
    #[default]
    Free,
    /// The row is being read.
    Reading,
    /// A compare-and-set to ourselves is under way.
    Claiming {
        /// The attempt, repeated as it is until it is final.
        attempt: Attempt,
        /// What it is for.
        purpose: Purpose,
    },
    /// Ours under `number`; what is durable is being loaded.
    Loading {
        /// Epoch or generation.
        number: u64,
    },
    /// Ours under `number`; what is durable is being rewritten, so that no older write can show again.
    Sealing {
        /// Epoch or generation.
        number: u64,
    },
    /// Ours, and served.
    Held {
        /// Epoch or generation.
        number: u64,
    },
    /// Ours by the row, but offered to another: nothing is served or saved under this number.
    Outgoing {
        /// Epoch or generation.
        number: u64,
    },
    /// A compare-and-set to nobody is under way.
    Releasing {
        /// The attempt, repeated as it is until it is final.
        attempt: Attempt,
    },
}

/// A compare-and-set: one nonce from its first sending to its last.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempt {
    /// The row it replaces; none: no row.
    pub seen: Option<Seen>,
    /// What it puts there.
    pub to: ClaimRow,
}

/// What a compare-and-set to oneself is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// To begin: load, seal, serve.
    Take,
    /// To begin with what its holder sent along: seal, serve. The holder's offer is the permission.
    Offered,
    /// To go on where an offer left off: seal, serve.
    Reclaim,
    /// To go on under the next number, because the stamps of this one run out: seal, serve.
    Renew,
}

/// What happens to a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// Take it, beginning with a read of its row.
    Take,
    /// Take it; this is its row as read just now (none: there is none).
    TakeSeen(Option<ClaimRow>),
    /// Take it from its holder, who offers it at this number.
    TakeOffered(Seen),
    /// The row, as read.
    Row(Option<ClaimRow>),
    /// The compare-and-set applied.
    Applied,
    /// It did not, and this row stood against it.
    Refused(Option<ClaimRow>),
    /// The request under way (of whatever kind) failed, or nobody knows whether it did.
    Failed,
    /// The pause that [`Output::RetryLater`] asked for is over.
    Retry,
    /// What is durable is loaded; the highest number that it carries.
    Loaded(Option<u64>),
    /// The seal is durable.
    Sealed,
    /// Served here no longer: it is about to be offered to another.
    HandOver,
    /// The other refused before it claimed anything: served here again under the same number.
    TakeBack,
    /// The other did not answer: back to us by compare-and-set.
    Reclaim,
    /// The other has it.
    Given,
    /// Go on under the next number.
    Renew,
    /// Give it up; everything durable is written.
    Release,
    /// The row was seen with this higher number and another holder.
    Lost(u64),
}

/// What the caller is to do next. At most one request of a claim is under way at any time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// Nothing.
    Nothing,
    /// Read the row (serial).
    Read,
    /// Send this compare-and-set.
    Cas(Attempt),
    /// Wait a little, then give [`Input::Retry`].
    RetryLater,
    /// Load what is durable.
    Load {
        /// The number it is owned under.
        number: u64,
    },
    /// Rewrite what is durable, stamped with this number.
    Seal {
        /// The number it is owned under.
        number: u64,
    },
    /// Serve it.
    Serve {
        /// The number it is owned under.
        number: u64,
    },
    /// The release is final.
    Released {
        /// The number that the row went to.
        number: u64,
    },
    /// It is another's (or nobody's): drop whatever is here of it. The row, as far as it is known.
    Gone(Option<ClaimRow>),
}

/// What a decision needs to know of the world around the claim.
pub struct Context<'a> {
    /// Who we are.
    pub me: &'a Holder,
    /// Which boots are proven dead.
    pub is_dead: &'a dyn Fn(BootId) -> bool,
    /// Nonces for new attempts.
    pub nonces: &'a mut Nonces,
    /// The rule that is left out.
    pub planted: Planted,
}

impl Context<'_> {
    fn has(&self, bug: PlantedBug) -> bool {
        self.planted.has(bug)
    }

    fn nonce(&mut self) -> Nonce {
        if self.has(PlantedBug::NoNonce) {
            return Nonce::default();
        }
        self.nonces.fresh()
    }
}

impl Claim {
    /// The number under which this may be served and its writes acknowledged; none in every other state.
    pub fn held(&self) -> Option<u64> {
        match self {
            Claim::Held { number } => Some(*number),
            _ => None,
        }
    }

    /// The number that the row carries for us as far as we know, served or not.
    pub fn number(&self) -> Option<u64> {
        match self {
            Claim::Loading { number }
            | Claim::Sealing { number }
            | Claim::Held { number }
            | Claim::Outgoing { number } => Some(*number),
            Claim::Claiming {
                attempt,
                purpose: Purpose::Reclaim | Purpose::Renew,
            } => attempt.seen.as_ref().map(|seen| seen.number),
            _ => None,
        }
    }

    /// The number of the newest row that this claim is known to have seen or written; none: it saw none yet.
    pub fn known_number(&self) -> Option<u64> {
        match self {
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                attempt.seen.as_ref().map(|seen| seen.number)
            }
            _ => self.number(),
        }
    }

    /// Takes in what happened. An input that does not fit the state is an answer that came too late: it changes nothing.
    pub fn handle(&mut self, input: Input, context: &mut Context<'_>) -> Output {
        match (&*self, input) {
            (Claim::Free, Input::Take) => {
                *self = Claim::Reading;
                Output::Read
            }
            (Claim::Free, Input::TakeSeen(row)) | (Claim::Reading, Input::Row(row)) => {
                self.take(row, context)
            }
            (Claim::Free, Input::TakeOffered(seen)) => {
                let number = seen.number + 1;
                self.attempt(Some(seen), number, Purpose::Offered, context)
            }
            (Claim::Claiming { attempt, purpose }, Input::Applied) => {
                let (number, purpose) = (attempt.to.number, *purpose);
                self.won(number, purpose, context)
            }
            (Claim::Claiming { .. }, Input::Refused(row)) => self.refused(row, context),
            (Claim::Loading { number }, Input::Loaded(found)) => {
                let number = *number;
                self.loaded(number, found, context)
            }
            (Claim::Sealing { number }, Input::Sealed) => {
                let number = *number;
                *self = Claim::Held { number };
                Output::Serve { number }
            }
            (Claim::Held { number }, Input::HandOver) => {
                *self = Claim::Outgoing { number: *number };
                Output::Nothing
            }
            (Claim::Outgoing { number }, Input::TakeBack) => {
                *self = Claim::Held { number: *number };
                Output::Nothing
            }
            (Claim::Outgoing { .. }, Input::Reclaim) if context.has(PlantedBug::ReclaimByRead) => {
                Output::Read
            }
            (Claim::Outgoing { number }, Input::Row(row))
                if context.has(PlantedBug::ReclaimByRead) =>
            {
                let number = *number;
                self.reclaimed_by_read(number, row, context)
            }
            (Claim::Outgoing { number }, Input::Reclaim) => {
                let number = *number;
                self.advance(number, number + 1, Purpose::Reclaim, context)
            }
            (Claim::Held { number }, Input::Renew) => {
                let number = *number;
                self.advance(number, number + 1, Purpose::Renew, context)
            }
            (
                Claim::Loading { number }
                | Claim::Sealing { number }
                | Claim::Held { number }
                | Claim::Outgoing { number },
                Input::Release,
            ) => {
                let number = *number;
                self.release(number, context)
            }
            (Claim::Releasing { attempt }, Input::Applied) => {
                let number = attempt.to.number;
                *self = Claim::Free;
                Output::Released { number }
            }
            (Claim::Releasing { attempt }, Input::Refused(row)) => {
                if settles(attempt, row.as_ref()) == Settled::Open {
                    return Output::RetryLater;
                }
                let number = attempt.to.number;
                *self = Claim::Free;
                Output::Released { number }
            }
            (Claim::Outgoing { .. } | Claim::Claiming { .. }, Input::Given) => {
                *self = Claim::Free;
                Output::Nothing
            }
            (_, Input::Lost(number)) if self.is_older_than(number, context) => {
                *self = Claim::Free;
                Output::Gone(None)
            }
            (_, Input::Failed) if self.is_waiting() => Output::RetryLater,
            (_, Input::Retry) => self.again(context),
            _ => Output::Nothing,
        }
    }

    /// Whether a row with `number` tells that ours is another's by now. An older answer must not take away what was taken
    /// after it was given.
    fn is_older_than(&self, number: u64, context: &Context<'_>) -> bool {
        let believes = context.has(PlantedBug::LeaseCheckBelievesOlderRow);
        self.number().is_some_and(|mine| number > mine || believes)
    }

    /// Whether a request is under way in this state.
    fn is_waiting(&self) -> bool {
        !matches!(
            self,
            Claim::Free | Claim::Held { .. } | Claim::Outgoing { .. }
        )
    }

    /// The request of this state, once more: reads and seals are repeatable, an attempt keeps its nonce.
    fn again(&mut self, context: &mut Context<'_>) -> Output {
        if context.has(PlantedBug::NewNonceOnRepeat)
            && let Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } = self
        {
            attempt.to.nonce = context.nonce();
        }
        match &*self {
            Claim::Free | Claim::Held { .. } | Claim::Outgoing { .. } => Output::Nothing,
            Claim::Reading => Output::Read,
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                Output::Cas(attempt.clone())
            }
            &Claim::Loading { number } => Output::Load { number },
            &Claim::Sealing { number } => Output::Seal { number },
        }
    }

    fn take(&mut self, row: Option<ClaimRow>, context: &mut Context<'_>) -> Output {
        let free = match row.as_ref().and_then(|row| row.holder.as_ref()) {
            None => true,
            Some(holder) => {
                holder == context.me
                    || (context.is_dead)(holder.boot)
                    || context.has(PlantedBug::ClaimFromLiveOwner)
            }
        };
        if !free {
            *self = Claim::Free;
            return Output::Gone(row);
        }
        let number = row.as_ref().map_or(0, |row| row.number) + 1;
        self.attempt(
            row.as_ref().map(ClaimRow::seen),
            number,
            Purpose::Take,
            context,
        )
    }

    fn attempt(
        &mut self,
        seen: Option<Seen>,
        number: u64,
        purpose: Purpose,
        context: &mut Context<'_>,
    ) -> Output {
        let to = ClaimRow {
            holder: Some(context.me.clone()),
            number,
            nonce: context.nonce(),
        };
        let attempt = Attempt { seen, to };
        *self = Claim::Claiming {
            attempt: attempt.clone(),
            purpose,
        };
        Output::Cas(attempt)
    }

    /// From our own row to our own row with a higher number.
    fn advance(
        &mut self,
        from: u64,
        to: u64,
        purpose: Purpose,
        context: &mut Context<'_>,
    ) -> Output {
        let seen = Seen {
            holder: Some(context.me.clone()),
            number: from,
        };
        self.attempt(Some(seen), to, purpose, context)
    }

    fn won(&mut self, number: u64, purpose: Purpose, context: &Context<'_>) -> Output {
        match purpose {
            Purpose::Take => {
                *self = Claim::Loading { number };
                Output::Load { number }
            }
            Purpose::Offered | Purpose::Reclaim | Purpose::Renew => self.seal(number, context),
        }
    }

    fn seal(&mut self, number: u64, context: &Context<'_>) -> Output {
        if context.has(PlantedBug::NoSeal) {
            *self = Claim::Held { number };
            return Output::Serve { number };
        }
        *self = Claim::Sealing { number };
        Output::Seal { number }
    }

    /// Only planted: the row being as it was does not keep the other's claim, which is under way, from applying.
    fn reclaimed_by_read(
        &mut self,
        number: u64,
        row: Option<ClaimRow>,
        context: &Context<'_>,
    ) -> Output {
        let is_as_it_was = row
            .as_ref()
            .is_some_and(|row| row.number == number && row.holder.as_ref() == Some(context.me));
        if is_as_it_was {
            *self = Claim::Held { number };
            return Output::Serve { number };
        }
        *self = Claim::Free;
        Output::Gone(row)
    }

    fn refused(&mut self, row: Option<ClaimRow>, context: &mut Context<'_>) -> Output {
        let Claim::Claiming { attempt, purpose } = &*self else {
            return Output::Nothing;
        };
        let purpose = *purpose;
        match settles(attempt, row.as_ref()) {
            Settled::Ours => {
                let number = attempt.to.number;
                self.won(number, purpose, context)
            }
            // It was refused, and yet what it names stands there: it may apply still.
            Settled::Open => Output::RetryLater,
            // The attempt can never apply any more, so a new one with a new nonce is safe. Of these only a plain taking
            // may try again: the others had their permission from a row that is gone.
            Settled::Changed if purpose == Purpose::Take => self.take(row, context),
            Settled::Changed => {
                *self = Claim::Free;
                Output::Gone(row)
            }
        }
    }

    /// A row at or above our number comes from a restored backup of the registers: claim past it, or it would win.
    fn loaded(&mut self, number: u64, found: Option<u64>, context: &mut Context<'_>) -> Output {
        match found {
            Some(found) if found >= number => {
                self.advance(number, found + 1, Purpose::Take, context)
            }
            _ => self.seal(number, context),
        }
    }

    fn release(&mut self, number: u64, context: &mut Context<'_>) -> Output {
        let attempt = Attempt {
            seen: Some(Seen {
                holder: Some(context.me.clone()),
                number,
            }),
            to: ClaimRow {
                holder: None,
                number: number + 1,
                nonce: context.nonce(),
            },
        };
        *self = Claim::Releasing {
            attempt: attempt.clone(),
        };
        Output::Cas(attempt)
    }
}

/// What a row that stood against an attempt says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Settled {
    /// It applied earlier.
    Ours,
    /// It can never apply any more.
    Changed,
    /// Neither.
    Open,
}

fn settles(attempt: &Attempt, row: Option<&ClaimRow>) -> Settled {
    if row.is_some_and(|row| row.nonce == attempt.to.nonce) {
        Settled::Ours
    } else if row.map(ClaimRow::seen) == attempt.seen {
        Settled::Open
    } else {
        Settled::Changed
    }
}

#[cfg(test)]
mod tests;
