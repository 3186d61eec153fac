//! Small worlds for tests.

use uo_proto::*;
use uo_sdk::{Event, LocalWorld};

pub const SEED: u64 = 7;
pub const ANN: EntityId = EntityId(1 << 60);
pub const BANDIT: EntityId = EntityId(1);
pub const DOOR: ObjectKey = ObjectKey(1);

/// Ann alone at `pos`.
pub fn at(pos: Pos) -> LocalWorld {
    world(pos, Vec::new(), Vec::new())
}

/// Ann at (500, 400), facing east, a closed door before her and behind it a bandit whom she fights.
pub fn with_bandit_two_east() -> LocalWorld {
    let bandit = enter(BANDIT, Pos::new(502, 400), Class::Bandit, "Bandit", 60);
    let door = ObjectState {
        key: DOOR,
        kind: ObjectKind::Door,
        x: 501,
        y: 400,
        edge: Some(Edge::West),
        hits: 100,
        active: false,
        gone: false,
    };
    world(Pos::new(500, 400), vec![bandit], vec![door])
}

/// One spell of each kind of target.
pub fn spells() -> Vec<SpellInfo> {
    let row = |spell, targets_entity| SpellInfo {
        spell,
        cast_ms: 1_000,
        cooldown_ms: 2_000,
        range: 9,
        radius: 0,
        targets_entity,
        targets_tile: !targets_entity,
    };
    vec![
        row(Spell::Bolt, true),
        row(Spell::Fireball, false),
        row(Spell::Heal, true),
    ]
}

fn world(pos: Pos, others: Vec<EntityEnter>, objects: Vec<ObjectState>) -> LocalWorld {
    let mut ann = enter(ANN, pos, Class::Mage, "Ann", 90);
    ann.info.hits_max = 100;
    ann.state.target = others.first().map(|other| other.state.id);
    let mut entities = vec![ann];
    entities.extend(others);
    let welcome = Welcome {
        token: "token".into(),
        char_id: CharId(ANN.0),
        gateways: Vec::new(),
        last_order: 0,
        map: MapInfo {
            seed: SEED,
            size: 1_024,
        },
        tick_hz: TICK_HZ,
        region_size: REGION_SIZE,
        aoi_radius: AOI_RADIUS,
        x: pos.x,
        y: pos.y,
        spells: spells(),
        limits: Limits {
            messages_per_s: 40,
            messages_burst: 120,
            message_bytes: 65_536,
            say_bytes: 256,
        },
    };
    let mut world = LocalWorld::default();
    let welcomed = Event::Welcomed {
        welcome: Box::new(welcome),
        resumed: false,
    };
    let snapshot = ServerMsg::Snapshot(Snapshot { entities, objects });
    for event in [welcomed, Event::Message(snapshot)] {
        world.apply(&event).expect("a world that fits");
    }
    world
}

fn enter(id: EntityId, pos: Pos, class: Class, name: &str, hits: u16) -> EntityEnter {
    EntityEnter {
        info: EntityInfo {
            kind: if id.0 < MOB_ID_BOUND {
                EntityKind::Mob
            } else {
                EntityKind::Player
            },
            class,
            name: name.into(),
            look: 0,
            hits_max: hits,
        },
        state: EntityState {
            id,
            x: pos.x,
            y: pos.y,
            heading: Dir::E,
            hits,
            action: Action::Idle,
            target: None,
        },
    }
}
