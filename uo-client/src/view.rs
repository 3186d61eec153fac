//! The screen as lines of text: the map around the character, its state, and what happened lately.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{AOI_RADIUS, Edge, ItemKind, ObjectState, Pos, map};
use uo_sdk::LocalWorld;

use crate::glyph;
use crate::input::{Input, Mode};
use crate::journal::Journal;

/// Lines beside the map: two of state, one to write in.
const LINES_BESIDE: usize = 3;
/// Lines of the journal that are shown at least.
const JOURNAL_LINES_MIN: usize = 5;

const KEYS: [&str; 9] = [
    "h j k l y u b n or arrows  walk",
    "a  attack the nearest      s  stop",
    "c  cast at the nearest     1-9  choose a spell",
    "g  guard                   p  drink a potion",
    "o  open or close a door    K  plant a keg ahead",
    "i  inventory               Enter  say something",
    "q  leave                   ?  the map again",
    "@ you  W A M players  b a c bandits  % a body",
    "& tree  O rock  \" bush  = crate  ! keg  n tent  + door",
];

/// Everything on the screen: at most `height` lines of at most `width` characters.
pub fn screen(
    world: &LocalWorld,
    journal: &Journal,
    input: &Input,
    width: usize,
    height: usize,
) -> Vec<String> {
    let map_lines = height
        .saturating_sub(LINES_BESIDE + JOURNAL_LINES_MIN)
        .min(usize::from(AOI_RADIUS) * 2 + 1);
    let mut lines = match input.mode() {
        Mode::Keys => KEYS.map(str::to_owned).to_vec(),
        Mode::Inventory => inventory(world),
        Mode::Play | Mode::Say(_) => map_around(world, width, map_lines),
    };
    lines.resize(map_lines, String::new());
    lines.extend(state(world, input));
    let mut latest: Vec<_> = journal
        .newest()
        .take(height.saturating_sub(map_lines + LINES_BESIDE))
        .map(str::to_owned)
        .collect();
    latest.reverse();
    lines.extend(latest);
    lines.resize(height.saturating_sub(1), String::new());
    lines.push(match input.mode() {
        Mode::Say(text) => format!("Say: {text}_"),
        _ => String::new(),
    });
    lines.truncate(height);
    lines.iter().map(|line| fit(line, width)).collect()
}

/// A line as the terminal may have it: what others wrote must neither wrap nor steer it.
fn fit(line: &str, width: usize) -> String {
    let shown = line.chars().filter(|c| !c.is_control());
    shown.take(width).collect()
}

fn state(world: &LocalWorld, input: &Input) -> [String; 2] {
    let Pos { x, y } = world.pos();
    let Some(me) = world.me() else {
        return ["Not in the world yet.".into(), String::new()];
    };
    let purse = world.inventory().map_or(String::new(), |inventory| {
        let potions = inventory.count(ItemKind::Potion);
        let kegs = inventory.count(ItemKind::Keg);
        let coins = inventory.coins.len();
        format!("  potions {potions}  kegs {kegs}  coins {coins}")
    });
    let first = format!(
        "{} ({:?})  hits {}/{}  at {x},{y}  {:?}{purse}",
        me.info.name, me.info.class, me.state.hits, me.info.hits_max, me.state.action,
    );
    let target = me.state.target.and_then(|id| world.entity(id));
    let fight = target.map_or(String::new(), |target| {
        let (name, hits, max) = (&target.info.name, target.state.hits, target.info.hits_max);
        format!("  fighting {name} {hits}/{max}")
    });
    let spell = input.spell(world).map(|spell| format!("spell {spell:?}"));
    [first, format!("{}{fight}", spell.unwrap_or_default())]
}

fn inventory(world: &LocalWorld) -> Vec<String> {
    let Some(inventory) = world.inventory() else {
        return vec!["The server has not told yet what you have.".into()];
    };
    let worn = &inventory.equipment;
    let mut lines = vec!["Worn:".to_owned()];
    for item in [worn.weapon, worn.armour, worn.shield, worn.ring] {
        lines.extend(item.map(|item| format!("  {item:?}")));
    }
    lines.push("Carried:".into());
    for stack in &inventory.items {
        lines.push(format!("  {} x {:?}", stack.count, stack.item));
    }
    lines.push(format!("  {} coins", inventory.coins.len()));
    lines
}

/// The map with the character in the middle: two characters a tile, the first for what stands on its edges.
fn map_around(world: &LocalWorld, width: usize, height: usize) -> Vec<String> {
    let Some(info) = world.map() else {
        return Vec::new();
    };
    let columns = (width / 2).min(usize::from(AOI_RADIUS) * 2 + 1);
    let center = world.pos();
    let things = Things::around(world, center);
    let line = |row: usize| -> String {
        let tile = |column: usize| {
            let x = i64::from(center.x) + column as i64 - columns as i64 / 2;
            let y = i64::from(center.y) + row as i64 - height as i64 / 2;
            let on_map = |number: i64| u16::try_from(number).ok().filter(|&n| n < info.size);
            match on_map(x).zip(on_map(y)) {
                Some((x, y)) => things.tile(info.seed, Pos::new(x, y)),
                None => [glyph::NOWHERE; 2],
            }
        };
        (0..columns).flat_map(tile).collect()
    };
    (0..height).map(line).collect()
}

