//! What one seed makes of a run: the weather, the faults, who simulates and how many play.

use super::dice::Dice;
use super::node::{self, Clock, GATEWAYS_MAX, Node, SIMS_MAX, TWIN};

/// How long the players usually play and things break.
pub const PLAY_MS: u64 = 30_000;
/// Side of the usual map: four regions that meet in the middle.
const MAP_SIZE: u16 = 128;
/// The usual number of gateways.
const GATEWAYS: usize = 2;
/// How long everything then has to recover in good weather.
pub const RECOVER_MS: u64 = 16_000;
/// How long, the sims standing still, the last messages have to arrive. Less than it takes others to presume them gone.
pub const SETTLE_MS: u64 = 1_800;
/// How many machines the store answers from, each with a clock of its own.
pub const COORDINATORS: usize = 3;
/// How wrong a node's clock may run, in millionths.
const CLOCK_ERROR_PPM_MAX: i64 = 9_900;
/// How far the clocks of coordinators may be apart in rare runs: less than what a node's row lives, so that none is hidden
/// that was just written.
const SKEW_MS_MAX: u64 = 59 * 60_000;

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

/// Who cannot reach the store, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// One node; none: nobody can.
    pub of: Option<Node>,
    pub lost: Lost,
}

/// What an outage takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Requests: few of them take effect, some time.
    Requests,
    /// Answers, while requests take effect.
    Answers,
    /// The same, but only of changes of lives.
    AnswersOfLives,
    /// Whatever writes; reads are served.
    Writes,
}

/// What is done to the shard at a time. Times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Every node is killed and started again.
    KillAll,
    /// A process is killed, and started again after this long: mostly before anybody could know that it is dead.
    Kill(Node, u64),
    /// A process stops in order, and is started again after this long.
    Stop(Node, u64),
    /// The tick thread of a sim panics: it declares itself dead, ends, and is started again.
    Panic(usize),
    /// A process is stopped (SIGSTOP) for this long.
    Pause(Node, u64),
    /// Every sim is stopped for this long, each to wake on its own.
    PauseSims(u64),
    /// The link between two nodes breaks for this long.
    Cut(Node, Node, u64),
    /// All links of a node break for this long.
    Isolate(Node, u64),
    /// The store is out of reach for this long.
    Outage(Outage, u64),
    /// Outages and pauses of one node that come and go, each about this long.
    Flap(Node, u64),
    /// Somebody starts another process under the name of the first sim, which is stopped for this long.
    Twin(u64),
    /// Messages between nodes stand still for this long.
    Stall(u64),
    /// What is read of the nodes within the first time is served as ever, and takes the second longer to arrive.
    LateAnswers(u64, u64),
    /// Each tick of a region panics from now on.
    #[cfg(feature = "planted-bugs")]
    Sicken(uo_proto::RegionId),
    /// It does not any more, and an operator releases it.
    #[cfg(feature = "planted-bugs")]
    Mend,
}

