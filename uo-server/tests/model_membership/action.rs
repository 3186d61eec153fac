//! What may happen, told to people.

use std::fmt;

use uo_server::identity::BootId;

use super::state::{Flight, letter, name};

/// What may happen.
#[derive(Clone, PartialEq)]
pub enum Action {
    Tick {
        slow: Option<usize>,
        fast: Option<usize>,
    },
    CarryOut(Flight),
    Answer(Flight),
    /// The asker is told that nobody knows.
    Unknown(Flight),
    /// The asker is told that it did not work, and it did not.
    Fail(Flight),
    Pause(usize),
    Wake(usize),
    Crash(usize),
    Start(usize),
    Stop(usize),
    OutageBegins,
    OutageEnds,
    /// A lease that names a boot is read.
    Lease(usize, BootId),
    Expire(BootId),
}

impl Action {
    /// Whether it cannot be counted on: it is a fault, or what an operator decides.
    pub fn is_fault(&self) -> bool {
        use Action::{Crash, OutageBegins, Pause, Stop, Unknown};
        matches!(
            self,
            Crash(_) | OutageBegins | Pause(_) | Stop(_) | Unknown(_)
        )
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::CarryOut(flight) => write!(f, "the store carries out: {flight:?}"),
            Action::Answer(flight) => write!(f, "{flight:?}"),
            Action::Unknown(flight) => write!(f, "nobody knows: {flight:?}"),
            Action::Fail(flight) => write!(f, "it fails: {flight:?}"),
            Action::Tick { slow, fast } => {
                write!(f, "tick")?;
                if let Some(node) = slow {
                    write!(f, ", {}'s clock misses it", letter(*node))?;
                }
                fast.map_or(Ok(()), |node| write!(f, ", {}'s counts two", letter(node)))
            }
            Action::Lease(at, boot) => {
                write!(
                    f,
                    "{} reads a lease that names {}",
                    letter(*at),
                    name(*boot)
                )
            }
            Action::Expire(boot) => write!(f, "the row of {} expires", name(*boot)),
            Action::Pause(node) => write!(f, "{} pauses", letter(*node)),
            Action::Wake(node) => write!(f, "{} wakes", letter(*node)),
            Action::Crash(node) => write!(f, "{} crashes", letter(*node)),
            Action::Start(node) => write!(f, "{} starts", letter(*node)),
            Action::Stop(node) => write!(f, "{} stops in order", letter(*node)),
            Action::OutageBegins => write!(f, "an outage begins"),
            Action::OutageEnds => write!(f, "the outage ends"),
        }
    }
}
