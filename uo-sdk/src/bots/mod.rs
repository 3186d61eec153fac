//! The bots that load tests are made of.
//!
//! - [`idle`] stands;
//! - [`wander`] holds headings, steps, and walks to far goals;
//! - [`combat`] looks for a fight, breaks things, dies and goes on;
//! - [`duel`] seeks another who duels, and fights until one of them is dead;
//! - [`siege`] gathers with others before a camp and breaks it down;
//! - [`churn`] logs in and out;
//! - [`border`] paces across a border between regions;
//! - [`deaf`] wanders, but stops reading for a while.
//!
//! What some of them share: `bout`, a fight with one foe; `journey`, a walk to one place; `meet`, where those meet who
//! never spoke to each other. [`BotKind`] names them on a command line.

use std::fmt;
use std::str::FromStr;

use crate::Bot;

pub mod border;
mod bout;
pub mod churn;
pub mod combat;
pub mod deaf;
pub mod duel;
pub mod idle;
mod journey;
mod meet;
#[cfg(test)]
mod scene;
pub mod siege;
pub mod wander;

pub use border::Border;
pub use churn::Churn;
pub use combat::Combat;
pub use deaf::Deaf;
pub use duel::Duel;
pub use idle::Idle;
pub use siege::Siege;
pub use wander::Wander;

/// Names a bot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BotKind {
    /// [`Combat`]
    Combat,
    /// [`Wander`]
    Wander,
    /// [`Duel`]
    Duel,
    /// [`Siege`]
    Siege,
    /// [`Churn`]
    Churn,
    /// [`Border`]
    Border,
    /// [`Idle`]
    Idle,
    /// [`Deaf`]
    Deaf,
}

impl BotKind {
    /// All of them.
    pub const ALL: [BotKind; 8] = [
        BotKind::Combat,
        BotKind::Wander,
        BotKind::Duel,
        BotKind::Siege,
        BotKind::Churn,
        BotKind::Border,
        BotKind::Idle,
        BotKind::Deaf,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            BotKind::Combat => "combat",
            BotKind::Wander => "wander",
            BotKind::Duel => "duel",
            BotKind::Siege => "siege",
            BotKind::Churn => "churn",
            BotKind::Border => "border",
            BotKind::Idle => "idle",
            BotKind::Deaf => "deaf",
        }
    }

    /// A bot of this kind that plays as `seed` says.
    pub fn make(self, seed: u64) -> Box<dyn Bot> {
        match self {
            BotKind::Combat => Box::new(Combat::new(seed)),
            BotKind::Wander => Box::new(Wander::new(seed)),
            BotKind::Duel => Box::new(Duel::new(seed)),
            BotKind::Siege => Box::new(Siege::new(seed)),
            BotKind::Churn => Box::new(Churn::new(seed)),
            BotKind::Border => Box::new(Border::new(seed)),
            BotKind::Idle => Box::new(Idle),
            BotKind::Deaf => Box::new(Deaf::new(seed, deaf::Plan::default())),
        }
    }
}

impl fmt::Display for BotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BotKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The name that a client's own combat bot goes by.
        let text = text.strip_suffix("-auto").unwrap_or(text);
        BotKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| {
                let known: Vec<_> = BotKind::ALL.iter().map(|kind| kind.name()).collect();
                format!("`{text}` is no bot; known are {}", known.join(", "))
            })
    }
}
