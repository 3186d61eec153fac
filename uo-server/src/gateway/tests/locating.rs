//! From a character to its owner, with everything that goes wrong on the way.

use uo_proto::{Order, RegionId, ServerMsg, WorldStatus};

use super::rig::{Rig, holder};
use crate::gateway::core::{Effect, Input};
use crate::identity::{Holder, Nonce};
use crate::limits::{ATTACH_WAIT_MS, MOVE_CONFIRM_MS};
use crate::peer::message::{AttachRefusal, Leases};
use crate::peer::{Message, ToGateway, ToSim};
use crate::store::ClaimRow;

fn worlds(messages: &[ServerMsg]) -> Vec<WorldStatus> {
    let world = |message: &ServerMsg| match message {
        ServerMsg::ServerStatus(status) => Some(status.world),
        _ => None,
    };
    messages.iter().filter_map(world).collect()
}

fn attaches(rig: &Rig) -> usize {
    let is_attach = |message: &&ToSim| matches!(message, ToSim::Attach(_));
    rig.sent.iter().filter(is_attach).count()
}

impl Rig {
    /// Nobody holds any region.
    pub fn release_regions(&mut self) {
        self.leases.values_mut().for_each(|row| row.holder = None);
    }

    pub fn leases_hint(&mut self, epoch: u64) {
        let told = |&region: &RegionId| (region, epoch, Some(self.sim.clone()));
        let changes = self.leases.keys().map(told).collect();
        self.peer(ToGateway::Leases(Leases { changes }));
    }
}

#[test]
fn a_region_without_a_holder_is_waited_for_however_long_it_takes() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.release_regions();
    let conn = rig.login("ann");
    rig.pass(60_000);
    assert_eq!(rig.client(conn).closed, None);
    assert_eq!(worlds(&rig.client(conn).take_got()), [WorldStatus::Moving]);
    assert_eq!(attaches(&rig), 0);
    // A hint is enough; it comes before the next try.
    rig.leases_hint(2);
    assert_eq!(attaches(&rig), 1);
    rig.tick();
    assert!(matches!(rig.client(conn).got[0], ServerMsg::Welcome(_)));
    assert_eq!(worlds(&rig.client(conn).got), [WorldStatus::Ok]);
}

#[test]
fn a_holder_that_only_the_store_knows_of_is_found_by_trying_again() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let held = rig.leases.clone();
    rig.release_regions();
    let conn = rig.login("ann");
    rig.pass(5_000);
    rig.leases = held;
    rig.leases.values_mut().for_each(|row| row.number += 1);
    rig.pass(1_500);
    rig.tick();
    rig.tick();
    assert!(!rig.client(conn).token.is_empty());
}

#[test]
fn a_live_owner_is_attached_to_and_a_dead_one_is_not() {
    for (boot, attaches_at_once) in [(1, true), (77, false)] {
        let mut rig = Rig::new();
        let ann = rig.place("ann", 100, 100);
        rig.release_regions();
        let row = ClaimRow {
            holder: Some(holder("sim-1", boot)),
            number: 4,
            nonce: Nonce(0),
        };
        rig.owners.insert(ann.character().unwrap(), row);
        rig.login("ann");
        assert_eq!(attaches(&rig) == 1, attaches_at_once);
    }
}

#[test]
fn refusals_are_followed_and_then_waited_out() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let elsewhere = AttachRefusal::Elsewhere(rig.sim.clone());
    rig.refusals = vec![
        elsewhere.clone(),
        AttachRefusal::NotHeld(RegionId(5)),
        elsewhere,
    ];
    let conn = rig.login("ann");
    assert_eq!(
        attaches(&rig),
        4,
        "each pointed somewhere, so nothing was waited for"
    );
    rig.tick();
    assert!(!rig.client(conn).token.is_empty());

    rig.place("bob", 100, 100);
    rig.refusals = vec![AttachRefusal::NotNow];
    rig.sent.clear();
    let conn = rig.login("bob");
    assert_eq!(attaches(&rig), 1);
    assert_eq!(worlds(&rig.client(conn).got), [WorldStatus::Moving]);
    rig.pass(50);
    assert_eq!(attaches(&rig), 2);
}

