//! One fault.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Serialize;

use super::{Arguments, Fault, WHOLE_WITHIN};
use crate::dice::Dice;
use crate::fleet::Fleet;
use crate::http;
use crate::judge::{Violation, Wake};

/// How long after the bar it is still watched when the regions are held again, to say by how much it was missed.
const PATIENCE_MS: u64 = 20_000;
/// How long a woken process may take to start over.
const REBORN_WITHIN_MS: u64 = 15_000;
/// How long it is watched after that.
const AFTERWARDS_MS: u64 = 1_000;
/// How long a process may take to end that was told to panic.
const END_WITHIN: Duration = Duration::from_secs(10);
/// What a cluster is given to be calm before a fault, beside the random part of a second.
const CALM_MS: u64 = 1_000;

/// What came of one fault. Times are in milliseconds from the fault.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Counted from 1.
    pub number: u32,
    /// Who was hit.
    pub sim: String,
    /// How many regions it held.
    pub regions: usize,
    /// When the first of the others knew of the death.
    pub detected_ms: Option<u64>,
    /// When the first of its regions was held again.
    pub first_ms: Option<u64>,
    /// When all were.
    pub held_ms: Option<u64>,
    /// From the start of a new process, or the wake-up, until the sim acted again.
    pub back_ms: u64,
    /// What was wrong.
    pub violations: Vec<String>,
}

/// When the others took over, in milliseconds from the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Takeover {
    detected_ms: Option<u64>,
    first_ms: Option<u64>,
    held_ms: Option<u64>,
}

/// A fault that is about to happen.
pub struct Attempt<'a> {
    number: u32,
    arguments: &'a Arguments,
    /// Of the whole map.
    regions: usize,
    calm_ms: u64,
    /// Decides who is hit, among those who hold something.
    pick: u64,
}

