//! Every bound and timing of the server in one place, with compile-time checks of how they relate.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// Regions a node may simulate without demand-driven placement.
pub const REGIONS_ALWAYS_RUNNING_MAX: u32 = 4096;

/// Tiles past the border before a peaceful character is handed over.
pub const HANDOFF_DEPTH: u16 = 2;
/// Tiles past the border before any character is handed over, fighting or not.
pub const HANDOFF_DEPTH_FIGHTING: u16 = 10;
/// How long a handoff offer waits for its answer before the source reclaims by compare-and-set.
pub const HANDOFF_TIMEOUT_MS: u64 = 2_000;
/// A changed character is written this often, and a character of a lost connection stays this long in the world.
pub const CHECKPOINT_MS: u64 = 15_000;
/// Changes of items, deaths and `equip` are written at once, but no more often than this per character.
pub const CHECKPOINT_URGENT_MS: u64 = 1_000;
/// How long a character stays in the world after its connection is gone.
pub const LINGER_MS: u64 = 30_000;
/// How long a compare-and-set of unknown outcome waits before it is repeated with its nonce.
pub const CAS_RETRY_MS: u64 = 200;
/// Compare-and-sets for regions under way at once when a sim starts or stops.
pub const REGION_CLAIMS_MAX: usize = 64;
/// Character writes under way at once, releases of a stopping sim included.
pub const CHARACTER_WRITES_MAX: usize = 256;
/// After a handoff that came to nothing, how long the character stays before it is offered again.
pub const HANDOFF_PAUSE_MS: u64 = 1_000;
/// How often an owner without a battle for its character looks for one.
pub const SEEK_MS: u64 = 200;
/// After an arrival, how long an order waits for the ones before it that come by another way.
pub const ORDERS_SETTLE_MS: u64 = 500;
/// Characters that left, remembered so that late orders find them.
pub const MOVED_KEPT_MAX: usize = 16_384;
/// Messages kept by a fenced sim until it thaws.
pub const FENCED_MESSAGES_MAX: usize = 65_536;
/// Handoff durations kept until the shell takes them.
pub const HANDOFF_TIMES_MAX: usize = 4_096;
/// A stop in order takes this long at most.
pub const STOP_MS: u64 = 30_000;
/// Private messages kept by the owner until acknowledged.
pub const PRIVATE_KEPT_MAX: usize = 256;
/// Object rows in one write: a batch of them stays well below the 50 KiB at which Cassandra refuses a batch.
pub const OBJECT_WRITE_ROWS_MAX: usize = 256;
/// Orders held for a character under way between battles.
pub const ORDERS_HELD_MAX: usize = 256;

/// Orders a gateway holds for a session that is being located, attached, moved or frozen.
pub const SESSION_ORDERS_MAX: usize = 256;
/// Control messages queued for one connection.
pub const CONTROL_LANE_MAX: usize = 128;
/// Reliable messages queued for one connection.
pub const RELIABLE_LANE_MAX: usize = 1024;
/// Public messages kept for a resume at the same gateway.
pub const PUBLIC_KEPT_MAX: usize = 1024;
/// And for how long.
pub const PUBLIC_KEPT_MS: u64 = 60_000;
/// How long a session lives without a connection.
pub const SESSION_TTL_MS: u64 = 30 * 60_000;
/// How far beyond the area of interest a gateway subscribes, in tiles.
pub const SUBSCRIBE_MARGIN: u16 = 4;
/// How long a feed is kept after its last need.
pub const SUBSCRIPTION_LINGER_MS: u64 = 5_000;
/// A flush waits at most this long after the first feed of its tick.
pub const FLUSH_WAIT_MS: u64 = 10;
/// First message of a connection.
pub const LOGIN_DEADLINE_MS: u64 = 3_000;
/// Bytes of one client message.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Letters waiting for a core's thread.
pub const INBOX_MAX: usize = 64 * 1024;
/// A tick that begins later than this after its deadline is late.
pub const TICK_LATE_MS: u64 = 10;

const _: () = assert!(HANDOFF_DEPTH < HANDOFF_DEPTH_FIGHTING);
const _: () = assert!(HANDOFF_DEPTH_FIGHTING < uo_combat_margin());
const _: () = assert!(CHECKPOINT_URGENT_MS < CHECKPOINT_MS);
const _: () = assert!(CAS_RETRY_MS * 4 < HANDOFF_TIMEOUT_MS);
const _: () = assert!(FLUSH_WAIT_MS < uo_proto::TICK_MS);
const _: () = assert!(CHECKPOINT_MS < LINGER_MS);
const _: () = assert!(ORDERS_SETTLE_MS < HANDOFF_TIMEOUT_MS);
const _: () = assert!(HANDOFF_TIMEOUT_MS < STOP_MS);

/// The arena's margin: a character must be handed over before it runs out of arena.
const fn uo_combat_margin() -> u16 {
    12
}
