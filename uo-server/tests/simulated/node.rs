//! Nodes of the shard, and the machines they run on: each has a clock of its own, and can be stopped and go on.

use uo_server::Millis;
use uo_server::identity::NodeName;

use super::dice::Dice;
use super::shard::Event;

/// How many gateways there are at most.
pub const GATEWAYS_MAX: usize = 3;
/// How many sims there are at most.
pub const SIMS_MAX: usize = 6;
/// The last of them is another process under the name of the first.
pub const TWIN: usize = SIMS_MAX - 1;

/// A node of the shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    Sim(usize),
    Gateway(usize),
}

impl Node {
    pub fn name(self) -> NodeName {
        match self {
            Node::Sim(TWIN) => Node::Sim(0).name(),
            Node::Sim(index) => NodeName(format!("sim-{}", index + 1).into()),
            Node::Gateway(index) => NodeName(format!("gw-{}", index + 1).into()),
        }
    }
}

/// Every node of a shard with so many sims and gateways, and the one that should not be.
pub fn all(sims: usize, gateways: usize) -> impl Iterator<Item = Node> + use<> {
    let sims = (0..sims).chain([TWIN]).map(Node::Sim);
    sims.chain((0..gateways).map(Node::Gateway))
}

/// A clock that started somewhere and runs a little fast or slow. True time is known to the simulator alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// What it showed when the run began.
    pub origin: Millis,
    /// How much too fast it runs, in millionths; negative: too slow.
    pub error_ppm: i64,
}

impl Clock {
    pub fn draw(dice: &mut Dice, error_ppm_max: i64) -> Clock {
        let error = dice.between(0, 2 * error_ppm_max.unsigned_abs()) as i64;
        Clock {
            origin: dice.between(0, 1 << 40),
            error_ppm: error - error_ppm_max,
        }
    }

    /// What it shows at the true time `now`.
    pub fn read(&self, now: Millis) -> Millis {
        let drift = (now as i64 * self.error_ppm).div_euclid(1_000_000);
        self.origin + now.strict_add_signed(drift)
    }

    /// The first true time at which it shows `reads`, or more.
    pub fn when(&self, reads: Millis) -> Millis {
        let passed = reads.saturating_sub(self.origin);
        let mut now = (passed as i64 * 1_000_000 / (1_000_000 + self.error_ppm)) as Millis;
        while now > 0 && self.read(now - 1) >= reads {
            now -= 1;
        }
        while self.read(now) < reads {
            now += 1;
        }
        now
    }
}

/// What a node runs on.
pub struct Machine {
    pub clock: Clock,
    /// Which start of its process it is.
    pub life: u32,
    /// How far its time of day is ahead. Every start finds another: somebody set it meanwhile.
    pub time_of_day: Millis,
    /// Its process was stopped and handles nothing: since when.
    pub paused_since: Option<Millis>,
    /// Which pause it is.
    pub pauses: u32,
    /// Until then there is a reason why its boot may be declared dead.
    pub excused_until: Millis,
    /// How long after a stop in order it is started again.
    pub starts_after: Millis,
    /// What came for it meanwhile, and by which way.
    pub held: Vec<(Lane, Event)>,
}

/// A way by which things come in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// From another node.
    Link(Node),
    /// From a client's connection.
    Conn(u64),
    /// The next tick. It does not come twice for what was slept through.
    Tick,
    /// An alarm, the same.
    Alarm,
    /// By itself: an answer of the store, or a loss.
    Alone(u64),
}

impl Machine {
    pub fn new(clock: Clock) -> Machine {
        Machine {
            clock,
            life: 0,
            time_of_day: 0,
            paused_since: None,
            pauses: 0,
            excused_until: 0,
            starts_after: 500,
            held: Vec::new(),
        }
    }

    /// Keeps what comes while the process is stopped.
    pub fn hold(&mut self, lane: Lane, event: Event) {
        let is_time = matches!(lane, Lane::Tick | Lane::Alarm);
        if !is_time || self.held.iter().all(|(known, _)| *known != lane) {
            self.held.push((lane, event));
        }
    }

    /// What was held, in an order in which it may be handled: lanes are mixed at random, each keeps its order.
    pub fn release(&mut self, dice: &mut Dice) -> Vec<Event> {
        let mut held = std::mem::take(&mut self.held);
        let mut released = Vec::with_capacity(held.len());
        while !held.is_empty() {
            let (lane, _) = held[dice.below(held.len() as u64) as usize];
            let first = held.iter().position(|(known, _)| *known == lane);
            released.extend(first.map(|first| held.remove(first).1));
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_says_when_it_shows_a_time() {
        for error_ppm in [-10_000, -3, 0, 7, 10_000] {
            let clock = Clock {
                origin: 77,
                error_ppm,
            };
            for now in (0..60_000).step_by(7) {
                let reads = clock.read(now);
                let when = clock.when(reads);
                assert!(when <= now && clock.read(when) == reads);
                assert!(when == 0 || clock.read(when - 1) < reads);
            }
        }
    }
}
