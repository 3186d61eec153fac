//! Regions as the sim core uses them: walks over borders, pinning, feeds, stepping in parallel.
#![allow(missing_docs, reason = "tests")]

use std::collections::BTreeMap;

use uo_combat::{Fighter, Notice};
use uo_proto::{
    CharId, Dir, EntityId, EntityInfo, EntityState, ObjectKey, ObjectState, Order, Pos, RegionId,
    Spell, Target,
};
use uo_server::identity::NodeName;
use uo_server::peer::ToGateway;
use uo_server::peer::message::FeedEntity;
use uo_server::sim::Region;
use uo_server::sim::tick::{TickOutput, step_all};
use uo_world::{World, spawn_point};

const SIZE: u16 = 256;
const SEED: u64 = 7;

/// Every region of a small world, with just enough of a core around them to hand characters over.
struct Shard {
    world: World,
    regions: BTreeMap<RegionId, Region>,
}

impl Shard {
    fn open(seed: u64) -> Shard {
        let world = World::new(seed, SIZE).expect("a good size");
        let regions = world
            .regions()
            .map(|id| (id, Region::open(&world, id, 1, Vec::new(), &[])))
            .collect();
        Shard { world, regions }
    }

    fn enter(&mut self, name: &str, pos: Pos) -> CharId {
        let char_id = CharId::of_name(name);
        let region = self.world.region_at(pos);
        self.region(region)
            .admit(Fighter::new(char_id, name, pos), 1, 0, None)
            .expect("there is room");
        char_id
    }

    fn region(&mut self, id: RegionId) -> &mut Region {
        self.regions.get_mut(&id).expect("all are held")
    }

    fn host(&mut self, char_id: CharId) -> &mut Region {
        let mut regions = self.regions.values_mut();
        let host = regions.find(|region| region.contains(char_id));
        host.expect("the character is somewhere")
    }

    fn step(&mut self, parallel: bool) -> Vec<(RegionId, TickOutput)> {
        let mut all: Vec<&mut Region> = self.regions.values_mut().collect();
        step_all(&mut all, parallel).expect("no tick panics");
        all.into_iter()
            .map(|region| (region.id(), region.take_output()))
            .collect()
    }

    /// What a core does with the output of a tick at the least: hand over, hit and place foreign objects.
    fn follow(&mut self, outputs: &[(RegionId, TickOutput)]) {
        for (id, output) in outputs {
            for (to, hits) in &output.foreign_hits {
                self.region(*to).hit(hits);
            }
            for near in self.world.neighbours(*id) {
                self.region(near).place_foreign(&output.objects);
            }
            for (char_id, to) in &output.border {
                let (fighter, walk) = self.region(*id).withdraw(*char_id).expect("it was there");
                let admitted = self.region(*to).admit(fighter, 2, 0, walk);
                admitted.expect("there is room");
            }
        }
    }

    fn tick(&mut self) -> Vec<(RegionId, TickOutput)> {
        let outputs = self.step(false);
        self.follow(&outputs);
        outputs
    }
}

/// A seeded generator, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn walk_to(goal: Pos) -> Order {
    Order::WalkTo {
        x: goal.x,
        y: goal.y,
    }
}

/// Two respawn points in regions side by side, with a way from one to the other.
fn neighbours_by_land(world: &World) -> (Pos, Pos) {
    let pairs = world
        .regions()
        .flat_map(|a| world.neighbours(a).map(move |b| (a, b)));
    let respawn = |region| world.content(region).respawn;
    let is_by_land = |&(a, b): &(RegionId, RegionId)| {
        let arena = uo_world::build_arena(world, a, std::iter::empty());
        arena.passable(respawn(a))
            && uo_world::walk::plan_leg(world, &arena, respawn(a), respawn(b)).is_some()
    };
    let (a, b) = pairs
        .into_iter()
        .find(is_by_land)
        .expect("some land is connected");
    (respawn(a), respawn(b))
}