impl<'a> Attempt<'a> {
    /// Draws when and whom.
    pub fn begin(
        number: u32,
        arguments: &'a Arguments,
        regions: usize,
        dice: &mut Dice,
    ) -> Attempt<'a> {
        Attempt {
            number,
            arguments,
            regions,
            calm_ms: CALM_MS + dice.between(0, 999),
            pick: dice.between(0, u64::MAX - 1),
        }
    }

    /// Waits for the moment, hits a sim, measures, brings it back, and waits until the cluster is whole.
    pub async fn carry_out(self, fleet: &mut Fleet) -> anyhow::Result<Outcome> {
        fleet.look_closely(true);
        fleet.pass(self.calm_ms).await;
        let victim = self.victim(fleet)?;
        let before = fleet.sample(victim).expect("it was just chosen").clone();
        let lost = fleet.look(victim).map_or(0, |look| look.regions.len());

        let hit_ms = fleet.now_ms();
        self.hit(fleet, victim).await?;
        let wake = before
            .look
            .ok()
            .map(|look| Wake::new(look, hit_ms.saturating_sub(before.sent_ms)));
        let takeover = self.takeover(fleet, victim, hit_ms).await;
        let back_ms = match self.arguments.fault {
            Fault::Kill | Fault::Panic => self.restart(fleet, victim).await?,
            Fault::Pause => {
                let rest =
                    (hit_ms + self.arguments.pause_seconds * 1_000).saturating_sub(fleet.now_ms());
                fleet.pass(rest).await;
                let wake = wake.context("the sim showed nothing before its pause")?;
                self.wake_up(fleet, victim, wake).await?
            }
        };
        fleet.steady(self.regions, WHOLE_WITHIN).await?;
        Ok(Outcome {
            number: self.number,
            sim: fleet.nodes[victim].name().to_owned(),
            regions: lost,
            detected_ms: takeover.detected_ms,
            first_ms: takeover.first_ms,
            held_ms: takeover.held_ms,
            back_ms,
            violations: texts(fleet.take_violations()),
        })
    }

    fn victim(&self, fleet: &Fleet) -> anyhow::Result<usize> {
        let holding: Vec<usize> = (0..fleet.nodes.len())
            .filter(|&node| {
                fleet
                    .look(node)
                    .is_some_and(|look| !look.regions.is_empty())
            })
            .collect();
        ensure!(!holding.is_empty(), "no sim holds anything");
        Ok(holding[(self.pick % holding.len() as u64) as usize])
    }

    async fn hit(&self, fleet: &mut Fleet, victim: usize) -> anyhow::Result<()> {
        let node = &mut fleet.nodes[victim];
        match self.arguments.fault {
            Fault::Kill => node.kill(),
            Fault::Pause => node.pause(),
            Fault::Panic => {
                // Whoever panics may not get to answer.
                let answer = http::post(node.admin(), "/panic", Duration::from_secs(1)).await;
                match answer {
                    Ok(answer) if !(200..300).contains(&answer.status) => bail!(
                        "the server does not panic on demand ({} {}); build it with --features planted-bugs",
                        answer.status,
                        answer.body
                    ),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Watches until the others hold everything.
    async fn takeover(&self, fleet: &mut Fleet, victim: usize, hit_ms: u64) -> Takeover {
        let bar_ms = self.arguments.bar_ms();
        let others = move |node: usize| node != victim;
        let (held, deaths) = (fleet.held_by(others).len(), fleet.deaths_known(others));
        let mut takeover = Takeover::default();
        let watched = fleet.until(bar_ms + PATIENCE_MS, |fleet, sample| {
            let at_ms = Some(sample.received_ms.saturating_sub(hit_ms));
            let held_now = fleet.held_by(others).len();
            if fleet.deaths_known(others) > deaths {
                takeover.detected_ms = takeover.detected_ms.or(at_ms);
            }
            if held_now > held {
                takeover.first_ms = takeover.first_ms.or(at_ms);
            }
            if held_now == self.regions {
                takeover.held_ms = at_ms;
            }
            takeover.held_ms.is_some()
        });
        watched.await;
        if takeover.held_ms.is_none_or(|held_ms| held_ms > bar_ms) {
            fleet.note([Violation::NotHeld {
                held: fleet.held_by(others).len(),
                regions: self.regions,
                within_ms: bar_ms,
            }]);
        }
        takeover
    }

    /// A new process under the same name, until it acts.
    async fn restart(&self, fleet: &mut Fleet, victim: usize) -> anyhow::Result<u64> {
        fleet.look_closely(false);
        if self.arguments.fault == Fault::Panic {
            fleet.nodes[victim].wait_end(END_WITHIN).await?;
        }
        let started_ms = fleet.now_ms();
        fleet.nodes[victim].start()?;
        let acts = fleet
            .until(WHOLE_WITHIN.as_millis() as u64, |fleet, _| {
                fleet.look(victim).is_some_and(|look| !look.is_fenced)
            })
            .await;
        let acts = acts.with_context(|| {
            let log = fleet.nodes[victim].log();
            format!("the sim does not come back; see {}", log.display())
        })?;
        Ok(acts - started_ms)
    }

    /// Lets a paused process go on, and judges everything that it shows until it has started over.
    async fn wake_up(
        &self,
        fleet: &mut Fleet,
        victim: usize,
        mut wake: Wake,
    ) -> anyhow::Result<u64> {
        fleet.look_closely(true);
        let woken_ms = fleet.now_ms();
        fleet.nodes[victim].resume()?;
        let reborn = fleet
            .until(REBORN_WITHIN_MS, |fleet, sample| {
                let Some(look) = fleet.look(victim).filter(|_| sample.node == victim) else {
                    return false;
                };
                let is_reborn = wake.is_reborn(look);
                let violations = wake.judge(look, fleet.holders());
                fleet.note(violations);
                is_reborn
            })
            .await;
        fleet.pass(AFTERWARDS_MS).await;
        match reborn {
            Some(at_ms) => Ok(at_ms - woken_ms),
            None => {
                let node = fleet.nodes[victim].name().to_owned();
                fleet.note([Violation::NotReborn {
                    node,
                    within_ms: REBORN_WITHIN_MS,
                }]);
                Ok(REBORN_WITHIN_MS)
            }
        }
    }
}

fn texts(violations: Vec<Violation>) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}
