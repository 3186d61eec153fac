//! A crowded battle with all sorts of objects, and random orders for it.

use uo_combat::table::{Scene, object_row, roster};
use uo_combat::*;
use uo_proto::*;

use super::{NEIGHBOUR, REGION};

pub const SIZE: u16 = 40;

/// The tests' own generator (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn pos(&mut self) -> Pos {
        Pos::new(
            self.below(SIZE.into()) as u16,
            self.below(SIZE.into()) as u16,
        )
    }
}

const KINDS: [ObjectKind; 12] = [
    ObjectKind::Tree,
    ObjectKind::Rock,
    ObjectKind::Bush,
    ObjectKind::Wall,
    ObjectKind::Wall,
    ObjectKind::Fence,
    ObjectKind::Door,
    ObjectKind::Crate,
    ObjectKind::Chest,
    ObjectKind::Keg,
    ObjectKind::Tent,
    ObjectKind::Campfire,
];

pub fn random_object(dice: &mut Dice, region: RegionId, index: u32, at: Pos) -> ObjectState {
    let kind = dice.pick(&KINDS);
    let row = object_row(kind);
    let edge = (row.footing == table::Footing::Edge).then(|| dice.pick(&[Edge::North, Edge::West]));
    ObjectState {
        key: ObjectKey::new(region, index),
        kind,
        x: at.x,
        y: at.y,
        edge,
        hits: row.strength,
        active: kind == ObjectKind::Door && dice.one_in(2),
        gone: false,
    }
}

/// An arena with so many random objects; its eastern quarter is the neighbour's. The middle is free.
pub fn random_arena(dice: &mut Dice, objects: u32) -> Arena {
    let bounds = Rect {
        x: 0,
        y: 0,
        width: SIZE,
        height: SIZE,
    };
    let owned = Rect {
        width: SIZE * 3 / 4,
        ..bounds
    };
    let mut ground = Vec::new();
    for _ in 0..bounds.tiles() {
        let height = 100 + dice.below(5) as u8;
        ground.push(Ground {
            walkable: !dice.one_in(20),
            height,
        });
    }
    let mut arena = Arena::new(REGION, bounds, owned, ground);
    for index in 0..objects {
        let at = dice.pos();
        if at.distance(Pos::new(SIZE / 2, SIZE / 2)) > 4 {
            let region = if owned.contains(at) {
                REGION
            } else {
                NEIGHBOUR
            };
            arena.place(random_object(dice, region, index, at));
        }
    }
    arena
}

/// A camp in the middle and so many characters around it.
pub fn skirmish(seed: u64, players: u64) -> (Battle, Vec<EntityId>) {
    let mut dice = Dice(seed);
    let arena = random_arena(&mut dice, 150);
    let mobs = (0..).zip(roster(Scene::Camp));
    let mobs = mobs.map(|(slot, entry)| MobSpawn {
        id: EntityId::mob(REGION, slot),
        class: entry.class,
        name: entry.name.to_owned(),
        home: Pos::new(
            (SIZE / 2).wrapping_add_signed(entry.dx),
            (SIZE / 2).wrapping_add_signed(entry.dy),
        ),
    });
    let mut battle = Battle::open(Setup {
        region: REGION,
        epoch: 5,
        seed,
        mobs: mobs.collect(),
        arena,
        respawn: Pos::new(5, 5),
    });
    let mut ids = Vec::new();
    for player in 0..players {
        let name = format!("player-{player}");
        let fighter = Fighter::new(CharId::of_name(&name), &name, dice.pos());
        ids.push(fighter.id);
        battle.admit(fighter).unwrap();
    }
    (battle, ids)
}

/// Any order, sensible or not.
pub fn random_order(dice: &mut Dice, battle: &Battle, ids: &[EntityId]) -> Order {
    let target = random_target(dice, battle, ids);
    let (at, dir) = (dice.pos(), dice.pick(&Dir::ALL));
    match dice.below(20) {
        0..3 => Order::WalkTo { x: at.x, y: at.y },
        3 => Order::Move {
            dir: (!dice.one_in(3)).then_some(dir),
        },
        4..6 => Order::Step { dir },
        6 if dice.one_in(4) => Order::Stop,
        6..11 => Order::Attack { target },
        11..14 => Order::Cast {
            spell: dice.pick(&table::spell::ALL),
            target,
        },
        14 => Order::Guard,
        15 => Order::Potion,
        16 => Order::Hold,
        17 => match target {
            Target::Object(object) => Order::Open { object },
            _ => Order::Unequip {
                slot: dice.pick(&[Slot::Weapon, Slot::Shield, Slot::Ring]),
            },
        },
        18 => {
            let beside = battle
                .pos(dice.pick(ids))
                .and_then(|pos| pos.step(dir))
                .unwrap_or(at);
            Order::Plant {
                x: beside.x,
                y: beside.y,
            }
        }
        _ => Order::Equip {
            item: dice.pick(&[ItemKind::Axe, ItemKind::Dagger, ItemKind::Bow]),
        },
    }
}

fn random_target(dice: &mut Dice, battle: &Battle, ids: &[EntityId]) -> Target {
    match dice.below(6) {
        0..3 => Target::Entity(dice.pick(ids)),
        3 => Target::Entity(EntityId::mob(REGION, dice.below(7) as u8)),
        4 => {
            let count = battle.arena().objects().count().max(1) as u64;
            let object = battle.arena().objects().nth(dice.below(count) as usize);
            object.map_or(Target::Tile(dice.pos()), |object| {
                Target::Object(object.key)
            })
        }
        _ => Target::Tile(dice.pos()),
    }
}

/// Gives random orders and steps: the reports as text, one a step.
pub fn play(battle: &mut Battle, ids: &[EntityId], dice: &mut Dice, steps: u64) -> Vec<String> {
    let mut report = Report::default();
    (0..steps)
        .map(|step| {
            let mut line = String::new();
            for &id in ids {
                if dice.one_in(12) {
                    let order = random_order(dice, battle, ids);
                    line += &format!("{:?};", battle.order(id, step, &order));
                }
            }
            battle.step(&mut report);
            line + &format!("{report:?}")
        })
        .collect()
}
