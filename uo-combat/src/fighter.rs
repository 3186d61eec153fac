//! One fighter's whole portable state: what a handoff carries and a checkpoint keeps.

use serde::{Deserialize, Serialize};
use uo_proto::{
    Action, CharId, Class, Dir, EntityId, Inventory, ItemKind, ObjectKey, Pos, Slot, Spell, Target,
};

use crate::table::balance::FOES_MAX;
use crate::table::{self, class_row, item_row, kit};
use crate::{RESPAWN_MS, STEP_QUEUE};

/// A fighter: place, hits, inventory, and every timer as *remaining* milliseconds, so that it goes on anywhere.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fighter {
    /// Who.
    pub id: EntityId,
    /// Shown above its head.
    pub name: String,
    /// How it fights.
    pub class: Class,
    /// The tile it stands on, or is stepping onto.
    pub pos: Pos,
    /// Which way it faces.
    #[serde(default)]
    pub heading: Dir,
    /// Hits left; 0 is dead.
    pub hits: u16,
    /// What it has.
    pub inventory: Inventory,
    /// What is under way.
    #[serde(default)]
    pub(crate) act: Act,
    /// What it takes still.
    #[serde(default)]
    pub(crate) act_ms: u32,
    /// What it was asked to do.
    #[serde(default)]
    pub(crate) intent: Intent,
    /// Whether its guard is up.
    #[serde(default)]
    pub(crate) guard: bool,
    /// Everything that runs out.
    #[serde(default)]
    pub(crate) clocks: Clocks,
    /// Who fought it lately.
    #[serde(default)]
    pub(crate) foes: Vec<Foe>,
}

/// What is under way until `act_ms` has passed.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Nothing: the next action can begin.
    #[default]
    Idle,
    /// A step onto the fighter's tile.
    Step { run: bool },
    /// A blow or a shot, before its effect.
    Windup {
        target: Target,
        weapon: Option<ItemKind>,
    },
    /// A spell, before its effect.
    Cast {
        spell: Spell,
        target: Target,
        seq: u64,
    },
    /// A potion, before its effect.
    Drink { seq: u64 },
    /// A keg being planted.
    Plant { at: Pos, seq: u64 },
    /// After an effect, still showing the action.
    Recover { shown: Action },
}

/// What a fighter was asked to do and has not done yet.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Intent {
    /// `step` orders in their order.
    pub(crate) steps: Vec<QueuedStep>,
    /// The goal of a `walk_to`.
    pub(crate) walk: Option<Walk>,
    /// The heading of a `move`.
    pub(crate) held: Option<Dir>,
    /// Whom or what to fight.
    pub(crate) attack: Option<Attack>,
    /// One thing to do when the present one is over.
    pub(crate) wish: Option<Wish>,
    /// Stand, and strike only what comes into reach.
    pub(crate) hold: bool,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedStep {
    pub(crate) dir: Dir,
    pub(crate) seq: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Walk {
    pub(crate) goal: Pos,
    pub(crate) seq: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Attack {
    pub(crate) target: Target,
    pub(crate) seq: u64,
    /// For how long the target has not been there.
    #[serde(default)]
    pub(crate) absent_ms: u32,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) what: Deed,
    pub(crate) seq: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Deed {
    Cast { spell: Spell, target: Target },
    Drink,
    Guard,
    Open { object: ObjectKey },
    Plant { at: Pos },
}

/// Everything that runs out, in milliseconds left.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Clocks {
    /// Until it no longer counts as fighting.
    pub(crate) fight_ms: u32,
    /// Until it is no longer slowed.
    pub(crate) slow_ms: u32,
    /// Until the next potion.
    pub(crate) potion_ms: u32,
    /// Since hits last came back.
    pub(crate) regen_ms: u32,
    /// Until a spell can be cast again.
    pub(crate) spells: Vec<Cooldown>,
    /// Of a dead one: until it is back.
    pub(crate) dead_ms: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Cooldown {
    pub(crate) spell: Spell,
    pub(crate) left_ms: u32,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Foe {
    pub(crate) id: EntityId,
    pub(crate) left_ms: u32,
}

impl Fighter {
    /// A new character: its class is told by its name; it has the class's kit and all its hits.
    pub fn new(char_id: CharId, name: &str, pos: Pos) -> Fighter {
        Fighter::of_class(char_id.entity(), name, table::class_of_name(name), pos)
    }

    /// A fighter of a given class, rested and with the class's kit.
    pub fn of_class(id: EntityId, name: &str, class: Class, pos: Pos) -> Fighter {
        Fighter {
            id,
            name: name.to_owned(),
            class,
            pos,
            heading: Dir::default(),
            hits: class_row(class).hits_max,
            inventory: kit(class),
            act: Act::Idle,
            act_ms: 0,
            intent: Intent::default(),
            guard: false,
            clocks: Clocks::default(),
            foes: Vec::new(),
        }
    }

    /// Whether it is dead and waits to come back.
    pub fn is_dead(&self) -> bool {
        self.clocks.dead_ms.is_some()
    }

    /// Hits when unhurt.
    pub fn hits_max(&self) -> u16 {
        class_row(self.class).hits_max
    }

    /// For how long it still counts as fighting.
    pub fn fight_left_ms(&self) -> u64 {
        u64::from(self.clocks.fight_ms)
    }

    /// How long until `spell` can be cast again.
    pub fn cooldown_ms(&self, spell: Spell) -> u32 {
        let mut cooldowns = self.clocks.spells.iter();
        cooldowns
            .find(|cooldown| cooldown.spell == spell)
            .map_or(0, |cooldown| cooldown.left_ms)
    }

    /// Whom or what it is fighting.
    pub fn target(&self) -> Option<Target> {
        self.intent.attack.map(|attack| attack.target)
    }

    /// What others see it do.
    pub fn action(&self) -> Action {
        match self.act {
            _ if self.is_dead() => Action::Dead,
            Act::Idle if self.guard => Action::Guard,
            Act::Idle if self.intent.hold => Action::Hold,
            Act::Idle => Action::Idle,
            Act::Step { run: true } => Action::Run,
            Act::Step { run: false } => Action::Walk,
            Act::Windup { weapon, .. } if table::weapon(weapon).ranged => Action::Shoot,
            Act::Windup { .. } => Action::Strike,
            Act::Cast { .. } => Action::Cast,
            Act::Drink { .. } => Action::Drink,
            Act::Plant { .. } => Action::Idle,
            Act::Recover { shown } => shown,
        }
    }

    /// Makes a fighter that another version wrote fit this one's tables.
    pub(crate) fn settle(&mut self) {
        self.hits = self.hits.min(self.hits_max());
        self.intent.steps.truncate(STEP_QUEUE);
        self.foes.truncate(FOES_MAX);
        match self.clocks.dead_ms {
            Some(_) => self.hits = 0,
            None if self.hits == 0 => self.clocks.dead_ms = Some(RESPAWN_MS as u32),
            None => {}
        }
    }

    /// Sum of `value` over what it wears.
    pub(crate) fn worn(&self, value: impl Fn(table::ItemRow) -> u32) -> u32 {
        [Slot::Weapon, Slot::Armour, Slot::Shield, Slot::Ring]
            .into_iter()
            .filter_map(|slot| self.inventory.equipment.get(slot))
            .map(|item| value(item_row(item)))
            .sum()
    }
}
