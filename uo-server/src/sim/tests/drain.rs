//! Regions that are moved on purpose, with everybody in them.

use super::pair::*;
use super::*;

fn is_region_claim(request: &Request) -> bool {
    matches!(request, Request::ClaimCas { right: Right::Region(_), to, .. } if to.holder.is_some())
}

fn is_seal(request: &Request) -> bool {
    matches!(request, Request::ObjectsSeal { .. })
}

#[test]
fn a_region_goes_over_with_everybody_in_it() {
    let mut pair = Pair::new();
    let (anna, bert) = (pair.login("Anna", WEST), pair.login("Bert", EAST));
    pair.order(ONE, anna, 1, look_around());
    let epoch = pair.claim_row(Right::Region(WEST)).map(|row| row.number);
    pair.drain(WEST);
    assert!(pair.holds(TWO, WEST) && !pair.holds(ONE, WEST));
    assert!(pair.plays(TWO, anna) && pair.plays(ONE, bert));
    assert!(pair.is_settled());
    let row = pair.claim_row(Right::Region(WEST)).expect("it has a row");
    assert_eq!(Some(row.number), epoch.map(|epoch| epoch + 1));
    assert_eq!(row.holder, Some(me(TWO)));
    let given = pair.given(WEST).expect("the cluster core is told");
    assert_eq!((given.number, given.holder), (row.number, row.holder));
    assert_eq!(pair.served(TWO, WEST), 1);
    // Its session goes on where it was: orders, private messages, checkpoints.
    pair.order(TWO, anna, 1, look_around());
    pair.order(TWO, anna, 2, look_around());
    assert_eq!(pair.privates(anna), [1, 2]);
    pair.pass(16_000);
    let saved =
        |(of, it): &(usize, ToGateway)| *of == TWO && matches!(it, ToGateway::Saved { seq: 2, .. });
    assert!(pair.mail.iter().any(saved));
}

#[test]
fn gateways_hear_who_has_a_region_before_its_players_move() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.mail.clear();
    pair.drain(WEST);
    let place = |is_it: &dyn Fn(usize, &ToGateway) -> bool| {
        let place = pair.mail.iter().position(|(of, it)| is_it(*of, it));
        place.expect("it is told")
    };
    let hint = place(&|of, it| of == TWO && matches!(it, ToGateway::Leases(_)));
    let moved = place(&|of, it| {
        of == TWO && matches!(it, ToGateway::Moved { char_id, .. } if *char_id == anna)
    });
    assert!(hint < moved);
}

// Goes red when orders are applied to a battle that was sent off already, and when those kept are forgotten.
#[test]
fn orders_that_come_meanwhile_are_carried_out_once() {
    for is_aborted in [false, true] {
        let mut pair = Pair::new();
        let anna = pair.login("Anna", WEST);
        pair.messages_are(|_, message| match message {
            ToSim::DrainOffer(_) => Fate::Kept,
            _ => Fate::Done,
        });
        pair.drain(WEST);
        for seq in [1, 2, 2, 3] {
            pair.order(ONE, anna, seq, look_around());
        }
        assert_eq!(pair.privates(anna), [] as [u64; 0]);
        pair.cores[TWO].stopping = is_aborted;
        pair.release();
        pair.tick();
        let at = if is_aborted { ONE } else { TWO };
        assert!(pair.plays(at, anna));
        assert_eq!(pair.last_order(at, anna), 3);
        assert_eq!(pair.privates(anna), [1, 2, 3]);
        assert!(pair.is_settled());
    }
}

#[test]
fn a_refused_region_stays_under_its_epoch_and_nothing_was_claimed() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    let before = pair.claim_row(Right::Region(WEST));
    pair.cores[TWO].stopping = true;
    pair.drain(WEST);
    assert!(pair.holds(ONE, WEST) && pair.plays(ONE, anna));
    assert_eq!(pair.claim_row(Right::Region(WEST)), before);
    assert_eq!(pair.served(ONE, WEST), 1, "placement hears that it stays");
    assert_eq!(pair.cores[ONE].counters.drains_refused, 1);
    let ticks = pair.cores[ONE].region(WEST).map(|it| it.tick_count());
    pair.tick();
    assert!(pair.cores[ONE].region(WEST).map(|it| it.tick_count()) > ticks);
}

