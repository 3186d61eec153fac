//! Weather that is bad in one way and for the whole run. A plan of any seed has a little of everything; what needs two
//! rare things at once is found much sooner where one of them is common.

use super::dice::Dice;
use super::node::{Clock, Node};
use super::plan::{Delay, Fault, Lost, Outage, Plan};

/// How wrong clocks run, in millionths: as wrong as they may.
const CLOCK_ERROR_PPM: i64 = 9_900;
/// When things begin to break: by then everybody plays.
const FIRST_MS: u64 = 4_000;

/// Players of a crowd, the side of their map (sixteen regions), and how long they play.
const CROWD_PLAYERS: usize = 50;
const CROWD_MAP_SIZE: u16 = 256;
const CROWD_PLAY_MS: u64 = 30_000;

/// What a run is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Season {
    /// A little of everything.
    #[default]
    Any,
    /// One sim after another is out of reach, or stopped, for about as long as its fence and the others' window.
    Brink,
    /// The store is out of reach for everybody alike, and good otherwise.
    Outages,
    /// Sims die and others start, and the store takes in late what the dead had sent.
    Turnover,
    /// Reads are slow while changes are quick.
    SlowReads,
    /// Sims wake just before their fence falls, while what others read of them is on its way for long.
    LateWakes,
    /// Sims thaw without learning of it, and are cut off again for about as long as the others' window.
    Relapses,
    /// Many sims and gateways and a crowd of players; everything breaks, and rather often.
    Crowd,
    /// The tick of a region panics wherever it runs.
    #[cfg(feature = "planted-bugs")]
    Sickness,
}

impl Season {
    /// Makes a run of this season of a plan.
    pub fn shape(self, plan: &mut Plan) {
        if self == Season::Any {
            return;
        }
        let mut dice = Dice::new(plan.seed).fork(7);
        plan.become_plain(&mut dice);
        match self {
            Season::Any => {}
            Season::Brink => plan.brink(&mut dice),
            Season::Outages => plan.outages(&mut dice),
            Season::Turnover => plan.turnover(&mut dice),
            Season::SlowReads => plan.slow_reads(&mut dice),
            Season::LateWakes => plan.late_wakes(&mut dice),
            Season::Relapses => plan.relapses(&mut dice),
            Season::Crowd => plan.crowd(&mut dice),
            #[cfg(feature = "planted-bugs")]
            Season::Sickness => plan.sickness(&mut dice),
        }
        plan.faults.sort_by_key(|&(at, _)| at);
    }
}

fn delay(usual: (u64, u64), rare: (u64, u64), rare_percent: u64) -> Delay {
    Delay {
        usual,
        rare,
        rare_percent,
    }
}

impl Plan {
    fn become_plain(&mut self, dice: &mut Dice) {
        self.becalm();
        self.sims = 3;
        self.players = 4;
        self.restless_percent = 4;
        self.checkpoint_ms = 1_000;
        self.late_ms_max = 8_000;
        self.faults.clear();
        self.skews_ms.fill(0);
        self.starts.fill_with(|| dice.below(300));
        for (_, clock) in &mut self.clocks {
            *clock = Clock {
                error_ppm: dice.pick(&[-CLOCK_ERROR_PPM, CLOCK_ERROR_PPM]),
                ..*clock
            };
        }
    }

    /// Episodes that begin one after the other, some time apart.
    fn episodes(
        &mut self,
        dice: &mut Dice,
        apart: (u64, u64),
        mut of: impl FnMut(&mut Dice) -> Vec<(u64, Fault)>,
    ) {
        let mut at = FIRST_MS;
        while at < self.play_ms {
            let faults = of(dice).into_iter();
            self.faults
                .extend(faults.map(|(after, fault)| (at + after, fault)));
            at += dice.between(apart.0, apart.1);
        }
    }