/// Red when the walk is not carried over a handoff, or a leg's end is taken for the goal.
#[test]
fn a_walk_goes_on_in_the_next_region() {
    let mut shard = Shard::open(SEED);
    let (from, goal) = neighbours_by_land(&shard.world);
    let ada = shard.enter("ada", from);
    let taken = shard.host(ada).order(ada, 4, &walk_to(goal));
    taken.expect("a good order");
    let mut ends = Vec::new();
    for _ in 0..3_000 {
        for (_, output) in shard.tick() {
            ends.extend(output.notices);
        }
        if !ends.is_empty() {
            break;
        }
    }
    let there = shard.world.region_at(goal);
    let host = shard.host(ada);
    assert_eq!(host.id(), there);
    assert!(host.pos(ada).expect("it is there").distance(goal) <= 1);
    assert!(
        matches!(ends[..], [Notice::LegDone { id, seq: 4, .. }] if id == ada.entity()),
        "not one end of one walk: {ends:?}"
    );
    assert_eq!(host.walk(ada), None);
}

#[test]
fn a_walk_without_a_way_fails_once() {
    let mut shard = Shard::open(SEED);
    let world = shard.world.clone();
    let mut tiles = (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| Pos::new(x, y)));
    let water = tiles.find(|&pos| !world.tile(pos).terrain.is_walkable());
    let ada = shard.enter("ada", spawn_point(&world, "ada"));
    let order = walk_to(water.expect("there is water"));
    shard.host(ada).order(ada, 1, &order).expect("taken");
    let mut notices = Vec::new();
    for _ in 0..200 {
        for (_, output) in shard.tick() {
            notices.extend(output.notices);
        }
    }
    assert!(
        matches!(notices[..], [Notice::WalkFailed { seq: 1, .. }]),
        "{notices:?}"
    );
    let beyond = walk_to(Pos::new(SIZE, 0));
    assert!(shard.host(ada).order(ada, 2, &beyond).is_err());
}

#[test]
fn another_order_ends_a_walk_and_what_is_done_in_passing_does_not() {
    let mut shard = Shard::open(SEED);
    let (from, goal) = neighbours_by_land(&shard.world);
    let walk = walk_to(goal);
    let ada = shard.enter("ada", from);
    let host = shard.host(ada);
    let ending = [
        Order::Stop,
        Order::Move { dir: Some(Dir::N) },
        Order::Step { dir: Dir::N },
    ];
    for order in &ending {
        host.order(ada, 1, &walk).expect("taken");
        assert_eq!(host.walk(ada), Some((goal, 1)));
        host.order(ada, 2, order).expect("taken");
        assert_eq!(host.walk(ada), None, "{order:?}");
    }
    host.order(ada, 9, &walk).expect("taken");
    let _ = host.order(ada, 10, &Order::Potion);
    let let_go = host.order(ada, 11, &Order::Move { dir: None });
    let_go.expect("taken");
    assert_eq!(host.walk(ada), Some((goal, 9)));
}

const HERE: RegionId = RegionId(5);
const EAST: RegionId = RegionId(6);

/// A free tile of region [`HERE`] or its margin, in these columns.
fn free_tile(world: &World, columns: std::ops::Range<u16>) -> Pos {
    let (origin, arena) = (
        HERE.origin(SIZE),
        uo_world::build_arena(world, HERE, std::iter::empty()),
    );
    columns
        .flat_map(|x| (4..60).map(move |y| Pos::new(origin.x + x, origin.y + y)))
        .find(|&pos| arena.passable(pos))
        .expect("a free tile")
}

