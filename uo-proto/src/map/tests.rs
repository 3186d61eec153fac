use proptest::prelude::*;

use super::*;

/// FNV-1a over the tiles of a window, to pin them in one number.
fn digest(window: &Window) -> u64 {
    let bytes: Vec<u8> = window
        .tiles()
        .iter()
        .flat_map(|tile| [tile.terrain as u8, tile.height])
        .collect();
    crate::fnv1a(&bytes)
}

proptest! {
    /// Red when `add_row` keeps the hashed rows for ever.
    #[test]
    fn a_window_equals_the_whole_map(
        seed: u64, x: u16, y: u16, width in 1u16..90, height in 1u16..20,
    ) {
        let window = Window::new(seed, Pos::new(x, y), width, height);
        prop_assert_eq!(window.tiles().len(), usize::from(window.width()) * usize::from(window.height()));
        for dy in 0..window.height() {
            for dx in 0..window.width() {
                let pos = Pos::new(x + dx, y + dy);
                prop_assert_eq!(window.get(pos), Some(tile_at(seed, pos.x, pos.y)));
            }
        }
        prop_assert_eq!(window.get(Pos::new(x, y.wrapping_add(height))), None);
        prop_assert_eq!(window.get(Pos::new(x.wrapping_sub(1), y)), None);
    }

    #[test]
    fn only_water_lies_at_sea_level(seed: u64, x: u16, y: u16) {
        let tile = tile_at(seed, x, y);
        prop_assert_eq!(tile.height == 0, tile.terrain == Terrain::Water);
    }

    #[test]
    fn heights_change_smoothly(seed: u64, x in 0u16..65_535, y: u16) {
        let (here, east) = (tile_at(seed, x, y).height, tile_at(seed, x + 1, y).height);
        prop_assert!(here.abs_diff(east) <= 24, "{here} beside {east}");
    }

    /// Red when `classify` does not call `homeland`.
    #[test]
    fn the_north_west_corner_is_walkable(seed: u64) {
        let window = Window::new(seed, Pos::new(0, 0), 64, 64);
        prop_assert!(window.tiles().iter().all(|tile| tile.terrain.is_walkable()));
    }
}

#[test]
fn a_window_ends_with_the_coordinates() {
    let window = Window::new(1, Pos::new(65_530, 65_535), 100, 100);
    assert_eq!((window.width(), window.height()), (6, 1));
    assert_eq!(
        window.get(Pos::new(u16::MAX, u16::MAX)),
        Some(tile_at(1, u16::MAX, u16::MAX))
    );
}

/// Stored objects and characters stand on this ground: a change of these numbers is a change of every world.
#[test]
fn the_map_never_changes() {
    let digests =
        [0, 1, u64::MAX].map(|seed| digest(&Window::new(seed, Pos::new(900, 2_000), 256, 256)));
    assert_eq!(
        digests,
        [
            14_288_820_452_494_573_921,
            17_813_451_489_100_036_446,
            16_022_446_010_145_668_010,
        ]
    );
}

#[test]
fn most_of_the_world_can_be_walked_and_every_terrain_occurs() {
    let mut counts = [0usize; 7];
    for seed in 0..12 {
        for tile in Window::new(seed, Pos::new(0, 0), 1024, 1024).tiles() {
            counts[tile.terrain as usize] += 1;
        }
    }
    let total: usize = counts.iter().sum();
    let share = |terrain: Terrain| counts[terrain as usize] * 100 / total;
    let walkable = 100 - share(Terrain::Water) - share(Terrain::Cliff);
    assert!(
        (70..=82).contains(&walkable),
        "{walkable} % walkable: {counts:?}"
    );
    assert!(
        counts.iter().all(|&count| count * 100 >= total),
        "{counts:?}"
    );
}

/// The largest piece of land that hangs together holds most of what can be walked.
#[test]
fn the_land_hangs_together() {
    const SIZE: usize = 1024;
    for seed in 0..12 {
        let window = Window::new(seed, Pos::new(0, 0), SIZE as u16, SIZE as u16);
        let mut unseen: Vec<bool> = window
            .tiles()
            .iter()
            .map(|tile| tile.terrain.is_walkable())
            .collect();
        let walkable = unseen.iter().filter(|&&walkable| walkable).count();
        let mut largest = 0;
        for start in 0..unseen.len() {
            let mut piece = 0;
            let mut queue = vec![start];
            while let Some(at) = queue.pop() {
                if !std::mem::take(&mut unseen[at]) {
                    continue;
                }
                piece += 1;
                let (x, y) = (at % SIZE, at / SIZE);
                queue.extend(
                    [
                        (x > 0).then(|| at - 1),
                        (x + 1 < SIZE).then(|| at + 1),
                        (y > 0).then(|| at - SIZE),
                        (y + 1 < SIZE).then(|| at + SIZE),
                    ]
                    .into_iter()
                    .flatten(),
                );
            }
            largest = largest.max(piece);
        }
        assert!(
            largest * 100 >= walkable * 75,
            "seed {seed}: {largest} of {walkable}"
        );
    }
}
