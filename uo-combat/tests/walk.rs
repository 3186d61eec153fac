//! Walking: tempo, goals, obstacles.
use uo_combat::*;
use uo_proto::*;

fn field(size: u16) -> Arena {
    let bounds = Rect {
        x: 0,
        y: 0,
        width: size,
        height: size,
    };
    let ground = Ground {
        walkable: true,
        height: 100,
    };
    Arena::new(RegionId(0), bounds, bounds, vec![ground; bounds.tiles()])
}

fn open(arena: Arena) -> Battle {
    let respawn = Pos::new(5, 5);
    Battle::open(Setup {
        region: RegionId(0),
        epoch: 1,
        seed: 1,
        arena,
        mobs: vec![],
        respawn,
    })
}

#[test]
fn a_run_step_takes_one_action_point() {
    let mut battle = open(field(32));
    let hero = CharId::of_name("hero");
    battle
        .admit(Fighter::new(hero, "hero", Pos::new(3, 3)))
        .unwrap();
    battle
        .order(hero.entity(), 1, &Order::WalkTo { x: 13, y: 5 })
        .unwrap();
    let mut report = Report::default();
    let mut steps = 0;
    while battle.pos(hero.entity()) != Some(Pos::new(13, 5)) {
        battle.step(&mut report);
        steps += 1;
        assert!(steps < 100);
    }
    assert_eq!(
        report.notices,
        [Notice::LegDone {
            id: hero.entity(),
            pos: Pos::new(13, 5),
            seq: 1
        }]
    );
    // Ten steps of five battle steps each; the tenth begins after nine.
    assert_eq!(steps, 46);
}