/// One who stands beside the border reaches the neighbour's battle; one in the far half of the region does not.
#[test]
fn fights_over_the_border_are_pinned_to_the_other_battle() {
    let mut shard = Shard::open(SEED);
    let world = shard.world.clone();
    let near = shard.enter("near", free_tile(&world, 54..64));
    let far = shard.enter("far", free_tile(&world, 4..20));
    let region = &shard.regions[&HERE];
    let pin = |who, order: &Order, hint| region.pin_for(&world, who, order, hint);
    let attack = |target| Order::Attack { target };

    let mob = attack(Target::Entity(EntityId::mob(EAST, 0)));
    assert_eq!(pin(near, &mob, None), Some(EAST));
    assert_eq!(pin(far, &mob, None), None, "too far from the border");
    let two_away = attack(Target::Entity(EntityId::mob(RegionId(7), 0)));
    assert_eq!(pin(near, &two_away, None), None);

    let player = attack(Target::Entity(CharId::of_name("somebody").entity()));
    assert_eq!(pin(near, &player, Some(EAST)), Some(EAST));
    assert_eq!(pin(near, &player, None), None, "nobody knows where");
    assert_eq!(pin(near, &player, Some(HERE)), None);
    let friend = attack(Target::Entity(far.entity()));
    assert_eq!(pin(near, &friend, Some(EAST)), None, "it is in this battle");

    let object = attack(Target::Object(ObjectKey::new(EAST, 1)));
    assert_eq!(pin(near, &object, None), Some(EAST));
    let own = attack(Target::Object(ObjectKey::new(HERE, 1)));
    assert_eq!(pin(near, &own, None), None);

    let cast = |tile| Order::Cast {
        spell: Spell::Fireball,
        target: Target::Tile(tile),
    };
    let origin = HERE.origin(SIZE);
    let beyond = Pos::new(origin.x + 66, origin.y + 2);
    assert_eq!(pin(near, &cast(beyond), None), Some(EAST));
    let stands = region.pos(far).expect("it is there");
    assert_eq!(pin(near, &cast(stands), None), None);
    let off_the_map = Pos::new(SIZE, 0);
    assert_eq!(pin(near, &cast(off_the_map), None), None);
    assert_eq!(pin(near, &Order::Guard, Some(EAST)), None);
}

/// A fight that spilled over the border stays where it is: whoever casts at its own foes is not torn out of it.
#[test]
fn a_spell_at_foes_of_this_battle_is_not_pinned() {
    let mut shard = Shard::open(SEED);
    let world = shard.world.clone();
    let caster = shard.enter("caster", free_tile(&world, 60..64));
    let foe = CharId::of_name("foe");
    let outside = free_tile(&world, 65..68);
    let region = shard.region(HERE);
    let admitted = region.admit(Fighter::new(foe, "foe", outside), 1, 0, None);
    admitted.expect("there is room");
    let cast = Order::Cast {
        spell: Spell::Fireball,
        target: Target::Tile(region.pos(foe).expect("it is there")),
    };
    assert_eq!(region.pin_for(&world, caster, &cast, None), None);
    region.withdraw(foe);
    assert_eq!(region.pin_for(&world, caster, &cast, None), Some(EAST));
}

/// Two tiles past the border are deep enough for whoever is at peace; each tick says so again while it is true.
#[test]
fn who_is_deep_enough_is_told_each_tick() {
    let mut shard = Shard::open(SEED);
    let origin = HERE.origin(SIZE);
    let arena = uo_world::build_arena(&shard.world, HERE, std::iter::empty());
    let mut rows = (0..64).map(|y| origin.y + y);
    let row = rows
        .find(|&y| (62..68).all(|x| arena.passable(Pos::new(origin.x + x, y))))
        .expect("an open way east");
    let region = shard.region(HERE);
    for (x, is_deep) in [(62, false), (64, false), (65, true), (67, true)] {
        let ada = CharId::of_name("ada");
        let fighter = Fighter::new(ada, "ada", Pos::new(origin.x + x, row));
        region.admit(fighter, 1, 0, None).expect("there is room");
        for _ in 0..2 {
            region.step();
            let told = region.take_output().border;
            let want = [(ada, EAST)];
            assert_eq!(told, want[..usize::from(is_deep)], "at column {x}");
        }
        region.withdraw(ada);
    }
}

