//! A fight that is moved to another node in the middle of a swing goes on as if it had not been.
#![allow(missing_docs, reason = "tests")]

use uo_combat::{Battle, Fighter};
use uo_proto::{CharId, CombatEvent, EntityState, Order, Pos, RegionId, Spell, Target};
use uo_server::identity::NodeName;
use uo_server::peer::ToGateway;
use uo_server::peer::message::{FeedEvent, PublicEvent, Told};
use uo_server::sim::Region;
use uo_world::World;

const TICKS: u64 = 240;
const NAMES: [&str; 4] = ["Anna", "Bert", "Cleo", "Dora"];

/// A camp of bandits, and those who fall upon it: two of them fight each other as well.
struct Fight {
    world: World,
    region: Region,
    events: Vec<CombatEvent>,
}

impl Fight {
    fn begin(seed: u64) -> Fight {
        let world = World::new(seed, 256).expect("a good size");
        let armed = |&id: &RegionId| world.content(id).mobs.len() >= 3;
        let id = world.regions().find(armed).expect("there are bandits");
        let mut region = Region::open(&world, id, 1, Vec::new(), &[]);
        region.subscribe(NodeName::from("gate"));
        let camp = world.content(id).mobs[0].home;
        for name in NAMES {
            let fighter = Fighter::new(CharId::of_name(name), name, camp);
            region.admit(fighter, 1, 0, None).expect("there is room");
        }
        Fight {
            world,
            region,
            events: Vec::new(),
        }
    }

    fn order(&mut self, name: &str, seq: u64, order: &Order) {
        // What cannot be done now is refused here as there.
        let _ = self.region.order(CharId::of_name(name), seq, order);
    }

    fn orders(&mut self, tick: u64) {
        let mob = self.world.content(self.region.id()).mobs[1].id;
        let attack = |target| Order::Attack { target };
        let foe = |name: &str| Target::Entity(CharId::of_name(name).entity());
        match tick {
            1 => {
                self.order("Anna", 1, &attack(Target::Entity(mob)));
                self.order("Bert", 1, &attack(foe("Cleo")));
                self.order("Cleo", 1, &attack(foe("Bert")));
            }
            20 | 90 | 160 => {
                let target = foe("Anna");
                let spell = Spell::Heal;
                self.order("Dora", tick, &Order::Cast { spell, target });
            }
            60 => self.order("Anna", 60, &Order::Potion),
            _ => {}
        }
    }

    fn tick(&mut self, tick: u64) {
        self.orders(tick);
        self.region.step();
        let told = |events: &[FeedEvent]| {
            let combat = events.iter().filter_map(|event| match &event.what {
                PublicEvent::Combat(event) => Some(event.clone()),
                PublicEvent::Said(_) => None,
            });
            combat.collect::<Vec<_>>()
        };
        for (_, feed) in self.region.take_output().feeds {
            self.events.extend(match feed {
                ToGateway::FeedFull(full) => told(&full.events),
                ToGateway::FeedDelta(delta) => told(&delta.events),
                _ => Vec::new(),
            });
        }
    }

    /// What a drain does: the battle goes over the wire without its players, who follow one by one, in any order.
    fn moves(&mut self) {
        let (battle, players) = self.region.copy();
        let bytes = rmp_serde::to_vec_named(&battle).expect("a battle is written");
        let battle: Battle = rmp_serde::from_slice(&bytes).expect("and read");
        let objects = self.region.differences();
        let mut there = Region::adopt(
            &self.world,
            self.region.id(),
            2,
            battle,
            objects,
            Told::default(),
        );
        there.subscribe(NodeName::from("gate"));
        for (char_id, generation) in players.into_iter().rev() {
            let (fighter, walk) = self.region.withdraw(char_id).expect("it is there");
            let bytes = rmp_serde::to_vec_named(&fighter).expect("a fighter is written");
            let fighter: Fighter = rmp_serde::from_slice(&bytes).expect("and read");
            there
                .admit(fighter, generation + 1, 0, walk)
                .expect("its tile is free");
        }
        self.region = there;
    }

    fn everybody(&self) -> Vec<EntityState> {
        let battle = self.region.battle();
        battle
            .entities()
            .filter_map(|id| battle.state(id))
            .collect()
    }
}

// Goes red when the copy loses whom the bandits are after, and when a fighter leaves what it is doing behind.
#[test]
fn a_fight_that_is_moved_goes_on_as_it_would_have() {
    for seed in 0..3 {
        let mut stays = Fight::begin(seed);
        let states: Vec<_> = (1..=TICKS)
            .map(|tick| {
                stays.tick(tick);
                stays.everybody()
            })
            .collect();
        let swings = |event: &&CombatEvent| matches!(event, CombatEvent::Swung { .. });
        assert!(
            stays.events.iter().filter(swings).count() > 10,
            "they fight"
        );
        for at in [3, 17, 40, 61, 95, 150] {
            let mut moved = Fight::begin(seed);
            for tick in 1..=TICKS {
                moved.tick(tick);
                assert_eq!(
                    moved.everybody(),
                    states[tick as usize - 1],
                    "seed {seed}, moved after tick {at}, in tick {tick}"
                );
                if tick == at {
                    moved.moves();
                }
            }
            assert_eq!(moved.events, stays.events, "seed {seed}, moved at {at}");
        }
    }
}

/// It has to fit a frame between nodes, with room for what has been built and broken.
#[test]
fn a_battle_is_small_enough_to_be_sent() {
    let mut fight = Fight::begin(0);
    (1..50).for_each(|tick| fight.tick(tick));
    let (battle, _) = fight.region.copy();
    let bytes = rmp_serde::to_vec_named(&battle).expect("a battle is written");
    assert!(bytes.len() < 1024 * 1024, "{} bytes", bytes.len());
    let _: Pos = fight.everybody()[0].pos();
}
