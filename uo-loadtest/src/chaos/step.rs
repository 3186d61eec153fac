//! One thing that is done to a cluster, and when: `20:kill:sim-3`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::str::FromStr;

/// Longest way of a byte that a step can ask for, in milliseconds.
const SLOW_MS_MAX: u64 = 60_000;

/// One thing that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Seconds since the beginning.
    pub second: u64,
    /// What.
    pub what: What,
    /// To whom; none: to all in turn.
    pub node: Option<String>,
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Ends it where it stands; nobody is told.
    Kill,
    /// Stops it in order.
    Stop,
    /// Starts it again.
    Start,
    /// It stands still, connections and all.
    Pause,
    /// It goes on.
    Resume,
    /// Nothing reaches it or leaves it; connections stay open.
    Cut,
    /// What was cut or slow is as before.
    Heal,
    /// Whatever reaches or leaves it takes this many milliseconds longer.
    Slow(u64),
    /// Stops and starts one node after another.
    Rolling,
}

/// What is wrong with the text of a step.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StepError {
    /// The first part.
    #[error("{0:?} is no number of seconds")]
    Second(String),
    /// The second part.
    #[error("{0:?} is none of kill, stop, start, pause, resume, cut, heal, slow and rolling")]
    What(String),
    /// The third part is missing.
    #[error("{0:?} does not say which node, like {0}:sim-1")]
    NoNode(String),
    /// There is a node where none belongs.
    #[error("rolling concerns every node and names none")]
    RollingNode,
    /// `slow` without a time.
    #[error("{0:?} does not say how slow, like sim-1=40 for 40 ms, at most {SLOW_MS_MAX}")]
    NoDelay(String),
    /// A time where none belongs, or a fourth part.
    #[error("{0:?} has a part too many")]
    TooMany(String),
}

impl What {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            What::Kill => "kill",
            What::Stop => "stop",
            What::Start => "start",
            What::Pause => "pause",
            What::Resume => "resume",
            What::Cut => "cut",
            What::Heal => "heal",
            What::Slow(_) => "slow",
            What::Rolling => "rolling",
        }
    }

    fn of(name: &str) -> Result<What, StepError> {
        let all = [
            What::Kill,
            What::Stop,
            What::Start,
            What::Pause,
            What::Resume,
            What::Cut,
            What::Heal,
            What::Slow(0),
            What::Rolling,
        ];
        all.into_iter()
            .find(|what| what.name() == name)
            .ok_or_else(|| StepError::What(name.into()))
    }
}

impl Step {
    /// What is done to whom, without the time: `kill:sim-3`.
    pub fn deed(&self) -> String {
        let text = self.to_string();
        let deed = text.split_once(':').map(|(_, deed)| deed.to_owned());
        deed.unwrap_or(text)
    }

    /// Whether it moves regions from one node to another in order.
    pub fn is_drain(&self) -> bool {
        let is_sim = |node: &String| !node.starts_with("gw-") && !node.starts_with("db-");
        match self.what {
            What::Rolling => true,
            What::Stop => self.node.as_ref().is_some_and(is_sim),
            _ => false,
        }
    }
}

impl FromStr for Step {
    type Err = StepError;

    fn from_str(text: &str) -> Result<Step, StepError> {
        let text = text.trim();
        let mut parts = text.split(':');
        let second = parts.next().unwrap_or_default();
        let second = second
            .parse()
            .map_err(|_| StepError::Second(second.into()))?;
        let what = What::of(parts.next().unwrap_or_default())?;
        let node = parts.next();
        if parts.next().is_some() {
            return Err(StepError::TooMany(text.into()));
        }
        let (what, node) = match (what, node) {
            (What::Rolling, None) => (what, None),
            (What::Rolling, Some(_)) => return Err(StepError::RollingNode),
            (_, None | Some("")) => {
                return Err(StepError::NoNode(text.trim_end_matches(':').into()));
            }
            (What::Slow(_), Some(node)) => {
                let (node, ms) = node
                    .split_once('=')
                    .ok_or_else(|| StepError::NoDelay(text.into()))?;
                let ms = ms.parse().ok().filter(|ms| *ms <= SLOW_MS_MAX);
                let ms = ms.ok_or_else(|| StepError::NoDelay(text.into()))?;
                (What::Slow(ms), Some(node))
            }
            (_, Some(node)) if node.contains('=') => {
                return Err(StepError::TooMany(text.into()));
            }
            (_, Some(node)) => (what, Some(node)),
        };
        Ok(Step {
            second,
            what,
            node: node.map(str::to_owned),
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.second, self.what.name())?;
        if let Some(node) = &self.node {
            write!(f, ":{node}")?;
        }
        match self.what {
            What::Slow(ms) => write!(f, "={ms}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_as_it_is_written() {
        for text in [
            "20:kill:sim-3",
            "0:stop:gw-1",
            "7:start:sim-1",
            "8:pause:sim-1",
            "9:resume:db-2",
            "10:cut:gw-2",
            "11:slow:sim-1=40",
            "12:heal:sim-1",
            "60:rolling",
        ] {
            let step: Step = text.parse().expect(text);
            assert_eq!(step.to_string(), text);
            assert!(text.ends_with(&format!(":{}", step.deed())));
        }
    }

    #[test]
    fn what_is_wrong_with_a_step_is_said() {
        let why = |text: &str| Step::from_str(text).expect_err(text).to_string();
        assert_eq!(why("x:kill:sim-1"), "\"x\" is no number of seconds");
        assert!(why("5:burn:sim-1").contains("\"burn\" is none of kill"));
        assert_eq!(
            why("5:kill:"),
            "\"5:kill\" does not say which node, like 5:kill:sim-1"
        );
        assert!(why("5:rolling:sim-1").contains("every node"));
        assert!(why("5:kill:sim-1:now").contains("too many"));
        assert!(why("5:kill:sim-1=4").contains("too many"));
        assert!(why("5:slow:sim-1").contains("how slow"));
        assert!(why("5:slow:sim-1=fast").contains("how slow"));
        assert!(why("5:slow:sim-1=60001").contains("how slow"));
    }
}
