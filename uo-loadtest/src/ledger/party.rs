//! Who takes part: characters that begin close to each other, so that each hears all from the first moment on.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use anyhow::ensure;
use uo_world::{World, spawn_point};

/// How far from the middle one may begin, in tiles: two such are within earshot of each other.
const RADIUS: u16 = 8;
/// Names tried.
const TRIES: u32 = 1_000_000;

/// Names of `count` new characters that begin near the middle of one region of `world`.
pub fn names(world: &World, count: usize) -> anyhow::Result<Vec<String>> {
    let middle = world
        .regions()
        .next()
        .map(|region| world.content(region).respawn)
        .unwrap_or_default();
    let near = |name: &String| spawn_point(world, name).distance(middle) <= RADIUS;
    let names: Vec<String> = (0..TRIES)
        .map(|number| format!("ledger-{number}"))
        .filter(near)
        .take(count)
        .collect();
    ensure!(
        names.len() == count,
        "only {} characters begin near each other on this map",
        names.len()
    );
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_begin_within_earshot() {
        let world = World::new(7, 64).unwrap();
        let names = names(&world, 16).unwrap();
        let places: Vec<_> = names.iter().map(|name| spawn_point(&world, name)).collect();
        for one in &places {
            let heard = |other: &&_| one.distance(**other) <= uo_proto::AOI_RADIUS;
            assert_eq!(places.iter().filter(heard).count(), 16);
        }
    }
}
