//! Pinning: who fights something in a neighbouring region does so in that region's battle.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::{ARENA_MARGIN, Battle};
use uo_proto::{EntityId, Order, Pos, RegionId, Spell, Target};
use uo_world::World;

/// The region whose battle `who` has to join before it can carry out `order`; none: it is in the right one, or stands
/// too far from the other's border for that. `hint` is the region whose feed shows the target, as the gateway sees it:
/// nobody else knows where another player is.
pub fn region_for(
    world: &World,
    battle: &Battle,
    who: EntityId,
    order: &Order,
    hint: Option<RegionId>,
) -> Option<RegionId> {
    let (target, radius) = match *order {
        Order::Attack { target } => (target, 0),
        Order::Cast { spell, target } => (target, splash(spell)),
        _ => return None,
    };
    let here = battle.arena().region();
    let there = match target {
        Target::Entity(id) if battle.contains(id) => return None,
        Target::Entity(id) => id.mob_region().or(hint)?,
        Target::Object(key) => key.region(),
        Target::Tile(tile) if !world.contains(tile) => return None,
        // A fight that spilled over the border stays in its battle.
        Target::Tile(tile) if is_anybody_near(battle, who, tile, radius) => return None,
        Target::Tile(tile) => world.region_at(tile),
    };
    let stands = battle.pos(who)?;
    let is_neighbour = world.neighbours(here).any(|region| region == there);
    (is_neighbour && world.area(there).distance(stands) <= ARENA_MARGIN).then_some(there)
}

/// How far from its tile a spell is felt.
fn splash(spell: Spell) -> u16 {
    uo_combat::table::spell_row(spell).info.radius
}

fn is_anybody_near(battle: &Battle, who: EntityId, tile: Pos, radius: u16) -> bool {
    battle
        .entities()
        .filter(|&id| id != who)
        .filter_map(|id| battle.state(id))
        .any(|state| state.hits > 0 && state.pos().distance(tile) <= radius)
}