#[test]
fn two_sims_that_point_at_each_other_do_not_spin() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.refusals = vec![AttachRefusal::Elsewhere(rig.sim.clone()); 1_000];
    rig.login("ann");
    rig.pass(10_000);
    assert!(attaches(&rig) < 150, "{}", attaches(&rig));
}

#[test]
fn an_attach_without_an_answer_is_given_up_and_its_late_answer_ignored() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    rig.answers = false;
    let conn = rig.login("ann");
    rig.pass(ATTACH_WAIT_MS + 60);
    assert_eq!(attaches(&rig), 2);
    let body = rig.bodies[&ann].clone();
    rig.peer(ToGateway::Attached(crate::peer::message::Attached {
        char_id: ann.character().unwrap(),
        attach: 1,
        generation: 1,
        session: 1,
        region: body.region,
        pos: body.state.pos(),
        last_order: 0,
    }));
    assert!(rig.client(conn).token.is_empty());
}

/// The owner answers an attach and hands the character on; by a slow link its answer comes behind the new owner's word. The
/// session went back to the older generation with it, and the player was told `saved` 8 and then `saved` 2.
#[test]
fn an_answer_that_comes_behind_the_next_owner_is_no_way_back() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let char_id = ann.character().unwrap();
    rig.answers = false;
    let conn = rig.login("ann");
    rig.answers = true;
    rig.body(ann).number = 4;
    let region = rig.bodies[&ann].region;
    rig.peer(ToGateway::Moved {
        char_id,
        generation: 4,
        region,
        owner: rig.sim.clone(),
        flight: None,
    });
    rig.peer(ToGateway::Attached(crate::peer::message::Attached {
        char_id,
        attach: 1,
        generation: 3,
        session: 1,
        region,
        pos: rig.bodies[&ann].state.pos(),
        last_order: 0,
    }));
    assert_eq!(attaches(&rig), 2, "the owner of now is asked");
    rig.tick();
    assert!(!rig.client(conn).token.is_empty());
    let saved = |generation, seq| ToGateway::Saved {
        char_id,
        generation,
        seq,
        inventory: 1,
    };
    rig.peer(saved(4, 8));
    rig.peer(saved(3, 2));
    rig.tick();
    let said = rig.client(conn).take_got();
    let said = said.iter().filter_map(|message| match message {
        ServerMsg::Saved(saved) => Some(saved.seq),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), [8]);
}

#[test]
fn a_lost_sim_is_told_and_its_orders_are_sent_again() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    for seq in 1..=3 {
        rig.order(conn, seq, Order::Stop);
    }
    rig.apply_order(ann, 1);
    rig.tick();
    rig.client(conn).take_got();
    rig.sent.clear();
    rig.input(Input::PeerLost {
        node: rig.sim.node.clone(),
    });
    assert_eq!(worlds(&rig.client(conn).take_got()), [WorldStatus::Moving]);
    rig.order(conn, 4, Order::Stop);
    rig.pass(3_000);
    assert_eq!(rig.sent, [], "nobody is there");
    rig.watched.clear();
    // Its successor has what the checkpoint had: order 2 was applied, 3 was not.
    rig.body(ann).ack = 2;
    rig.input(Input::Members {
        alive: vec![rig.sim.clone()],
    });
    rig.pass(60);
    rig.tick();
    assert_eq!(rig.orders_sent(), [3, 4]);
    assert_eq!(worlds(&rig.client(conn).take_got()), [WorldStatus::Ok]);
    assert_eq!(rig.client(conn).closed, None);
}