/// Gives everybody something random to do now and then.
fn stir(shard: &mut Shard, names: &[String], dice: &mut Dice) {
    for name in names {
        if dice.below(20) != 0 {
            continue;
        }
        let char_id = CharId::of_name(name);
        let host = shard.host(char_id);
        let pos = host.pos(char_id).expect("it is there");
        let entities: Vec<EntityId> = host.battle().entities().collect();
        let somebody = entities[dice.below(entities.len() as u64) as usize];
        let mut shift = |at: u16| (i32::from(at) + dice.below(60) as i32 - 30).clamp(0, 255) as u16;
        let goal = Pos::new(shift(pos.x), shift(pos.y));
        let dir = Dir::ALL[dice.below(8) as usize];
        let order = match dice.below(7) {
            0 => Order::Step { dir },
            1 => Order::Move { dir: Some(dir) },
            2 | 3 => Order::Attack {
                target: Target::Entity(somebody),
            },
            4 => Order::Cast {
                spell: Spell::Fireball,
                target: Target::Tile(pos),
            },
            _ => walk_to(goal),
        };
        let _ = host.order(char_id, dice.below(1 << 40), &order);
        host.set_ack(char_id, dice.below(100));
        if dice.below(4) == 0 {
            host.say(char_id, "well met".into());
        }
    }
}

fn populated(seed: u64, count: usize) -> (Shard, Vec<String>) {
    let mut shard = Shard::open(seed);
    let names: Vec<String> = (0..count).map(|n| format!("walker{n}")).collect();
    for name in &names {
        let pos = spawn_point(&shard.world, name);
        shard.enter(name, pos);
    }
    (shard, names)
}

