//! Regions and characters as the cluster core wants them: taken, retired, read back, and over with a boot.

use super::super::others::Peer;
use super::super::quarantine::Health;
use super::*;
use crate::store::FaultRow;

fn served(shard: &Shard, region: RegionId) -> usize {
    let is_it = |news: &&News| matches!(news, News::Served { region: id, .. } if *id == region);
    shard.news.iter().filter(is_it).count()
}

fn gone(shard: &Shard, region: RegionId) -> usize {
    let is_it = |news: &&News| matches!(news, News::Gone { region: id, .. } if *id == region);
    shard.news.iter().filter(is_it).count()
}

fn released(shard: &Shard, region: RegionId) -> bool {
    let is_it = |news: &News| matches!(news, News::Released { region: id, .. } if *id == region);
    shard.news.iter().any(is_it)
}

fn row_of(holder: &Holder, number: u64) -> ClaimRow {
    ClaimRow {
        holder: Some(holder.clone()),
        number,
        nonce: Nonce(99),
    }
}

fn put(shard: &mut Shard, right: Right, row: ClaimRow) {
    let seen = shard.claim_row(right).map(|row| row.seen());
    let request = Request::ClaimCas {
        right,
        seen,
        to: row,
    };
    shard.tables.apply(0, &request).expect("it is written");
}

#[test]
fn only_what_is_wanted_is_taken() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.input(Input::Take {
        region: WEST,
        row: None,
    });
    assert_eq!(gone(&shard, WEST), 1, "it may not act yet");
    shard.input(Input::Fence { fallen: false });
    shard.pass(1_000);
    assert!(shard.requests.is_empty());
    shard.input(Input::Take {
        region: WEST,
        row: None,
    });
    assert_eq!(served(&shard, WEST), 1);
    assert!(shard.core.region(WEST).is_some() && shard.core.region(EAST).is_none());
    assert!(!shard.core.holds_everything());
    shard.input(Input::Take {
        region: WEST,
        row: None,
    });
    assert_eq!(served(&shard, WEST), 2, "it is held already");
}

#[test]
fn a_region_of_a_live_boot_is_not_taken_and_of_a_dead_one_is() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.others_are_dead = false;
    let other = holder("two", 9);
    put(&mut shard, Right::Region(WEST), row_of(&other, 4));
    shard.input(Input::Fence { fallen: false });
    // The hint is old: there was no row yet.
    let take = Input::Take {
        region: WEST,
        row: None,
    };
    shard.input(take.clone());
    assert_eq!(gone(&shard, WEST), 1);
    assert_eq!(shard.suspects(), [other.boot]);
    assert_eq!(
        shard.claim_row(Right::Region(WEST)),
        Some(row_of(&other, 4))
    );
    shard.input(Input::Dead { boot: other.boot });
    shard.input(take);
    assert_eq!(served(&shard, WEST), 1);
    let row = shard.claim_row(Right::Region(WEST)).expect("a row");
    assert_eq!((row.holder, row.number), (Some(shard.me.clone()), 5));
}

#[test]
fn a_boot_that_lives_is_not_suspected() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.others_are_dead = false;
    let other = holder("two", 9);
    put(&mut shard, Right::Region(WEST), row_of(&other, 4));
    shard.input(Input::Fence { fallen: false });
    shard.input(Input::Members {
        members: vec![Peer {
            holder: other,
            is_gateway: false,
            takes_over: true,
        }],
    });
    shard.input(Input::Take {
        region: WEST,
        row: None,
    });
    assert_eq!(gone(&shard, WEST), 1);
    assert_eq!(shard.suspects(), []);
}