// Goes red when `send_orders` does not ask whether the owner stands still.
#[test]
fn a_world_that_stands_still_keeps_its_players_and_their_orders() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).take_got();
    rig.peer(ToGateway::Frozen { is_frozen: true });
    rig.sent.clear();
    rig.order(conn, 1, Order::Stop);
    rig.pass(60_000);
    assert_eq!(rig.client(conn).closed, None);
    assert_eq!(worlds(&rig.client(conn).take_got()), [WorldStatus::Frozen]);
    assert!(rig.orders_sent().is_empty());
    rig.peer(ToGateway::Frozen { is_frozen: false });
    assert_eq!(worlds(&rig.client(conn).take_got()), [WorldStatus::Ok]);
    assert_eq!(rig.orders_sent(), [1]);
}

// Goes red when a freeze is remembered by the name of the node: a boot that dies fenced never says that it goes on.
#[test]
fn a_boot_does_not_stand_still_because_the_one_before_it_did() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).take_got();
    rig.sent.clear();
    rig.input(Input::Peer {
        from: holder("sim-1", 99),
        message: ToGateway::Frozen { is_frozen: true },
    });
    rig.order(conn, 1, Order::Stop);
    assert_eq!(rig.orders_sent(), [1]);
    assert!(worlds(&rig.client(conn).take_got()).is_empty());
}

#[test]
fn a_character_that_its_owner_lost_is_looked_for() {
    let mut rig = Rig::new();
    let id = rig.place("ann", 100, 100);
    rig.enter("ann");
    let before = attaches(&rig);
    let char_id = id.character().expect("a character");
    let lost = |generation| ToGateway::Lost {
        char_id,
        generation,
    };
    rig.peer(lost(0));
    rig.pass(2_000);
    assert_eq!(attaches(&rig), before, "an older generation says nothing");
    rig.peer(lost(u64::MAX));
    rig.pass(2_000);
    assert_eq!(attaches(&rig), before + 1);
}

/// Goes red when the word of the former owner is enough: the new one, which had no link to here when the character came,
/// lets it linger.
#[test]
fn a_new_owner_that_does_not_speak_for_itself_is_asked() {
    let mut rig = Rig::new();
    let id = rig.place("ann", 100, 100);
    rig.enter("ann");
    let char_id = id.character().expect("a character");
    let other = holder("sim-2", 9);
    let alive = vec![rig.sim.clone(), other.clone()];
    rig.input(Input::Members { alive });
    let moved = |generation| ToGateway::Moved {
        char_id,
        generation,
        region: RegionId(0),
        owner: other.clone(),
        flight: None,
    };
    let mut is_asked = |from: &Holder, generation, after: u64| {
        let (from, message) = (from.clone(), moved(generation));
        let mut effects = Vec::new();
        let said = Input::Peer { from, message };
        rig.core.handle(rig.now, said, &mut effects);
        rig.now += after;
        rig.core.handle(rig.now, Input::Timer, &mut effects);
        let attach = |effect: &Effect| match effect {
            Effect::Send { to, message } => {
                *to == other.node && matches!(message, Message::ToSim(ToSim::Attach(_)))
            }
            _ => false,
        };
        effects.iter().any(attach)
    };
    let former = rig.sim.clone();
    assert!(!is_asked(&other, 2, 1_000), "it has said so itself");
    assert!(!is_asked(&former, 2, 1_000), "and before");
    assert!(!is_asked(&former, 3, MOVE_CONFIRM_MS - 1), "it may still");
    assert!(!is_asked(&other, 3, 1_000), "and it does");
    assert!(is_asked(&former, 4, MOVE_CONFIRM_MS));
}

#[test]
fn in_a_world_that_runs_by_demand_somebody_says_what_is_needed() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.release_regions();
    rig.core.demand_driven = true;
    rig.login("ann");
    let region = rig.world.region_at(uo_proto::Pos::new(100, 100));
    assert!(rig.demanded.contains(&region));
    assert!(rig.demanded.len() > 1, "and those around it");
}
