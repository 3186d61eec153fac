//! A report in a terminal: the verdict first, then one line for each subject, so that it is read in ten seconds.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::IsTerminal;

use super::figures::ms_text;
use super::{Quantiles, Report, Spread};

/// Lines of one kind that are shown; the rest is counted.
const LINES_MAX: usize = 8;

/// Whether colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Letters only.
    Plain,
    /// With colours, for a terminal.
    Coloured,
}

impl Style {
    /// Colours where the standard output is a terminal, unless `NO_COLOR` is set.
    pub fn of_stdout() -> Style {
        let refuses = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !refuses {
            Style::Coloured
        } else {
            Style::Plain
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    /// What is good.
    pub fn good(self, text: &str) -> String {
        self.paint("1;32", text)
    }

    /// What is bad.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// What is by the way.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// The report for people, without a newline at the end.
pub fn text(report: &Report, style: Style) -> String {
    let mut page = Page {
        style,
        lines: Vec::new(),
    };
    page.verdict(report);
    page.bots(report);
    page.servers(report);
    page.felt(report);
    page.judged(report);
    page.events(report);
    page.lines.join("\n")
}

struct Page {
    style: Style,
    lines: Vec<String>,
}

impl Page {
    fn line(&mut self, subject: &str, text: impl AsRef<str>) {
        let subject = self.style.faint(&format!("{subject:<9}"));
        self.lines.push(format!("  {subject} {}", text.as_ref()));
    }

    fn list<T>(&mut self, subject: &str, all: &[T], show: impl Fn(&T) -> String) {
        for one in all.iter().take(LINES_MAX) {
            self.line(subject, show(one));
        }
        if all.len() > LINES_MAX {
            self.line(subject, format!("and {} more", all.len() - LINES_MAX));
        }
    }

    fn verdict(&mut self, report: &Report) {
        let what = format!(
            "{} bots for {:.0} s{}",
            grouped(report.bots),
            report.seconds,
            cluster(report)
        );
        let verdict = if report.has_passed() {
            self.style.good("PASSED")
        } else {
            self.style.bad("FAILED")
        };
        self.lines.push(format!("{verdict}  {what}"));
        let style = self.style;
        self.list("why", &report.failures, |why| style.bad(why));
    }

    fn bots(&mut self, report: &Report) {
        let (sessions, swarm) = (&report.sessions, &report.swarm);
        self.line(
            "sessions",
            format!(
                "{} of {} got in, {} at most, {} in at the end; {} lost, {} resumes, {} logouts, {} put off",
                grouped(swarm.bots_in),
                grouped(report.bots),
                grouped(sessions.peak),
                grouped(swarm.bots_in_at_end),
                grouped(sessions.lost),
                grouped(sessions.resumes),
                grouped(swarm.logouts),
                grouped(sessions.refused),
            ),
        );
        self.line(
            "latency",
            format!(
                "order to delta, at the client: {}; {} orders unanswered",
                quantiles(&report.order_to_delta_ms),
                grouped(swarm.orders_unanswered),
            ),
        );
        let us = swarm.cpu_us_per_frame;
        let us = us.map_or(String::new(), |us| {
            format!(", {us:.1} us of the bots' CPU each")
        });
        self.line(
            "traffic",
            format!(
                "{} orders/s, {} deltas/s of {:.1} entities, {} frames/s{us}",
                grouped(swarm.orders_per_s.round() as u64),
                grouped(swarm.deltas_per_s.round() as u64),
                swarm.entities_per_delta,
                grouped(swarm.frames_per_s.round() as u64),
            ),
        );
        let costs = &report.per_session;
        let costs = [
            costs.bytes_per_s.map(|bytes| format!("{bytes:.0} B/s")),
            costs
                .server_cpu_us_per_s
                .map(|us| format!("{us:.0} us/s of the servers' CPU")),
            costs
                .rss_bytes
                .map(|bytes| format!("{:.1} KiB of memory", bytes / 1024.0)),
        ];
        let costs: Vec<String> = costs.into_iter().flatten().collect();
        if !costs.is_empty() {
            self.line("a session", costs.join(", "));
        }
    }

    fn servers(&mut self, report: &Report) {
        let ticks = &report.ticks;
        if let Some((late, total)) = ticks.late.zip(ticks.total) {
            self.line(
                "ticks",
                format!(
                    "{}; {} late of {}",
                    quantiles(&report.tick_ms),
                    grouped(late),
                    grouped(total)
                ),
            );
        }
        let world = &report.world;
        if let (Some(fights), Some(deaths)) = (world.fights, world.deaths) {
            self.line(
                "world",
                format!(
                    "{} fights, {} deaths, {} respawns, {} objects broken",
                    grouped(fights),
                    grouped(deaths),
                    grouped(world.respawns.unwrap_or_default()),
                    grouped(world.objects_broken.unwrap_or_default()),
                ),
            );
        }
        for (subject, times) in [
            ("failover", &report.failover_ms),
            ("drain", &report.drain_ms),
            ("stop", &report.stop_ms),
        ] {
            if let Some(longest) = times.iter().copied().reduce(f64::max) {
                self.line(
                    subject,
                    format!("{} times, {longest:.0} ms at most", times.len()),
                );
            }
        }
    }

    fn felt(&mut self, report: &Report) {
        for (cause, gap) in report.player_gap_ms.by_cause() {
            if gap.count > 0 {
                self.line("gaps", format!("{cause}: {}", spread(gap)));
            }
        }
        if report.resume_ms.count > 0 {
            self.line("resumes", spread(&report.resume_ms));
        }
        let fights = report.swarm.fights;
        if fights > 0 {
            let reset = grouped(report.fights_reset);
            self.line(
                "fights",
                format!("{} begun by bots, {reset} reset", grouped(fights)),
            );
        }
    }

    fn judged(&mut self, report: &Report) {
        let invariants = &report.invariants;
        if invariants.samples > 0 {
            self.line(
                "judged",
                format!(
                    "{} looks at all nodes: {} violations, {} seen once only",
                    grouped(invariants.samples),
                    invariants.violations.len(),
                    invariants.transients
                ),
            );
            self.list("violation", &invariants.violations, String::clone);
        }
        let proof = &report.proof;
        let proofs = [
            (proof.coins_lost, "coins lost"),
            (proof.coins_duplicated, "doubled"),
            (proof.saved_lost, "saved things lost"),
            (proof.view_errors, "wrong views"),
        ];
        let proofs: Vec<String> = proofs
            .into_iter()
            .filter_map(|(count, what)| Some(format!("{} {what}", grouped(count?))))
            .collect();
        if !proofs.is_empty() {
            self.line("proof", proofs.join(", "));
        }
        if let Some(fences) = report.fences {
            self.line("fences", format!("{} came down", grouped(fences)));
        }
        let style = self.style;
        self.list("bar", &report.bars, |judged| {
            let text = judged.to_string();
            if judged.is_met {
                text
            } else {
                style.bad(&text)
            }
        });
    }

    fn events(&mut self, report: &Report) {
        for step in &report.chaos {
            self.line(
                "chaos",
                format!("{:>5.1} s  {}: {}", step.at_s, step.step, step.outcome),
            );
        }
        for awakening in &report.swarm.awakenings {
            self.line(
                "deaf",
                format!(
                    "{:.1} s, then {} stale deltas and {} others before the present, after {} ms",
                    awakening.deaf_ms as f64 / 1e3,
                    awakening.stale_deltas,
                    awakening.stale_others,
                    awakening.caught_up_ms,
                ),
            );
        }
        let notes: Vec<(&String, &u64)> = report.swarm.notes.iter().collect();
        self.list("noted", &notes, |(note, times)| format!("{times} x {note}"));
    }
}

fn cluster(report: &Report) -> String {
    let (Some(store), Some(sims)) = (&report.store, report.sims) else {
        return String::new();
    };
    format!(
        " on {sims} sims and {} gateways over {store}, seed {}",
        report.gateways, report.seed
    )
}

fn quantiles(times: &Quantiles) -> String {
    format!(
        "p50 {} ms, p99 {} ms, max {} ms",
        ms_text(times.p50),
        ms_text(times.p99),
        ms_text(times.max)
    )
}

fn spread(times: &Spread) -> String {
    format!(
        "p50 {} ms, p99 {} ms, max {} ms, {} times",
        ms_text(times.p50),
        ms_text(times.p99),
        ms_text(times.max),
        grouped(times.count)
    )
}

/// A count with a comma at every thousand.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::ChaosStep;

    #[test]
    fn the_verdict_comes_first_and_why_after_it() {
        let mut report = Report {
            bots: 1_200,
            seconds: 60.0,
            ..Report::default()
        };
        let passed = text(&report, Style::Plain);
        assert!(
            passed.starts_with("PASSED  1,200 bots for 60 s\n"),
            "{passed}"
        );
        report.failures.push("2 connections were lost".into());
        let failed = text(&report, Style::Plain);
        let mut lines = failed.lines();
        assert_eq!(lines.next(), Some("FAILED  1,200 bots for 60 s"));
        assert_eq!(lines.next(), Some("  why       2 connections were lost"));
    }

    #[test]
    fn what_was_not_measured_has_no_line_and_long_lists_are_cut() {
        let mut report = Report::default();
        let bare = text(&report, Style::Plain);
        assert!(bare.lines().count() <= 4, "{bare}");
        report.failures = vec!["again".into(); 20];
        report.chaos.push(ChaosStep {
            at_s: 70.0,
            step: "kill:sim-3".into(),
            outcome: "held again after 3.1 s".into(),
        });
        let full = text(&report, Style::Plain);
        assert!(full.contains("  why       and 12 more"), "{full}");
        assert!(
            full.contains("70.0 s  kill:sim-3: held again after 3.1 s"),
            "{full}"
        );
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        let report = Report::default();
        assert!(!text(&report, Style::Plain).contains('\x1b'));
        assert!(text(&report, Style::Coloured).contains("\x1b[1;32mPASSED"));
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
