//! A world that froze because its store did not answer, and went on.
//!
//! While it is frozen nothing may change at all, so two pages of that time are compared value by value. From the last of
//! them to the first of the thawed world only a few ticks pass, and nobody may have changed by more than those allow.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use uo_proto::{CharId, Pos, RegionId};

use super::Violation;
use crate::node::{Character, Look};

/// Differences that are told; the first ones tell most.
const DIFFERENCES_MAX: usize = 20;
/// What a frozen page shows beside the world: who watches it.
const NOT_OF_THE_WORLD: [&str; 1] = ["subscribers"];

/// A whole `/state?full` of one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Scene {
    /// What every page says.
    pub look: Look,
    /// Everybody, in a battle or on the way.
    pub characters: BTreeMap<CharId, Character>,
    /// Everybody in a battle.
    players: BTreeMap<CharId, Player>,
    /// The regions and the characters, as the page has them.
    world: [Value; 2],
}

/// A character, as its battle knows it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Player {
    char_id: CharId,
    state: Body,
    ack: u64,
    inventory: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
struct Body {
    x: u16,
    y: u16,
    hits: u16,
}

impl Scene {
    /// Reads the page.
    pub fn parse(body: &str) -> anyhow::Result<Scene> {
        let state: Value = serde_json::from_str(body).context("/state?full is not JSON")?;
        Scene::of(state)
    }

    fn of(mut state: Value) -> anyhow::Result<Scene> {
        let look = Look::of(&state)?;
        let mut part = |name: &str| state["sim"][name].take();
        let world = [part("regions"), part("characters")];
        let mut players = BTreeMap::new();
        for region in world[0].as_array().into_iter().flatten() {
            let there: Vec<Player> = Vec::deserialize(&region["players"])
                .context("/state?full does not list players as expected")?;
            players.extend(there.into_iter().map(|player| (player.char_id, player)));
        }
        let characters = look.characters.iter().cloned();
        Ok(Scene {
            characters: characters.map(|one| (one.id, one)).collect(),
            look,
            players,
            world,
        })
    }

    /// Judges a later page of the same frozen world: nothing at all may be different.
    pub fn still(&self, later: &Scene) -> Vec<Violation> {
        let mut differences = Vec::new();
        let parts = self.world.iter().zip(&later.world);
        for (name, (before, after)) in ["regions", "characters"].iter().zip(parts) {
            compare(name, before, after, &mut differences);
        }
        differences
            .into_iter()
            .map(|what| Violation::Thaw(format!("while frozen, {what}")))
            .collect()
    }

    /// Judges a later page of the world that went on: everything is where it was, but for what its ticks can have done.
    pub fn went_on(&self, later: &Scene) -> Vec<Violation> {
        let mut wrong = self.kept_its_place(later);
        let ticks = self.ticks_until(later);
        for (id, before) in &self.players {
            let Some(after) = later.players.get(id) else {
                continue; // It is on its way from one region to the next, or it is missed below.
            };
            let (from, to) = (before.state, after.state);
            let steps = Pos::new(from.x, from.y).distance(Pos::new(to.x, to.y));
            // The dead come back elsewhere.
            if u64::from(steps) > ticks + 1 && from.hits > 0 {
                wrong.push(format!(
                    "{id} was at {},{} and {ticks} ticks later at {},{}",
                    from.x, from.y, to.x, to.y
                ));
            }
            if ticks == 0 && from != to {
                wrong.push(format!("{id} was {from:?} and without a tick is {to:?}"));
            }
            if after.inventory < before.inventory || after.ack < before.ack {
                wrong.push(format!(
                    "{id} had inventory {} and order {}, and has {} and {}",
                    before.inventory, before.ack, after.inventory, after.ack
                ));
            }
        }
        wrong.into_iter().map(Violation::Thaw).collect()
    }

    /// What holds however much later a page is: no boot, lease, character, session or promise is lost.
    pub fn kept(&self, later: &Scene) -> Vec<Violation> {
        let wrong = self.kept_its_place(later);
        wrong.into_iter().map(Violation::Thaw).collect()
    }

    /// Most ticks that a region made until `later`.
    pub fn ticks_until(&self, later: &Scene) -> u64 {
        let grown = self.look.regions.iter().filter_map(|(region, before)| {
            Some(
                later
                    .look
                    .regions
                    .get(region)?
                    .ticks
                    .saturating_sub(before.ticks),
            )
        });
        grown.max().unwrap_or_default()
    }

