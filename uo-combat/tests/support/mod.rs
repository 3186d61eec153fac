//! Battles as small scripts, and their logs as text.
//!
//! ```text
//! field 24x10                    walkable ground of that size
//! water 3,4                      a tile that cannot be walked
//! door 9,4 west                  any object kind; `north` or `west` puts it on an edge; objects are named k0, k1, ...
//! foreign crate 9,5              an object of the region next door
//! warrior hero 2,4               a character: class, name, place
//! bandit b1 12,4                 a mob: class, name, home
//! at 500 hero attack b1          an order at that time in milliseconds; orders at 0 come first
//! watch b1                       log its every move
//! run 9000                       how long
//! ```
#![allow(dead_code, reason = "each test file uses its part")]

pub mod skirmish;

use std::fmt::Write as _;

use uo_combat::table::object_row;
use uo_combat::*;
use uo_proto::*;

pub const REGION: RegionId = RegionId(7);
pub const NEIGHBOUR: RegionId = RegionId(8);

/// A script, read.
pub struct Script {
    pub setup: Setup,
    pub fighters: Vec<Fighter>,
    pub orders: Vec<(u64, EntityId, Order)>,
    pub run_ms: u64,
    watched: Vec<EntityId>,
    names: Vec<(EntityId, String)>,
}

