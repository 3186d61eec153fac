//! One message of each kind, for tests.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::Arc;

use uo_combat::{Battle, Fighter, ObjectHit, Setup};
use uo_proto::{
    Action, CharId, Class, Dir, EntityId, EntityInfo, EntityKind, EntityState, NumberedOrder,
    ObjectKey, ObjectKind, ObjectState, Order, Pos, RegionId, Respawned, ServerMsg, Speech,
};
use uo_world::World;

use super::message::{
    Attach, AttachRefusal, Attached, DrainOffer, FeedDelta, FeedEntity, FeedEvent, FeedFull,
    Flight, HandoffCause, HandoffOffer, HandoffRefusal, Leases, PublicEvent, RoutedOrder, Told,
};
use super::proof::Hello;
use super::wire::Packet;
use super::{Message, ToGateway, ToSim};
use crate::identity::{BootId, Holder};
use crate::store::row::{CharacterRow, Role};

pub const REGION: RegionId = RegionId(17);
pub const CHAR: CharId = CharId(5);

pub fn holder(node: &str, boot: u128) -> Holder {
    Holder {
        node: node.into(),
        boot: BootId(boot),
    }
}

pub fn order(seq: u64) -> RoutedOrder {
    RoutedOrder {
        char_id: CHAR,
        generation: 3,
        session: 2,
        order: NumberedOrder {
            seq,
            order: Order::WalkTo { x: 3, y: 4 },
        },
        target_region: Some(REGION),
    }
}

pub fn entity(id: u64, number: u64, x: u16, with_info: bool) -> FeedEntity {
    let id = EntityId(id);
    FeedEntity {
        number,
        info: with_info.then(|| {
            Arc::new(EntityInfo {
                kind: EntityKind::Player,
                class: Class::Mage,
                name: format!("n{}", id.0),
                look: 1,
                hits_max: 100,
            })
        }),
        state: EntityState {
            id,
            x,
            y: 2,
            heading: Dir::N,
            hits: 50,
            action: Action::Idle,
            target: None,
        },
        ack: 9,
    }
}

pub fn object(index: u32, hits: u16) -> ObjectState {
    ObjectState {
        key: ObjectKey::new(REGION, index),
        kind: ObjectKind::Tree,
        x: 1,
        y: 2,
        edge: None,
        hits,
        active: false,
        gone: false,
    }
}

pub fn event(text: &str) -> FeedEvent {
    FeedEvent {
        at: Pos::new(1, 2),
        also: None,
        what: PublicEvent::Said(Speech {
            char_id: CHAR,
            name: "Anna".into(),
            text: text.into(),
        }),
    }
}

pub fn full(epoch: u64, tick: u64, entities: Vec<FeedEntity>) -> FeedFull {
    FeedFull {
        region: REGION,
        epoch,
        tick,
        told: Told { since: 3, count: 0 },
        entities,
        objects: vec![object(1, 10)],
        events: vec![event(&format!("full {tick}"))],
    }
}

pub fn delta(epoch: u64, base_tick: u64, tick: u64) -> FeedDelta {
    FeedDelta {
        region: REGION,
        epoch,
        tick,
        base_tick,
        told: 0,
        base_told: 0,
        upserts: Vec::new(),
        removes: Vec::new(),
        objects: Vec::new(),
        events: vec![event(&format!("delta {tick}"))],
    }
}

pub fn leases(changes: &[(u32, u64)]) -> Leases {
    let changes = changes.iter().map(|&(region, epoch)| {
        let holder = (epoch % 2 == 1).then(|| holder("sim-1", 1));
        (RegionId(region), epoch, holder)
    });
    Leases {
        changes: changes.collect(),
    }
}

pub fn hits(epoch: u64, hits: &[(u32, u16)]) -> ToSim {
    let hits = hits.iter().map(|&(index, damage)| ObjectHit {
        key: ObjectKey::new(REGION, index),
        damage,
        fire: false,
        by: Some(EntityId(4)),
    });
    ToSim::ObjectHits {
        region: REGION,
        epoch,
        hits: hits.collect(),
    }
}

pub fn changes(epoch: u64, full: bool, objects: Vec<ObjectState>) -> ToSim {
    ToSim::ObjectChanges {
        region: REGION,
        epoch,
        tick: 8,
        full,
        objects,
    }
}

pub fn saved(seq: u64) -> ToGateway {
    ToGateway::Saved {
        char_id: CHAR,
        generation: 3,
        seq,
        inventory: 1,
    }
}

