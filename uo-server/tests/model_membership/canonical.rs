//! Makes states equal that behave alike: numbers are ranked, and what can have no effect any more is forgotten.

use std::collections::BTreeMap;

use uo_server::cluster::core::Ticket;
use uo_server::cluster::core::canonical::Number;
use uo_server::identity::BootId;
use uo_server::planted::{Planted, PlantedBug};

use super::state::{Answer, Ask, Flight, Kind, Register, Row, Shared, State, What, node_of};
use super::turn::{asks, is_open};

pub fn canonicalize(state: &mut State, planted: Planted) {
    canonicalize_cores(state);
    forget_flights(state, planted);
    if !planted.has(PlantedBug::LifeCasWithoutDead) {
        for (_, register) in &mut state.lives {
            if let Register::Dead(life) = register {
                *life = 0;
            }
        }
    }
    bury(state);
    rank(state);
    for node in &mut state.nodes {
        if let Some(core) = node.core.take() {
            node.core = Some(if core.is_changed() {
                Shared::new(core.take())
            } else {
                core
            });
        }
    }
    state.flights.sort_unstable();
    state.flights.dedup_by(|a, b| a == b && a.ticket.is_none());
}

/// Cores that changed get canonical tickets, and flights with them.
fn canonicalize_cores(state: &mut State) {
    for (at, node) in state.nodes.iter_mut().enumerate() {
        let Some(core) = node.core.take() else {
            continue;
        };
        if !core.is_changed() {
            node.core = Some(core);
            continue;
        }
        let mut core = core.take();
        let renamed: BTreeMap<Ticket, Ticket> = core.canonicalize();
        node.core = Some(Shared::changed(core));
        for flight in state.flights.iter_mut().filter(|flight| flight.node == at) {
            flight.ticket = flight.ticket.and_then(|old| renamed.get(&old).copied());
        }
    }
}

fn forget_flights(state: &mut State, planted: Planted) {
    let mut flights = std::mem::take(&mut state.flights);
    flights.retain_mut(|flight| {
        let Some(core) = flight.ticket.and(state.nodes[flight.node].core.as_ref()) else {
            return orphan(flight, state, planted);
        };
        if let What::Answered(Answer::Rows(rows)) = &mut flight.what {
            // A core looks at no rows of its own, or of the dead.
            rows.retain(|(boot, _)| *boot != core.me().boot && !core.is_dead(*boot));
        }
        true
    });
    state.flights = flights;
}

/// Whether a request that nobody waits for can still do anything. Who asked is forgotten.
fn orphan(flight: &mut Flight, state: &State, planted: Planted) -> bool {
    let What::Asked(ask) = &flight.what else {
        return false;
    };
    if !is_open(state, ask, planted) {
        return false;
    }
    flight.ticket = None;
    if let Ask::Beat(boot, _) | Ask::Begin(boot) | Ask::Read(boot) | Ask::Cas(boot, ..) = ask {
        flight.node = node_of(*boot);
        flight.kind = Kind::OwnLife;
    }
    true
}

/// A dead boot of which everybody knows that, or knows nothing, is forgotten altogether. In truth its row stays for an
/// hour, and nobody looks at it.
fn bury(state: &mut State) {
    let dead: Vec<BootId> = state.lives.iter().map(|(boot, _)| *boot).collect();
    for boot in dead {
        let is_of_no_interest = state.is_dead(boot)
            && !state.runs(boot)
            && state.cores().all(|it| it.is_dead(boot) || !it.knows(boot));
        if !is_of_no_interest {
            continue;
        }
        state.flights.retain(|flight| match &flight.what {
            What::Asked(ask) => flight.ticket.is_some() || !asks(ask, boot),
            What::Answered(_) => true,
        });
        let is_asked = |flight: &Flight| match &flight.what {
            What::Asked(ask) => asks(ask, boot),
            What::Answered(_) => flight.kind == Kind::Death,
        };
        if state.flights.iter().any(is_asked) {
            continue;
        }
        for flight in &mut state.flights {
            if let What::Answered(Answer::Rows(rows)) = &mut flight.what {
                rows.retain(|(it, _)| *it != boot);
            }
        }
        state.lives.retain(|(it, _)| *it != boot);
        state.rows.retain(|(it, ..)| *it != boot);
        state.named.retain(|it| *it != boot);
        for node in &mut state.nodes {
            if let Some(core) = node.core.take() {
                node.core = Some(if core.is_dead(boot) {
                    let mut core = core.take();
                    core.forget(boot);
                    Shared::changed(core)
                } else {
                    core
                });
            }
        }
    }
}

