//! The stored logs of named situations. A change of balance changes them: look at the difference before accepting it
//! (`INSTA_UPDATE=always cargo test -p uo-combat --test situations`).

mod support;

use support::Script;
use uo_combat::LEASH;

fn check(name: &str, script: &str) -> String {
    let log = Script::read(script, 11).play();
    insta::with_settings!({ description => script, omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, log);
    });
    log
}

#[test]
fn melee() {
    let log = check(
        "melee",
        "field 24x9
         warrior hero 3,4
         warrior other 9,4
         at 0 hero attack other
         at 0 other attack hero
         run 9000",
    );
    assert!(log.contains("FightBegan"));
}

#[test]
fn archer_behind_cover() {
    let log = check(
        "archer_behind_cover",
        "field 24x9
         fence 7,3 west
         fence 7,4 west
         fence 7,5 west
         archer open 3,4
         archer behind 8,4
         archer leaning 7,6
         at 0 open attack behind
         at 0 behind attack open
         run 12000",
    );
    assert!(log.contains("who: open, target: behind, why: Cover"));
}

#[test]
fn mage_area_spell() {
    let log = check(
        "mage_area_spell",
        "field 24x9
         crate 10,4
         wall 11,3 north
         mage mage 3,4
         warrior near 11,4
         warrior far 13,6
         warrior shielded 11,2
         at 0 mage cast fireball 11,4
         at 100 mage cast fireball near
         at 2500 mage cast fireball 11,4
         at 2500 mage cast stone_wall 8,4
         at 4000 mage cast frost near
         at 4000 near walk 4,4
         run 9000",
    );
    assert!(!log.contains("target: shielded"));
}

#[test]
fn guard() {
    let log = check(
        "guard",
        "field 24x9
         warrior hero 3,4
         warrior guarded 4,4
         at 0 guarded guard
         at 0 hero attack guarded
         at 9000 guarded attack hero
         run 11000",
    );
    assert!(log.contains("why: Guarded"));
}

#[test]
fn potion() {
    check(
        "potion",
        "field 24x9
         warrior hero 3,4
         mage mage 9,4
         at 0 mage attack hero
         at 5000 hero potion
         at 6000 hero potion
         at 12000 hero potion
         run 13000",
    );
}

#[test]
fn door() {
    check(
        "door",
        "field 12x7
         wall 6,0 west
         wall 6,1 west
         wall 6,2 west
         door 6,3 west
         wall 6,4 west
         wall 6,5 west
         wall 6,6 west
         warrior hero 4,3
         at 0 hero walk 9,3
         at 200 hero open k3
         at 400 hero walk 5,3
         at 1000 hero open k3
         at 1500 hero walk 9,3
         at 1800 hero step w
         at 1800 hero step w
         at 3000 hero walk 7,3
         at 4000 hero open k3
         at 4400 hero step w
         at 4400 hero step n
         run 6000",
    );
}

#[test]
fn keg() {
    let log = check(
        "keg",
        "field 24x9
         keg 8,4
         keg 10,4
         crate 8,6
         fence 9,2 north
         foreign crate 7,2
         warrior hero 5,4
         warrior bystander 6,5
         at 0 hero plant 6,4
         at 600 hero walk 1,4
         run 6000",
    );
    assert_eq!(log.matches("Exploded").count(), 3);
}

#[test]
fn wall_destroyed_and_path_reopened() {
    check(
        "wall_destroyed_and_path_reopened",
        "field 12x3
         wall 6,0 west
         wall 6,1 west
         wall 6,2 west
         warrior hero 4,1
         at 0 hero walk 9,1
         at 100 hero equip axe
         at 200 hero attack k1
         at 9000 hero walk 9,1
         run 12000",
    );
}

#[test]
fn mob_leash() {
    check(
        "mob_leash",
        "field 60x9
         bandit bandit 8,4
         warrior hero 13,4
         watch bandit
         at 0 hero walk 50,4
         run 20000",
    );
}

/// The way around the water would lead too far from home. Seen to fail without the limit of a mob's searches.
#[test]
fn mob_keeps_its_leash_on_detours() {
    let mut script = String::from(
        "field 8x40
         bandit bandit 2,10
         archer archer 6,10
         watch bandit
         at 0 archer attack bandit
         run 12000
        ",
    );
    for y in 0..30 {
        script += &format!("water 4,{y}\n");
    }
    let log = Script::read(&script, 11).play();
    assert!(log.contains("who: archer, target: bandit"));
    for line in log
        .lines()
        .filter_map(|line| line.trim().split_once("bandit "))
    {
        let y = line
            .1
            .split([',', ' '])
            .nth(1)
            .and_then(|y| y.parse::<u16>().ok());
        assert!(y.is_none_or(|y| y <= 10 + LEASH), "{line:?}");
    }
}

/// Seen to fail without the check that the tile is free when the spell takes effect.
#[test]
fn no_stone_rises_under_anybody() {
    let log = Script::read(
        "field 24x9
         mage mage 3,4
         warrior hero 7,5
         at 0 mage cast stone_wall 7,4
         at 200 hero step n
         run 2000",
        11,
    )
    .play();
    assert!(log.contains("Interrupted { who: mage }"), "{log}");
    assert!(!log.contains("Stone 90"), "{log}");
}

#[test]
fn death_and_return() {
    check(
        "death_and_return",
        "field 24x9
         bandit bandit 20,4
         warrior hero 18,4
         archer ally 18,5
         mage victim 3,4
         at 0 hero attack bandit
         at 0 ally attack bandit
         at 10000 hero attack victim
         at 10000 ally attack victim
         watch bandit
         run 48000",
    );
}

#[test]
fn walled_off_target() {
    check(
        "walled_off_target",
        "field 24x9
         water 12,0
         water 12,1
         water 12,2
         water 12,3
         water 12,4
         water 12,5
         water 12,6
         water 12,7
         water 12,8
         bandit bandit 15,4
         warrior hero 10,4
         archer archer 10,6
         at 0 hero attack bandit
         at 0 hero walk 15,5
         at 200 hero attack bandit
         at 500 archer attack bandit
         run 9000",
    );
}

#[test]
fn crowd() {
    check(
        "crowd",
        "field 24x12
         warrior target 10,5
         warrior a 9,4
         warrior b 10,4
         warrior c 11,4
         warrior d 9,5
         warrior e 11,5
         warrior f 9,6
         warrior g 10,6
         warrior h 11,6
         warrior late 18,5
         at 0 target hold
         at 0 late attack target
         at 4000 e walk 20,1
         at 5000 target attack late
         run 9000",
    );
}

#[test]
fn steps() {
    let log = check(
        "steps",
        "field 24x9
         water 8,4
         tree 4,7
         mage mage 20,2
         warrior hero 3,4
         warrior slider 3,7
         watch hero
         watch slider
         at 0 hero step e
         at 0 hero step e
         at 0 hero step e
         at 0 hero step e
         at 0 hero step e
         at 1500 hero step e
         at 1500 hero step e
         at 0 slider move e
         at 1000 slider move none
         at 2000 hero walk 3,7
         at 2000 slider walk 3,7
         run 6000",
    );
    assert_eq!(log.matches("StepRejected").count(), 3);
}

#[test]
fn items() {
    check(
        "items",
        "field 24x9
         warrior hero 3,4
         at 0 hero equip ring_of_iron
         at 0 hero equip bow
         at 0 hero equip potion
         at 0 hero unequip weapon
         at 0 hero unequip weapon
         at 0 hero equip axe
         at 0 hero plant 9,9
         at 0 hero cast bolt hero
         at 0 hero attack hero
         run 100",
    );
}