/// What stands and moves in view, by tile.
#[derive(Default)]
struct Things {
    on_tile: BTreeMap<Pos, char>,
    west: BTreeMap<Pos, ObjectState>,
    north: BTreeMap<Pos, ObjectState>,
}

impl Things {
    fn around(world: &LocalWorld, center: Pos) -> Things {
        let mut things = Things::default();
        for object in world.objects_near(center, AOI_RADIUS) {
            match object.edge {
                Some(Edge::West) => drop(things.west.insert(object.pos(), object)),
                Some(Edge::North) => drop(things.north.insert(object.pos(), object)),
                None => {
                    let char = glyph::of_object(object.kind);
                    things.on_tile.insert(object.pos(), char);
                }
            }
        }
        // The living above the dead, and oneself above all.
        let (dead, alive): (Vec<_>, Vec<_>) = world.entities().partition(|e| !e.is_alive());
        for entity in dead.into_iter().chain(alive) {
            let char = glyph::of_entity(entity);
            things.on_tile.insert(entity.state.pos(), char);
        }
        if world.me().is_some_and(uo_sdk::Entity::is_alive) {
            things.on_tile.insert(center, glyph::MYSELF);
        }
        things
    }

    fn tile(&self, seed: u64, pos: Pos) -> [char; 2] {
        let (west, north) = (self.west.get(&pos), self.north.get(&pos));
        let ground = || glyph::of_terrain(map::tile_at(seed, pos.x, pos.y).terrain);
        let tile = self.on_tile.get(&pos).copied().unwrap_or_else(ground);
        [glyph::of_edge(west.copied(), north.copied()), tile]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world;
    use uo_proto::{Delta, ServerMsg};
    use uo_sdk::Event;

    #[test]
    fn the_character_is_in_the_middle_and_others_where_they_stand() {
        let world = test_world::with_bandit_two_east();
        let lines = screen(&world, &Journal::default(), &Input::default(), 80, 40);
        assert_eq!(lines.len(), 40);
        // 40 lines less 8 leave 32 for the map, and 37 tiles of 74 characters.
        assert_eq!(lines[16].chars().count(), 74);
        let middle: Vec<char> = lines[16].chars().collect();
        assert_eq!(middle[18 * 2 + 1], '@');
        assert_eq!(middle[20 * 2 + 1], 'b');
        assert_eq!(middle[19 * 2], '+', "a closed door west of the next tile");
        assert!(lines[32].starts_with("Ann (Mage)  hits 90/100  at 500,400"));
        assert!(lines[33].contains("fighting Bandit 60/60"));
    }

    #[test]
    fn beyond_the_map_is_nothing_and_terrain_is_drawn() {
        let world = test_world::at(Pos::new(0, 0));
        let lines = screen(&world, &Journal::default(), &Input::default(), 80, 40);
        assert!(lines[0].trim().is_empty());
        let row: Vec<char> = lines[17].chars().collect();
        let terrain = map::tile_at(test_world::SEED, 3, 1).terrain;
        assert_eq!(row[(18 + 3) * 2 + 1], glyph::of_terrain(terrain));
    }

    // Seen red with the filter of control characters removed.
    #[test]
    fn what_others_write_cannot_steer_the_terminal() {
        let world = test_world::at(Pos::new(500, 400));
        let mut journal = Journal::default();
        journal.add("Eve: \u{1b}[2J\u{9b}gone\n".into());
        let lines = screen(&world, &journal, &Input::default(), 20, 24);
        assert!(lines.iter().any(|line| line == "Eve: [2Jgone"));
        assert!(lines.iter().all(|line| line.chars().count() <= 20));
    }

    #[test]
    fn no_size_is_too_small_and_no_world_too_empty() {
        for (width, height) in [(0, 0), (1, 1), (3, 9), (500, 200)] {
            for world in [LocalWorld::default(), test_world::with_bandit_two_east()] {
                let lines = screen(
                    &world,
                    &Journal::default(),
                    &Input::default(),
                    width,
                    height,
                );
                assert_eq!(lines.len(), height);
            }
        }
    }

    #[test]
    fn who_leaves_is_gone_from_the_map() {
        let mut world = test_world::with_bandit_two_east();
        let leave = Delta {
            tick: 1,
            leave: vec![test_world::BANDIT],
            ..Delta::default()
        };
        world
            .apply(&Event::Message(ServerMsg::Delta(leave)))
            .unwrap();
        let lines = screen(&world, &Journal::default(), &Input::default(), 80, 40);
        assert_ne!(lines[16].chars().nth(20 * 2 + 1), Some('b'));
    }
}
