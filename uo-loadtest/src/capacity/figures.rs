//! What so many sessions come to, and how that is told.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Serialize;
use serde_json::Value;

use crate::report::run::PerSession;
use crate::report::{Quantiles, Spread, grouped, ms_text};

/// Longest p99 from an order to its delta that counts as carried, in milliseconds.
pub const P99_MS_MAX: f64 = 100.0;
/// Largest share of late ticks that counts as carried.
pub const LATE_MAX: f64 = 0.01;
/// The server's processor time a session is meant to be within so many times that of the floor.
pub const FLOOR_RATIO_MAX: f64 = 1.5;

/// What so many sessions come to. Names are those of `report.json` where it has them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Sessions in the world.
    pub sessions: u64,
    /// How long was measured.
    pub seconds: u64,
    /// At the client.
    pub order_to_delta_ms: Quantiles,
    /// Work of a tick; null for the floor.
    pub tick_ms: Quantiles,
    /// The share of ticks that ran late; null for the floor.
    pub late_ticks: Option<f64>,
    /// What one session costs.
    pub per_session: PerSession,
    /// The part of the server's processor time a session that the kernel took.
    pub server_kernel_us_per_s: f64,
    /// Frames that a session received.
    pub frames_per_s: f64,
    /// Entities that a delta told of.
    pub entities_per_delta: f64,
    /// Orders of all sessions.
    pub orders_per_s: f64,
    /// Other players that a session sees, on average.
    pub others_in_view: f64,
    /// Processor time of the bots, a session.
    pub bots_cpu_us_per_s: Option<f64>,
    /// Gaps felt at crossings between regions.
    pub crossing_gap_ms: Spread,
    /// Connections lost and sessions that ended, since the run began.
    pub lost: u64,
    /// Broken promises of the protocol, since the run began.
    pub protocol_errors: u64,
}

impl Figures {
    /// Why so many sessions are too many; none if they are carried.
    pub fn overload(&self) -> Option<String> {
        let p99 = self.order_to_delta_ms.p99;
        match (p99, self.late_ticks) {
            (None, _) => Some("no order was answered".into()),
            (Some(p99), _) if p99 > P99_MS_MAX => {
                Some(format!("p99 is {p99:.0} ms, above {P99_MS_MAX:.0} ms"))
            }
            (_, Some(late)) if late > LATE_MAX => {
                Some(format!("{:.1} % of the ticks run late", late * 100.0))
            }
            _ if self.lost > 0 => Some(format!("{} sessions were lost", self.lost)),
            _ => None,
        }
    }

    /// Server processor time a session, in microseconds a second.
    pub fn cpu_us(&self) -> f64 {
        self.per_session.server_cpu_us_per_s.unwrap_or_default()
    }

    /// One line for a table, under [`HEAD`].
    pub fn row(&self, name: &str) -> String {
        let costs = &self.per_session;
        let cores = self.cpu_us() * self.sessions as f64 / 1e6;
        let late = self.late_ticks;
        format!(
            "{name:<8} {:>8} {:>6} {:>6} {:>6} {:>7} {:>6} {:>7} {:>8} {:>6.1} {:>8} {:>6.2} {:>6.1}",
            grouped(self.sessions),
            ms_text(self.order_to_delta_ms.p50),
            ms_text(self.order_to_delta_ms.p99),
            late.map_or("-".into(), |late| format!("{:.2} %", late * 100.0)),
            format!("{:.0} us", self.cpu_us()),
            format!(
                "{:.0} %",
                100.0 * self.server_kernel_us_per_s / self.cpu_us().max(1e-9)
            ),
            format!("{:.0}", costs.bytes_per_s.unwrap_or_default()),
            format!("{:.1} KiB", costs.rss_bytes.unwrap_or_default() / 1024.0),
            self.frames_per_s,
            format!("{:.0}", self.orders_per_s),
            cores,
            self.others_in_view,
        )
    }
}

/// Above the rows.
pub const HEAD: &str = "server   sessions    p50    p99   late CPU/s ea kernel   B/s ea   RSS ea frames orders/s  cores  others";

/// What a whole run comes to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Capacity {
    /// Side of the map in tiles.
    pub map: u16,
    /// How frames were encoded.
    pub encoding: &'static str,
    /// The most sessions that were carried; null if the run did not look for it.
    pub knee: Option<u64>,
    /// Why more are too many; null if none were.
    pub limit: Option<String>,
    /// At the knee, or at as many as were asked for.
    pub at: Figures,
    /// Every number of sessions that was tried.
    pub steps: Vec<Figures>,
    /// The least a server can do, at as many sessions.
    pub floor: Option<Figures>,
    /// Processor time a session, over that of the floor.
    pub floor_ratio: Option<f64>,
}