#[test]
fn in_parallel_the_same_happens() {
    let run = |parallel: bool| {
        let (mut shard, names) = populated(SEED, 24);
        let mut dice = Dice(1);
        let mut log = 0_u64;
        for region in shard.regions.values_mut() {
            region.subscribe("gw".into());
        }
        for _ in 0..200 {
            stir(&mut shard, &names, &mut dice);
            let outputs = shard.step(parallel);
            shard.follow(&outputs);
            log = uo_proto::fnv1a(format!("{log}{outputs:?}").as_bytes());
        }
        log
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    let parallel = pool.expect("three threads").install(|| run(true));
    assert_eq!(parallel, run(false));
}

/// What is believed about an entity: state, what does not change, number, ack.
type Seen = (EntityState, EntityInfo, u64, u64);

/// What a watcher of one region believes: nothing but its frames.
#[derive(Default)]
struct Watcher {
    tick: Option<u64>,
    entities: BTreeMap<EntityId, Seen>,
    objects: BTreeMap<ObjectKey, ObjectState>,
}

impl Watcher {
    fn apply(&mut self, message: &ToGateway) {
        let (upserts, objects) = match message {
            ToGateway::FeedFull(full) => {
                *self = Watcher::default();
                self.tick = Some(full.tick);
                (&full.entities, &full.objects)
            }
            ToGateway::FeedDelta(delta) => {
                assert_eq!(self.tick, Some(delta.base_tick), "a gap in the feed");
                self.tick = Some(delta.tick);
                for (id, _) in &delta.removes {
                    self.entities.remove(id).expect("it was shown");
                }
                (&delta.upserts, &delta.objects)
            }
            other => panic!("not a frame: {other:?}"),
        };
        for entity in upserts {
            self.upsert(entity);
        }
        for object in objects {
            if object.gone && object.key.is_runtime() {
                self.objects.remove(&object.key);
            } else {
                self.objects.insert(object.key, *object);
            }
        }
    }

    fn upsert(&mut self, entity: &FeedEntity) {
        let id = entity.state.id;
        let info = match &entity.info {
            Some(info) => (**info).clone(),
            None => self.entities[&id].1.clone(),
        };
        self.entities
            .insert(id, (entity.state, info, entity.number, entity.ack));
    }

    fn sees(&self, region: &Region) {
        let (view, battle) = (region.view(), region.battle());
        let players = view.players.iter();
        let numbers: BTreeMap<EntityId, (u64, u64)> = players
            .map(|player| (player.char_id.entity(), (player.generation, player.ack)))
            .collect();
        let entities: BTreeMap<EntityId, Seen> = battle
            .entities()
            .map(|id| {
                let state = battle.state(id).expect("it can be seen");
                let info = battle.info(id).expect("it can be seen");
                let (number, ack) = numbers.get(&id).copied().unwrap_or((region.epoch(), 0));
                (id, (state, info, number, ack))
            })
            .collect();
        assert_eq!(self.entities, entities);
        let objects: BTreeMap<_, _> = view.objects.iter().map(|o| (o.key, *o)).collect();
        assert_eq!(self.objects, objects);
    }
}

/// Subscriptions come and go while characters walk, fight and change regions: every watcher's picture is the battle's.
#[test]
fn feeds_show_the_battle() {
    for seed in 0..4 {
        let (mut shard, names) = populated(seed, 16);
        let mut dice = Dice(seed);
        let mut watchers: BTreeMap<(RegionId, NodeName), Watcher> = BTreeMap::new();
        for _ in 0..400 {
            stir(&mut shard, &names, &mut dice);
            for (&id, region) in &mut shard.regions {
                let node = NodeName::from(["gw-1", "gw-2"][dice.below(2) as usize]);
                match dice.below(40) {
                    0 | 1 => {
                        watchers.entry((id, node.clone())).or_default();
                        region.subscribe(node);
                    }
                    2 => {
                        region.unsubscribe(&node);
                        watchers.remove(&(id, node));
                    }
                    _ => {}
                }
            }
            let outputs = shard.step(false);
            for (id, output) in &outputs {
                for (node, message) in &output.feeds {
                    let watcher = watchers.get_mut(&(*id, node.clone()));
                    watcher.expect("it subscribed").apply(message);
                }
            }
            for ((id, _), watcher) in &watchers {
                watcher.sees(&shard.regions[id]);
            }
            // Handoffs show in the frames of the next tick.
            shard.follow(&outputs);
        }
    }
}

#[test]
fn a_region_with_nobody_in_it_is_silent() {
    let mut shard = Shard::open(SEED);
    for _ in 0..100 {
        shard.tick();
    }
    assert!(shard.regions.values().all(Region::is_idle));
    for (id, output) in shard.tick() {
        assert!(output.feeds.is_empty() && output.notices.is_empty() && output.objects.is_empty());
        assert_eq!(shard.regions[&id].tick_count(), 101);
    }
    let region = shard.region(HERE);
    region.subscribe("gw".into());
    region.step();
    let output = region.take_output();
    assert!(matches!(
        &output.feeds[..],
        [(_, ToGateway::FeedFull(full))] if full.tick == 102
    ));
}

#[test]
fn everything_can_be_looked_at() {
    let mut shard = Shard::open(SEED);
    let ada = shard.enter("ada", spawn_point(&shard.world.clone(), "ada"));
    for region in shard.regions.values() {
        let battle = region.battle();
        let seen = battle
            .entities()
            .map(Target::Entity)
            .chain(battle.arena().objects().map(|o| Target::Object(o.key)))
            .chain((0..SIZE).map(|x| Target::Tile(Pos::new(x, x))));
        for target in seen {
            let text = region.look(target).expect("it is there");
            assert!(text.ends_with(['.', '!']), "{text}");
        }
        assert_eq!(region.look(Target::Tile(Pos::new(SIZE, 0))), None);
        assert_eq!(region.look(Target::Object(ObjectKey(u64::MAX))), None);
    }
    let text = shard.host(ada).look(Target::Entity(ada.entity()));
    let text = text.expect("it is there");
    assert!(text.starts_with("ada, a"), "{text}");
    assert!(text.ends_with("without a scratch."), "{text}");
}
