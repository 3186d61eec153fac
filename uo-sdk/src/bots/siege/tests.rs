use uo_proto::{Delta, Inventory, InventoryMsg, ObjectState, Said, Speech};

use super::*;
use crate::bots::scene::{ME, Scene, entity};

const FRIEND: EntityId = EntityId(1 << 45);
const BANDIT: EntityId = EntityId(5);

/// A besieger of this class on its way to the first camp.
fn scene(class: Class) -> Scene<Siege> {
    Scene::new(Siege::new(3), class, Pos::new(100, 100))
}

fn first_camp(scene: &Scene<Siege>) -> Camp {
    meet::camps(&scene.world)[0]
}

/// The bot stands there now.
fn put(scene: &mut Scene<Siege>, pos: Pos) {
    if scene.world.me().is_none() {
        return;
    }
    scene.change(ME, |me| (me.x, me.y) = (pos.x, pos.y));
}

/// The bot has come to the muster before its camp; what it says.
fn mustered(class: Class) -> (Scene<Siege>, Vec<Order>) {
    let mut scene = scene(class);
    scene.wake();
    let place = muster(&first_camp(&scene), &scene.world);
    put(&mut scene, place);
    let orders = scene.wake();
    (scene, orders)
}

fn says(scene: &mut Scene<Siege>, who: EntityId, text: &str) {
    scene.tell(ServerMsg::Said(Said {
        seq: 1,
        at_ms: 0,
        speech: Speech {
            char_id: who.character().unwrap(),
            name: "x".into(),
            text: text.into(),
        },
    }));
}

fn word(text: &str) -> Order {
    Order::Say { text: text.into() }
}

fn owns(scene: &mut Scene<Siege>, item: ItemKind, count: u16) {
    let mut inventory = Inventory::default();
    if count > 0 {
        inventory.put(item, count);
    }
    let private = 1;
    scene.tell(ServerMsg::Inventory(InventoryMsg { private, inventory }));
}

fn attacked(orders: &[Order]) -> Option<ObjectKey> {
    orders.iter().find_map(|order| match order {
        Order::Attack {
            target: Target::Object(key),
        } => Some(*key),
        _ => None,
    })
}

#[test]
fn it_marches_to_a_camp_and_says_that_it_is_there() {
    let mut scene = scene(Class::Archer);
    let goal = muster(&first_camp(&scene), &scene.world);
    let (x, y) = (goal.x, goal.y);
    assert_eq!(scene.wake(), [Order::WalkTo { x, y }]);
    let (mut scene, orders) = mustered(Class::Archer);
    assert_eq!(orders, [word(HERE)]);
    assert_eq!(scene.wake(), [], "it waits for others");
}

#[test]
fn it_storms_with_company_on_a_call_or_when_nobody_comes() {
    let (mut scene, _) = mustered(Class::Archer);
    says(&mut scene, FRIEND, HERE);
    assert_eq!(scene.wake(), [], "one is not enough");
    says(&mut scene, EntityId(1 << 46), HERE);
    assert!(scene.wake().contains(&word(CHARGE)));

    let (mut scene, _) = mustered(Class::Archer);
    says(&mut scene, FRIEND, CHARGE);
    assert!(scene.wake().contains(&word(CHARGE)));

    let (mut scene, _) = mustered(Class::Archer);
    let began_ms = scene.now_ms;
    while !scene.wake().contains(&word(CHARGE)) {}
    assert!(scene.now_ms - began_ms >= MUSTER_MS.0);
}

#[test]
fn it_plants_its_keg_beside_the_gate_and_runs() {
    let (mut scene, _) = mustered(Class::Warrior);
    owns(&mut scene, ItemKind::Keg, 1);
    says(&mut scene, FRIEND, CHARGE);
    let gate = first_camp(&scene).gate;
    let orders = scene.wake();
    let item = ItemKind::Axe;
    assert!(orders.contains(&Order::Equip { item }), "{orders:?}");
    assert!(orders.contains(&Order::WalkTo {
        x: gate.x,
        y: gate.y
    }));
    put(&mut scene, gate);
    let orders = scene.wake();
    assert!(
        matches!(orders[..], [Order::Plant { x, y }, Order::WalkTo { .. }]
            if Pos::new(x, y).distance(gate) == 1),
        "{orders:?}"
    );
    owns(&mut scene, ItemKind::Keg, 0);
    // It waits for the bang, then it breaks what is left.
    let planted_ms = scene.now_ms;
    let mut orders = Vec::new();
    while attacked(&orders).is_none() {
        orders = scene.wake();
    }
    assert!(scene.now_ms >= planted_ms + KEG_MS);
}

#[test]
fn it_breaks_one_thing_after_the_other_and_goes_on_to_the_next_camp() {
    let (mut scene, _) = mustered(Class::Archer);
    owns(&mut scene, ItemKind::Keg, 0);
    says(&mut scene, FRIEND, CHARGE);
    let camp = first_camp(&scene);
    put(&mut scene, camp.gate);
    let mut broken = BTreeSet::new();
    let next = muster(&meet::camps(&scene.world)[1], &scene.world);
    for tick in 1_000.. {
        let orders = scene.wake();
        if let Some(key) = attacked(&orders) {
            assert!(broken.insert(key), "it is gone already");
            let object = scene.world.object(key).unwrap();
            assert!(camp.area.grown(1).contains(object.pos()));
            let gone = true;
            let objects = vec![ObjectState { gone, ..object }];
            scene.tell(ServerMsg::Delta(Delta {
                tick,
                objects,
                ..Delta::default()
            }));
        }
        let (x, y) = (next.x, next.y);
        if orders.contains(&Order::WalkTo { x, y }) {
            break;
        }
        assert!(tick < 2_000, "it comes to an end");
    }
    assert!(broken.len() > 20, "{}", broken.len());
}

#[test]
fn it_fights_whoever_attacks_it_and_goes_back_to_the_siege() {
    let (mut scene, _) = mustered(Class::Archer);
    owns(&mut scene, ItemKind::Keg, 0);
    says(&mut scene, FRIEND, CHARGE);
    let gate = first_camp(&scene).gate;
    put(&mut scene, gate);
    scene.wake();
    assert!(attacked(&scene.wake()).is_some());
    scene.tell(ServerMsg::Delta(Delta {
        tick: 5_000,
        enter: vec![entity(BANDIT, Class::Bandit, Pos::new(gate.x + 1, gate.y))],
        ..Delta::default()
    }));
    assert_eq!(scene.wake(), [], "it does not look at me");
    let target = |id| Order::Attack {
        target: Target::Entity(id),
    };
    let mut bandit = scene.world.entity(BANDIT).unwrap().state;
    bandit.target = Some(ME);
    let mut update = |scene: &mut Scene<Siege>, tick, hits| {
        bandit.hits = hits;
        scene.tell(ServerMsg::Delta(Delta {
            tick,
            update: vec![bandit],
            ..Delta::default()
        }));
    };
    update(&mut scene, 5_001, 60);
    assert_eq!(scene.wake(), [target(BANDIT)]);
    update(&mut scene, 5_002, 0);
    let orders = [scene.wake(), scene.wake()].concat();
    assert!(attacked(&orders).is_some(), "{orders:?}");
}
