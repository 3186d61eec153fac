//! The bots that load tests are made of.
//!
//! - [`idle`] stands;
//! - [`wander`] holds headings, steps, and walks to far goals;
//! - [`combat`] looks for a fight, breaks things, dies and goes on;
//! - [`border`] paces across a border between regions;
//! - [`deaf`] wanders, but stops reading for a while.
//!
//! [`BotKind`] names them on a command line.

use std::fmt;
use std::str::FromStr;

use crate::Bot;

pub mod border;
pub mod combat;
pub mod deaf;
pub mod idle;
#[cfg(test)]
mod scene;
pub mod wander;

pub use border::Border;
pub use combat::Combat;
pub use deaf::Deaf;
pub use idle::Idle;
pub use wander::Wander;

/// Names a bot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BotKind {
    /// [`Combat`]
    Combat,
    /// [`Wander`]
    Wander,
    /// [`Border`]
    Border,
    /// [`Idle`]
    Idle,
    /// [`Deaf`]
    Deaf,
}

impl BotKind {
    /// All of them.
    pub const ALL: [BotKind; 5] = [
        BotKind::Combat,
        BotKind::Wander,
        BotKind::Border,
        BotKind::Idle,
        BotKind::Deaf,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            BotKind::Combat => "combat",
            BotKind::Wander => "wander",
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