impl Script {
    pub fn read(text: &str, seed: u64) -> Script {
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|words: &Vec<&str>| !words.is_empty())
            .collect();
        let size = lines
            .iter()
            .find(|words| words[0] == "field")
            .expect("a script has a field");
        let (width, height) = pair(size[1], 'x');
        let bounds = Rect {
            x: 0,
            y: 0,
            width,
            height,
        };
        let mut ground = vec![
            Ground {
                walkable: true,
                height: 100
            };
            bounds.tiles()
        ];
        for words in lines.iter().filter(|words| words[0] == "water") {
            let (x, y) = pair(words[1], ',');
            ground[usize::from(y) * usize::from(width) + usize::from(x)].walkable = false;
        }
        let mut script = Script {
            setup: Setup {
                region: REGION,
                epoch: 3,
                seed,
                arena: Arena::new(REGION, bounds, bounds, ground),
                mobs: Vec::new(),
                respawn: Pos::new(width / 2, height / 2),
            },
            fighters: Vec::new(),
            orders: Vec::new(),
            run_ms: 0,
            watched: Vec::new(),
            names: Vec::new(),
        };
        for words in &lines {
            script.line(words);
        }
        script
    }

    fn line(&mut self, words: &[&str]) {
        match *words {
            ["field", _] | ["water", _] => {}
            ["watch", name] => self.watched.push(self.id(name)),
            ["run", ms] => self.run_ms = ms.parse().unwrap(),
            ["respawn", at] => self.setup.respawn = pos(at),
            ["at", ms, who, ref order @ ..] => {
                let order = self.parse_order(order);
                self.orders.push((ms.parse().unwrap(), self.id(who), order));
            }
            ["foreign", ref object @ ..] => self.object(NEIGHBOUR, object),
            [class, name, at] if class_named(class).is_some() => {
                self.being(class_named(class).unwrap(), name, pos(at));
            }
            ref object => self.object(REGION, object),
        }
    }

    fn being(&mut self, class: Class, name: &str, home: Pos) {
        let id = match class {
            Class::Warrior | Class::Archer | Class::Mage => CharId::of_name(name).entity(),
            _ => EntityId::mob(REGION, self.setup.mobs.len() as u8),
        };
        self.names.push((id, name.to_owned()));
        let name = name.to_owned();
        if id.character().is_some() {
            self.fighters
                .push(Fighter::of_class(id, &name, class, home));
        } else {
            self.setup.mobs.push(MobSpawn {
                id,
                class,
                name,
                home,
            });
        }
    }

    fn object(&mut self, region: RegionId, words: &[&str]) {
        let kind: ObjectKind = named(words[0]);
        let at = pos(words[1]);
        let index = self.setup.arena.objects().count() as u32;
        self.setup.arena.place(ObjectState {
            key: ObjectKey::new(region, index),
            kind,
            x: at.x,
            y: at.y,
            edge: words.get(2).map(|edge| named(edge)),
            hits: object_row(kind).strength,
            active: false,
            gone: false,
        });
    }

    fn parse_order(&self, words: &[&str]) -> Order {
        match *words {
            ["walk", at] => Order::WalkTo {
                x: pos(at).x,
                y: pos(at).y,
            },
            ["move", "none"] => Order::Move { dir: None },
            ["move", dir] => Order::Move {
                dir: Some(named(dir)),
            },
            ["step", dir] => Order::Step { dir: named(dir) },
            ["stop"] => Order::Stop,
            ["attack", target] => Order::Attack {
                target: self.target(target),
            },
            ["cast", spell, target] => Order::Cast {
                spell: named(spell),
                target: self.target(target),
            },
            ["guard"] => Order::Guard,
            ["potion"] => Order::Potion,
            ["hold"] => Order::Hold,
            ["open", object] => match self.target(object) {
                Target::Object(object) => Order::Open { object },
                other => panic!("{other:?} does not open"),
            },
            ["plant", at] => Order::Plant {
                x: pos(at).x,
                y: pos(at).y,
            },
            ["equip", item] => Order::Equip { item: named(item) },
            ["unequip", slot] => Order::Unequip { slot: named(slot) },
            ref other => panic!("no order: {other:?}"),
        }
    }

    fn target(&self, word: &str) -> Target {
        if word.contains(',') {
            return Target::Tile(pos(word));
        }
        let key = word
            .strip_prefix('k')
            .and_then(|index| index.parse::<u32>().ok());
        let key = key.map(|index| {
            let region = if self
                .setup
                .arena
                .object(ObjectKey::new(NEIGHBOUR, index))
                .is_some()
            {
                NEIGHBOUR
            } else {
                REGION
            };
            Target::Object(ObjectKey::new(region, index))
        });
        key.unwrap_or_else(|| Target::Entity(self.id(word)))
    }

    pub fn id(&self, name: &str) -> EntityId {
        let named = self.names.iter().find(|(_, known)| known == name);
        named.unwrap_or_else(|| panic!("nobody is called {name}")).0
    }

    pub fn name(&self, id: EntityId) -> String {
        let named = self.names.iter().find(|(known, _)| *known == id);
        named.map_or_else(|| id.to_string(), |(_, name)| name.clone())
    }

    /// The battle as the script begins.
    pub fn open(&self) -> Battle {
        let mut battle = Battle::open(self.setup.clone());
        for fighter in &self.fighters {
            battle.admit(fighter.clone()).unwrap();
        }
        battle
    }

    /// Gives the orders of that time; `seq` is an order's place in the script plus 1.
    pub fn give(&self, battle: &mut Battle, now_ms: u64, log: &mut String) {
        for (seq, (ms, id, order)) in (1..).zip(&self.orders) {
            if *ms == now_ms
                && let Err(refusal) = battle.order(*id, seq, order)
            {
                let (name, code) = (self.name(*id), refusal.code);
                writeln!(log, "{now_ms:6} {name} refused #{seq}: {code:?}, {refusal}").unwrap();
            }
        }
    }

    /// Everything that happened, a line each, and how it stands at the end.
    pub fn play(&self) -> String {
        let mut battle = self.open();
        let mut log = String::new();
        let mut report = Report::default();
        for now_ms in (0..self.run_ms).step_by(SIM_STEP_MS as usize) {
            self.give(&mut battle, now_ms, &mut log);
            battle.step(&mut report);
            self.write(&mut log, now_ms, &report);
            let changed = report.changed.iter().filter(|id| self.watched.contains(id));
            for &id in changed {
                let now = self.standing(&battle, id);
                writeln!(log, "{now_ms:6}   {now}").unwrap();
            }
        }
        self.write_end(&mut log, &battle);
        log
    }

    pub fn write(&self, log: &mut String, now_ms: u64, report: &Report) {
        for event in &report.events {
            writeln!(log, "{now_ms:6} {}", self.event(&event.event)).unwrap();
        }
        for notice in &report.notices {
            writeln!(log, "{now_ms:6}   {}", self.renamed(&format!("{notice:?}"))).unwrap();
        }
        for object in &report.objects {
            let (key, kind, hits) = (key(object.key), object.kind, object.hits);
            let active = if object.active { " active" } else { "" };
            let gone = if object.gone { " gone" } else { "" };
            writeln!(log, "{now_ms:6}   {key}: {kind:?} {hits}{active}{gone}").unwrap();
        }
        for hit in &report.foreign_hits {
            let (key, damage, fire) = (key(hit.key), hit.damage, hit.fire);
            writeln!(log, "{now_ms:6}   foreign {key}: -{damage} fire {fire}").unwrap();
        }
    }

    pub fn write_end(&self, log: &mut String, battle: &Battle) {
        writeln!(log, "end").unwrap();
        for id in battle.entities() {
            writeln!(log, "{}", self.standing(battle, id)).unwrap();
        }
    }

    fn standing(&self, battle: &Battle, id: EntityId) -> String {
        let name = self.name(id);
        let Some(state) = battle.state(id) else {
            return format!("{name} is away");
        };
        let (x, y, hits, action) = (state.x, state.y, state.hits, state.action);
        let target = state.target.map(|id| format!(" -> {}", self.name(id)));
        format!(
            "{name} {x},{y} {hits} {action:?}{}",
            target.unwrap_or_default()
        )
    }

    fn event(&self, event: &CombatEvent) -> String {
        self.renamed(&format!("{event:?}"))
    }

    /// Debug text with ids as names and less noise.
    fn renamed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, name) in &self.names {
            text = text.replace(&format!("{id:?}"), name);
        }
        for (from, to) in [("Entity(", "("), ("Object(ObjectKey", "(ObjectKey")] {
            text = text.replace(from, to);
        }
        while let Some(start) = text.find("ObjectKey(") {
            let end = start + text[start..].find(')').unwrap();
            let number: u64 = text[start + "ObjectKey(".len()..end].parse().unwrap();
            text.replace_range(start..=end, &key(ObjectKey(number)));
        }
        text
    }
}

/// `k3`, `r0` for a runtime object, `n3` for a neighbour's.
fn key(key: ObjectKey) -> String {
    let index = key.index() & !RUNTIME_OBJECT_BIT;
    match (key.region() == REGION, key.is_runtime()) {
        (false, _) => format!("n{index}"),
        (true, true) => format!("r{index}"),
        (true, false) => format!("k{index}"),
    }
}

fn class_named(word: &str) -> Option<Class> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

fn named<T: serde::de::DeserializeOwned>(word: &str) -> T {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .unwrap_or_else(|error| panic!("{word}: {error}"))
}

fn pos(word: &str) -> Pos {
    let (x, y) = pair(word, ',');
    Pos::new(x, y)
}

fn pair(word: &str, between: char) -> (u16, u16) {
    let (a, b) = word.split_once(between).unwrap();
    (a.parse().unwrap(), b.parse().unwrap())
}

/// Through MessagePack and back, as a drain does.
pub fn through_bytes<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let bytes = rmp_serde::to_vec_named(value).unwrap();
    rmp_serde::from_slice(&bytes).unwrap()
}
