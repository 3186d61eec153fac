//! The register's answers, one by one.

use super::*;

const DEAD: Option<Life> = Some(Life::Dead);

fn alive(life: u64) -> Option<Life> {
    Some(Life::Alive(life))
}

fn thaw(from: u64) -> Option<LifeAsk> {
    let to = Life::Alive(from + 1);
    Some(LifeAsk::Cas {
        from: alive(from),
        to,
    })
}

fn kill(from: Option<Life>) -> LifeAsk {
    LifeAsk::Cas {
        from,
        to: Life::Dead,
    }
}

fn begun() -> OwnLife {
    let mut life = OwnLife::new(Planted::NONE);
    assert_eq!(life.ask(), Some(LifeAsk::Begin));
    assert_eq!(life.shown(alive(1)), OwnNews::Begun);
    life
}

#[test]
fn a_thaw_that_applies_while_the_fence_is_fresh_counts() {
    let mut life = begun();
    assert_eq!(life.ask(), thaw(1));
    life.note(true);
    assert_eq!(life.applied(), OwnNews::Thawed);
    assert_eq!(life.life(), 2);
}

#[test]
fn a_lapse_during_a_thaw_means_thaw_again() {
    let mut life = begun();
    life.ask();
    life.note(false);
    life.note(true);
    assert_eq!(life.applied(), OwnNews::ThawAgain);
    assert_eq!(life.ask(), thaw(2));
}

#[test]
fn applied_counts_from_its_own_sending() {
    let mut life = begun();
    life.ask();
    life.note(false);
    assert_eq!(life.ask(), thaw(1), "the same, once more");
    life.note(true);
    assert_eq!(life.applied(), OwnNews::Thawed);
}

/// An earlier sending applied, and a taker may have read the new life ever since. (`lapsed_since_first` taken for
/// `lapsed_since_last`: red.)
#[test]
fn a_refusal_counts_from_the_first_sending() {
    let mut life = begun();
    life.ask();
    life.note(false);
    life.ask();
    life.note(true);
    assert_eq!(life.refused(alive(2)), OwnNews::ThawAgain);
    assert_eq!(life.ask(), thaw(2));

    let mut life = begun();
    life.ask();
    life.note(true);
    life.ask();
    assert_eq!(
        life.refused(alive(2)),
        OwnNews::Thawed,
        "without a lapse it is as good"
    );
}

#[test]
fn a_refusal_that_shows_the_old_life_settles_nothing() {
    let mut life = begun();
    life.ask();
    assert_eq!(life.refused(alive(1)), OwnNews::Open);
    assert_eq!(life.ask(), thaw(1));
}

#[test]
fn a_life_that_is_dead_or_lost_is_over() {
    for row in [DEAD, None] {
        let mut life = begun();
        life.ask();
        assert_eq!(life.refused(row), OwnNews::Dead);
        assert_eq!(life.ask(), None);
    }
    let mut life = OwnLife::new(Planted::NONE);
    life.ask();
    assert_eq!(life.shown(DEAD), OwnNews::Dead, "before it began");
}

#[test]
fn one_s_own_end_follows_the_register() {
    let mut life = begun();
    life.ask();
    life.end();
    assert_eq!(life.ask(), Some(kill(alive(1))));
    assert_eq!(life.refused(alive(2)), OwnNews::Open, "the thaw came first");
    assert_eq!(life.ask(), Some(kill(alive(2))));
    assert_eq!(life.applied(), OwnNews::Dead);

    let mut life = OwnLife::new(Planted::NONE);
    life.ask();
    life.end();
    assert_eq!(life.ask(), Some(kill(None)), "it may not have begun");
    assert_eq!(life.refused(DEAD), OwnNews::Dead);
}

fn known(row: Option<Life>) -> Death {
    let mut death = Death::new(Planted::NONE);
    assert_eq!(death.shown(row), DeathNews::Waiting);
    death
}

#[test]
fn a_death_is_from_exactly_the_life_that_was_read() {
    for row in [alive(3), None] {
        let mut death = known(row);
        death.read_sent();
        assert_eq!(death.presumed_gone(), DeathNews::Ask(kill(row)));
        assert_eq!(
            death.failed(),
            DeathNews::Ask(kill(row)),
            "repeated as it is"
        );
        assert_eq!(death.applied(), DeathNews::Dead);
    }
}

/// A life that was read while the evidence was under way may be one that the boot has thawed to since. (`armed: true` in
/// `shown`: red.)
#[test]
fn evidence_from_before_the_life_was_read_is_none() {
    let mut death = Death::new(Planted::NONE);
    death.read_sent();
    assert_eq!(death.presumed_gone(), DeathNews::Waiting);
    death.read_sent();
    death.shown(alive(3));
    assert_eq!(death.presumed_gone(), DeathNews::Waiting);
    death.read_sent();
    assert_eq!(death.presumed_gone(), DeathNews::Ask(kill(alive(3))));
}

#[test]
fn a_refusal_demands_new_evidence() {
    let mut death = known(alive(3));
    death.read_sent();
    death.presumed_gone();
    assert_eq!(death.refused(alive(4)), DeathNews::Waiting);
    assert_eq!(death.presumed_gone(), DeathNews::Waiting);
    death.read_sent();
    assert_eq!(death.presumed_gone(), DeathNews::Ask(kill(alive(4))));
    assert_eq!(death.refused(DEAD), DeathNews::Dead);
}

#[test]
fn what_a_row_says_ends_the_life_that_it_names() {
    let mut death = Death::new(Planted::NONE);
    assert_eq!(death.said(3), DeathNews::Ask(kill(alive(3))));
    assert_eq!(
        death.shown(alive(4)),
        DeathNews::Waiting,
        "the answer to what it replaced"
    );

    let mut death = known(alive(4));
    assert_eq!(death.said(3), DeathNews::Waiting, "a stale row");
    assert_eq!(death.said(4), DeathNews::Ask(kill(alive(4))));
}

#[test]
fn a_register_that_shows_dead_needs_no_evidence() {
    assert_eq!(Death::new(Planted::NONE).shown(DEAD), DeathNews::Dead);
}