impl Capacity {
    /// The last lines.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        match (self.knee, &self.limit) {
            (Some(knee), Some(limit)) => {
                lines.push(format!(
                    "{} sessions are carried; with more, {limit}",
                    grouped(knee)
                ));
            }
            (Some(knee), None) => {
                lines.push(format!(
                    "{} sessions are carried; more were not tried",
                    grouped(knee)
                ));
            }
            (None, Some(limit)) => {
                lines.push(format!(
                    "{} sessions are too many: {limit}",
                    grouped(self.at.sessions)
                ));
            }
            (None, None) => {
                lines.push(format!(
                    "{} sessions are carried",
                    grouped(self.at.sessions)
                ));
            }
        }
        lines.push(format!(
            "each sees {:.1} others, sends {:.1} orders/s and gets {:.1} frames/s; it costs {:.0} us/s of the server's CPU, {:.0} B/s, {:.1} KiB",
            self.at.others_in_view,
            self.at.orders_per_s / self.at.sessions.max(1) as f64,
            self.at.frames_per_s,
            self.at.cpu_us(),
            self.at.per_session.bytes_per_s.unwrap_or_default(),
            self.at.per_session.rss_bytes.unwrap_or_default() / 1024.0,
        ));
        if let (Some(floor), Some(ratio)) = (&self.floor, self.floor_ratio) {
            let verdict = if ratio <= FLOOR_RATIO_MAX {
                "within"
            } else {
                "ABOVE"
            };
            lines.push(format!(
                "the floor costs {:.0} us/s a session: {ratio:.2} times that, {verdict} the bar of {FLOOR_RATIO_MAX}",
                floor.cpu_us()
            ));
        }
        lines.join("\n")
    }

    /// How this run compares to an earlier one, as it was written.
    pub fn compared(&self, earlier: &Value) -> String {
        let now = serde_json::to_value(self).unwrap_or_default();
        let figures = [
            ("/knee", "knee"),
            ("/at/order_to_delta_ms/p99", "p99"),
            (
                "/at/per_session/server_cpu_us_per_s",
                "server CPU a session",
            ),
            ("/at/per_session/bytes_per_s", "bytes a session"),
            ("/at/per_session/rss_bytes", "memory a session"),
            ("/at/frames_per_s", "frames a session"),
            ("/at/others_in_view", "others in view"),
        ];
        let lines = figures.iter().filter_map(|(path, name)| {
            let (now, then) = (
                now.pointer(path)?.as_f64()?,
                earlier.pointer(path)?.as_f64()?,
            );
            (then > 0.0).then(|| {
                format!(
                    "  {name:<22} {:>6.2} x  ({then:.1} -> {now:.1})",
                    now / then
                )
            })
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return "nothing in the earlier run can be compared".into();
        }
        format!("compared to the earlier run:\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(sessions: u64, cpu_us: f64) -> Figures {
        Figures {
            sessions,
            seconds: 10,
            order_to_delta_ms: Quantiles {
                p50: Some(33.0),
                p99: Some(60.0),
                max: Some(80.0),
            },
            tick_ms: Quantiles::default(),
            late_ticks: Some(0.0),
            per_session: PerSession {
                server_cpu_us_per_s: Some(cpu_us),
                bytes_per_s: Some(2_500.0),
                rss_bytes: Some(20_480.0),
            },
            server_kernel_us_per_s: cpu_us / 2.0,
            frames_per_s: 17.0,
            entities_per_delta: 2.5,
            orders_per_s: 480.0,
            others_in_view: 10.2,
            bots_cpu_us_per_s: Some(300.0),
            crossing_gap_ms: Spread::default(),
            lost: 0,
            protocol_errors: 0,
        }
    }

    fn capacity(cpu_us: f64) -> Capacity {
        Capacity {
            map: 256,
            encoding: "json",
            knee: Some(480),
            limit: None,
            at: figures(480, cpu_us),
            steps: Vec::new(),
            floor: Some(figures(480, 200.0)),
            floor_ratio: Some(cpu_us / 200.0),
        }
    }

    #[test]
    fn slow_answers_late_ticks_and_losses_are_too_much() {
        assert_eq!(figures(480, 200.0).overload(), None);
        let mut slow = figures(480, 200.0);
        slow.order_to_delta_ms.p99 = Some(101.0);
        assert_eq!(
            slow.overload().as_deref(),
            Some("p99 is 101 ms, above 100 ms")
        );
        let mut late = figures(480, 200.0);
        late.late_ticks = Some(0.02);
        assert_eq!(
            late.overload().as_deref(),
            Some("2.0 % of the ticks run late")
        );
        let mut lost = figures(480, 200.0);
        lost.lost = 1;
        assert!(lost.overload().is_some());
        let mut silent = figures(480, 200.0);
        silent.order_to_delta_ms = Quantiles::default();
        assert!(silent.overload().is_some());
    }

    #[test]
    fn the_floor_is_told_with_the_bar() {
        assert!(
            capacity(290.0)
                .text()
                .ends_with("1.45 times that, within the bar of 1.5")
        );
        assert!(
            capacity(310.0)
                .text()
                .ends_with("1.55 times that, ABOVE the bar of 1.5")
        );
        let row = figures(1_480, 290.0).row("felucca");
        assert!(row.contains("1,480") && row.contains("50 %"), "{row}");
    }

    #[test]
    fn an_earlier_run_is_compared_figure_by_figure() {
        let earlier = serde_json::to_value(capacity(400.0)).expect("it is JSON");
        let text = capacity(300.0).compared(&earlier);
        assert!(
            text.contains("server CPU a session     0.75 x  (400.0 -> 300.0)"),
            "{text}"
        );
        assert!(capacity(300.0).compared(&Value::Null).contains("nothing"));
    }
}