    fn brink(&mut self, dice: &mut Dice) {
        self.store = delay((1, 12), (50, 350), 30);
        self.nodes = delay((1, 12), (200, 900), 25);
        self.cas = delay((4, 25), (100, 600), 30);
        self.unknown_lives_percent = dice.pick(&[0, 40]);
        self.episodes(dice, (4_000, 7_000), |dice| {
            let node = Node::Sim(dice.below(3) as usize);
            let lost = [Lost::Writes, Lost::Writes, Lost::Requests, Lost::Answers];
            let outage = |dice: &mut Dice, low, high| {
                let lost = dice.pick(&lost);
                let of = Some(node);
                Fault::Outage(Outage { of, lost }, dice.between(low, high))
            };
            match dice.below(4) {
                0 => vec![(0, outage(dice, 1_200, 3_600))],
                1 => vec![(0, Fault::Pause(node, dice.between(1_200, 3_600)))],
                2 => {
                    // What it writes is lost from when it wakes.
                    let length = dice.between(1_200, 1_700);
                    let then = outage(dice, length + 1_500, length + 3_000);
                    vec![(0, Fault::Pause(node, length)), (100, then)]
                }
                _ => {
                    // It is well for a moment, and is not again.
                    let length = dice.between(1_800, 3_200);
                    let of = Some(node);
                    let first = Outage {
                        of,
                        lost: dice.pick(&lost),
                    };
                    let well = length + dice.between(50, 900);
                    let then = outage(dice, 1_500, 3_200);
                    vec![(0, Fault::Outage(first, length)), (well, then)]
                }
            }
        });
    }

    fn outages(&mut self, dice: &mut Dice) {
        self.store = delay((1, 8), (1, 8), 0);
        self.nodes = self.store;
        self.cas = delay((20, 150), (20, 150), 0);
        self.episodes(dice, (7_500, 10_000), |dice| {
            let lost = dice.pick(&[Lost::Writes, Lost::Writes, Lost::Requests, Lost::Answers]);
            let outage = Outage { of: None, lost };
            vec![(0, Fault::Outage(outage, dice.between(2_200, 6_000)))]
        });
    }

    fn turnover(&mut self, dice: &mut Dice) {
        self.store = delay((1, 12), (50, 600), 20);
        self.nodes = delay((1, 12), (200, 450), 30);
        self.cas = delay((4, 60), (100, 900), 20);
        self.unknown_percent = 5;
        self.unknown_writes_percent = dice.pick(&[5, 50]);
        self.stamps_max = 40;
        for start in &mut self.starts {
            *start = dice.below(4_000);
        }
        self.episodes(dice, (3_500, 6_500), |dice| {
            let sim = dice.below(3) as usize;
            let down = dice.pick(&[(200, 1_500), (3_000, 5_000)]);
            let down = dice.between(down.0, down.1);
            let dies = match dice.below(6) {
                0 => Fault::Panic(sim),
                1 => Fault::Pause(Node::Sim(sim), dice.between(3_000, 5_000)),
                2 => Fault::Stop(Node::Sim(sim), down),
                _ => Fault::Kill(Node::Sim(sim), down),
            };
            // Just when another takes over what it had, that one is not well either.
            let other = Node::Sim((sim + dice.between(1, 2) as usize) % 3);
            let length = dice.between(2_500, 5_000);
            let of = Some(other);
            let lost = dice.pick(&[Lost::Requests, Lost::Answers, Lost::Writes]);
            let then = match dice.below(3) {
                0 => Fault::Pause(other, length),
                _ => Fault::Outage(Outage { of, lost }, length),
            };
            let mut faults = vec![(0, dies)];
            if dice.chance(50) {
                faults.push((dice.between(2_500, 4_000), then));
            }
            faults
        });
    }

    fn slow_reads(&mut self, dice: &mut Dice) {
        self.store = delay((1, 12), (300, 1_700), 25);
        self.nodes = delay((1, 12), (600, 1_700), 40);
        self.cas = delay((2, 12), (2, 12), 0);
        for start in &mut self.starts {
            *start = dice.below(4_000);
        }
        self.episodes(dice, (3_000, 5_000), |dice| {
            let sim = dice.below(3) as usize;
            let down = dice.between(200, 2_500);
            let fault = match dice.below(4) {
                0 => Fault::Panic(sim),
                1 => Fault::Stop(Node::Sim(sim), down),
                _ => Fault::Kill(Node::Sim(sim), down),
            };
            vec![(0, fault)]
        });
    }

