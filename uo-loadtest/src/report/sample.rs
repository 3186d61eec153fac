//! A report of a run as it could have been, for tests: a sim and a gateway are killed, and everything is there.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::run::{Awakening, ChaosStep, Invariants, Proof, Sessions, Ticks};
use super::series::Second;
use super::{Bar, Quantiles, Report, Spread, bar};
use crate::dice::Dice;

const SECONDS: u64 = 150;
const BOTS: u64 = 1_000;

/// See the module.
pub fn sample() -> Report {
    let mut dice = Dice::new(7);
    let mut report = Report {
        seed: 7,
        store: Some("inproc".into()),
        sims: Some(3),
        gateways: 2,
        bots: BOTS,
        seconds: SECONDS as f64,
        sessions: Sessions {
            peak: BOTS,
            logins: BOTS,
            resumes: 512,
            refused: 3,
            lost: 0,
        },
        tick_ms: quantiles(1.0, 2.5, 19.0),
        late_ticks: Some(0.0004),
        order_to_delta_ms: quantiles(34.0, 71.0, 2_960.0),
        handoff_ms: spread(4_120, 45.0, 75.0, 150.0),
        failover_ms: vec![2_890.0],
        drain_ms: vec![310.0, 280.0, 335.0],
        stop_ms: vec![410.0, 380.0, 402.0, 96.0, 90.0],
        resume_ms: spread(512, 190.0, 250.0, 270.0),
        invariants: Invariants {
            samples: 150,
            violations: Vec::new(),
            transients: 2,
        },
        proof: Proof {
            coins_lost: Some(0),
            coins_duplicated: Some(0),
            saved_lost: Some(0),
            view_errors: Some(0),
            fights_reset: Some(1),
        },
        fences: Some(1),
        ticks: Ticks {
            late: Some(4),
            total: Some(8_950),
        },
        chaos: [
            (70.0, "kill:sim-3", "every region held again after 2.9 s"),
            (85.0, "start:sim-3", "ready after 0.3 s"),
            (105.0, "kill:gw-1", "512 sessions resumed"),
            (110.0, "start:gw-1", "ready after 0.2 s"),
            (125.0, "rolling", "5 nodes, no session lost"),
        ]
        .map(|(at_s, step, outcome)| ChaosStep {
            at_s,
            step: step.into(),
            outcome: outcome.into(),
        })
        .into(),
        fights_reset: 1,
        series: (1..=SECONDS).map(|at| second(at, &mut dice)).collect(),
        ..Report::default()
    };
    report.player_gap_ms.crossing = spread(4_003, 50.0, 75.0, 149.0);
    report.player_gap_ms.crash = spread(318, 2_750.0, 2_900.0, 2_960.0);
    report.player_gap_ms.gateway = spread(512, 188.0, 240.0, 261.0);
    report.per_session.bytes_per_s = Some(2_900.0);
    report.per_session.server_cpu_us_per_s = Some(260.0);
    report.swarm.sessions_mean = 968.0;
    report.swarm.bots_in = BOTS;
    report.swarm.bots_in_at_end = BOTS;
    report.swarm.orders_per_s = 1_950.0;
    report.swarm.deltas_per_s = 11_800.0;
    report.swarm.frames_per_s = 16_700.0;
    report.swarm.awakenings.push(Awakening::default());
    report.swarm.notes = [("answered Busy".to_owned(), 2)].into();
    let bars = [
        "order_to_delta_ms.p99<=100",
        "player_gap_ms.crash.max<=4000",
        "proof.coins_lost<=0",
    ];
    let bars: Vec<Bar> = bars.iter().filter_map(|bar| bar.parse().ok()).collect();
    report.bars = bar::judge(&bars, &report);
    report
}

fn quantiles(p50: f64, p99: f64, max: f64) -> Quantiles {
    Quantiles {
        p50: Some(p50),
        p99: Some(p99),
        max: Some(max),
    }
}

fn spread(count: u64, p50: f64, p99: f64, max: f64) -> Spread {
    Spread {
        count,
        p50: Some(p50),
        p99: Some(p99),
        max: Some(max),
    }
}

fn second(at: u64, dice: &mut Dice) -> Second {
    let around = |middle: f64, dice: &mut Dice| middle * dice.between(90, 115) as f64 / 100.0;
    let is_lost = (70..73).contains(&at);
    let longest = if at == 73 {
        2_900.0
    } else {
        around(85.0, dice)
    };
    let mut second = Second {
        at_s: at as f64,
        sessions: match at {
            0..10 => at * BOTS / 10,
            105 => BOTS - 512,
            _ => BOTS,
        },
        orders_per_s: around(1_950.0, dice),
        deltas_per_s: around(11_800.0, dice),
        order_to_delta_ms: quantiles(
            around(34.0, dice),
            if at == 73 { 900.0 } else { around(62.0, dice) },
            longest,
        ),
        tick_ms: quantiles(
            1.0,
            around(2.2, dice),
            around(if at == 73 { 18.0 } else { 4.0 }, dice),
        ),
        late_ticks: Some(u64::from(at == 73) * 4),
        ..Second::default()
    };
    let sims: &[(&str, u64)] = match at {
        _ if is_lost => &[("sim-1", 86), ("sim-2", 85)],
        73..90 => &[("sim-1", 128), ("sim-2", 128)],
        128 => &[("sim-2", 128), ("sim-3", 128)],
        _ => &[("sim-1", 86), ("sim-2", 85), ("sim-3", 85)],
    };
    second.regions = sims
        .iter()
        .map(|(sim, held)| ((*sim).to_owned(), *held))
        .collect();
    let mut gap = |cause: &str, ms: f64| second.gap_ms_max.insert(cause.into(), ms);
    if at > 12 && at.is_multiple_of(3) {
        gap("crossing", around(70.0, dice));
    }
    match at {
        73 => drop(gap("crash", 2_960.0)),
        106 => drop(gap("gateway", 261.0)),
        126..140 if at.is_multiple_of(4) => drop(gap("other", around(180.0, dice))),
        _ => {}
    }
    second
}