#[test]
fn a_region_that_nobody_needs_is_flushed_and_released() {
    let mut shard = Shard::running();
    let object = shard.core.config.world.content(EAST).objects[0];
    shard.requests_are(|request| match request {
        Request::ObjectsWrite { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.run(|core, _, effects| {
        let slot = core.slot_mut(EAST).expect("it is on the map");
        let journal = slot.journal.as_mut().expect("it is held");
        let write = journal.record(1, &[object]);
        core.write_objects(write);
        effects.append(&mut core.effects);
    });
    let ticks = |shard: &Shard| shard.core.region(EAST).map(|region| region.tick_count());
    shard.input(Input::Retire { region: EAST });
    let stood = ticks(&shard);
    shard.pass(1_000);
    assert_eq!(ticks(&shard), stood, "it is stopped first");
    assert!(!released(&shard, EAST));
    shard.release_requests();
    shard.pass(100);
    assert!(released(&shard, EAST));
    assert_eq!(ticks(&shard), None);
    let row = shard.claim_row(Right::Region(EAST)).expect("a row");
    assert_eq!(row.holder, None);
}

// Goes red when `go_on_retiring` does not ask `is_needed`.
#[test]
fn a_region_to_which_somebody_came_stays() {
    let mut shard = Shard::running();
    shard.login_at_border("Anna");
    let before = served(&shard, WEST);
    shard.input(Input::Retire { region: WEST });
    assert_eq!(served(&shard, WEST), before + 1);
    shard.pass(1_000);
    assert!(!released(&shard, WEST));
    assert_eq!(shard.region_of(CharId::of_name("Anna")), Some(WEST));
}

#[test]
fn where_players_are_is_told_when_it_changes() {
    let mut shard = Shard::running();
    shard.login_at_border("Anna");
    shard.pass(5_000);
    let told: Vec<_> = shard
        .news
        .iter()
        .filter(|news| matches!(news, News::Demanded { .. }))
        .collect();
    let regions = vec![WEST];
    assert_eq!(told, [&News::Demanded { regions }]);
}

// Goes red when `is_anothers` asks for the holder alone.
#[test]
fn only_a_higher_number_takes_a_region_away() {
    let mut shard = Shard::running();
    let mine = shard.claim_row(Right::Region(WEST)).expect("a row").number;
    let other = holder("two", 9);
    let read = |number| Input::ReadBack {
        leases: vec![(WEST, row_of(&other, number))],
    };
    shard.input(read(mine));
    assert!(shard.core.region(WEST).is_some());
    shard.input(read(mine + 1));
    assert!(shard.core.region(WEST).is_none());
    assert_eq!(gone(&shard, WEST), 1);
    assert_eq!(shard.core.elsewhere.get(&WEST), Some(&(mine + 1, other)));
}

#[test]
fn a_character_that_is_anothers_is_dropped_in_its_turn() {
    let mut shard = Shard::running();
    for name in ["Anna", "Bert", "Cleo"] {
        shard.login(name, 1);
    }
    let bert = CharId::of_name("Bert");
    let mine = shard.generation_of(bert).expect("it plays");
    let other = holder("two", 9);
    put(&mut shard, Right::Character(bert), row_of(&other, mine + 1));
    shard.pass(16_000);
    assert_eq!(shard.generation_of(bert), None);
    assert!(shard.generation_of(CharId::of_name("Anna")).is_some());
    let is_told =
        |it: &ToGateway| matches!(it, ToGateway::Lost { char_id, .. } if *char_id == bert);
    assert!(shard.mail.iter().any(is_told));
}

#[test]
fn nobody_is_offered_to_a_node_without_a_link() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.others_are_dead = false;
    let other = holder("two", 9);
    shard.input(Input::Fence { fallen: false });
    shard.input(Input::Take {
        region: WEST,
        row: None,
    });
    let leases = vec![(EAST, row_of(&other, 3))];
    shard.input(Input::ReadBack { leases });
    let anna = shard.login_at_border("Anna");
    shard.input(Input::Members {
        members: vec![Peer {
            holder: other.clone(),
            is_gateway: false,
            takes_over: true,
        }],
    });
    assert!(!shard.core.can_hand_over(anna, EAST));
    shard.input(Input::Linked {
        nodes: vec![other.node.clone()],
    });
    assert!(shard.core.can_hand_over(anna, EAST));
    shard.input(Input::PeerLost {
        node: other.node.clone(),
    });
    assert!(!shard.core.can_hand_over(anna, EAST));
    shard.input(Input::Linked {
        nodes: vec![other.node],
    });
    shard.input(Input::Members { members: vec![] });
    assert!(!shard.core.can_hand_over(anna, EAST), "it is presumed gone");
}

#[test]
fn whoever_comes_while_its_region_is_being_taken_waits_for_that() {
    let mut shard = Shard::cold(Tables::default(), 1);
    shard.requests_are(|request| match request {
        Request::ObjectsSeal { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.begin();
    shard.attach("Anna", 1, None, 0);
    assert!(shard.attached().is_none() && shard.attach_refusals().is_empty());
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    assert!(shard.attached().is_some());
}

#[test]
fn time_stands_still_behind_the_fence() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    shard.detach("Anna", 1, false);
    shard.pass(20_000);
    shard.input(Input::Fence { fallen: true });
    shard.pass(60_000);
    shard.input(Input::Fence { fallen: false });
    shard.pass(5_000);
    let anna = CharId::of_name("Anna");
    assert!(shard.region_of(anna).is_some(), "25 of its 30 seconds");
    shard.pass(6_000);
    assert_eq!(shard.region_of(anna), None);
}

#[test]
fn gateways_hear_that_it_stands_still_and_that_it_goes_on() {
    let mut shard = Shard::running();
    let is_told = |shard: &Shard| {
        let told = shard.mail.iter().filter_map(|it| match it {
            ToGateway::Frozen { is_frozen } => Some(*is_frozen),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert!(is_told(&shard).is_empty());
    shard.input(Input::Fence { fallen: true });
    shard.input(Input::Fence { fallen: false });
    assert_eq!(is_told(&shard), [true, false]);
}

/// Red when only those are told that it goes on who are there by then: the others would hold orders back for ever.
#[test]
fn a_gateway_that_is_taken_for_gone_meanwhile_hears_that_it_goes_on() {
    let mut shard = Shard::running();
    let gateway = holder("gate-2", 7);
    let member = Peer {
        holder: gateway.clone(),
        is_gateway: true,
        takes_over: false,
    };
    shard.input(Input::Members {
        members: vec![member],
    });
    shard.input(Input::Linked {
        nodes: vec![gateway.node],
    });
    shard.input(Input::Fence { fallen: true });
    shard.input(Input::Members {
        members: Vec::new(),
    });
    shard.input(Input::Fence { fallen: false });
    let count = |is_frozen| {
        let word = ToGateway::Frozen { is_frozen };
        shard.mail.iter().filter(|it| **it == word).count()
    };
    assert_eq!((count(true), count(false)), (2, 2));
}

// Goes red when `reborn` starts its tickets over, or keeps the slots.
#[test]
fn nothing_of_a_boot_that_died_goes_on() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    let requests = shard.requests.len();
    shard.requests_are(|_| Fate::Kept);
    shard.attach("Bert", 2, None, 0);
    shard.pass(1_000);
    assert!(!shard.kept_requests.is_empty());
    shard.input(Input::Fence { fallen: true });
    shard.me = holder("one", 2);
    let me = shard.me.clone();
    let was = shard.core.me().boot;
    shard.core.reborn(me);
    shard.requests_are(|_| Fate::Done);
    shard.input(Input::Fence { fallen: false });
    shard.release_requests();
    shard.pass(1_000);
    assert_eq!(shard.core.region_states(), []);
    assert_eq!(shard.core.character_states(), []);
    assert!(shard.core.counters().replies_not_expected > 0);
    assert!(shard.core.others.is_dead(was));
    assert!(shard.requests.len() > requests);
    shard.begin();
    assert_eq!(shard.login("Anna", 3).generation, 2);
}

#[test]
fn what_waits_behind_the_fence_is_bounded() {
    let mut shard = Shard::running();
    shard.input(Input::Fence { fallen: true });
    for _ in 0..100 {
        shard.input(Input::PeerLost {
            node: "gate".into(),
        });
    }
    for seq in 0..crate::limits::FENCED_MESSAGES_MAX as u64 + 10 {
        shard.order("Anna", 1, seq, look_around());
    }
    assert!(shard.core.kept.len() <= crate::limits::FENCED_MESSAGES_MAX + 1);
    assert!(shard.core.counters().messages_dropped_fenced > 0);
}

fn sicken(shard: &mut Shard, region: RegionId) {
    let request = Request::FaultCas {
        region,
        seen: None,
        to: FaultRow {
            panics: vec![BootId(1), BootId(2)],
            quarantined: true,
        },
    };
    shard.tables.apply(0, &request).expect("it is written");
}

// Goes red when `serves` does not ask for the region's health.
#[test]
fn a_region_that_ended_two_boots_is_held_and_stands_still_until_it_is_released() {
    let mut shard = Shard::cold(Tables::default(), 1);
    sicken(&mut shard, WEST);
    shard.begin();
    assert!(shard.core.holds_everything());
    assert_eq!(shard.core.quarantined().collect::<Vec<_>>(), [WEST]);
    shard.pass(1_000);
    let ticks = |shard: &Shard, id| shard.core.region(id).map(|region| region.tick_count());
    assert_eq!(ticks(&shard, WEST), Some(0));
    assert!(ticks(&shard, EAST) > Some(10));
    let pos = Pos::new(20, 20);
    shard.put_character("Anna", pos);
    shard.attach("Anna", 1, None, 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotHeld(WEST)]);
    shard.input(Input::Release { region: WEST });
    shard.pass(1_000);
    assert!(ticks(&shard, WEST) > Some(10));
    shard.attach("Anna", 2, None, 0);
    assert!(shard.attached().is_some());
}

#[test]
fn nothing_is_served_before_it_is_known_to_be_healthy() {
    let mut shard = Shard::cold(Tables::default(), 1);
    sicken(&mut shard, WEST);
    let mut failures = 3;
    shard.requests_are(move |request| match request {
        Request::FaultRead { .. } if failures > 0 => {
            failures -= 1;
            Fate::LostUnknown
        }
        _ => Fate::Done,
    });
    shard.begin();
    assert!(shard.core.region(WEST).is_none());
    shard.pass(1_000);
    assert_eq!(shard.core.quarantined().collect::<Vec<_>>(), [WEST]);
}

// Goes red when any answer counts: in between the region may have been somebody else's, whom it ended.
#[test]
fn an_answer_about_health_counts_for_the_claim_that_asked() {
    let mut shard = Shard::running();
    shard.run(|core, _, _| {
        core.taking.insert(WEST);
        let latest = |core: &SimCore| *core.asked.last_key_value().expect("it is asked").0;
        let health = |core: &SimCore| core.slot(WEST).map(|slot| slot.health);
        core.ask_health(WEST);
        let old = latest(core);
        core.ask_health(WEST);
        core.health_answered(WEST, old, Ok(Reply::Fault(None)));
        assert!(matches!(health(core), Some(Health::Asking { .. })));
        core.health_answered(WEST, latest(core), Ok(Reply::Fault(None)));
        assert_eq!(health(core), Some(Health::Well));
    });
}

#[test]
fn after_a_panic_nothing_of_the_boot_is_done() {
    let mut shard = Shard::running();
    shard.login("Anna", 1);
    shard.run(|core, _, effects| core.break_down_at(WEST, effects));
    assert_eq!(shard.news.last(), Some(&News::Panicked { region: WEST }));
    let (mail, requests) = (shard.mail.len(), shard.requests.len());
    shard.order("Anna", 1, 1, look_around());
    shard.attach("Bert", 1, None, 0);
    shard.pass(20_000);
    assert_eq!((shard.mail.len(), shard.requests.len()), (mail, requests));
}