    /// A sim beats, sleeps, and beats again just within its fence. A read that was served before that second beat arrives
    /// when the first was seen long enough ago; no slower, or it would be taken for an outage.
    fn late_wakes(&mut self, dice: &mut Dice) {
        self.store = delay((1, 12), (1, 12), 0);
        self.nodes = delay((1, 12), (50, 300), 5);
        self.cas = delay((2, 12), (2, 12), 0);
        self.episodes(dice, (3_500, 5_500), |dice| {
            let node = Node::Sim(dice.below(3) as usize);
            let asleep = dice.between(1_500, 1_950);
            let late = Fault::LateAnswers(dice.between(150, 300), dice.between(500, 850));
            let before = dice.between(50, 250);
            vec![(0, Fault::Pause(node, asleep)), (asleep - before, late)]
        });
    }

    /// A sim's fence falls, and it thaws without an answer. Before it can ask again it is cut off, and so its fence lapses
    /// once more. It is back when others have just seen for long enough that it stands still, and their request to declare
    /// it dead is on its way.
    fn relapses(&mut self, dice: &mut Dice) {
        self.store = delay((1, 12), (1, 12), 0);
        self.nodes = delay((1, 12), (100, 400), 20);
        self.cas = delay((4, 25), (200, 900), 40);
        self.episodes(dice, (7_000, 9_500), |dice| {
            let of = Some(Node::Sim(dice.below(3) as usize));
            let outage = |lost, length| Fault::Outage(Outage { of, lost }, length);
            let first = dice.between(1_900, 2_500);
            let well = first + dice.between(100, 700);
            let second = dice.between(2_200, 3_400);
            vec![
                (0, outage(Lost::Writes, first)),
                (1, outage(Lost::AnswersOfLives, well)),
                (well, outage(Lost::Writes, second)),
            ]
        });
    }

    /// A whole cluster: any weather, any faults, one soon after the other, and enough players for whatever is rare.
    fn crowd(&mut self, dice: &mut Dice) {
        self.sims = dice.between(3, 5) as usize;
        self.gateways = dice.between(2, 3) as usize;
        self.players = CROWD_PLAYERS;
        self.map_size = CROWD_MAP_SIZE;
        self.play_ms = CROWD_PLAY_MS;
        self.restless_percent = dice.pick(&[1, 4]);
        self.checkpoint_ms = dice.pick(&[1_000, 3_000, 15_000]);
        self.linger_ms = dice.pick(&[2_000, 6_000, 30_000]);
        self.stamps_max = dice.pick(&[40, 1 << 20]);
        if dice.chance(30) {
            // One that joins the others while they play.
            self.starts[self.sims - 1] = dice.between(3_000, 9_000);
        }
        if dice.chance(60) {
            self.roughen(dice);
        }
        let plan = self.clone();
        let apart = dice.pick(&[(800, 3_000), (3_000, 6_000)]);
        self.episodes(dice, apart, |dice| vec![(0, plan.fault(dice))]);
    }

    /// Two boots end, the third holds the region. That one, or another, dies before the region is released.
    #[cfg(feature = "planted-bugs")]
    fn sickness(&mut self, dice: &mut Dice) {
        self.cas = delay((2, 30), (2, 30), 0);
        let region = uo_proto::RegionId(dice.below(4) as u32);
        let begins = dice.between(FIRST_MS, 8_000);
        let is_held = begins + 7_000;
        self.faults.push((begins, Fault::Sicken(region)));
        if dice.chance(70) {
            let sim = Node::Sim(dice.below(3) as usize);
            let down = dice.pick(&[500, 5_000]);
            let at = is_held + dice.below(3_000);
            self.faults.push((at, Fault::Kill(sim, down)));
        }
        let ends = is_held + dice.between(10_000, 13_000);
        self.faults.push((ends, Fault::Mend));
    }
}