// Goes red when the target does not ask who sends an offer.
#[test]
fn a_region_is_offered_by_its_holder_only() {
    let mut pair = Pair::new();
    pair.messages_are(|_, _| Fate::Kept);
    pair.drain(WEST);
    let offer = pair.posted.iter().find_map(|(_, message)| match message {
        ToSim::DrainOffer(_) => Some(message.clone()),
        _ => None,
    });
    let before = pair.claim_row(Right::Region(WEST));
    pair.send(TWO, offer.expect("it is offered"));
    assert_eq!(pair.claim_row(Right::Region(WEST)), before);
    pair.all_is_well();
    pair.release();
    assert!(pair.holds(TWO, WEST));
}

// Goes red when anybody may say that a region is taken.
#[test]
fn only_the_target_says_that_it_is_ready() {
    let mut pair = Pair::new();
    pair.messages_are(|_, _| Fate::Kept);
    pair.drain(WEST);
    let epoch = pair.claim_row(Right::Region(WEST)).map(|row| row.number);
    let ready = ToSim::DrainReady {
        region: WEST,
        epoch: epoch.expect("it has a row") + 1,
    };
    pair.send(ONE, ready);
    assert_eq!(pair.given(WEST).map(|row| row.number), None);
    pair.all_is_well();
    pair.release();
    assert!(pair.holds(TWO, WEST) && pair.given(WEST).is_some());
}

// Goes red when the source leaves it to the target to say so, which may have no link to the gateway.
#[test]
fn the_gateway_hears_of_a_move_from_both_sides() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.mail.clear();
    pair.drain(WEST);
    let says = |who: usize| {
        let is_it = |(of, it): &(usize, ToGateway)| {
            *of == who
                && matches!(it, ToGateway::Moved { char_id, owner, .. }
                    if *char_id == anna && *owner == me(TWO))
        };
        pair.mail.iter().any(is_it)
    };
    assert!(says(ONE) && says(TWO));
}

#[test]
fn a_fenced_node_refuses_a_region() {
    let mut pair = Pair::new();
    pair.input(TWO, Input::Fence { fallen: true });
    pair.drain(WEST);
    assert!(pair.holds(ONE, WEST));
    pair.input(TWO, Input::Fence { fallen: false });
    pair.tick();
    assert!(pair.holds(ONE, WEST) && !pair.holds(TWO, WEST));
}

#[test]
fn nothing_is_offered_to_whom_it_cannot_reach() {
    let mut pair = Pair::new();
    pair.meet(ONE, false);
    pair.drain(WEST);
    assert!(pair.offers() == 0 && pair.holds(ONE, WEST));
    assert_eq!(pair.served(ONE, WEST), 1);
}

