//! Explores a model to its end, or until something breaks, and says what was seen on the way.
//!
//! `UO_MODEL=deep` chooses the deep bounds, `UO_MODEL_ONLY=saved` the explorations whose names have that word,
//! `UO_MODEL_THREADS=4` the number of threads of each (1: only with one thread is a trace the shortest).

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Whether the deep bounds are wanted.
pub fn is_deep() -> bool {
    std::env::var("UO_MODEL").is_ok_and(|value| value == "deep")
}

/// The least number of states of a deep exploration; the others only show that they did not come to nothing.
pub fn at_least() -> usize {
    if is_deep() { 1_000_000 } else { 50_000 }
}

/// Whether `UO_MODEL_ONLY`, if it is set, is part of the name of an exploration.
pub fn is_wanted(name: &str) -> bool {
    std::env::var("UO_MODEL_ONLY").map_or(true, |part| name.contains(&part))
}

fn threads() -> usize {
    let given = std::env::var("UO_MODEL_THREADS").ok();
    given.and_then(|value| value.parse().ok()).unwrap_or(1)
}

/// Steps after which an exploration is given up, which fails it.
fn steps_max() -> usize {
    let given = std::env::var("UO_MODEL_STEPS").ok();
    given
        .and_then(|value| value.parse().ok())
        .unwrap_or(2_000_000_000)
}

/// Steps in which a rule that is left out has to be missed.
#[cfg(feature = "planted-bugs")]
const PLANTED_STEPS_MAX: usize = 20_000_000;

/// How often each kind of thing happened in an exploration. A kind that never did is a part of the model that proves
/// nothing.
pub struct Counts {
    names: &'static [&'static str],
    counts: Vec<AtomicU64>,
}

impl Counts {
    pub fn new(names: &'static [&'static str]) -> Counts {
        Counts {
            names,
            counts: names.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub fn add(&self, name: &str) {
        let at = self.names.iter().position(|known| *known == name);
        let at = at.unwrap_or_else(|| panic!("{name} is not among the kinds that are counted"));
        self.counts[at].fetch_add(1, Ordering::Relaxed);
    }

    /// What never happened, but for what the bounds exclude.
    pub fn missing(&self, excluded: &[&str]) -> Vec<&'static str> {
        let zero = |(name, count): (&&'static str, &AtomicU64)| {
            (count.load(Ordering::Relaxed) == 0 && !excluded.contains(name)).then_some(*name)
        };
        self.names
            .iter()
            .zip(&self.counts)
            .filter_map(zero)
            .collect()
    }

    pub fn lines(&self) -> String {
        let each = self.names.iter().zip(&self.counts);
        let each = each.map(|(name, count)| format!("{name} {}", count.load(Ordering::Relaxed)));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// What a model needs beyond stateright's trait to be explored and reported on.
pub trait Explorable: Model {
    /// What is explored, in a word.
    fn name(&self) -> String;
    /// The bounds, for the report.
    fn bounds(&self) -> String;
    /// What went wrong in this state.
    fn broken(state: &Self::State) -> Option<String>;
    /// Which kinds of action were taken, and what happened in them.
    fn counts(&self) -> &Counts;
    /// The kinds that these bounds exclude.
    fn excluded(&self) -> Vec<&'static str>;
}

/// The one property of safety: a step that breaks a promise says so in the state it leads to.
pub fn nothing_is_broken<M: Explorable>() -> Property<M> {
    Property::always("nothing is broken", |_, state| M::broken(state).is_none())
}

/// Explores every state. Panics with the trace when something breaks, when a kind of action never fired, when something
/// that should happen sometimes never did, and when fewer than `at_least` states were there.
pub fn explore<M>(model: M, at_least: usize) -> usize
where
    M: Explorable + Send + Sync + 'static,
    M::State: Display + Hash + Clone + PartialEq + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let began = Instant::now();
    let (name, bounds) = (model.name(), model.bounds());
    let checker = model
        .checker()
        .threads(threads())
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(steps_max())
        .spawn_bfs()
        .join();
    let states = checker.unique_state_count();
    println!(
        "{name}: {states} distinct states, {} steps, {} deep, in {:.1?}\n  bounds: {bounds}\n  {}",
        checker.state_count(),
        checker.max_depth(),
        began.elapsed(),
        checker.model().counts().lines(),
    );
    if let Some(trace) = trace::<M>(&checker) {
        panic!("{name} is broken:\n{trace}");
    }
    assert!(
        checker.state_count() < steps_max(),
        "{name} was not explored to its end"
    );
    let missing = checker
        .model()
        .counts()
        .missing(&checker.model().excluded());
    assert!(missing.is_empty(), "{name}: never happened: {missing:?}");
    assert!(states >= at_least, "{name}: fewer than {at_least} states");
    states
}

/// Panics when a kind of action never fired that the bounds include.
pub fn assert_everything_happened<M: Explorable>(model: &M) {
    let missing = model.counts().missing(&model.excluded());
    assert!(
        missing.is_empty(),
        "{}: never happened: {missing:?}",
        model.name()
    );
}

/// Explores with a rule left out until something breaks, and prints how. Panics when nothing does.
#[cfg(feature = "planted-bugs")]
pub fn find<M>(model: M, rule: impl Debug)
where
    M: Explorable + Send + Sync + 'static,
    M::State: Display + Hash + Clone + PartialEq + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let name = model.name();
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(PLANTED_STEPS_MAX)
        .spawn_bfs()
        .join();
    let states = checker.unique_state_count();
    let Some(trace) = trace::<M>(&checker) else {
        let counts = checker.model().counts().lines();
        panic!("{name}: {rule:?} is not found in {states} states: {counts}");
    };
    println!("{name}: {rule:?} is found after {states} states\n{trace}");
}

fn trace<M>(checker: &impl Checker<M>) -> Option<String>
where
    M: Explorable,
    M::State: Display + Clone + PartialEq,
    M::Action: Debug + Clone + PartialEq,
{
    let path = checker.discovery("nothing is broken")?;
    let mut lines = String::new();
    let steps = path.into_vec();
    for (at, (state, action)) in steps.iter().enumerate() {
        match action {
            Some(action) => lines += &format!("       {state}\n  {:>3}. {action:?}\n", at + 1),
            None => {
                let broken = M::broken(state).unwrap_or_default();
                lines += &format!("       {state}\n  => {broken}\n");
            }
        }
    }
    Some(lines)
}
