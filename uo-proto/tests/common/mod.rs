//! Strategies that make any message.
#![allow(
    dead_code,
    reason = "each test binary takes what it needs from this file"
)]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uo_proto::*;

/// Numbers of all magnitudes, so that every width of integer is met.
pub fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift)
}

fn small() -> impl Strategy<Value = u16> {
    (any::<u16>(), 0..16_u32).prop_map(|(value, shift)| value >> shift)
}

fn entity() -> impl Strategy<Value = EntityId> {
    number().prop_map(EntityId)
}

fn key() -> impl Strategy<Value = ObjectKey> {
    number().prop_map(ObjectKey)
}

fn pos() -> impl Strategy<Value = Pos> {
    (small(), small()).prop_map(|(x, y)| Pos { x, y })
}

pub fn coin() -> impl Strategy<Value = CoinSerial> {
    (any::<u32>(), number(), any::<u32>()).prop_map(|(region, epoch, counter)| CoinSerial {
        region: RegionId(region),
        epoch,
        counter,
    })
}

pub fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        entity().prop_map(Target::Entity),
        key().prop_map(Target::Object),
        pos().prop_map(Target::Tile),
    ]
}

fn spell() -> impl Strategy<Value = Spell> {
    use Spell::*;
    select(vec![Bolt, Fireball, Heal, StoneWall, Frost])
}

fn item() -> impl Strategy<Value = ItemKind> {
    use ItemKind::*;
    select(vec![
        Dagger,
        Sword,
        Bow,
        Staff,
        ChainArmour,
        KiteShield,
        RingOfIron,
        Potion,
        Keg,
    ])
}

fn dir() -> impl Strategy<Value = Dir> {
    select(Dir::ALL.to_vec())
}

pub fn order() -> impl Strategy<Value = Order> {
    use Order::*;
    prop_oneof![
        pos().prop_map(|Pos { x, y }| WalkTo { x, y }),
        option::of(dir()).prop_map(|dir| Move { dir }),
        dir().prop_map(|dir| Step { dir }),
        target().prop_map(|target| Attack { target }),
        (spell(), target()).prop_map(|(spell, target)| Cast { spell, target }),
        select(vec![Stop, Guard, Potion, Hold, Inventory, Logout]),
        key().prop_map(|object| Open { object }),
        pos().prop_map(|Pos { x, y }| Plant { x, y }),
        "[^\\pC]{1,64}".prop_map(|text| Say { text }),
        target().prop_map(|target| Look { target }),
        item().prop_map(|item| Equip { item }),
        select(vec![Slot::Weapon, Slot::Armour, Slot::Shield, Slot::Ring])
            .prop_map(|slot| Unequip { slot }),
        target().prop_map(|target| Gather { target }),
        item().prop_map(|item| Craft { item }),
    ]
}

pub fn client_msg() -> impl Strategy<Value = ClientMsg> {
    let login = ("[A-Za-z0-9_-]{1,32}", option::of(".{1,32}"), any::<u32>()).prop_map(
        |(name, password, version)| {
            ClientMsg::Login(Login {
                name,
                password,
                version,
            })
        },
    );
    let resume =
        ("[A-Za-z0-9_-]{1,64}", number(), number()).prop_map(|(token, last_seq, last_private)| {
            ClientMsg::Resume(Resume {
                token,
                last_seq,
                last_private,
            })
        });
    let ping = number().prop_map(|nonce| ClientMsg::Ping(Ping { nonce }));
    let order = (number(), order()).prop_map(|(seq, order)| {
        ClientMsg::Order(NumberedOrder {
            seq: seq.max(1),
            order,
        })
    });
    prop_oneof![1 => login, 1 => resume, 1 => ping, 8 => order]
}

fn info() -> impl Strategy<Value = EntityInfo> {
    use Class::*;
    (
        select(vec![EntityKind::Player, EntityKind::Mob]),
        select(vec![
            Warrior,
            Archer,
            Mage,
            Bandit,
            BanditArcher,
            BanditChief,
        ]),
        ".{0,12}",
        any::<u32>(),
        small(),
    )
        .prop_map(|(kind, class, name, look, hits_max)| EntityInfo {
            kind,
            class,
            name,
            look,
            hits_max,
        })
}

pub fn state() -> impl Strategy<Value = EntityState> {
    use Action::*;
    let action = select(vec![
        Idle, Walk, Run, Strike, Shoot, Cast, Guard, Hold, Drink, Dead,
    ]);
    (
        entity(),
        pos(),
        dir(),
        small(),
        action,
        option::of(entity()),
    )
        .prop_map(
            |(id, Pos { x, y }, heading, hits, action, target)| EntityState {
                id,
                x,
                y,
                heading,
                hits,
                action,
                target,
            },
        )
}

pub fn enter() -> impl Strategy<Value = EntityEnter> {
    (info(), state()).prop_map(|(info, state)| EntityEnter { info, state })
}

fn object_kind() -> impl Strategy<Value = ObjectKind> {
    use ObjectKind::*;
    select(vec![Tree, Stump, Wall, Door, Keg, Stone, Rubble])
}