/// Gives each boot's beats and lives the lowest numbers that keep their order, and of lives whether one follows another.
fn rank(state: &mut State) {
    let mut seen: Vec<(BootId, Number, u64)> = Vec::new();
    each_number(state, &mut |boot, number| match number {
        Number::Beat(0) | Number::Life(0) => {}
        number => seen.push((boot, number, 0)),
    });
    seen.sort_unstable();
    seen.dedup();
    let mut before: Option<(BootId, Number, u64)> = None;
    for (boot, number, new) in &mut seen {
        *new = match (before, *number) {
            (Some((same, Number::Beat(_), rank)), Number::Beat(_)) if same == *boot => rank + 1,
            (Some((same, Number::Life(old), rank)), Number::Life(life)) if same == *boot => {
                rank + (life - old).min(2)
            }
            _ => 1,
        };
        before = Some((*boot, *number, *new));
    }
    seen.retain(|(_, number, new)| match number {
        Number::Beat(old) | Number::Life(old) => old != new,
    });
    if !seen.is_empty() {
        renumber(state, &seen);
    }
}

fn each_number(state: &State, see: &mut dyn FnMut(BootId, Number)) {
    for core in state.cores() {
        core.numbers(see);
    }
    for (boot, register) in &state.lives {
        let (Register::Alive(life) | Register::Dead(life)) = register;
        see(*boot, Number::Life(*life));
    }
    for (boot, row, _) in &state.rows {
        see_row(*boot, *row, see);
    }
    for flight in &state.flights {
        match &flight.what {
            What::Asked(Ask::Beat(boot, row)) => see_row(*boot, *row, see),
            What::Asked(Ask::Cas(boot, from, to)) => {
                for life in from.iter().chain(to) {
                    see(*boot, Number::Life(*life));
                }
            }
            What::Answered(Answer::Rows(rows)) => {
                for (boot, row) in rows {
                    see_row(*boot, *row, see);
                }
            }
            What::Answered(Answer::Life(Some(life)) | Answer::Cas(_, Some(life))) => {
                see(about(flight, state), Number::Life(*life));
            }
            _ => {}
        }
    }
}

fn see_row(boot: BootId, row: Row, see: &mut dyn FnMut(BootId, Number)) {
    see(boot, Number::Beat(row.beat));
    see(boot, Number::Life(row.life));
}

/// Whose life an answer is about.
fn about(flight: &Flight, state: &State) -> BootId {
    let core = state.nodes[flight.node].core.as_ref();
    let asked = core
        .zip(flight.ticket)
        .and_then(|(core, ticket)| core.asks_about(ticket));
    asked.expect("somebody waits for every answer")
}

fn renumber(state: &mut State, changes: &[(BootId, Number, u64)]) {
    let new = |boot: BootId, number: Number| {
        let (Number::Beat(old) | Number::Life(old)) = number;
        match changes.binary_search_by_key(&(boot, number), |(boot, number, _)| (*boot, *number)) {
            Ok(at) => changes[at].2,
            Err(_) => old,
        }
    };
    let abouts: Vec<Option<BootId>> = state
        .flights
        .iter()
        .map(|flight| match &flight.what {
            What::Answered(Answer::Life(Some(_)) | Answer::Cas(_, Some(_))) => {
                Some(about(flight, state))
            }
            _ => None,
        })
        .collect();
    for node in &mut state.nodes {
        let Some(core) = node.core.take() else {
            continue;
        };
        let mut is_hit = false;
        core.numbers(&mut |boot, number| {
            is_hit |= changes
                .binary_search_by_key(&(boot, number), |(boot, number, _)| (*boot, *number))
                .is_ok();
        });
        node.core = Some(if is_hit {
            let mut core = core.take();
            core.renumber(&new);
            Shared::changed(core)
        } else {
            core
        });
    }
    let life = |boot, life: &mut u64| *life = new(boot, Number::Life(*life));
    let row = |boot, row: &mut Row| {
        row.beat = new(boot, Number::Beat(row.beat));
        row.life = new(boot, Number::Life(row.life));
    };
    for (boot, register) in &mut state.lives {
        let (Register::Alive(it) | Register::Dead(it)) = register;
        life(*boot, it);
    }
    for (boot, it, _) in &mut state.rows {
        row(*boot, it);
    }
    for (flight, about) in state.flights.iter_mut().zip(abouts) {
        match &mut flight.what {
            What::Asked(Ask::Beat(boot, it)) => row(*boot, it),
            What::Asked(Ask::Cas(boot, from, to)) => {
                for it in from.iter_mut().chain(to) {
                    life(*boot, it);
                }
            }
            What::Answered(Answer::Rows(rows)) => {
                for (boot, it) in rows {
                    row(*boot, it);
                }
            }
            What::Answered(Answer::Life(Some(it)) | Answer::Cas(_, Some(it))) => {
                if let Some(boot) = about {
                    life(boot, it);
                }
            }
            _ => {}
        }
    }
}
