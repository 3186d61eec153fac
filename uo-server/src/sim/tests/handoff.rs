use uo_proto::{EntityId, Target};

use super::*;
use crate::crossing::{Crossing, Measured, Outcome, Phase, Query, merge};
use crate::peer::message::{Flight, HandoffCause, HandoffOffer};

const ANNA: &str = "Anna";

impl Shard {
    fn hand_over(&mut self, id: CharId, to: RegionId) {
        self.run(|core, _, effects| {
            assert!(core.can_hand_over(id, to));
            core.hand_over(id, to, HandoffCause::Border, Vec::new());
            effects.append(&mut core.effects);
        });
    }

    fn moved(&self) -> Vec<(u64, RegionId)> {
        let moved = self.mail.iter().filter_map(|it| match it {
            ToGateway::Moved {
                generation, region, ..
            } => Some((*generation, *region)),
            _ => None,
        });
        moved.collect()
    }

    fn is_settled(&self) -> bool {
        let core = &self.core;
        core.outgoing.is_empty()
            && core.arrivals.is_empty()
            && core.entering.is_empty()
            && core.leaving.is_empty()
    }
}

#[test]
fn a_character_goes_over_with_everything_it_has() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.order(ANNA, 1, 1, look_around());
    let before = shard.generation_of(id).expect("it is here");
    shard.hand_over(id, EAST);
    assert_eq!(shard.region_of(id), Some(EAST));
    assert_eq!(shard.generation_of(id), Some(before + 1));
    assert_eq!(shard.owner(id).map(|row| row.number), Some(before + 1));
    assert_eq!(shard.moved(), [(before + 1, EAST)]);
    assert!(shard.is_settled());
    assert_eq!(shard.core.take_handoff_ms().len(), 1);
    // The session goes on: order numbers, private numbers, checkpoints.
    shard.order(ANNA, 1, 1, look_around());
    shard.order(ANNA, 1, 2, look_around());
    assert_eq!(shard.private_numbers(), [1, 2]);
    shard.pass(16_000);
    assert_eq!(shard.saved().last(), Some(&2));
}

/// What the core's flight recorder has, its parts joined.
fn recorded(shard: &Shard) -> Vec<Crossing> {
    let query = Query {
        most: 10,
        cause: None,
        char_id: None,
    };
    merge(shard.core.recorder().newest(&query))
}

/// What the gateway was told of the last way.
fn flight(shard: &Shard) -> Option<Flight> {
    shard.mail.iter().rev().find_map(|it| match it {
        ToGateway::Moved { flight, .. } => flight.clone(),
        _ => None,
    })
}

