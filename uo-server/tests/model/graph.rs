//! Every state of a model with the steps between them, searched backwards: from which states can a good one no longer be
//! reached, although nothing more goes wrong?
//!
//! The answer is exact. A path through time-outs that come again and again needs no bound, because it is the graph that is
//! searched and not its paths.

use std::collections::HashMap;
use std::fmt::{Debug, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use stateright::Model;

use super::run::Explorable;

/// What the search needs to know of a model.
pub trait Recoverable: Explorable {
    /// Whether the state is one that has to be reachable from everywhere.
    fn is_good(&self, state: &Self::State) -> bool;
    /// Whether the step may be counted on. Faults and what players or operators decide may not.
    fn is_recovery(action: &Self::Action) -> bool;
}

/// A state by its number, in the order in which states were found.
type Number = u32;

/// The step by which a state was found, for traces.
#[derive(Clone, Copy)]
struct Found {
    from: Number,
    /// Its place among the actions of that state.
    action: u16,
}

struct Graph {
    found: Vec<Option<Found>>,
    good: Vec<Number>,
    /// Steps that can be counted on, as (to, from).
    reversed: Vec<(Number, Number)>,
    steps: usize,
}

/// What a search came to.
pub struct Searched {
    pub states: usize,
    /// How one gets to a state without a way back, and what it looks like.
    pub stuck: Option<String>,
}

/// Finds every state, and whether a good one can be reached from each. Stops at `states_max`, and panics when it gets
/// there: a search that was cut short proves nothing.
pub fn search<M>(model: &M, states_max: usize) -> Searched
where
    M: Recoverable,
    M::State: Display + Hash,
    M::Action: Debug + Clone,
{
    let began = Instant::now();
    let graph = explore(model, states_max);
    let states = graph.found.len();
    let is_saved = saved(&graph);
    let stuck = is_saved.iter().position(|is_saved| !is_saved);
    println!(
        "{}: {states} distinct states, {} steps, {} of which can be counted on, {} good states, in {:.1?}\n  bounds: {}\n  {}",
        model.name(),
        graph.steps,
        graph.reversed.len(),
        graph.good.len(),
        began.elapsed(),
        model.bounds(),
        model.counts().lines(),
    );
    let stuck = stuck.map(|at| trace(model, &graph, at as Number));
    Searched { states, stuck }
}

fn explore<M>(model: &M, states_max: usize) -> Graph
where
    M: Recoverable,
    M::State: Display + Hash,
    M::Action: Debug + Clone,
{
    let mut graph = Graph {
        found: Vec::new(),
        good: Vec::new(),
        reversed: Vec::new(),
        steps: 0,
    };
    let mut numbers: HashMap<u64, Number> = HashMap::new();
    let mut border: Vec<(Number, M::State)> = Vec::new();
    let mut actions = Vec::new();
    for state in model.init_states() {
        numbers.insert(hash_of(&state), graph.found.len() as Number);
        border.push((graph.found.len() as Number, state));
        graph.found.push(None);
    }
    while !border.is_empty() {
        let mut next_border = Vec::new();
        for (from, state) in border {
            if let Some(broken) = M::broken(&state) {
                panic!(
                    "{} is broken: {broken}\n{}",
                    model.name(),
                    trace(model, &graph, from)
                );
            }
            if model.is_good(&state) {
                graph.good.push(from);
            }
            model.actions(&state, &mut actions);
            for (at, action) in actions.drain(..).enumerate() {
                let counts = M::is_recovery(&action);
                let Some(next) = model.next_state(&state, action) else {
                    continue;
                };
                graph.steps += 1;
                let to = *numbers.entry(hash_of(&next)).or_insert_with(|| {
                    let to = graph.found.len() as Number;
                    let action = at as u16;
                    graph.found.push(Some(Found { from, action }));
                    next_border.push((to, next));
                    to
                });
                if counts && to != from {
                    graph.reversed.push((to, from));
                }
            }
            assert!(
                graph.found.len() < states_max,
                "{}: more than {states_max} states",
                model.name()
            );
        }
        border = next_border;
    }
    graph.reversed.sort_unstable();
    graph.reversed.dedup();
    graph
}

/// From which states a good one can be reached.
fn saved(graph: &Graph) -> Vec<bool> {
    let mut saved = vec![false; graph.found.len()];
    let mut border = graph.good.clone();
    for &good in &border {
        saved[good as usize] = true;
    }
    while let Some(to) = border.pop() {
        let first = graph.reversed.partition_point(|(known, _)| *known < to);
        let edges = graph.reversed[first..]
            .iter()
            .take_while(|(known, _)| *known == to);
        for &(_, from) in edges {
            if !std::mem::replace(&mut saved[from as usize], true) {
                border.push(from);
            }
        }
    }
    saved
}

/// The shortest way to a state.
fn trace<M>(model: &M, graph: &Graph, to: Number) -> String
where
    M: Model,
    M::State: Display,
    M::Action: Debug + Clone,
{
    let mut way = Vec::new();
    let mut at = to;
    while let Some(found) = graph.found[at as usize] {
        way.push(found.action);
        at = found.from;
    }
    let mut state = model.init_states().swap_remove(at as usize);
    let mut lines = format!("       {state}\n");
    for (step, action) in way.iter().rev().enumerate() {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let action = actions.swap_remove(usize::from(*action));
        lines += &format!("  {:>3}. {action:?}\n", step + 1);
        if let Some(next) = model.next_state(&state, action) {
            state = next;
        }
        lines += &format!("       {state}\n");
    }
    lines
}

fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
