//! Small rules: sight, rest, wakefulness, coming and going.

mod support;

use support::{REGION, Script, through_bytes};
use uo_combat::*;
use uo_proto::*;

/// A tile, as (x, y).
type At = (u16, u16);

/// Who sees whom, in fields of objects: `from` and `to` and the expected cover (100 is hidden).
fn check_sight(objects: &str, expected: &[(At, At, u32)]) {
    let script = Script::read(&format!("field 16x9\n{objects}"), 1);
    for &(from, to, cover) in expected {
        let sight = script
            .setup
            .arena
            .line_of_sight(Pos::new(from.0, from.1), Pos::new(to.0, to.1));
        assert_eq!(sight.cover_percent(), cover, "{from:?} -> {to:?}");
    }
}

#[test]
fn a_fence_covers_whoever_stands_behind_it_and_not_whom_they_aim_at() {
    check_sight(
        "fence 7,4 west",
        &[
            ((3, 4), (7, 4), 40),
            ((7, 4), (3, 4), 0),
            ((3, 4), (3, 4), 0),
        ],
    );
}

#[test]
fn walls_hide_and_trees_cover() {
    check_sight(
        "wall 7,4 west",
        &[
            ((3, 4), (9, 4), 100),
            ((9, 4), (3, 4), 100),
            ((6, 4), (7, 4), 100),
        ],
    );
    check_sight(
        "tree 6,4",
        &[
            ((3, 4), (9, 4), 50),
            ((5, 4), (9, 4), 0),
            ((3, 4), (6, 4), 0),
        ],
    );
    check_sight("tree 6,4\ntree 7,4", &[((3, 4), (9, 4), 75)]);
    check_sight("bush 6,4\nstump 7,4", &[((3, 4), (9, 4), 0)]);
}

#[test]
fn one_sees_around_one_side_of_a_corner_but_not_through_two() {
    check_sight("rock 5,4\ntent 4,5", &[((4, 4), (5, 5), 0)]);
    check_sight("tent 5,4\ntent 4,5", &[((4, 4), (5, 5), 100)]);
}

#[test]
fn a_ridge_hides_what_lies_behind_it() {
    let bounds = Rect {
        x: 0,
        y: 0,
        width: 9,
        height: 1,
    };
    let ridge = |height: u8| {
        let mut ground = vec![
            Ground {
                walkable: true,
                height: 50
            };
            9
        ];
        ground[4].height = height;
        Arena::new(REGION, bounds, bounds, ground).line_of_sight(Pos::new(1, 0), Pos::new(7, 0))
    };
    assert_eq!(ridge(60), Sight::Clear);
    assert_eq!(ridge(61), Sight::Blocked);
}

#[test]
fn a_held_heading_slides_along_walls_and_around_single_obstacles() {
    let script = Script::read(
        "field 16x9\ntree 5,4\nwall 8,0 west\nwall 8,1 west\nwall 8,2 west\nwall 8,3 west",
        1,
    );
    let arena = &script.setup.arena;
    let slide =
        |x, y, dir, taken: &[Pos]| arena.slide(Pos::new(x, y), dir, |pos| taken.contains(&pos));
    assert_eq!(slide(3, 4, Dir::E, &[]), Some(Dir::E));
    assert_eq!(slide(4, 4, Dir::E, &[]), Some(Dir::S), "around the tree");
    assert_eq!(slide(4, 5, Dir::E, &[]), Some(Dir::E));
    assert_eq!(slide(7, 1, Dir::E, &[]), None, "straight into the wall");
    assert_eq!(slide(7, 1, Dir::Ne, &[]), Some(Dir::N), "along it");
    assert_eq!(slide(7, 3, Dir::E, &[]), Some(Dir::S), "around its end");
    assert_eq!(
        slide(10, 4, Dir::E, &[Pos::new(11, 4)]),
        Some(Dir::Se),
        "past somebody"
    );
}

fn run(battle: &mut Battle, steps: u32) -> Report {
    let mut report = Report::default();
    for _ in 0..steps {
        battle.step(&mut report);
    }
    report
}

