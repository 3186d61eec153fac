//! What the store does with a request: registers change by compare-and-set, of rows the newest beat wins.

use uo_server::identity::BootId;
use uo_server::planted::{Planted, PlantedBug};
use uo_server::store::Life;

use super::state::{Answer, Ask, Register, Row, State, node_of};

/// Carries out a request.
pub fn carry_out(state: &mut State, ask: &Ask, planted: Planted) -> Answer {
    match ask {
        Ask::Beat(boot, row) => write_row(state, *boot, *row, planted),
        Ask::Nodes => {
            let rows = state.rows.iter();
            Answer::Rows(rows.map(|(boot, row, _)| (*boot, *row)).collect())
        }
        Ask::Begin(boot) => {
            if state.register(*boot).is_none() {
                state.set_register(*boot, Register::Alive(1));
            }
            Answer::Life(shown(state.register(*boot)))
        }
        Ask::Read(boot) => Answer::Life(shown(state.register(*boot))),
        Ask::Cas(boot, from, to) => compare_and_set(state, *boot, *from, *to, planted),
    }
}

fn write_row(state: &mut State, boot: BootId, row: Row, planted: Planted) -> Answer {
    if planted.has(PlantedBug::OneRowPerName) {
        // The row is the name's, and the clock of the boot that began later is behind: what it writes loses.
        let is_older = |other: &BootId| node_of(*other) == node_of(boot) && *other < boot;
        if state.rows.iter().any(|(other, ..)| is_older(other)) {
            return Answer::Done;
        }
    }
    match state.rows.iter_mut().find(|(it, ..)| *it == boot) {
        Some((_, old, age)) if old.beat < row.beat => (*old, *age) = (row, 0),
        Some(_) => {}
        None => {
            state.rows.push((boot, row, 0));
            state.rows.sort_unstable();
        }
    }
    Answer::Done
}

fn compare_and_set(
    state: &mut State,
    boot: BootId,
    from: Option<u64>,
    to: Option<u64>,
    planted: Planted,
) -> Answer {
    let there = state.register(boot);
    let applies = match there {
        None => from.is_none() && to.is_none(),
        Some(Register::Alive(life)) => from == Some(life),
        Some(Register::Dead(life)) => {
            planted.has(PlantedBug::LifeCasWithoutDead) && from == Some(life) && to.is_some()
        }
    };
    if !applies {
        return Answer::Cas(false, shown(there));
    }
    let was = from.unwrap_or(0);
    match (there, to) {
        (Some(Register::Dead(_)), Some(to)) => state.set_register(boot, Register::Dead(to)),
        (_, Some(to)) if to > was => state.set_register(boot, Register::Alive(to)),
        (_, Some(_)) => state.broken = Some("a life goes down".into()),
        (_, None) => state.set_register(boot, Register::Dead(was)),
    }
    Answer::Cas(true, None)
}

/// A register as an answer shows it: zero is dead.
fn shown(register: Option<Register>) -> Option<u64> {
    register.map(|register| match register {
        Register::Alive(life) => life,
        Register::Dead(_) => 0,
    })
}

/// The same, for a core.
pub fn life_of(shown: Option<u64>) -> Option<Life> {
    shown.map(|life| match life {
        0 => Life::Dead,
        life => Life::Alive(life),
    })
}