    fn kept_its_place(&self, later: &Scene) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.look.boot != later.look.boot {
            wrong.push(format!(
                "boot {} became {}",
                self.look.boot, later.look.boot
            ));
        }
        for (region, before) in &self.look.regions {
            match later.look.regions.get(region) {
                None => wrong.push(format!("region {region} is not held any more")),
                Some(after) if after.epoch != before.epoch || after.ticks < before.ticks => {
                    wrong.push(format!("region {region} was {before:?} and is {after:?}"));
                }
                Some(_) => {}
            }
        }
        let found = |region: &RegionId| !self.look.regions.contains_key(region);
        if let Some(region) = later.look.regions.keys().find(|region| found(region)) {
            wrong.push(format!("region {region} was not held before"));
        }
        for (id, before) in &self.characters {
            match later.characters.get(id) {
                None => wrong.push(format!("{id} ({}) is gone", before.name)),
                Some(after) => wrong.extend(lost(before, after)),
            }
        }
        wrong.truncate(DIFFERENCES_MAX);
        wrong
    }
}

/// What a character had and has no more, in words.
fn lost(before: &Character, after: &Character) -> Option<String> {
    // One that is on its way to another region shows none of these.
    let is_on_its_way = after.generation == 0 || before.generation == 0;
    // A new owner promises anew: what the one before it promised is in the row that it loaded.
    let is_moved = after.generation > before.generation;
    let kept = after.session == before.session
        && after.generation >= before.generation
        && after.last_order >= before.last_order
        && (is_moved || after.saved >= before.saved);
    (!is_on_its_way && !kept).then(|| format!("a character was {before:?} and is {after:?}"))
}

/// Where two pages differ, as paths.
fn compare(path: &str, before: &Value, after: &Value, differences: &mut Vec<String>) {
    if differences.len() >= DIFFERENCES_MAX || before == after {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            let keys = one.keys().chain(added);
            for key in keys.filter(|key| !NOT_OF_THE_WORLD.contains(&key.as_str())) {
                let value = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let (was, is) = (value(one), value(other));
                compare(
                    &format!("{path}.{key}"),
                    &was.unwrap_or_default(),
                    &is.unwrap_or_default(),
                    differences,
                );
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (was, is)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), was, is, differences);
            }
        }
        (Value::Array(one), Value::Array(other)) => differences.push(format!(
            "{path} had {} entries and has {}",
            one.len(),
            other.len()
        )),
        _ => differences.push(format!("{path} was {before} and is {after}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(tick: u64, x: u16, session: u64) -> Value {
        json!({
            "boot": "ab",
            "cluster": {"life": 1, "members": []},
            "sim": {
                "fenced": true,
                "counters": {},
                "regions": [{
                    "region": 3, "epoch": 2, "tick": tick, "subscribers": ["all-1"],
                    "players": [{"char_id": 9, "state": {"x": x, "y": 5, "hits": 40}, "ack": 7, "inventory": 4}],
                    "mobs": [{"id": 1, "state": {"x": 1, "y": 1, "hits": tick}}],
                }],
                "characters": [{
                    "id": 9, "name": "bot", "generation": 3, "session": session, "last_order": 7, "saved": 6, "phase": "playing",
                }],
            },
        })
    }

    fn scene(page: Value) -> Scene {
        Scene::of(page).expect("it is read")
    }

    #[test]
    fn a_frozen_world_is_the_same_to_the_last_mob() {
        let before = scene(page(100, 10, 1));
        let mut same = page(100, 10, 1);
        same["sim"]["regions"][0]["subscribers"] = json!([]);
        assert_eq!(before.still(&scene(same)), []);
        let moved = before.still(&scene(page(101, 10, 1)));
        assert_eq!(
            moved[0].to_string(),
            "while frozen, regions[0].mobs[0].state.hits was 100 and is 101"
        );
        assert_eq!(moved.len(), 2);
    }

    #[test]
    fn a_world_that_goes_on_takes_a_tick_for_every_step() {
        let before = scene(page(100, 10, 1));
        assert_eq!(before.went_on(&scene(page(100, 10, 1))), []);
        assert_eq!(before.went_on(&scene(page(104, 12, 1))), []);
        assert_eq!(before.went_on(&scene(page(104, 30, 1))).len(), 1);
        assert_eq!(before.went_on(&scene(page(100, 11, 1))).len(), 1);
        assert_eq!(before.went_on(&scene(page(99, 10, 1))).len(), 1);
        assert_eq!(before.went_on(&scene(page(101, 10, 2))).len(), 1);
    }

    #[test]
    fn nothing_is_lost_however_late_one_looks() {
        let before = scene(page(100, 10, 1));
        assert_eq!(before.kept(&scene(page(900, 500, 1))), []);
        let mut gone = page(900, 500, 1);
        gone["sim"]["characters"] = json!([]);
        gone["sim"]["regions"] = json!([]);
        gone["boot"] = json!("cd");
        assert_eq!(before.kept(&scene(gone)).len(), 3);
        let mut other = page(900, 500, 1);
        other["sim"]["regions"][0]["epoch"] = json!(3);
        other["sim"]["characters"][0]["saved"] = json!(5);
        assert_eq!(before.kept(&scene(other)).len(), 2);
    }
}