#[test]
fn a_region_that_stands_still_changes_nothing() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.order(
        ONE,
        anna,
        1,
        Order::Move {
            dir: Some(uo_proto::Dir::S),
        },
    );
    pair.tick();
    pair.messages_are(|_, message| match message {
        ToSim::DrainOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    let state = |pair: &Pair| pair.cores[ONE].region(WEST).map(|it| it.battle().clone());
    let before = state(&pair);
    pair.pass(1_000);
    assert_eq!(state(&pair), before);
    pair.all_is_well();
    pair.release();
    pair.tick();
    assert!(pair.plays(TWO, anna));
}

#[test]
fn without_an_answer_the_region_is_taken_back() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    let before = pair.claim_row(Right::Region(WEST)).expect("a row").number;
    pair.messages_are(|_, message| match message {
        ToSim::DrainOffer(_) => Fate::LostUnknown,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    pair.order(ONE, anna, 1, look_around());
    pair.pass(5_900);
    assert!(!pair.holds(ONE, WEST), "it waits for its answer");
    pair.pass(200);
    assert!(pair.holds(ONE, WEST) && pair.plays(ONE, anna));
    assert_eq!(pair.last_order(ONE, anna), 1);
    let row = pair.claim_row(Right::Region(WEST)).expect("a row");
    assert_eq!(row.number, before + 1);
    assert_eq!(pair.cores[ONE].counters.drains_reclaimed, 1);
    // And can go again, under the epoch that it has now.
    pair.all_is_well();
    pair.drain(WEST);
    assert!(pair.holds(TWO, WEST) && pair.plays(TWO, anna));
}

#[test]
fn a_late_offer_of_a_region_that_was_taken_back_claims_nothing() {
    let mut pair = Pair::new();
    pair.messages_are(|_, message| match message {
        ToSim::DrainOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    pair.pass(6_100);
    assert!(pair.holds(ONE, WEST));
    pair.release();
    pair.pass(1_000);
    assert!(pair.holds(ONE, WEST) && !pair.holds(TWO, WEST));
    assert!(pair.cores[TWO].slots[0].is_free());
}

/// The reclaim and the claim of the other meet in the row: one wins, and the players are where that one is.
#[test]
fn of_a_reclaim_and_a_late_claim_exactly_one_wins() {
    for source_is_first in [true, false] {
        let mut pair = Pair::new();
        let anna = pair.login("Anna", WEST);
        pair.requests_are(|_, request| match is_region_claim(request) {
            true => Fate::Kept,
            false => Fate::Done,
        });
        pair.drain(WEST);
        pair.pass(6_100);
        assert_eq!(pair.kept(), 2, "the claim and the reclaim");
        if source_is_first {
            pair.turn_requests();
        }
        pair.all_is_well();
        pair.release();
        pair.pass(500);
        let at = if source_is_first { ONE } else { TWO };
        assert!(pair.holds(at, WEST) && pair.plays(at, anna), "at {at}");
        assert!(pair.is_settled());
    }
}

/// The target has it, and its word to say so is lost. Goes red when the source believes its clock and not the row.
#[test]
fn a_reclaim_that_finds_the_row_changed_hands_the_players_over() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.messages_are(|_, message| match message {
        ToSim::DrainReady { .. } => Fate::LostUnknown,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    pair.order(ONE, anna, 1, look_around());
    assert!(pair.holds(TWO, WEST) && !pair.plays(TWO, anna));
    pair.pass(6_500);
    assert!(pair.plays(TWO, anna));
    assert_eq!(pair.last_order(TWO, anna), 1);
    assert_eq!(pair.cores[ONE].counters.drains_lost, 1);
    assert!(pair.is_settled());
}

#[test]
fn a_claim_of_unknown_outcome_is_repeated_and_the_region_goes() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    let mut tries = 0;
    pair.requests_are(move |of, request| {
        tries += u32::from(of == TWO && is_region_claim(request));
        match (of == TWO && is_region_claim(request), tries) {
            (true, 1) => Fate::LostUnknown,
            (true, 2) => Fate::DoneUnknown,
            _ => Fate::Done,
        }
    });
    pair.drain(WEST);
    pair.pass(1_500);
    assert!(pair.holds(TWO, WEST) && pair.plays(TWO, anna));
    assert_eq!(pair.cores[ONE].counters.drains_timed_out, 0);
}

#[test]
fn players_that_are_refused_are_offered_again() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.messages_are(|_, message| match message {
        ToSim::HandoffOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    // It does not serve the region for a moment: it asks whether that is healthy, say.
    let region = pair.cores[TWO].slots[0].region.take();
    pair.all_is_well();
    pair.release();
    pair.pass(200);
    assert!(!pair.plays(TWO, anna) && !pair.plays(ONE, anna));
    assert!(pair.cores[TWO].counters.offers_refused > 1);
    pair.cores[TWO].slots[0].region = region;
    pair.pass(100);
    assert!(pair.plays(TWO, anna));
}

#[test]
fn a_target_that_dies_before_it_claimed_leaves_the_region_where_it_was() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.gone[TWO] = true;
    pair.drain(WEST);
    pair.pass(1_000);
    assert!(!pair.holds(ONE, WEST));
    let boot = me(TWO).boot;
    pair.input(ONE, Input::Dead { boot });
    pair.tick();
    assert!(pair.holds(ONE, WEST) && pair.plays(ONE, anna));
}

/// It claimed, and died: the region is its, so the players wait until somebody has taken that.
#[test]
fn a_target_that_dies_after_it_claimed_takes_nobody_with_it() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.requests_are(|of, request| match of == TWO && is_seal(request) {
        true => Fate::LostUnknown,
        false => Fate::Done,
    });
    pair.drain(WEST);
    pair.order(ONE, anna, 1, look_around());
    pair.gone[TWO] = true;
    pair.all_is_well();
    let boot = me(TWO).boot;
    pair.input(ONE, Input::Dead { boot });
    pair.pass(500);
    assert!(!pair.holds(ONE, WEST));
    let row = pair.claim_row(Right::Region(WEST));
    let region = WEST;
    pair.input(ONE, Input::Take { region, row });
    pair.pass(500);
    assert!(pair.holds(ONE, WEST) && pair.plays(ONE, anna));
    assert_eq!(pair.last_order(ONE, anna), 1);
    assert!(pair.is_settled());
}

#[test]
fn a_source_that_dies_after_it_offered_leaves_the_region_to_the_target() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.pass(16_000);
    pair.requests_are(|of, request| match of == TWO && is_seal(request) {
        true => Fate::Kept,
        false => Fate::Done,
    });
    pair.drain(WEST);
    pair.gone[ONE] = true;
    pair.all_is_well();
    let boot = me(ONE).boot;
    pair.input(TWO, Input::Dead { boot });
    pair.release();
    pair.pass(500);
    assert!(pair.holds(TWO, WEST));
    let ticks = pair.cores[TWO].region(WEST).map(|it| it.tick_count());
    assert!(ticks > Some(0), "it waits for its players only so long");
    // Its gateway finds out, and attaches the player there.
    pair.attach(TWO, "Anna", Some(1));
    pair.tick();
    assert!(pair.plays(TWO, anna));
}

/// Time stands still for a fenced node, and so do its drains.
#[test]
fn a_source_that_is_fenced_meanwhile_goes_on_where_it_stood() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.messages_are(|_, message| match message {
        ToSim::DrainReady { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    pair.input(ONE, Input::Fence { fallen: true });
    pair.all_is_well();
    pair.release();
    pair.pass(20_000);
    assert!(pair.holds(TWO, WEST) && !pair.plays(TWO, anna));
    pair.input(ONE, Input::Fence { fallen: false });
    pair.pass(200);
    assert!(pair.plays(TWO, anna) && pair.is_settled());
    assert_eq!(pair.cores[ONE].counters.drains_timed_out, 0);
}

/// What the region changed is durable before anybody else may claim it, or a target that dies before its seal would take
/// it along. Goes red when a region is offered while its journal is not flushed.
#[test]
fn a_region_is_offered_when_its_writes_are_durable() {
    let mut pair = Pair::new();
    let object = pair.cores[ONE].config.world.content(WEST).objects[0];
    pair.requests_are(|_, request| match request {
        Request::ObjectsWrite { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    pair.write_objects(ONE, WEST, &[object]);
    pair.drain(WEST);
    pair.pass(300);
    assert!(pair.offers() == 0 && !pair.holds(ONE, WEST));
    pair.all_is_well();
    pair.release();
    assert!(pair.holds(TWO, WEST));
}

/// Who has a region is told once. Goes red when what is read of a region that is under way is forgotten: its players would
/// be offered for ever to a node that has handed it on.
#[test]
fn who_has_a_region_by_now_is_learned_while_it_is_on_its_way() {
    let mut pair = Pair::new();
    pair.messages_are(|_, message| match message {
        ToSim::DrainReady { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    let third = holder("three", 3);
    let row = ClaimRow {
        holder: Some(third.clone()),
        number: 3,
        nonce: Nonce(9),
    };
    let leases = vec![(WEST, row)];
    pair.input(ONE, Input::ReadBack { leases });
    pair.all_is_well();
    pair.release();
    assert_eq!(pair.cores[ONE].elsewhere.get(&WEST), Some(&(3, third)));
}

#[test]
fn objects_that_differ_go_along_and_are_sealed_there() {
    let mut pair = Pair::new();
    let content = pair.cores[ONE].config.world.content(WEST).clone();
    let mut object = content.objects[0];
    object.gone = true;
    let region = pair.cores[ONE].slots[0].region.as_mut().expect("it runs");
    region.differences.insert(object.key, object);
    region.battle.place_object(object);
    pair.drain(WEST);
    let there = pair.cores[TWO].region(WEST).expect("it runs");
    assert_eq!(there.differences(), [object]);
    assert_eq!(there.battle().arena().object(object.key), None);
    let rows = pair.tables.apply(0, &Request::ObjectsRead { region: WEST });
    let Ok(Reply::Objects(rows)) = rows else {
        panic!("objects are read: {rows:?}");
    };
    assert_eq!(rows.len(), 1);
}

/// Harm to the region's objects by its neighbours is not lost while it is between two nodes.
#[test]
fn hits_that_come_meanwhile_go_along() {
    let mut pair = Pair::new();
    let objects = &pair.cores[ONE].config.world.content(WEST).objects;
    let strong = |it: &&uo_proto::ObjectState| it.hits > 10;
    let Some(object) = objects.iter().find(strong).copied() else {
        panic!("something can be harmed");
    };
    pair.messages_are(|_, message| match message {
        ToSim::DrainOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    let hit = uo_combat::ObjectHit {
        key: object.key,
        damage: 5,
        fire: false,
        by: None,
    };
    let message = ToSim::ObjectHits {
        region: WEST,
        epoch: 1,
        hits: vec![hit],
    };
    pair.send(ONE, message);
    pair.all_is_well();
    pair.release();
    pair.pass(100);
    let there = pair.cores[TWO].region(WEST).expect("it runs");
    let hits = there.battle().arena().object(object.key).map(|it| it.hits);
    assert_ne!(hits, Some(object.hits));
}

#[test]
fn a_stop_hands_everything_over() {
    let mut pair = Pair::new();
    let players: Vec<CharId> = (0..4)
        .map(|i| pair.login(&format!("player{i}"), RegionId(i)))
        .collect();
    pair.input(ONE, Input::Stop);
    let ticks = pair.cores[ONE].region(EAST).map(|it| it.tick_count());
    pair.tick();
    assert!(pair.cores[ONE].region(EAST).map(|it| it.tick_count()) > ticks);
    for region in (0..4).map(RegionId) {
        pair.drain(region);
    }
    pair.pass(200);
    assert!(players.iter().all(|&id| pair.plays(TWO, id)));
    assert!(pair.news.contains(&(ONE, News::Drained)));
    assert!(pair.is_settled());
}

#[test]
fn what_nobody_takes_is_written_and_released() {
    let mut pair = Pair::new();
    let (anna, bert) = (pair.login("Anna", WEST), pair.login("Bert", EAST));
    pair.input(ONE, Input::Stop);
    pair.drain(WEST);
    pair.input(ONE, Input::GiveUp);
    pair.pass(200);
    assert!(pair.plays(TWO, anna) && !pair.plays(ONE, bert));
    let row = pair.claim_row(Right::Character(bert)).expect("a row");
    assert_eq!(row.holder, None);
    let row = pair.claim_row(Right::Region(EAST)).expect("a row");
    assert_eq!(row.holder, None);
    assert!(pair.news.contains(&(ONE, News::Drained)));
}

#[test]
fn a_stop_that_gets_no_answer_gives_up_in_time() {
    let mut pair = Pair::new();
    let anna = pair.login("Anna", WEST);
    pair.input(ONE, Input::Stop);
    pair.messages_are(|_, message| match message {
        ToSim::DrainOffer(_) => Fate::LostUnknown,
        _ => Fate::Done,
    });
    pair.drain(WEST);
    pair.pass(25_000);
    assert!(pair.news.contains(&(ONE, News::Drained)));
    let row = pair.claim_row(Right::Character(anna)).expect("a row");
    assert_eq!(row.holder, None);
}