#[test]
fn a_region_without_players_comes_to_rest_and_wakes_when_it_is_hit() {
    let script = Script::read(
        "field 20x9\nbandit bandit 5,4\ncrate 9,4\nkeg 12,4\nwarrior hero 15,4",
        1,
    );
    let mut battle = Battle::open(script.setup.clone());
    assert!(!battle.is_idle(), "its mobs have not been reported yet");
    assert_eq!(run(&mut battle, 1).changed, [script.id("bandit")]);
    assert!(battle.is_idle());
    assert!(run(&mut battle, 10).is_empty());
    let hit = |index| ObjectHit {
        key: ObjectKey::new(REGION, index),
        damage: 30,
        fire: false,
        by: None,
    };
    battle.hit_object(&hit(0));
    assert_eq!(run(&mut battle, 1).objects.len(), 1);
    assert!(battle.is_idle());
    battle.hit_object(&hit(1));
    run(&mut battle, 2);
    assert!(!battle.is_idle(), "a fuse burns");
    run(&mut battle, 2);
    assert!(battle.is_idle());
    battle.admit(script.fighters[0].clone()).unwrap();
    run(&mut battle, 5);
    assert!(!battle.is_idle());
    battle.withdraw(script.id("hero")).unwrap();
    run(&mut battle, 1);
    assert!(battle.is_idle());
    let mut moved: Battle = through_bytes(&battle);
    assert!(moved.is_idle() && run(&mut moved, 1).is_empty());
}

#[test]
fn a_taken_tile_is_resolved_by_the_nearest_connected_one() {
    let script = Script::read(
        "field 9x5\nwater 4,0\nwater 4,1\nwater 4,2\nwater 4,3\nwater 4,4\nwarrior a 3,2\nwarrior b 3,2\nwarrior c 30,2",
        1,
    );
    let mut battle = Battle::open(script.setup.clone());
    let [a, b, c] = &script.fighters[..] else {
        panic!()
    };
    assert_eq!(battle.admit(a.clone()), Ok(()));
    assert_eq!(battle.admit(a.clone()), Err(AdmitError::Present));
    assert_eq!(battle.admit(b.clone()), Ok(()));
    assert_eq!(battle.admit(c.clone()), Err(AdmitError::Outside));
    let pos = battle.pos(b.id).unwrap();
    assert!(pos.distance(a.pos) == 1 && pos.x < 4, "{pos:?}");
    for index in 0..18 {
        let name = format!("more-{index}");
        battle
            .admit(Fighter::new(CharId::of_name(&name), &name, a.pos))
            .unwrap();
    }
    assert_eq!(
        battle.admit(Fighter::new(CharId::of_name("x"), "x", a.pos)),
        Err(AdmitError::Full)
    );
}

#[test]
fn a_fighter_of_another_version_is_made_to_fit() {
    let mut script = Script::read("field 9x5\nwarrior a 3,2\nwarrior b 5,2", 1);
    let mut battle = Battle::open(script.setup.clone());
    let [a, b] = &mut script.fighters[..] else {
        panic!()
    };
    (a.hits, b.hits) = (9_999, 0);
    battle.admit(a.clone()).unwrap();
    battle.admit(b.clone()).unwrap();
    assert_eq!(battle.state(a.id).unwrap().hits, a.hits_max());
    assert!(battle.fighter(b.id).unwrap().is_dead());
    run(&mut battle, 200);
    assert_eq!(battle.state(b.id).unwrap().hits, b.hits_max());
}

/// What a store keeps of a character that an older version wrote has fewer fields.
#[test]
fn a_fighter_without_later_fields_is_read() {
    let fighter = Fighter::new(CharId::of_name("hero"), "hero", Pos::new(3, 4));
    let mut value = serde_json::to_value(&fighter).unwrap();
    let fields = value.as_object_mut().unwrap();
    fields.retain(|name, _| {
        ["id", "name", "class", "pos", "hits", "inventory"].contains(&name.as_str())
    });
    assert_eq!(serde_json::from_value::<Fighter>(value).unwrap(), fighter);
}

#[test]
fn new_characters_have_their_class_by_name_and_five_potions() {
    let mut classes = std::collections::BTreeSet::new();
    for index in 0..50 {
        let name = format!("bot-{index}");
        let fighter = Fighter::new(CharId::of_name(&name), &name, Pos::default());
        assert_eq!(fighter.inventory.count(ItemKind::Potion), 5);
        assert_eq!(fighter.hits, table::class_row(fighter.class).hits_max);
        classes.insert(fighter.class);
    }
    assert_eq!(classes.len(), 3);
}

/// A key that comes again elsewhere with the same shape (a runtime object's number is reused) was taken for unchanged.
#[test]
fn an_object_that_comes_again_elsewhere_leaves_its_old_tile() {
    let mut arena = Script::read("field 16x9\ncrate 7,4", 1).setup.arena;
    let mut moved = *arena.objects().next().expect("the crate");
    let old = moved.pos();
    assert!(!arena.passable(old));
    moved.x += 2;
    arena.place(moved);
    assert!(arena.passable(old));
    assert!(!arena.passable(moved.pos()));
    let afresh: Arena = through_bytes(&arena);
    assert_eq!(arena.passable(old), afresh.passable(old));
}
