use uo_proto::{Inventory, InventoryMsg, Respawned};

use super::*;
use crate::bots::scene::{ME, Scene, entity};

const HERE: Pos = Pos::new(100, 100);

fn scene(class: Class) -> Scene<Combat> {
    Scene::new(Combat::new(3), class, HERE)
}

fn attack(id: EntityId) -> Order {
    Order::Attack {
        target: Target::Entity(id),
    }
}

#[test]
fn it_attacks_the_nearest_bandit_and_leaves_peaceful_players_alone() {
    let mut scene = scene(Class::Warrior);
    scene.enter([
        entity(EntityId(1), Class::Bandit, Pos::new(110, 100)),
        entity(EntityId(2), Class::Bandit, Pos::new(105, 100)),
        entity(EntityId(1 << 45), Class::Archer, Pos::new(101, 100)),
    ]);
    assert_eq!(scene.wake(), [attack(EntityId(2))]);
    scene.change(ME, |me| me.target = Some(EntityId(2)));
    assert_eq!(scene.wake(), []);
    scene.change(EntityId(2), |bandit| bandit.hits = 0);
    assert_eq!(scene.wake(), [], "it sees that it is dead");
    let mut next = scene.wake();
    while next.is_empty() {
        next = scene.wake();
    }
    assert_eq!(next, [attack(EntityId(1))]);
}

#[test]
fn whoever_attacks_it_comes_first() {
    let mut scene = scene(Class::Archer);
    let rival = EntityId(1 << 45);
    scene.enter([
        entity(EntityId(2), Class::Bandit, Pos::new(102, 100)),
        entity(rival, Class::Archer, Pos::new(110, 100)),
    ]);
    scene.change(rival, |rival| rival.target = Some(ME));
    assert_eq!(scene.wake(), [attack(rival)]);
}

#[test]
fn it_orders_again_what_was_broken_off() {
    let mut scene = scene(Class::Archer);
    scene.enter([entity(EntityId(2), Class::Bandit, Pos::new(105, 100))]);
    assert_eq!(scene.wake(), [attack(EntityId(2))]);
    let again: Vec<_> = (0..5).flat_map(|_| scene.wake()).collect();
    assert_eq!(again, [attack(EntityId(2))]);
}

#[test]
fn it_drinks_when_hurt_while_there_is_something_to_drink() {
    let mut scene = scene(Class::Warrior);
    let mut inventory = Inventory::default();
    inventory.put(ItemKind::Potion, 1);
    scene.tell(ServerMsg::Inventory(InventoryMsg {
        private: 1,
        inventory,
    }));
    scene.change(ME, |me| me.hits = 50);
    assert_eq!(scene.wake(), [Order::Potion]);
    scene.tell(ServerMsg::Inventory(InventoryMsg {
        private: 2,
        inventory: Inventory::default(),
    }));
    scene.now_ms += POTION_MS;
    assert!(!scene.wake().contains(&Order::Potion));
}

#[test]
fn a_mage_casts() {
    let mut scene = scene(Class::Mage);
    scene.enter([entity(EntityId(2), Class::Bandit, Pos::new(105, 100))]);
    let orders = scene.wake();
    assert_eq!(orders[0], attack(EntityId(2)));
    assert!(matches!(orders[1], Order::Cast { .. }), "{orders:?}");
}

#[test]
fn alone_it_walks_to_a_camp() {
    let mut scene = scene(Class::Warrior);
    let gates = scene
        .world
        .content()
        .unwrap()
        .camp_gates_near(HERE, CAMP_RADIUS);
    assert!(!gates.is_empty());
    let orders: Vec<_> = (0..20).flat_map(|_| scene.wake()).collect();
    let walk = orders.iter().find_map(|order| match order {
        Order::WalkTo { x, y } => Some(Pos::new(*x, *y)),
        _ => None,
    });
    assert!(gates.contains(&walk.unwrap()), "{orders:?}");
}

#[test]
fn the_dead_wait_and_go_on_when_they_are_back() {
    let mut scene = scene(Class::Warrior);
    scene.enter([entity(EntityId(2), Class::Bandit, Pos::new(105, 100))]);
    scene.change(ME, |me| me.hits = 0);
    for _ in 0..5 {
        assert_eq!(scene.wake(), []);
    }
    scene.change(ME, |me| me.hits = 200);
    let (private, x, y) = (1, 100, 100);
    scene.tell(ServerMsg::Respawned(Respawned { private, x, y }));
    assert_eq!(scene.wake(), [attack(EntityId(2))]);
}

#[test]
fn the_same_seed_plays_the_same() {
    let play = || {
        let mut scene = scene(Class::Mage);
        scene.enter([entity(EntityId(2), Class::Bandit, Pos::new(105, 100))]);
        (0..50).map(|_| scene.wake()).collect::<Vec<_>>()
    };
    assert_eq!(play(), play());
}
