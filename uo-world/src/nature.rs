//! What grows and lies about, by terrain.

use uo_proto::{ObjectKind, RegionId, Terrain};

use crate::dice::{Dice, Purpose};
use crate::site::Site;

/// How many tiles in a thousand have what, on each terrain.
const fn growth(terrain: Terrain) -> &'static [(ObjectKind, u32)] {
    use ObjectKind::*;
    match terrain {
        Terrain::Forest => &[(Tree, 125), (Bush, 45), (Stump, 3), (Rock, 3)],
        Terrain::Grass => &[(Bush, 14), (Tree, 11), (Rock, 3)],
        Terrain::Dirt => &[(Rock, 16), (Bush, 12), (Tree, 5), (Stump, 5)],
        Terrain::Sand => &[(Rock, 9), (Bush, 5)],
        Terrain::Rock => &[(Rock, 60), (Bush, 6), (Tree, 4)],
        Terrain::Water | Terrain::Cliff => &[],
    }
}

/// Scatters trees, bushes and rocks over what is left of the site.
pub fn grow(site: &mut Site, seed: u64, region: RegionId) {
    let mut dice = Dice::new(seed, Purpose::Nature, region.0.into());
    for pos in site.area().positions() {
        let mut throw = dice.below(1_000);
        for &(kind, share) in growth(site.terrain(pos)) {
            if throw < share {
                site.scatter(kind, pos);
                break;
            }
            throw -= share;
        }
    }
}