// Red when `arrival_seal` does not note the time, and when the source does not note when it offered.
#[test]
fn every_phase_of_a_crossing_is_noted() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    let is_phase = |request: &Request| {
        is_character_claim(request) || matches!(request, Request::CharacterSeal { .. })
    };
    shard.requests_are(move |request| match is_phase(request) {
        true => Fate::Kept,
        false => Fate::Done,
    });
    shard.messages_are(|message| match message {
        ToSim::HandoffAccept { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.pass(150);
    shard.release_requests();
    shard.pass(100);
    shard.release_requests();
    shard.pass(50);
    shard.release_messages();
    let [crossing] = &recorded(&shard)[..] else {
        panic!("one crossing: {:?}", recorded(&shard));
    };
    assert_eq!(crossing.leave_ms, Some(0));
    assert_eq!(crossing.claim_ms, Some(150));
    assert_eq!(crossing.seal_ms, Some(100));
    assert_eq!(crossing.accept_ms, Some(300));
    assert_eq!((crossing.from, crossing.to), (Some(WEST), Some(EAST)));
    assert_eq!(crossing.outcome, Outcome::Arrived);
    let told = flight(&shard).expect("the gateway is told");
    assert_eq!((told.out_ms(), told.from), (250, Some(WEST)));
    // Each phase is measured by one part only.
    let measured = shard.core.take_measured();
    let phase = |phase, ms| {
        measured
            .iter()
            .filter(|&&it| it == Measured::Phase(phase, ms))
            .count()
    };
    assert_eq!(measured.len(), 4);
    assert_eq!(phase(Phase::Claim, 150) + phase(Phase::Seal, 100), 2);
    assert_eq!(phase(Phase::Leave, 0) + phase(Phase::Accept, 300), 2);
}

#[test]
fn who_comes_back_is_noted_with_the_time_it_was_away() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|message| match message {
        ToSim::HandoffOffer(_) => Fate::LostUnknown,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.pass(2_100);
    let told = flight(&shard).expect("the gateway is told");
    assert_eq!((told.leave_ms, told.claim_ms), (2_000, None));
    let recorded = recorded(&shard);
    assert_eq!(recorded.len(), 1);
    assert_eq!(recorded[0].outcome, Outcome::Returned);
    assert_eq!(recorded[0].to, Some(WEST));
}

#[test]
fn orders_that_come_meanwhile_follow_once_and_in_order() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.requests_are(|request| {
        if is_character_claim(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.hand_over(id, EAST);
    for seq in [1, 2, 2, 3] {
        shard.order(ANNA, 1, seq, look_around());
    }
    assert_eq!(shard.private_numbers(), [] as [u64; 0]);
    shard.release_requests();
    assert_eq!(shard.private_numbers(), [1, 2, 3]);
    assert_eq!(shard.last_order_of(id), Some(3));
}

// Goes red without `Verdict::Early`: the order that came directly makes duplicates of the ones still on their way.
#[test]
fn an_order_that_overtakes_the_forwarded_ones_waits_for_them() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.requests_are(|request| {
        if is_character_claim(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.hand_over(id, EAST);
    shard.order(ANNA, 1, 1, look_around());
    shard.order(ANNA, 1, 2, look_around());
    shard.messages_are(|message| match message {
        ToSim::HandoffAccept { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.release_requests();
    shard.order(ANNA, 1, 3, look_around());
    assert_eq!(shard.last_order_of(id), Some(0));
    shard.release_messages();
    assert_eq!(shard.last_order_of(id), Some(3));
    assert_eq!(shard.private_numbers(), [1, 2, 3]);
}

#[test]
fn an_order_waits_for_missing_ones_only_so_long() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.hand_over(id, EAST);
    shard.order(ANNA, 1, 7, look_around());
    assert_eq!(shard.last_order_of(id), Some(0));
    shard.pass(600);
    assert_eq!(shard.last_order_of(id), Some(7));
}

#[test]
fn a_refused_offer_costs_nothing() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    let before = shard.generation_of(id);
    shard.messages_are(|message| match message {
        ToSim::HandoffOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.order(ANNA, 1, 1, look_around());
    let east = shard.core.slots[1].region.take();
    shard.requests.clear();
    shard.release_messages();
    assert_eq!(shard.region_of(id), Some(WEST));
    assert_eq!(shard.generation_of(id), before);
    assert_eq!(shard.last_order_of(id), Some(1));
    assert!(!shard.requests.iter().any(is_cas));
    shard.core.slots[1].region = east;
    assert!(
        !shard.core.can_hand_over(id, EAST),
        "it is not offered again at once"
    );
    shard.pass(1_000);
    assert!(shard.core.can_hand_over(id, EAST));
}

#[test]
fn without_an_answer_the_source_reclaims() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    let before = shard.generation_of(id).expect("it is here");
    shard.messages_are(|message| match message {
        ToSim::HandoffOffer(_) => Fate::LostUnknown,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.order(ANNA, 1, 1, look_around());
    shard.pass(1_900);
    assert_eq!(shard.region_of(id), None, "it waits for its answer");
    shard.pass(200);
    assert_eq!(shard.region_of(id), Some(WEST));
    assert_eq!(shard.generation_of(id), Some(before + 1));
    assert_eq!(shard.moved(), [(before + 1, WEST)]);
    assert_eq!(shard.row(id).map(|row| row.generation), Some(before + 1));
    assert_eq!(shard.last_order_of(id), Some(1));
}

#[test]
fn an_unknown_reclaim_is_repeated_with_its_nonce_until_it_is_final() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|message| match message {
        ToSim::HandoffOffer(_) => Fate::LostUnknown,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.requests.clear();
    let mut failures = 4;
    shard.requests_are(move |request| {
        let fails = is_character_claim(request) && failures > 0;
        failures -= u32::from(fails);
        match (fails, failures) {
            (false, _) => Fate::Done,
            (true, 2) => Fate::DoneUnknown,
            (true, _) => Fate::LostUnknown,
        }
    });
    shard.pass(4_000);
    assert_eq!(shard.region_of(id), Some(WEST));
    let claims: Vec<_> = shard
        .requests
        .iter()
        .filter(|request| is_character_claim(request))
        .collect();
    assert!(claims.len() > 2 && claims.iter().all(|claim| *claim == claims[0]));
}

/// Both parts are played by one node, and the row names it either way: only the nonce tells who won.
#[test]
fn of_a_reclaim_and_a_late_claim_exactly_one_wins() {
    for source_is_first in [true, false] {
        let mut shard = Shard::running();
        let id = shard.login_at_border(ANNA);
        let before = shard.generation_of(id).expect("it is here");
        shard.requests_are(|request| {
            if is_character_claim(request) {
                Fate::Kept
            } else {
                Fate::Done
            }
        });
        shard.hand_over(id, EAST);
        shard.order(ANNA, 1, 1, look_around());
        shard.pass(2_100);
        assert_eq!(shard.kept_requests.len(), 2, "the claim and the reclaim");
        if source_is_first {
            shard.kept_requests.make_contiguous().reverse();
        }
        shard.requests_are(|_| Fate::Done);
        shard.release_requests();
        let region = if source_is_first { WEST } else { EAST };
        assert_eq!(shard.region_of(id), Some(region));
        assert_eq!(shard.generation_of(id), Some(before + 1));
        assert_eq!(shard.last_order_of(id), Some(1));
        assert_eq!(shard.moved().last(), Some(&(before + 1, region)));
        assert!(shard.is_settled());
    }
}

#[test]
fn a_late_accept_ends_a_reclaim() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|message| match message {
        ToSim::HandoffAccept { .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    assert_eq!(shard.region_of(id), Some(EAST));
    shard.requests_are(|request| {
        if is_character_claim(request) {
            Fate::LostUnknown
        } else {
            Fate::Done
        }
    });
    shard.pass(3_000);
    shard.release_messages();
    assert!(shard.is_settled());
    shard.pass(3_000);
    assert_eq!(shard.region_of(id), Some(EAST));
}

#[test]
fn a_reclaim_that_comes_too_late_lets_go() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|message| match message {
        ToSim::HandoffAccept { .. } => Fate::LostUnknown,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.pass(3_000);
    assert_eq!(shard.region_of(id), Some(EAST));
    assert!(shard.is_settled());
    assert_eq!(shard.core.counters().handoffs_lost, 1);
}

#[test]
fn a_character_can_go_on_before_its_first_handoff_is_told() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|message| match message {
        ToSim::HandoffAccept { generation: 3, .. } => Fate::Kept,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.pass(100);
    shard.hand_over(id, WEST);
    assert_eq!(shard.region_of(id), Some(WEST));
    shard.release_messages();
    shard.pass(5_000);
    assert_eq!(shard.region_of(id), Some(WEST));
    assert!(shard.is_settled());
}

#[test]
fn an_owner_without_the_region_forwards_until_somebody_has_it() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    let mut was_sealed = false;
    shard.requests_are(move |request| {
        let is_seal = matches!(request, Request::CharacterSeal { .. }) && !was_sealed;
        was_sealed |= is_seal;
        if is_seal { Fate::Kept } else { Fate::Done }
    });
    shard.hand_over(id, EAST);
    // Between claim and admission both regions go.
    let east = shard.core.slots[1].region.take();
    let west = shard.core.slots[0].region.take();
    shard.release_requests();
    assert_eq!(shard.region_of(id), None);
    shard.order(ANNA, 1, 1, look_around());
    shard.pass(1_000);
    assert_eq!(shard.core.outgoing.len(), 1, "it is owned, and looks on");
    shard.core.slots[0].region = west;
    shard.pass(400);
    assert_eq!(shard.region_of(id), Some(WEST));
    assert_eq!(shard.last_order_of(id), Some(1));
    shard.core.slots[1].region = east;
}

#[test]
fn whoever_attacks_over_the_border_fights_in_that_battle() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    let target = Target::Entity(EntityId::mob(EAST, 0));
    shard.order(ANNA, 1, 1, Order::Attack { target });
    assert_eq!(shard.region_of(id), Some(EAST));
    assert_eq!(
        shard.last_order_of(id),
        Some(1),
        "and its order is played there"
    );
    assert_eq!(shard.core.counters().pins, 1);
}

/// After a crash orders are missing that were applied and not saved. Whoever attacked over a border then was sent to and
/// fro for ever: there its order waited for those before it, and here it was sent there.
#[test]
fn whoever_attacks_over_the_border_does_not_wait_there_for_orders_that_are_lost() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.order(ANNA, 1, 1, look_around());
    let target = Target::Entity(EntityId::mob(EAST, 0));
    shard.order(ANNA, 1, 9, Order::Attack { target });
    assert_eq!(shard.region_of(id), Some(EAST));
    assert_eq!(shard.last_order_of(id), Some(9));
}

#[test]
fn a_detach_follows_the_character() {
    for (logout, is_left) in [(false, false), (true, true)] {
        let mut shard = Shard::running();
        let id = shard.login_at_border(ANNA);
        shard.requests_are(|request| {
            if is_character_claim(request) {
                Fate::Kept
            } else {
                Fate::Done
            }
        });
        shard.hand_over(id, EAST);
        shard.detach(ANNA, 1, logout);
        shard.requests_are(|_| Fate::Done);
        shard.release_requests();
        assert_eq!(shard.region_of(id).is_none(), is_left);
        shard.pass(31_000);
        assert_eq!(shard.region_of(id), None, "it lingered long enough");
    }
}

/// Goes red when the destination does not look at its own link to the gateway.
#[test]
fn nobody_is_taken_over_of_whom_its_gateway_would_not_hear() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.messages_are(|_| Fate::Kept);
    shard.hand_over(id, EAST);
    shard.input(Input::Linked { nodes: vec![] });
    shard.messages_are(|_| Fate::Done);
    shard.release_messages();
    assert_eq!(shard.core.counters().offers_refused, 1);
    assert_eq!(shard.region_of(id), Some(WEST), "it is taken back");
    shard.pass(31_000);
    assert_eq!(shard.region_of(id), None, "and lingers there");
}

/// Goes red when the source tells the destination that its own link to the gateway is gone: a gateway that is still linked
/// to the destination believes its player attached there, and does not notice that it lingers, and leaves.
#[test]
fn a_link_that_the_source_loses_is_no_business_of_the_destination() {
    for is_linked in [true, false] {
        let mut shard = Shard::running();
        let id = shard.login_at_border(ANNA);
        shard.requests_are(|request| match is_character_claim(request) {
            true => Fate::Kept,
            false => Fate::Done,
        });
        shard.hand_over(id, EAST);
        let node = shard.gateway.node.clone();
        shard.input(Input::PeerLost { node: node.clone() });
        let nodes = is_linked.then_some(node).into_iter().collect();
        shard.input(Input::Linked { nodes });
        shard.requests_are(|_| Fate::Done);
        shard.release_requests();
        assert_eq!(shard.region_of(id), Some(EAST));
        shard.pass(31_000);
        assert_eq!(shard.region_of(id).is_some(), is_linked);
    }
}

#[test]
fn who_lingers_goes_on_lingering_elsewhere() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.detach(ANNA, 1, false);
    shard.pass(10_000);
    shard.hand_over(id, EAST);
    shard.pass(19_000);
    assert_eq!(shard.region_of(id), Some(EAST));
    shard.pass(2_000);
    assert_eq!(shard.region_of(id), None);
}

#[test]
fn a_stop_in_the_middle_of_a_handoff_loses_nobody() {
    let mut shard = Shard::running();
    let id = shard.login_at_border(ANNA);
    shard.order(ANNA, 1, 1, look_around());
    shard.messages_are(|message| match message {
        ToSim::HandoffOffer(_) => Fate::Kept,
        _ => Fate::Done,
    });
    shard.hand_over(id, EAST);
    shard.stop();
    shard.pass(100);
    assert!(!shard.stopped);
    shard.release_messages();
    shard.pass(1_000);
    assert!(shard.stopped);
    assert_eq!(shard.owner(id).and_then(|row| row.holder), None);
    assert_eq!(shard.row(id).map(|row| row.last_order), Some(1));
}

/// An attach and an offer of the same character at one node. Goes red when the offer leaves the attach's claim under way:
/// that finds its own node in the row, takes it for not held, and pushes out what came with the offer.
#[test]
fn an_offer_ends_an_attach_that_is_under_way() {
    let mut shard = Shard::running();
    let id = shard.put_character(ANNA, open_tile(&shard));
    let region = shard.core.config.world.region_at(open_tile(&shard));
    shard.requests_are(|request| match is_character_claim(request) {
        true => Fate::Kept,
        false => Fate::Done,
    });
    shard.attach(ANNA, 1, None, 0);
    assert_eq!(shard.kept_requests.len(), 1, "the attach claims");

    // Another node was faster, and plays and offers it by now.
    let source = holder("two", 5);
    let mut character = shard.row(id).expect("it is stored");
    character.generation = 2;
    character.last_order = 9;
    let taken = Request::ClaimCas {
        right: Right::Character(id),
        seen: shard.owner(id).as_ref().map(ClaimRow::seen),
        to: ClaimRow {
            holder: Some(source.clone()),
            number: 2,
            nonce: Nonce(2),
        },
    };
    shard.tables.apply(0, &taken).expect("the tables take it");
    shard.send(ToSim::HandoffOffer(Box::new(HandoffOffer {
        char_id: id,
        generation: 2,
        source: source.clone(),
        region,
        character,
        attach: None,
        linger_left_ms: 30_000,
        walk: None,
        held: Vec::new(),
        cause: HandoffCause::Border,
        from: None,
        out_ms: 0,
    })));
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotNow]);
    // The claim of the offer first, then the one of the attach.
    shard.kept_requests.rotate_left(1);
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    shard.pass(500);
    assert_eq!(shard.generation_of(id), Some(3));
    assert_eq!(shard.last_order_of(id), Some(9), "as it was offered");
    assert_eq!(shard.owner(id).map(|row| row.number), Some(3));
    assert!(shard.is_settled());

    shard.attach(ANNA, 2, None, 0);
    assert!(shard.attached().is_some(), "the next attach finds it");
}

fn open_tile(shard: &Shard) -> Pos {
    let world = shard.core.config.world.clone();
    (0..64)
        .map(|y| Pos::new(63, y))
        .find(|&pos| is_open(world.clone(), pos))
        .expect("some tile is open")
}
