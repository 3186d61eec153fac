//! What one seed makes of a run: the weather, the faults, and how many play.

use super::dice::Dice;

/// How long the players play and things break.
pub const PLAY_MS: u64 = 24_000;
/// How long everything then has to recover in good weather.
pub const RECOVER_MS: u64 = 14_000;
/// How long, the sim standing still, the last messages have to arrive.
pub const SETTLE_MS: u64 = 4_000;

/// How long something takes, in milliseconds: mostly in the first range, sometimes in the second.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    pub usual: (u64, u64),
    pub rare: (u64, u64),
    pub rare_percent: u64,
}

impl Delay {
    const fn steady(low: u64, high: u64) -> Delay {
        Delay {
            usual: (low, high),
            rare: (low, high),
            rare_percent: 0,
        }
    }

    pub fn draw(&self, dice: &mut Dice) -> u64 {
        let (low, high) = if dice.chance(self.rare_percent) {
            self.rare
        } else {
            self.usual
        };
        dice.between(low, high)
    }
}

/// What is done to the shard at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The sim and both gateways are killed and started again, as one process would be.
    KillAll,
    /// The sim alone is killed and started again.
    KillSim,
    /// A gateway is killed and started again.
    KillGateway(usize),
    /// The sim stops in order and is started again.
    StopSim,
    /// A gateway stops in order and is started again.
    StopGateway(usize),
    /// The link between a gateway and the sim breaks for this long.
    CutLink(usize, u64),
    /// No request reaches the store and answers, for this long.
    Outage(u64),
    /// Messages between nodes stand still for this long.
    Stall(u64),
}

/// Everything about a run that does not follow from what happens in it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub world: u64,
    pub players: usize,
    /// From a request to its effect, and from there to its answer.
    pub store: Delay,
    /// Of a hundred requests, so many are answered `unknown`; half of them take effect all the same, then or later.
    pub unknown_percent: u64,
    /// So many are refused.
    pub refused_percent: u64,
    /// Between nodes.
    pub link: Delay,
    /// From the sim to itself.
    pub own_link: Delay,
    /// Between a client and its gateway.
    pub client: Delay,
    /// Until a client's socket can take the next frame.
    pub reading: Delay,
    pub checkpoint_ms: u64,
    pub linger_ms: u64,
    pub stamps_max: u32,
    pub faults: Vec<(u64, Fault)>,
    /// Of a hundred things a player does, so many are done to its connection.
    pub restless_percent: u64,
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let calm = Delay::steady(1, 4);
        let rough = |rare_percent| Delay {
            usual: (1, 12),
            rare: (50, 900),
            rare_percent,
        };
        let mut plan = Plan {
            seed,
            world: dice.below(4),
            players: dice.between(3, 6) as usize,
            store: calm,
            unknown_percent: 0,
            refused_percent: 0,
            link: Delay::steady(0, 2),
            own_link: Delay::steady(0, 0),
            client: Delay::steady(2, 30),
            reading: Delay::steady(0, 5),
            checkpoint_ms: dice.pick(&[1_000, 3_000, 15_000]),
            linger_ms: dice.pick(&[2_000, 6_000, 30_000]),
            stamps_max: dice.pick(&[5, 40, 1 << 20]),
            faults: Vec::new(),
            restless_percent: dice.pick(&[0, 4, 12]),
        };
        // A quarter of the runs have good weather, so that what fails there is not blamed on it.
        let weather = dice.below(4);
        if weather > 0 {
            if dice.chance(60) {
                plan.store = rough(dice.between(2, 20));
                plan.unknown_percent = dice.between(0, 15);
                plan.refused_percent = dice.between(0, 4);
            }
            if dice.chance(60) {
                plan.link = rough(dice.between(1, 5));
                plan.own_link = rough(dice.between(0, 4));
                // Offers that wait so long are taken back.
                plan.own_link.rare.1 = 3_500;
            }
            if dice.chance(40) {
                plan.client = rough(dice.between(1, 10));
                plan.reading = rough(dice.between(1, 20));
            }
        }
        for _ in 0..dice.below(4) * weather.min(2) {
            let at = dice.between(3_000, PLAY_MS);
            plan.faults.push((at, Plan::fault(&mut dice)));
        }
        plan.faults.sort_by_key(|&(at, _)| at);
        plan
    }

    fn fault(dice: &mut Dice) -> Fault {
        let gateway = dice.below(2) as usize;
        let short = dice.between(200, 4_000);
        match dice.below(10) {
            0 | 1 => Fault::KillAll,
            2 => Fault::KillSim,
            3 => Fault::KillGateway(gateway),
            4 => Fault::StopSim,
            5 => Fault::StopGateway(gateway),
            6 => Fault::CutLink(gateway, short),
            7 | 8 => Fault::Outage(short),
            _ => Fault::Stall(short),
        }
    }

    /// From the end of the play on, nothing is slow and nothing breaks.
    pub fn becalm(&mut self) {
        self.store = Delay::steady(1, 4);
        self.unknown_percent = 0;
        self.refused_percent = 0;
        self.link = Delay::steady(0, 2);
        self.own_link = Delay::steady(0, 0);
        self.client = Delay::steady(2, 30);
        self.reading = Delay::steady(0, 5);
        self.restless_percent = 0;
    }
}
