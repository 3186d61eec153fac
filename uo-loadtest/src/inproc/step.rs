//! What is done to a cluster, and when: `20:kill:sim-3`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// One thing that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Seconds since the cluster was ready.
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
    /// Stops and starts one node after another.
    Rolling,
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Step> {
        let mut parts = text.trim().split(':');
        let second = parts.next().unwrap_or_default();
        let second = second
            .parse()
            .with_context(|| format!("{second:?} is no number of seconds"))?;
        let what = match parts.next() {
            Some("kill") => What::Kill,
            Some("stop") => What::Stop,
            Some("start") => What::Start,
            Some("rolling") => What::Rolling,
            other => bail!(
                "{:?} is none of kill, stop, start and rolling",
                other.unwrap_or_default()
            ),
        };
        let node = parts.next().map(str::to_owned);
        ensure!(parts.next().is_none(), "{text:?} has a part too many");
        match (what, &node) {
            (What::Rolling, Some(_)) => bail!("rolling concerns every node and names none"),
            (What::Rolling, None) | (_, Some(_)) => Ok(Step { second, what, node }),
            (_, None) => bail!("{text:?} does not say which node, like {text}:sim-1"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Kill => "kill",
            What::Stop => "stop",
            What::Start => "start",
            What::Rolling => "rolling",
        };
        write!(f, "{}:{what}", self.second)?;
        match &self.node {
            Some(node) => write!(f, ":{node}"),
            None => Ok(()),
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
            "60:rolling",
        ] {
            let step: Step = text.parse().expect(text);
            assert_eq!(step.to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_with_a_step_is_said() {
        let why = |text: &str| Step::from_str(text).expect_err(text).to_string();
        assert_eq!(why("x:kill:sim-1"), "\"x\" is no number of seconds");
        assert!(why("5:burn:sim-1").contains("\"burn\" is none of kill"));
        assert!(why("5:kill").contains("which node"));
        assert!(why("5:rolling:sim-1").contains("every node"));
        assert!(why("5:kill:sim-1:now").contains("too many"));
    }
}
