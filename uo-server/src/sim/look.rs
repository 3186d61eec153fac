//! What one sees who looks: a sentence or two in words.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::Battle;
use uo_combat::table::{item_row, object_row};
use uo_proto::{
    Action, Class, EntityId, EntityState, Inventory, ObjectKey, ObjectKind, ObjectState, Pos,
    RegionId, Slot, Target, Terrain,
};
use uo_world::World;

/// The sentence for `target`; none if it is not to be seen from this battle.
pub fn sentence(world: &World, battle: &Battle, target: Target) -> Option<String> {
    match target {
        Target::Entity(id) => entity(battle, id).or_else(|| distant_mob(world, battle, id)),
        Target::Object(key) => match battle.arena().object(key) {
            Some(object) => Some(describe(object)),
            None => distant_object(world, battle, key),
        },
        Target::Tile(pos) => world.contains(pos).then(|| ground(world, pos)),
    }
}

fn entity(battle: &Battle, id: EntityId) -> Option<String> {
    let (info, state) = (battle.info(id)?, battle.state(id)?);
    let who = format!("{}, {}", info.name, class(info.class));
    if state.hits == 0 {
        return Some(match id.character() {
            Some(_) => format!("Here lies {who}. Not for long, if the old stories hold."),
            None => format!("Here lies {who}. There will be others."),
        });
    }
    let gear = battle.inventory(id).map(gear).unwrap_or_default();
    let health = health(state.hits, info.hits_max);
    let doing = doing(battle, &state);
    Some(format!("{who}{gear}, {health}{doing}."))
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Warrior => "a warrior",
        Class::Archer => "an archer",
        Class::Mage => "a mage",
        Class::Bandit => "a bandit",
        Class::BanditArcher => "a bandit with a bowman's squint",
        Class::BanditChief => "whom the other bandits obey",
    }
}

/// What is worn, as ` with a sword, in chain armour`.
fn gear(inventory: &Inventory) -> String {
    let worn = |slot| {
        inventory
            .equipment
            .get(slot)
            .map(|item| item_row(item).name)
    };
    let mut text = match (worn(Slot::Weapon), worn(Slot::Shield)) {
        (Some(weapon), Some(shield)) => format!(" with {weapon} and {shield}"),
        (Some(one), None) | (None, Some(one)) => format!(" with {one}"),
        (None, None) => " with bare hands".to_owned(),
    };
    if let Some(armour) = worn(Slot::Armour) {
        text.push_str(", in ");
        text.push_str(armour);
    }
    text
}

fn health(hits: u16, hits_max: u16) -> &'static str {
    match u32::from(hits) * 100 / u32::from(hits_max.max(1)) {
        100.. => "without a scratch",
        80..100 => "hardly scratched",
        55..80 => "bleeding a little",
        30..55 => "wounded",
        10..30 => "badly wounded",
        _ => "at death's door",
    }
}

fn doing(battle: &Battle, state: &EntityState) -> String {
    let foe = state.target.and_then(|foe| battle.info(foe));
    match (state.action, foe) {
        (_, Some(foe)) => format!(", fighting {}", foe.name),
        (Action::Cast, None) => ", muttering words you do not know".to_owned(),
        (Action::Guard, None) => ", shield raised".to_owned(),
        (Action::Hold, None) => ", standing fast".to_owned(),
        (Action::Drink, None) => ", emptying a flask".to_owned(),
        _ => String::new(),
    }
}

fn describe(object: &ObjectState) -> String {
    let row = object_row(object.kind);
    let name = capital(row.name);
    match object.kind {
        ObjectKind::Stump => return "A stump. Somebody needed the tree more.".to_owned(),
        ObjectKind::Rubble => return "Rubble. It was something once.".to_owned(),
        ObjectKind::Rock => return "A rock. It was here first.".to_owned(),
        ObjectKind::Campfire => return "A campfire. Whoever lit it is not far.".to_owned(),
        ObjectKind::Keg if object.active => return "A keg. Its fuse is burning!".to_owned(),
        _ => {}
    }
    let manner = match (object.kind, object.active) {
        (ObjectKind::Door, true) => ", wide open",
        (ObjectKind::Door, false) => ", shut",
        (ObjectKind::Stone, _) => ", which was not here a moment ago",
        _ => "",
    };
    format!("{name}{manner}{}.", damage(object.hits, row.strength))
}

fn damage(hits: u16, strength: u16) -> &'static str {
    if strength == 0 || hits >= strength {
        return "";
    }
    match u32::from(hits) * 100 / u32::from(strength) {
        60.. => ", a little the worse for wear",
        25..60 => ", battered",
        _ => ", about to give way",
    }
}

fn ground(world: &World, pos: Pos) -> String {
    let tile = world.tile(pos);
    let what = match tile.terrain {
        Terrain::Water => "Water, too deep to wade",
        Terrain::Sand => "Sand, with few tracks in it",
        Terrain::Grass => "Grass, good to walk on",
        Terrain::Dirt => "Bare earth",
        Terrain::Forest => "Moss and old leaves",
        Terrain::Rock => "Stony ground",
        Terrain::Cliff => "A cliff that nobody climbs",
    };
    let view = if tile.height >= 180 && tile.terrain.is_walkable() {
        ". One sees far from here"
    } else {
        ""
    };
    format!("{what}{view}.")
}

/// A mob beyond this battle's arena, as its region was generated with it.
fn distant_mob(world: &World, battle: &Battle, id: EntityId) -> Option<String> {
    let region = id.mob_region()?;
    let is_neighbour = world
        .neighbours(battle.arena().region())
        .any(|near| near == region);
    let content = is_neighbour.then(|| world.content(region))?;
    let mob = content.mobs.iter().find(|mob| mob.id == id)?;
    let what = class(mob.class);
    Some(format!("{}, {what}, too far off to say more.", mob.name))
}

/// An object beyond this battle's arena, as it was generated.
fn distant_object(world: &World, battle: &Battle, key: ObjectKey) -> Option<String> {
    let region: RegionId = key.region();
    let is_neighbour = world
        .neighbours(battle.arena().region())
        .any(|near| near == region);
    let content = is_neighbour.then(|| world.content(region))?;
    // What should stand in the arena and does not is gone.
    let object = content
        .object(key)
        .filter(|object| !battle.arena().contains(object.pos()))?;
    let name = capital(object_row(object.kind).name);
    Some(format!("{name}, too far off to say more."))
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
