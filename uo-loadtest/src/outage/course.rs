//! The run: they fight, the database stands still, the world does too, the database comes back, they fight on.

use std::time::Duration;

use anyhow::{Context, ensure};
use uo_proto::WorldStatus;

use super::Report;
use crate::crowd::Crowd;
use crate::database::Database;
use crate::fleet::Fleet;
use crate::http::Line;
use crate::judge::Scene;

/// Within this time of the pause the world stands still: the fence, and what its last beat may have been ahead.
const FREEZES_WITHIN_MS: u64 = 5_000;
/// Within this time of the database's return the world goes on.
const THAWS_WITHIN_MS: u64 = 30_000;
/// How long bots may take to hear of it.
const TOLD_WITHIN_MS: u64 = 2_000;
/// How often the frozen world is looked at as a whole.
const PAGE_EVERY_MS: u64 = 500;

/// A run, and everything that it needs.
pub(super) struct Course {
    pub(super) database: Database,
    pub(super) fleet: Fleet,
    pub(super) crowd: Crowd,
    pub(super) report: Report,
    pub(super) pause: Duration,
    pub(super) play: Duration,
}

impl Course {
    /// Runs it; what came of it.
    pub(super) async fn run(mut self) -> anyhow::Result<Report> {
        let play_ms = self.play.as_millis() as u64;
        self.fleet.pass(play_ms).await;
        let pid = self.fleet.nodes[0].pid();
        let mut pages = Pages {
            line: Line::new(self.fleet.nodes[0].admin())?,
        };
        let before = pages.next().await?;

        self.fleet.look_closely(true);
        let paused_ms = self.fleet.now_ms();
        self.database.pause()?;
        let frozen = self.wait_fence(FREEZES_WITHIN_MS, true).await;
        self.report.frozen_after_ms = frozen.map(|at_ms| at_ms - paused_ms);
        ensure!(
            frozen.is_some(),
            "the world did not freeze within {FREEZES_WITHIN_MS} ms"
        );
        let (first, last) = self.watch_frozen(&mut pages, paused_ms).await?;

        let resumed_ms = self.fleet.now_ms();
        self.report.paused_ms = resumed_ms - paused_ms;
        self.database.resume()?;
        let (last, thawed) = self.watch_thaw(&mut pages, last, resumed_ms).await?;
        self.wrong(before.kept(&first));
        self.wrong(first.still(&last));
        self.wrong(last.went_on(&thawed));
        self.report.characters = last.characters.len();

        self.fleet.pass(TOLD_WITHIN_MS.max(play_ms)).await;
        let end = pages.next().await?;
        self.wrong(last.kept(&end));
        if thawed.ticks_until(&end) == 0 {
            self.say("no region ticks after the thaw".into());
        }
        let ended = self.fleet.nodes[0].ended()?;
        if ended.is_some() || self.fleet.nodes[0].pid() != pid {
            self.say("the process ended".into());
        }
        let seen = self.fleet.take_violations();
        self.wrong(seen);
        self.ask_bots();
        Ok(self.report)
    }

    async fn wait_fence(&mut self, within_ms: u64, fenced: bool) -> Option<u64> {
        let is_so = move |fleet: &mut Fleet, _: &_| {
            fleet.look(0).is_some_and(|look| look.is_fenced == fenced)
        };
        self.fleet.until(within_ms, is_so).await
    }

    /// Until the pause is over: the first page and the last one.
    async fn watch_frozen(
        &mut self,
        pages: &mut Pages,
        paused_ms: u64,
    ) -> anyhow::Result<(Scene, Scene)> {
        let first = pages.next().await?;
        let mut last = first.clone();
        self.report.pages = 1;
        self.fleet.pass(TOLD_WITHIN_MS).await;
        let frozen = |seen: &crate::crowd::Seen| seen.world == WorldStatus::Frozen;
        self.report.told_frozen = self.crowd.seen().filter(|seen| frozen(seen)).count();
        while self.fleet.now_ms() < paused_ms + self.pause.as_millis() as u64 {
            self.fleet.pass(PAGE_EVERY_MS).await;
            last = pages.next().await?;
            self.report.pages += 1;
            ensure!(
                last.look.is_fenced,
                "the world went on without its database"
            );
            let violations = first.still(&last);
            self.wrong(violations);
        }
        Ok((first, last))
    }

    /// Until the world goes on: the last page of the frozen one, and the first of the other.
    async fn watch_thaw(
        &mut self,
        pages: &mut Pages,
        mut last: Scene,
        resumed_ms: u64,
    ) -> anyhow::Result<(Scene, Scene)> {
        loop {
            let page = pages.next().await?;
            let now_ms = self.fleet.now_ms();
            if !page.look.is_fenced {
                self.report.thawed_after_ms = Some(now_ms - resumed_ms);
                return Ok((last, page));
            }
            ensure!(
                now_ms < resumed_ms + THAWS_WITHIN_MS,
                "the world does not go on within {THAWS_WITHIN_MS} ms"
            );
            last = page;
            self.report.pages += 1;
            // Lets the other looks be judged meanwhile.
            self.fleet.pass(10).await;
        }
    }

    fn ask_bots(&mut self) {
        let ok = |seen: &crate::crowd::Seen| seen.frozen > 0 && seen.world == WorldStatus::Ok;
        self.report.told_ok = self.crowd.seen().filter(|seen| ok(seen)).count();
        self.report.promises = self.crowd.promises();
        let mut wrong = self.crowd.failures();
        wrong.extend(self.crowd.ended());
        for seen in self.crowd.seen() {
            self.report.player_gap_ms = self.report.player_gap_ms.max(seen.gap_ms);
            if seen.losses > 0 {
                wrong.push(format!("{} lost {} connections", seen.name, seen.losses));
            }
            wrong.extend(
                seen.errors
                    .iter()
                    .map(|error| format!("{}: {error}", seen.name)),
            );
        }
        let told = [
            (self.report.told_frozen, "that the world is frozen"),
            (self.report.told_ok, "that it goes on"),
        ];
        for (count, what) in told {
            if count < self.crowd.len() {
                wrong.push(format!(
                    "{count} of {} bots were told {what}",
                    self.crowd.len()
                ));
            }
        }
        wrong.into_iter().for_each(|what| self.say(what));
    }

    fn wrong(&mut self, violations: Vec<crate::judge::Violation>) {
        for violation in violations {
            self.say(violation.to_string());
        }
    }

    fn say(&mut self, what: String) {
        if !self.report.violations.contains(&what) {
            self.report.violations.push(what);
        }
    }
}

/// Whole pages of one node.
struct Pages {
    line: Line,
}

impl Pages {
    async fn next(&mut self) -> anyhow::Result<Scene> {
        let answer = self.line.ask("GET", "/state?full").await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
        Scene::parse(&answer.body).context("/state?full")
    }
}
