//! What happened lately, in words.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::{CombatEvent, EntityId, ObjectKey, ServerMsg, Target, WorldStatus};
use uo_sdk::{Event, LocalWorld};

/// Lines kept.
const LINES_MAX: usize = 64;

/// The latest lines, oldest first.
#[derive(Debug, Default)]
pub struct Journal {
    lines: VecDeque<String>,
}

impl Journal {
    /// Adds what `event` means to a reader, if anything. `world` has taken the event already.
    pub fn take(&mut self, event: &Event, world: &LocalWorld) {
        if let Some(line) = describe(event, world) {
            self.add(line);
        }
    }

    /// Adds a line.
    pub fn add(&mut self, line: String) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The latest lines, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().rev().map(String::as_str)
    }
}

fn describe(event: &Event, world: &LocalWorld) -> Option<String> {
    match event {
        Event::Welcomed { resumed: true, .. } => Some("Back again.".into()),
        Event::Welcomed { .. } => Some("Welcome. Press ? for the keys.".into()),
        Event::Disconnected { .. } => Some("The connection is lost; trying again.".into()),
        Event::Violation(violation) => Some(format!("Odd: {violation}.")),
        Event::Stopped(reason) => Some(format!("The end: {reason}.")),
        Event::Message(message) => describe_message(message, world),
    }
}

fn describe_message(message: &ServerMsg, world: &LocalWorld) -> Option<String> {
    match message {
        ServerMsg::Said(said) => Some(format!("{}: {}", said.speech.name, said.speech.text)),
        ServerMsg::Looked(looked) => Some(format!("You see {}.", looked.text)),
        ServerMsg::Respawned(_) => Some("You live again.".into()),
        ServerMsg::Missed(_) => Some("Some of what happened was missed.".into()),
        ServerMsg::Error(error) => Some(format!("No: {}", error.message)),
        ServerMsg::Goodbye(goodbye) => Some(format!("The server closes: {}", goodbye.reason)),
        ServerMsg::ServerStatus(status) => match status.world {
            WorldStatus::Ok => None,
            WorldStatus::Moving => Some("This part of the world moves to another server.".into()),
            WorldStatus::Frozen => Some("This part of the world stands still for a while.".into()),
        },
        ServerMsg::Event(event) => Some(describe_combat(&event.combat, world)),
        _ => None,
    }
}

fn describe_combat(event: &CombatEvent, world: &LocalWorld) -> String {
    use CombatEvent::*;
    let name = |id: &EntityId| name_of(*id, world);
    let object = |key: &ObjectKey| object_of(*key, world);
    let target = |target: &Target| match target {
        Target::Entity(id) => name(id),
        Target::Object(key) => object(key),
        Target::Tile(_) => "the ground".into(),
    };
    match event {
        Swung {
            who, target: at, ..
        } => format!("{} strikes at {}.", name(who), target(at)),
        Shot {
            who, target: at, ..
        } => format!("{} shoots at {}.", name(who), target(at)),
        Hit {
            who,
            target: hurt,
            damage,
            hits,
        } => format!(
            "{} hits {} for {damage}; {hits} left.",
            name(who),
            name(hurt)
        ),
        Missed {
            who, target: at, ..
        } => format!("{} misses {}.", name(who), name(at)),
        Casting { who, spell, .. } => format!("{} casts {spell:?}.", name(who)),
        CastDone { who, spell, .. } => format!("The {spell:?} of {} is done.", name(who)),
        Interrupted { who } => format!("{} is interrupted.", name(who)),
        Healed { who, amount, .. } => format!("{} is healed by {amount}.", name(who)),
        Drank { who } => format!("{} drinks a potion.", name(who)),
        Guarded { who } => format!("{} is on guard.", name(who)),
        Opened { who, open, .. } => {
            let verb = if *open { "opens" } else { "closes" };
            format!("{} {verb} a door.", name(who))
        }
        Planted { who, .. } => format!("{} plants a keg!", name(who)),
        Exploded { .. } => "Something blows up!".into(),
        Damaged {
            object: hurt, hits, ..
        } => format!("{} is damaged; {hits} left.", object(hurt)),
        Broke { object: broken, .. } => format!("{} breaks.", object(broken)),
        Died { who, by: Some(by) } => format!("{} is killed by {}.", name(who), name(by)),
        Died { who, by: None } => format!("{} dies.", name(who)),
        Returned { who, .. } => format!("{} is back.", name(who)),
        Looted { who, coins } => format!("{} finds {} coins.", name(who), coins.len()),
    }
}

fn name_of(id: EntityId, world: &LocalWorld) -> String {
    match world.entity(id) {
        Some(entity) => entity.info.name.clone(),
        None => "somebody".into(),
    }
}

fn object_of(key: ObjectKey, world: &LocalWorld) -> String {
    match world.object(key) {
        Some(object) => format!("a {}", format!("{:?}", object.kind).to_lowercase()),
        None => "something".into(),
    }
}
