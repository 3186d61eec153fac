use uo_proto::{Action, Class, Limits, RUNTIME_OBJECT_BIT, RegionId};

use super::*;

const ME: u64 = 1 << 50;

fn enter(id: u64, x: u16, y: u16) -> EntityEnter {
    EntityEnter {
        info: EntityInfo {
            kind: EntityKind::Player,
            class: Class::Mage,
            name: id.to_string(),
            look: 0,
            hits_max: 200,
        },
        state: state(id, x, y),
    }
}

fn state(id: u64, x: u16, y: u16) -> EntityState {
    EntityState {
        id: EntityId(id),
        x,
        y,
        heading: Dir::S,
        hits: 100,
        action: Action::Idle,
        target: None,
    }
}

fn object(key: ObjectKey, x: u16, y: u16) -> ObjectState {
    ObjectState {
        key,
        kind: ObjectKind::Stone,
        x,
        y,
        edge: None,
        hits: 10,
        active: false,
        gone: false,
    }
}

/// In the world, with the own entity and one other in view.
fn world() -> LocalWorld {
    let mut world = LocalWorld::default();
    let welcome = Welcome {
        token: "t".into(),
        char_id: CharId(ME),
        gateways: Vec::new(),
        last_order: 0,
        map: MapInfo { seed: 3, size: 128 },
        tick_hz: 20,
        region_size: 64,
        aoi_radius: 18,
        x: 60,
        y: 60,
        spells: Vec::new(),
        limits: Limits {
            messages_per_s: 40,
            messages_burst: 120,
            message_bytes: 65_536,
            say_bytes: 256,
        },
    };
    world
        .apply(&Event::Welcomed {
            welcome: Box::new(welcome),
            resumed: false,
        })
        .unwrap();
    assert_eq!(world.pos(), Pos::new(60, 60));
    let snapshot = Snapshot {
        entities: vec![enter(ME, 61, 60), enter(7, 50, 50)],
        objects: Vec::new(),
    };
    take(&mut world, ServerMsg::Snapshot(snapshot)).unwrap();
    world
}

fn take(world: &mut LocalWorld, message: ServerMsg) -> Result<(), ViewError> {
    world.apply(&Event::Message(message))
}

fn ids(world: &LocalWorld) -> Vec<u64> {
    world.entities().map(|entity| entity.state.id.0).collect()
}

#[test]
fn deltas_change_the_view_and_the_own_place() {
    let mut world = world();
    assert_eq!(ids(&world), [7, ME]);
    let delta = Delta {
        tick: 5,
        ack: 3,
        enter: vec![enter(9, 70, 60)],
        update: vec![state(ME, 62, 61)],
        leave: vec![EntityId(7)],
        objects: Vec::new(),
    };
    take(&mut world, ServerMsg::Delta(delta)).unwrap();
    assert_eq!(ids(&world), [9, ME]);
    assert_eq!(world.pos(), Pos::new(62, 61));
    assert_eq!((world.tick(), world.ack()), (5, 3));
    assert_eq!(world.others().count(), 1);
}

#[test]
fn who_changes_region_may_leave_and_enter_in_one_delta() {
    let mut world = world();
    let delta = Delta {
        tick: 1,
        enter: vec![enter(7, 51, 50)],
        leave: vec![EntityId(7)],
        ..Delta::default()
    };
    take(&mut world, ServerMsg::Delta(delta)).unwrap();
    assert_eq!(ids(&world), [7, ME]);
}

#[test]
fn a_delta_that_does_not_fit_is_told_and_applied_as_far_as_it_goes() {
    let mut world = world();
    let delta = |tick, leave: &[u64], update: &[u64]| {
        ServerMsg::Delta(Delta {
            tick,
            leave: leave.iter().copied().map(EntityId).collect(),
            update: update.iter().map(|&id| state(id, 1, 1)).collect(),
            ..Delta::default()
        })
    };
    let unknown = EntityId(8);
    assert_eq!(
        take(&mut world, delta(2, &[], &[8, 7])),
        Err(ViewError::UnknownUpdate(unknown))
    );
    assert_eq!(world.entity(EntityId(7)).unwrap().state.x, 1);
    assert_eq!(
        take(&mut world, delta(3, &[8], &[])),
        Err(ViewError::UnknownLeave(unknown))
    );
    assert_eq!(
        take(&mut world, delta(3, &[], &[])),
        Err(ViewError::OldTick { tick: 3, last: 3 })
    );
}

#[test]
fn told_objects_hide_generated_ones() {
    let mut world = world();
    let generated = world.objects_near(Pos::new(64, 64), 40);
    let tree = generated
        .iter()
        .find(|object| object.kind == ObjectKind::Tree)
        .expect("a wood somewhere in the middle of four regions");
    let runtime = ObjectKey::new(RegionId(0), RUNTIME_OBJECT_BIT | 1);
    let felled = ObjectState {
        gone: true,
        ..*tree
    };
    let delta = Delta {
        tick: 1,
        objects: vec![felled, object(runtime, 62, 62)],
        ..Delta::default()
    };
    take(&mut world, ServerMsg::Delta(delta)).unwrap();
    assert_eq!(world.object(tree.key), None);
    let stone = world.nearest_object(ObjectKind::Stone, 10).unwrap();
    assert_eq!(stone.key, runtime);
    assert_eq!(
        world.objects_near(Pos::new(64, 64), 40).len(),
        generated.len(),
        "one fewer and one more"
    );
}

#[test]
fn one_stands_beside_a_thing_on_open_ground() {
    let mut world = world();
    let wood = world.objects_near(Pos::new(64, 64), 40);
    let (tree, beside) = wood
        .iter()
        .filter(|object| object.kind == ObjectKind::Tree)
        .find_map(|tree| Some((tree.pos(), world.tile_beside(tree.pos())?)))
        .expect("a tree that can be reached");
    assert_eq!(beside.distance(tree), 1);
    assert!(world.is_open(beside));
    let stone = object(
        ObjectKey::new(RegionId(0), RUNTIME_OBJECT_BIT | 2),
        beside.x,
        beside.y,
    );
    let delta = Delta {
        tick: 1,
        objects: vec![stone],
        ..Delta::default()
    };
    take(&mut world, ServerMsg::Delta(delta)).unwrap();
    assert_ne!(world.tile_beside(tree), Some(beside), "it is taken now");
}

#[test]
fn a_snapshot_replaces_whatever_was_believed() {
    let mut world = world();
    let snapshot = Snapshot {
        entities: vec![enter(ME, 20, 20)],
        objects: Vec::new(),
    };
    take(&mut world, ServerMsg::Snapshot(snapshot)).unwrap();
    assert_eq!(ids(&world), [ME]);
    assert_eq!(world.pos(), Pos::new(20, 20));
}

#[test]
fn far_objects_are_forgotten_once_there_are_many() {
    let mut world = world();
    let far =
        (0..OBJECTS_KEPT as u32).map(|index| object(ObjectKey::new(RegionId(0), index), 0, 127));
    let near = object(ObjectKey::new(RegionId(1), 0), 61, 60);
    let delta = Delta {
        tick: 1,
        objects: far.chain([near]).collect(),
        ..Delta::default()
    };
    take(&mut world, ServerMsg::Delta(delta)).unwrap();
    assert_eq!(
        world.objects.keys().copied().collect::<Vec<_>>(),
        [near.key]
    );
}