fn to_sim() -> Vec<ToSim> {
    let world = World::new(7, 1024).unwrap();
    let generation = 3;
    let char_id = CHAR;
    let (region, epoch) = (REGION, 4);
    vec![
        ToSim::Attach(Attach {
            char_id,
            name: "Anna".into(),
            session: Some(2),
            attach: 6,
            gateway: holder("gw-1", 1),
            last_private: 7,
        }),
        ToSim::Detach {
            char_id,
            attach: 6,
            logout: true,
        },
        ToSim::Order(order(1)),
        ToSim::PlayerAck {
            char_id,
            private: 3,
        },
        ToSim::Subscribe { region },
        ToSim::Unsubscribe { region },
        ToSim::HandoffOffer(Box::new(HandoffOffer {
            char_id,
            generation,
            source: holder("sim-1", u128::MAX),
            region,
            character: CharacterRow {
                generation,
                fighter: Fighter::new(char_id, "Anna", Pos::new(64, 70)),
                session: 2,
                last_order: 5,
                last_private: 1,
                privates: vec![respawned()],
            },
            attach: Some((6, holder("gw-1", 1))),
            linger_left_ms: 0,
            walk: Some((Pos::new(1, 1), 5)),
            held: vec![order(6), order(7)],
            cause: HandoffCause::Drain,
            from: Some(region),
            out_ms: 12,
        })),
        ToSim::HandoffAccept {
            char_id,
            generation,
            flight: Some(flight()),
        },
        ToSim::HandoffRefuse {
            char_id,
            generation,
            reason: HandoffRefusal::Fenced,
        },
        hits(epoch, &[(1, 5)]),
        changes(epoch, true, vec![object(1, 3)]),
        ToSim::DrainOffer(Box::new(DrainOffer {
            region,
            epoch,
            source: holder("sim-1", 1),
            battle: Battle::open(Setup {
                region,
                seed: 7,
                arena: uo_world::build_arena(&world, region, std::iter::empty()),
                mobs: world.content(region).mobs.clone(),
                respawn: world.content(region).respawn,
                epoch,
            }),
            objects: vec![object(1, 3)],
            players: vec![(char_id, generation)],
            told: Told { since: 3, count: 9 },
            is_wished: true,
        })),
        ToSim::DrainReady { region, epoch },
        ToSim::DrainAbort {
            region,
            epoch,
            reason: "no".into(),
        },
        ToSim::Leases(leases(&[(1, 2), (3, 5)])),
    ]
}

fn flight() -> Flight {
    Flight {
        cause: HandoffCause::Pin,
        source: "sim-1".into(),
        from: Some(REGION),
        leave_ms: 1,
        claim_ms: Some(2),
        seal_ms: Some(3),
    }
}

fn respawned() -> ServerMsg {
    ServerMsg::Respawned(Respawned {
        private: 1,
        x: 3,
        y: 4,
    })
}

fn to_gateway() -> Vec<ToGateway> {
    let generation = 3;
    let char_id = CHAR;
    let (region, epoch) = (REGION, 4);
    let mut changed = delta(4, 7, 8);
    changed.upserts = vec![entity(1, 2, 3, false), entity(2, 2, 3, true)];
    changed.removes = vec![(EntityId(9), 1)];
    vec![
        ToGateway::Attached(Attached {
            char_id,
            attach: 6,
            generation,
            session: 2,
            region,
            pos: Pos::new(5, 6),
            last_order: 5,
        }),
        ToGateway::AttachRefused {
            char_id,
            attach: 6,
            reason: AttachRefusal::Elsewhere(holder("sim-2", 2)),
        },
        ToGateway::ToPlayer {
            char_id,
            generation,
            message: respawned(),
        },
        ToGateway::PrivateLost {
            char_id,
            generation,
            through: 9,
        },
        saved(4),
        ToGateway::Moved {
            char_id,
            generation,
            region,
            owner: holder("sim-2", 2),
            flight: Some(flight()),
        },
        ToGateway::Superseded { char_id, attach: 6 },
        ToGateway::FeedFull(Arc::new(full(4, 7, vec![entity(1, 2, 3, true)]))),
        ToGateway::FeedDelta(Arc::new(changed)),
        ToGateway::FeedEnd { region, epoch },
        ToGateway::FeedsDone,
        ToGateway::Leases(leases(&[(1, 2)])),
        ToGateway::Lost {
            char_id,
            generation,
        },
        ToGateway::Frozen { is_frozen: true },
    ]
}

/// One message of each kind.
pub fn messages() -> Vec<Message> {
    let to_sim = to_sim().into_iter().map(Message::ToSim);
    to_sim
        .chain(to_gateway().into_iter().map(Message::ToGateway))
        .collect()
}

pub fn hello(node: &str, boot: u128) -> Hello {
    Hello {
        cluster: "felucca".into(),
        version_min: 1,
        version_max: 2,
        holder: holder(node, boot),
        role: Role::Sim,
    }
}

/// One packet of each kind, in the order in which [`KINDS`](super::rule::KINDS) names them.
pub fn packets() -> Vec<Packet> {
    let mut packets = vec![
        Packet::Hello(hello("sim-1", 3)),
        Packet::Challenge { nonce: [7; 32] },
        Packet::Proof { mac: [255; 32] },
        Packet::Refused { why: "no".into() },
        Packet::Ping { at: 5 },
        Packet::Pong { at: u64::MAX },
    ];
    let boot = BootId(u128::MAX - 1);
    let carried = messages().into_iter();
    packets.extend(carried.map(|message| Packet::Carry { boot, message }));
    packets
}
