//! What players do when it is their turn: play, and treat their connections badly.

use uo_proto::{Dir, EntityId, ItemKind, ObjectKind, Order, Pos, REGION_SIZE, Slot, Spell, Target};
use uo_world::World;

use super::client::Client;
use super::dice::Dice;

/// What a player does next.
#[derive(Clone, PartialEq, Debug)]
pub enum Deed {
    /// Nothing.
    Wait,
    /// Gives an order.
    Order(Order),
    /// Drops its connection.
    Drop,
    /// Forgets its connection without a word, and opens another.
    Abandon,
    /// Opens a connection, with the token of its session or with a new login.
    Connect { fresh: bool },
}

/// The next thing that `client` does. `restless_percent`: how much it does to its connection.
pub fn next(client: &Client, world: &World, restless_percent: u64, dice: &mut Dice) -> Deed {
    if client.wire.is_none() {
        // A client that lost its token, or its memory.
        let fresh = !client.has_token() || dice.chance(restless_percent / 2);
        return Deed::Connect { fresh };
    }
    let Some(pos) = client.pos().filter(|_| client.is_in_world()) else {
        return Deed::Wait;
    };
    if dice.chance(restless_percent) {
        return match dice.below(10) {
            0..5 => Deed::Drop,
            5..9 => Deed::Abandon,
            _ => Deed::Order(Order::Logout),
        };
    }
    Deed::Order(order(client, world, pos, dice))
}

fn order(client: &Client, world: &World, pos: Pos, dice: &mut Dice) -> Order {
    let dir = dice.pick(&Dir::ALL);
    match dice.below(100) {
        0..30 => Order::Say {
            text: String::new(), // The client makes it a line that names the order.
        },
        30..48 => walk(world, pos, dice),
        48..56 => Order::Step { dir },
        56..59 => Order::Move { dir: Some(dir) },
        59..62 => Order::Move { dir: None },
        62..64 => Order::Stop,
        64..74 => match somebody(client, dice) {
            Some(id) => Order::Attack {
                target: Target::Entity(id),
            },
            None => walk(world, pos, dice),
        },
        74..80 => match something(client, world, pos, dice) {
            Some(target) => Order::Attack { target },
            None => Order::Stop,
        },
        80..84 => Order::Cast {
            spell: dice.pick(&[Spell::Fireball, Spell::StoneWall]),
            target: Target::Tile(near(world, pos, 5, dice)),
        },
        84..86 => Order::Potion,
        86..90 => Order::Equip {
            item: dice.pick(&[
                ItemKind::Dagger,
                ItemKind::Axe,
                ItemKind::RingOfIron,
                ItemKind::RingOfLife,
            ]),
        },
        90..92 => Order::Unequip {
            slot: dice.pick(&[Slot::Weapon, Slot::Ring]),
        },
        92..95 => Order::Inventory,
        95..97 => Order::Look {
            target: Target::Tile(near(world, pos, 9, dice)),
        },
        97 => Order::Guard,
        98 => {
            let at = near(world, pos, 1, dice);
            Order::Plant { x: at.x, y: at.y }
        }
        _ => Order::Hold,
    }
}

fn near(world: &World, pos: Pos, radius: u16, dice: &mut Dice) -> Pos {
    let mut shift = |at: u16| {
        let low = at.saturating_sub(radius);
        let high = (at + radius).min(world.size() - 1);
        dice.between(u64::from(low), u64::from(high)) as u16
    };
    Pos::new(shift(pos.x), shift(pos.y))
}

/// The nearest place where four regions meet.
fn crossing(world: &World, pos: Pos) -> Pos {
    let nearest = |at: u16| {
        let border = (at + REGION_SIZE / 2) / REGION_SIZE * REGION_SIZE;
        border.clamp(REGION_SIZE, world.size() - REGION_SIZE)
    };
    Pos::new(nearest(pos.x), nearest(pos.y))
}

/// A walk over the nearest border half of the time: that is where things go wrong.
fn walk(world: &World, pos: Pos, dice: &mut Dice) -> Order {
    let mut goal = near(world, pos, 30, dice);
    if dice.chance(50) {
        goal = near(world, crossing(world, pos), 12, dice);
    }
    Order::WalkTo {
        x: goal.x,
        y: goal.y,
    }
}

fn somebody(client: &Client, dice: &mut Dice) -> Option<EntityId> {
    let own = client.char_id.entity();
    let others: Vec<EntityId> = client
        .entities
        .keys()
        .copied()
        .filter(|&id| id != own)
        .collect();
    (!others.is_empty()).then(|| dice.pick(&others))
}

/// The nearest breakable thing: its changes have to be durable with the orders that made them.
fn something(client: &Client, world: &World, pos: Pos, dice: &mut Dice) -> Option<Target> {
    let content = world.content(world.region_at(pos));
    let breakable = content.objects.iter().filter(|object| {
        let kind = client
            .objects
            .get(&object.key)
            .map_or(object.kind, |o| o.kind);
        matches!(
            kind,
            ObjectKind::Tree | ObjectKind::Fence | ObjectKind::Wall | ObjectKind::Crate
        )
    });
    let mut near: Vec<_> = breakable
        .map(|object| (object.pos().distance(pos), object.key))
        .filter(|&(distance, _)| distance <= 16)
        .collect();
    near.sort_unstable();
    near.truncate(3);
    (!near.is_empty()).then(|| Target::Object(dice.pick(&near).1))
}