/// Everything about a run that does not follow from what happens in it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub world: u64,
    pub players: usize,
    /// How long the players play and things break.
    pub play_ms: u64,
    /// Side of the map, in tiles.
    pub map_size: u16,
    /// Sims that should be.
    pub sims: usize,
    pub gateways: usize,
    /// When each sim is started.
    pub starts: [u64; SIMS_MAX],
    /// The clocks of the nodes, in the order of [`node::all`] with as many of them as there may be.
    pub clocks: Vec<(Node, Clock)>,
    /// How far ahead the coordinators of the store are.
    pub skews_ms: [u64; COORDINATORS],
    /// From a request to its effect, and from there to its answer.
    pub store: Delay,
    /// The same for reads of the nodes.
    pub nodes: Delay,
    /// The same for what takes rounds between replicas: each change of a register.
    pub cas: Delay,
    /// Of a hundred requests, so many are answered `unknown`; half of them take effect all the same, then or later.
    pub unknown_percent: u64,
    /// The same for changes of a life, and for beats.
    pub unknown_lives_percent: u64,
    pub unknown_beats_percent: u64,
    /// The same for reads of the nodes, and for writes of what is simulated.
    pub unknown_nodes_percent: u64,
    pub unknown_writes_percent: u64,
    /// How much later at most.
    pub late_ms_max: u64,
    /// So many are refused.
    pub refused_percent: u64,
    /// Between nodes.
    pub link: Delay,
    /// From a sim to itself.
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
        let sims = dice.pick(&[1, 2, 2, 3, 3]);
        let mut plan = Plan {
            seed,
            world: dice.below(4),
            players: dice.between(3, 6) as usize,
            play_ms: PLAY_MS,
            map_size: MAP_SIZE,
            sims,
            gateways: GATEWAYS,
            starts: [0; SIMS_MAX],
            clocks: Vec::new(),
            skews_ms: [0; COORDINATORS],
            store: Delay::steady(1, 4),
            nodes: Delay::steady(1, 4),
            cas: Delay::steady(2, 12),
            unknown_percent: 0,
            unknown_lives_percent: 0,
            unknown_beats_percent: 0,
            unknown_nodes_percent: 0,
            unknown_writes_percent: 0,
            late_ms_max: dice.pick(&[3_000, 8_000]),
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
        plan.set_clocks(&mut dice);
        for start in &mut plan.starts {
            *start = dice.below(300);
        }
        // A quarter of the runs have good weather, so that what fails there is not blamed on it.
        let weather = dice.below(4);
        if weather > 0 {
            plan.roughen(&mut dice);
        }
        if sims > 1 && dice.chance(25) {
            // One that joins the others while they play.
            plan.starts[sims - 1] = dice.between(3_000, PLAY_MS - 10_000);
        }
        for _ in 0..dice.below(5) * weather.min(2) {
            let at = dice.between(3_000, PLAY_MS);
            let fault = plan.fault(&mut dice);
            plan.faults.push((at, fault));
        }
        plan.faults.sort_by_key(|&(at, _)| at);
        plan
    }

    /// Every node, and the one that should not be.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        node::all(self.sims, self.gateways)
    }

    fn set_clocks(&mut self, dice: &mut Dice) {
        let error_ppm_max = dice.pick(&[0, 100, CLOCK_ERROR_PPM_MAX, CLOCK_ERROR_PPM_MAX]);
        self.clocks = node::all(TWIN, GATEWAYS_MAX)
            .map(|node| (node, Clock::draw(dice, error_ppm_max)))
            .collect();
        let skew_ms_max = dice.pick(&[0, 900, 30_000, SKEW_MS_MAX]);
        for skew in &mut self.skews_ms {
            *skew = dice.between(0, skew_ms_max);
        }
    }

    pub(super) fn roughen(&mut self, dice: &mut Dice) {
        let rough = |rare_percent| Delay {
            usual: (1, 12),
            rare: (50, 900),
            rare_percent,
        };
        if dice.chance(60) {
            self.store = rough(dice.between(2, 20));
            self.store.rare.1 = dice.pick(&[900, 1_900]);
            self.nodes = self.store;
            self.cas = rough(dice.between(2, 30));
            self.cas.usual = (4, 25);
            self.cas.rare.1 = 1_500;
            self.unknown_percent = dice.between(0, 15);
            self.unknown_lives_percent = dice.pick(&[0, self.unknown_percent, 50]);
            self.unknown_beats_percent = dice.pick(&[0, self.unknown_percent, 35]);
            self.unknown_nodes_percent = self.unknown_percent;
            self.unknown_writes_percent = self.unknown_percent;
            self.refused_percent = dice.between(0, 4);
        }
        if dice.chance(60) {
            self.link = rough(dice.between(1, 5));
            self.own_link = rough(dice.between(0, 4));
            // Offers that wait so long are taken back.
            self.link.rare.1 = 3_500;
            self.own_link.rare.1 = 3_500;
        }
        if dice.chance(40) {
            self.client = rough(dice.between(1, 10));
            self.reading = rough(dice.between(1, 20));
        }
    }

    pub(super) fn fault(&self, dice: &mut Dice) -> Fault {
        let sim = dice.below(self.sims as u64) as usize;
        let gateway = Node::Gateway(dice.below(self.gateways as u64) as usize);
        let short = dice.between(200, 4_000);
        // Around the time that it takes to be presumed gone, or far beyond it.
        let long = dice.pick(&[(1_500, 3_500), (3_000, 6_000), (5_000, 12_000)]);
        let long = dice.between(long.0, long.1);
        let down = dice.pick(&[(200, 1_500), (200, 1_500), (3_000, 8_000)]);
        let down = dice.between(down.0, down.1);
        let lost = dice.pick(&[Lost::Requests, Lost::Requests, Lost::Answers, Lost::Writes]);
        match dice.below(24) {
            0 => Fault::KillAll,
            1 | 2 => Fault::Kill(Node::Sim(sim), down),
            3 => Fault::Kill(gateway, down),
            4 => Fault::Stop(Node::Sim(sim), down),
            5 => Fault::Stop(gateway, down),
            6 => Fault::Panic(sim),
            7..10 => Fault::Pause(Node::Sim(sim), long),
            10 => Fault::Pause(gateway, long),
            11 => Fault::PauseSims(long),
            12 => Fault::Cut(Node::Sim(sim), gateway, short),
            13 if self.sims > 1 => {
                Fault::Cut(Node::Sim(sim), Node::Sim((sim + 1) % self.sims), short)
            }
            13 | 14 => Fault::Isolate(Node::Sim(sim), short),
            15 | 16 => Fault::Outage(Outage { of: None, lost }, long),
            17 | 18 => {
                let of = Some(Node::Sim(sim));
                Fault::Outage(Outage { of, lost }, long)
            }
            19..22 => Fault::Flap(Node::Sim(sim), dice.between(500, 2_500)),
            22 => Fault::Twin(dice.pick(&[0, long, 2 * long])),
            _ => Fault::Stall(short),
        }
    }

    /// Whether every request is answered, and soon: but for outages, nobody has a reason to be late with its beats.
    pub fn has_good_store(&self) -> bool {
        let is_steady = self.store.rare_percent == 0 && self.nodes.rare_percent == 0;
        is_steady && self.unknown_percent == 0 && self.refused_percent == 0
    }

    /// From the end of the play on, nothing is slow and nothing breaks.
    pub fn becalm(&mut self) {
        self.store = Delay::steady(1, 4);
        self.nodes = Delay::steady(1, 4);
        self.cas = Delay::steady(2, 12);
        self.unknown_percent = 0;
        self.unknown_lives_percent = 0;
        self.unknown_beats_percent = 0;
        self.unknown_nodes_percent = 0;
        self.unknown_writes_percent = 0;
        self.refused_percent = 0;
        self.link = Delay::steady(0, 2);
        self.own_link = Delay::steady(0, 0);
        self.client = Delay::steady(2, 30);
        self.reading = Delay::steady(0, 5);
        self.restless_percent = 0;
    }
}