pub fn object() -> impl Strategy<Value = ObjectState> {
    (
        key(),
        object_kind(),
        pos(),
        option::of(select(vec![Edge::North, Edge::West])),
        small(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(key, kind, Pos { x, y }, edge, hits, active, gone)| ObjectState {
                key,
                kind,
                x,
                y,
                edge,
                hits,
                active,
                gone,
            },
        )
}

pub fn combat_event() -> impl Strategy<Value = CombatEvent> {
    use CombatEvent::*;
    let why = select(vec![
        MissReason::Dodged,
        MissReason::Cover,
        MissReason::Guarded,
    ]);
    prop_oneof![
        (entity(), target(), option::of(item())).prop_map(|(who, target, weapon)| Swung {
            who,
            target,
            weapon
        }),
        (entity(), target(), option::of(item())).prop_map(|(who, target, weapon)| Shot {
            who,
            target,
            weapon
        }),
        (entity(), entity(), small(), small()).prop_map(|(who, target, damage, hits)| Hit {
            who,
            target,
            damage,
            hits
        }),
        (entity(), entity(), why).prop_map(|(who, target, why)| Missed { who, target, why }),
        (entity(), spell(), target()).prop_map(|(who, spell, target)| Casting {
            who,
            spell,
            target
        }),
        (entity(), spell(), target()).prop_map(|(who, spell, target)| CastDone {
            who,
            spell,
            target
        }),
        entity().prop_map(|who| Interrupted { who }),
        (entity(), small(), small()).prop_map(|(who, amount, hits)| Healed { who, amount, hits }),
        entity().prop_map(|who| Drank { who }),
        entity().prop_map(|who| Guarded { who }),
        (entity(), key(), any::<bool>()).prop_map(|(who, object, open)| Opened {
            who,
            object,
            open
        }),
        (entity(), key()).prop_map(|(who, object)| Planted { who, object }),
        (key(), pos(), small()).prop_map(|(object, Pos { x, y }, radius)| Exploded {
            object,
            x,
            y,
            radius
        }),
        (key(), small(), small()).prop_map(|(object, damage, hits)| Damaged {
            object,
            damage,
            hits
        }),
        (key(), option::of(object_kind())).prop_map(|(object, into)| Broke { object, into }),
        (entity(), option::of(entity())).prop_map(|(who, by)| Died { who, by }),
        (entity(), pos()).prop_map(|(who, Pos { x, y })| Returned { who, x, y }),
        (entity(), vec(coin(), 0..4)).prop_map(|(who, coins)| Looted { who, coins }),
    ]
}

pub fn speech() -> impl Strategy<Value = Speech> {
    (number(), ".{0,12}", ".{0,40}").prop_map(|(char_id, name, text)| Speech {
        char_id: CharId(char_id),
        name,
        text,
    })
}

pub fn delta() -> impl Strategy<Value = Delta> {
    (
        number(),
        number(),
        vec(enter(), 0..4),
        // Beyond 15 elements MessagePack changes the form of its array header.
        vec(state(), 0..20),
        vec(entity(), 0..20),
        vec(object(), 0..4),
    )
        .prop_map(|(tick, ack, enter, update, leave, objects)| Delta {
            tick,
            ack,
            enter,
            update,
            leave,
            objects,
        })
}

pub fn snapshot() -> impl Strategy<Value = Snapshot> {
    (vec(enter(), 0..20), vec(object(), 0..20))
        .prop_map(|(entities, objects)| Snapshot { entities, objects })
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let stack = (item(), small()).prop_map(|(item, count)| ItemStack { item, count });
    let equipment = (option::of(item()), option::of(item())).prop_map(|(weapon, ring)| Equipment {
        weapon,
        ring,
        ..Equipment::default()
    });
    (number(), vec(stack, 0..5), equipment, vec(coin(), 0..5)).prop_map(
        |(version, items, equipment, coins)| Inventory {
            version,
            items,
            equipment,
            coins,
        },
    )
}

fn welcome() -> impl Strategy<Value = Welcome> {
    let spells = vec(spell(), 0..3).prop_map(|spells| {
        let row = |spell| SpellInfo {
            spell,
            cast_ms: 1_000,
            cooldown_ms: 70_000,
            range: 10,
            radius: 0,
            targets_entity: true,
            targets_tile: false,
        };
        spells.into_iter().map(row).collect()
    });
    (
        "[A-Za-z0-9_-]{32}",
        number(),
        vec(".{0,30}", 0..3),
        number(),
        number(),
        pos(),
        spells,
    )
        .prop_map(
            |(token, char_id, gateways, last_order, seed, Pos { x, y }, spells)| Welcome {
                token,
                char_id: CharId(char_id),
                gateways,
                last_order,
                map: MapInfo { seed, size: 4_096 },
                tick_hz: TICK_HZ,
                region_size: REGION_SIZE,
                aoi_radius: AOI_RADIUS,
                x,
                y,
                spells,
                limits: Limits {
                    messages_per_s: 40,
                    messages_burst: 120,
                    message_bytes: 65_536,
                    say_bytes: 256,
                },
            },
        )
}

fn missed_count() -> impl Strategy<Value = MissedCount> {
    prop_oneof![
        number().prop_map(MissedCount::Count),
        Just(MissedCount::Unknown)
    ]
}

fn error() -> impl Strategy<Value = ErrorMsg> {
    use ErrorCode::*;
    let code = select(vec![
        Invalid,
        Busy,
        RateLimited,
        Unavailable,
        NoTarget,
        OutOfReach,
        NoSight,
        NothingLeft,
        NotNow,
        Unauthorised,
        Superseded,
        Version,
    ]);
    (code, ".{0,40}", option::of(number()), option::of(number())).prop_map(
        |(code, message, seq, private)| ErrorMsg {
            code,
            message,
            seq,
            private,
        },
    )
}

fn status() -> impl Strategy<Value = ServerStatus> {
    (
        select(vec![Level::Normal, Level::Busy, Level::Overloaded]),
        any::<bool>(),
        select(vec![
            WorldStatus::Ok,
            WorldStatus::Moving,
            WorldStatus::Frozen,
        ]),
    )
        .prop_map(|(level, accepting, world)| ServerStatus {
            level,
            accepting,
            world,
        })
}

pub fn event() -> impl Strategy<Value = Event> {
    (number(), number(), combat_event()).prop_map(|(seq, at_ms, combat)| Event {
        seq,
        at_ms,
        combat,
    })
}

pub fn said() -> impl Strategy<Value = Said> {
    (number(), number(), speech()).prop_map(|(seq, at_ms, speech)| Said { seq, at_ms, speech })
}

fn rejected() -> impl Strategy<Value = StepRejected> {
    (number(), pos(), number()).prop_map(|(private, Pos { x, y }, seq)| StepRejected {
        private,
        x,
        y,
        seq,
    })
}

pub fn server_msg() -> impl Strategy<Value = ServerMsg> {
    let respawned =
        (number(), pos()).prop_map(|(private, Pos { x, y })| Respawned { private, x, y });
    let looked =
        (number(), number(), target(), ".{0,40}").prop_map(|(private, seq, target, text)| Looked {
            private,
            seq,
            target,
            text,
        });
    let carried = (number(), inventory())
        .prop_map(|(private, inventory)| InventoryMsg { private, inventory });
    let missed =
        (missed_count(), missed_count()).prop_map(|(public, private)| Missed { public, private });
    let saved = (number(), number()).prop_map(|(seq, inventory)| Saved { seq, inventory });
    let pong = (number(), number()).prop_map(|(nonce, at_ms)| Pong { nonce, at_ms });
    let goodbye =
        (".{0,20}", vec(".{0,20}", 0..3), number()).prop_map(|(reason, gateways, after_ms)| {
            Goodbye {
                reason,
                gateways,
                after_ms,
            }
        });
    prop_oneof![
        welcome().prop_map(|msg| ServerMsg::Welcome(Box::new(msg))),
        status().prop_map(ServerMsg::ServerStatus),
        snapshot().prop_map(ServerMsg::Snapshot),
        delta().prop_map(ServerMsg::Delta),
        event().prop_map(ServerMsg::Event),
        said().prop_map(ServerMsg::Said),
        respawned.prop_map(ServerMsg::Respawned),
        rejected().prop_map(ServerMsg::StepRejected),
        looked.prop_map(ServerMsg::Looked),
        carried.prop_map(ServerMsg::Inventory),
        missed.prop_map(ServerMsg::Missed),
        saved.prop_map(ServerMsg::Saved),
        pong.prop_map(ServerMsg::Pong),
        error().prop_map(ServerMsg::Error),
        goodbye.prop_map(ServerMsg::Goodbye),
    ]
}

/// A change to a frame that may or may not leave it a frame.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Another byte in the place of one.
    Replace(usize, u8),
    /// One byte more.
    Insert(usize, u8),
    /// One byte less.
    Remove(usize),
    /// Nothing behind this place.
    Cut(usize),
    /// A header of an array that is longer than any frame.
    Lie(usize),
}

pub fn mutation() -> impl Strategy<Value = Mutation> {
    use Mutation::*;
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Replace(at, byte)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Insert(at, byte)),
        any::<usize>().prop_map(Remove),
        any::<usize>().prop_map(Cut),
        any::<usize>().prop_map(Lie),
    ]
}

pub fn mutate(frame: &mut Vec<u8>, mutation: &Mutation) {
    let place = |at: &usize, length: usize| at % length.max(1);
    match mutation {
        _ if frame.is_empty() => {}
        Mutation::Replace(at, byte) => {
            let at = place(at, frame.len());
            frame[at] = *byte;
        }
        Mutation::Insert(at, byte) => frame.insert(place(at, frame.len()), *byte),
        Mutation::Remove(at) => drop(frame.remove(place(at, frame.len()))),
        Mutation::Cut(at) => frame.truncate(place(at, frame.len())),
        Mutation::Lie(at) => {
            let at = place(at, frame.len());
            frame.splice(at..at, [0xdd, 0x7f, 0xff, 0xff, 0xff]);
        }
    }
}
