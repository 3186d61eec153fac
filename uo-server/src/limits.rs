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
/// Boots that a region's tick may end by a panic before the region stands still.
pub const REGION_PANICS_MAX: usize = 2;
/// How long a boot that a region has ended stays to write that down.
pub const FAULT_REPORT_MS: u64 = 1_000;
/// Owner rows that are read back at once.
pub const OWNER_READS_MAX: usize = 64;
/// Character writes under way at once, releases of a stopping sim included.
pub const CHARACTER_WRITES_MAX: usize = 256;
/// After a handoff that came to nothing, how long the character stays before it is offered again.
pub const HANDOFF_PAUSE_MS: u64 = 1_000;
/// Offers of characters without a battle that wait for their answers at once: as many claims as a database takes within
/// the time that an offer waits.
pub const FORWARDS_MAX: usize = 256;
/// How long a drained region waits for its new holder before the old one reclaims it by compare-and-set.
pub const DRAIN_TIMEOUT_MS: u64 = 6_000;
/// How long a region that was drained stands still at its new holder to wait for the players it was in the middle of
/// fighting with.
pub const DRAIN_GATHER_MS: u64 = 200;
/// Harm to the objects of a frozen region that is kept for whoever goes on with it.
pub const DRAIN_HITS_MAX: usize = 4_096;
/// Drain durations kept until the shell takes them.
pub const DRAIN_TIMES_MAX: usize = 4_096;
/// How often an owner without a battle for its character looks for one: each tick, as its player is shown nothing new
/// meanwhile.
pub const SEEK_MS: u64 = 50;
/// After an arrival, how long an order waits for the ones before it that come by another way.
pub const ORDERS_SETTLE_MS: u64 = 500;
/// Characters that left, remembered so that late orders find them.
pub const MOVED_KEPT_MAX: usize = 16_384;
/// Messages kept by a fenced sim until it thaws.
pub const FENCED_MESSAGES_MAX: usize = 65_536;
/// Handoff durations kept until the shell takes them.
pub const HANDOFF_TIMES_MAX: usize = 4_096;
/// Crossings that each core remembers for whoever looks.
pub const CROSSINGS_KEPT_MAX: usize = 10_000;
/// Durations of crossings and gaps kept until the shell takes them.
pub const MEASURED_KEPT_MAX: usize = 4_096;
/// A stop in order takes this long at most.
pub const STOP_MS: u64 = 30_000;
/// What a stopping sim could not hand to others by then is written and released.
pub const EVACUATE_MS: u64 = 15_000;
/// Private messages kept by the owner until acknowledged.
pub const PRIVATE_KEPT_MAX: usize = 256;
/// Object rows in one write. (The databases' limit on batches is for those over several partitions, which these are not.)
pub const OBJECT_WRITE_ROWS_MAX: usize = 256;
/// Orders held for a character under way between battles.
pub const ORDERS_HELD_MAX: usize = 256;

/// The highest number that a gateway takes from a client, for an order or as its place in a stream: the last that a JSON
/// number holds exactly, and far from where counting on would overflow.
pub const CLIENT_NUMBER_MAX: u64 = 1 << 53;
/// Orders a gateway holds for a session that is being located, attached, moved or frozen.
pub const SESSION_ORDERS_MAX: usize = 256;
/// Control messages queued for one connection.
pub const CONTROL_LANE_MAX: usize = 128;
/// Reliable messages queued for one connection, and public ones kept for a resume at the same gateway, unless
/// `UO_LIMIT_RELIABLE_LANE` says otherwise.
pub const RELIABLE_LANE_MAX: usize = 1024;
/// What it can say.
pub const RELIABLE_LANE_MAX_RANGE: std::ops::RangeInclusive<u64> = 256..=65_536;
/// How long public messages are kept for a resume.
pub const PUBLIC_KEPT_MS: u64 = 60_000;
/// How long a session lives without a connection.
pub const SESSION_TTL_MS: u64 = 30 * 60_000;
/// How far beyond the area of interest a gateway subscribes, in tiles. Whoever fights, or lies dead, stays in its region's
/// battle as far as the arena reaches, and is seen by nobody who does not have that region's feed.
pub const SUBSCRIBE_MARGIN: u16 = 12;
/// How long a feed is kept after its last need.
pub const SUBSCRIPTION_LINGER_MS: u64 = 5_000;
/// A flush waits at most this long after the first feed of its tick.
pub const FLUSH_WAIT_MS: u64 = 10;
/// How long a character that its battle removed stays in view: between two battles it is in neither.
pub const LEAVE_GRACE_MS: u64 = 300;
/// How long the number of a character that is gone is remembered, against what arrives late.
pub const NUMBERS_KEPT_MS: u64 = 30_000;
/// A snapshot waits at most this long for the regions around it.
pub const SNAPSHOT_WAIT_MS: u64 = 1_000;
/// A subscription that brings no full state is asked for again after this long.
pub const FEED_WAIT_MS: u64 = 1_000;
/// An attach without an answer is given up after this long, and the character looked for again.
pub const ATTACH_WAIT_MS: u64 = 2_000;
/// How often an owner is asked for private messages that are missing before they are told as missed.
pub const PRIVATE_ASKS_MAX: u8 = 4;
/// How long the word of a former owner waits for that of the new one, before that is asked.
pub const MOVE_CONFIRM_MS: u64 = 300;
/// How often an attach follows `Elsewhere` before it waits like after any other refusal.
pub const ATTACH_HOPS_MAX: u8 = 4;
/// The wait before the first new try of a gateway; it doubles with each, and is jittered.
pub const RETRY_FIRST_MS: u64 = 50;
/// And goes on at this.
pub const RETRY_MAX_MS: u64 = 1_000;
/// A live session's row is written again this often, so that it never expires under a player.
pub const SESSION_REFRESH_MS: u64 = SESSION_TTL_MS / 3;
/// Entropy is asked for when there is less than for this many tokens.
pub const TOKEN_STOCK_LOW: usize = 64;
/// And kept for at most this many.
pub const TOKEN_STOCK_MAX: usize = 512;
/// Reliable messages of one write, in bytes; the rest waits for the next.
pub const RELIABLE_WRITE_BYTES_MAX: usize = 32 * 1024;
/// A reliable lane that is full for this long closes its connection.
pub const SLOW_FULL_MS: u64 = 5_000;
/// A control or reliable message that waits longer than this closes its connection.
pub const SLOW_OLDEST_MS: u64 = 15_000;
/// Addresses of gateways that a client is told: as many as it remembers.
pub const GATEWAYS_TOLD_MAX: usize = 64;
/// A gateway that stops waits this long for its connections to close.
pub const GATEWAY_STOP_MS: u64 = 3_000;
/// First message of a connection.
pub const LOGIN_DEADLINE_MS: u64 = 3_000;
/// Messages that a client may send a second, over time.
pub const MESSAGES_PER_S: u32 = 40;
/// Messages that a client may send at once.
pub const MESSAGES_BURST: u32 = 120;
/// Bytes of one client message.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Letters waiting for a core's thread.
pub const INBOX_MAX: usize = 64 * 1024;
/// A tick that begins later than this after its deadline is late.
pub const TICK_LATE_MS: u64 = 10;

/// Bytes of one frame between nodes.
pub const PEER_FRAME_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of one frame of a peer that has not proven yet that it knows the secret.
pub const PEER_GREETING_BYTES_MAX: usize = 4 * 1024;
/// A connection between nodes that is not proven after this long is closed; opening it counts.
pub const PEER_HANDSHAKE_MS: u64 = 2_000;
/// How often a link is tried while nothing arrives.
pub const PEER_PING_MS: u64 = 500;
/// A link on which nothing arrived for this long is dead.
pub const PEER_SILENT_MS: u64 = 2_000;
/// Nodes that one node knows of.
pub const PEERS_MAX: usize = 1_024;
/// Accepted connections that have not proven themselves yet.
pub const PEER_HANDSHAKES_MAX: usize = 64;
/// Boots of one name that are remembered because a newer one took their link.
pub const PEER_BOOTS_REPLACED_MAX: usize = 8;
/// Refusals remembered, so that each is logged once.
pub const PEER_REFUSALS_TOLD_MAX: usize = 1_024;
/// Messages queued for one node that wait whatever happens. One more, and the link is cut: its node does not read.
pub const PEER_WAITING_MAX: usize = 64 * 1024;
/// Messages queued for one node that are replaced, merged, or dropped when there are more.
pub const PEER_KEYED_MAX: usize = 64 * 1024;
/// Bytes, by a guess at each message, that are queued for one node; then it is as if there were too many messages.
pub const PEER_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Events kept of feed frames that were merged because a node reads slowly.
pub const PEER_FEED_EVENTS_MAX: usize = 1_024;
/// Regions in one merged hint about leases.
pub const PEER_LEASES_MAX: usize = 64 * 1024;
/// Bytes written to a link at once. A larger frame goes alone.
pub const PEER_WRITE_BYTES: usize = 64 * 1024;
/// Bytes of a cluster's or a node's name.
pub const NAME_BYTES_MAX: usize = 64;
/// The shortest secret that a cluster may have, in bytes.
pub const SECRET_BYTES_MIN: usize = 16;

/// A sim may act for this long after it sent the newest beat that was acknowledged.
pub const FENCE_MS: u64 = 2_000;
/// How often a node beats.
pub const BEAT_MS: u64 = 400;
/// After this long without an answer a beat has failed.
pub const BEAT_TIMEOUT_MS: u64 = 400;
/// A newcomer that has seen another boot of its name move so often takes it for a running process. Less can be what a
/// killed one left behind; more would outlast its patience: each move begins its watch anew.
pub const NAMESAKE_MOVES: u64 = 3;
/// How often a node reads who else beats.
pub const NODES_READ_MS: u64 = 200;
/// How long a boot's row must stand still to be presumed gone.
pub const GONE_MS: u64 = 2_500;
/// The same for windows begun by the first read after an outage.
pub const GONE_AFTER_OUTAGE_MS: u64 = 5_000;
/// Without a successful read or an acknowledged beat for this long there is an outage.
pub const OUTAGE_MS: u64 = 1_000;
/// How long a row must say `fenced` at one life before its boot may be declared dead.
pub const FENCED_SEEN_MS: u64 = 1_000;
/// From the look at the fence to the last effect of what was then decided.
pub const ACT_MS: u64 = 50;
/// How fast or slow a clock may run, in thousandths.
pub const CLOCK_ERROR_PERMILLE: u64 = 10;
/// When a row of `nodes` expires, in seconds. It only sweeps up.
pub const NODE_TTL_S: u32 = 3_600;
/// The sim of rank k waits k times this before it takes a free region.
pub const RANK_WAIT_MS: u64 = 1_000;
/// How often placement looks for regions to take, to drain and to retire.
pub const PLACEMENT_MS: u64 = 200;
/// A node gets regions back from others once it has been up for this long.
pub const SETTLED_MS: u64 = 5_000;
/// A sim that most gateways cannot reach for this long gives way to one that they can reach.
pub const CUT_OFF_MS: u64 = 5_000;
/// Starts of a node within this time count as one fit of sickness.
pub const STARTS_WINDOW_MS: u64 = 300_000;
/// A node that started this often within that time gets no regions from others.
pub const STARTS_SICK: u32 = 3;
/// Regions of one node under way to better ones.
pub const DRAINS_MAX: usize = 4;
/// Regions of a node that stops on their way to others.
pub const DRAINS_STOPPING_MAX: usize = 32;
/// Until those that somebody needs have gone, so many: each stands still for as long as all on their way take together.
pub const DRAINS_PEOPLED_MAX: usize = 8;
/// A node that refused so many of them is offered no more.
pub const DRAINS_REFUSED_MAX: usize = 4;
/// After a drain that came to nothing, how long its region stays where it is.
pub const DRAIN_PAUSE_MS: u64 = 30_000;
/// How often the leases are read back.
pub const LEASES_READ_MS: u64 = 3_000;
/// Between two reads of the leases out of turn, unless somebody died.
pub const LEASES_PAUSE_MS: u64 = 1_000;
/// How often demand is written again.
pub const DEMAND_REFRESH_MS: u64 = 3_000;
/// When demand that is not written again expires, in seconds.
pub const DEMAND_TTL_S: u32 = 20;
/// How often demand is read, in a world that runs by demand.
pub const DEMAND_READ_MS: u64 = 1_000;
/// A region that nobody demanded for this long is retired.
pub const RETIRE_MS: u64 = 30_000;
/// Boots that no row of `nodes` shows, watched because a lease or an owner names them.
pub const WATCHED_MAX: usize = 1_024;
/// Dead boots remembered; one that is forgotten and still named is looked up again.
pub const DEAD_KEPT_MAX: usize = 4_096;

/// Whether no node can be presumed gone while it acts: `fence / (1 - rho) + act < gone / (1 + rho)`, in integers. The fence
/// is measured on a clock that may be slow, the window on one that may be fast.
pub const fn fence_fits(fence_ms: u64, act_ms: u64, gone_ms: u64, rho_permille: u64) -> bool {
    if rho_permille >= 1000 {
        return false;
    }
    let (slow, fast) = ((1000 - rho_permille) as u128, (1000 + rho_permille) as u128);
    let acts = (fence_ms as u128 * 1000 + act_ms as u128 * slow) * fast;
    acts < gone_ms as u128 * 1000 * slow
}

/// Whether two beats in a row may be lost, and the third acknowledged late, without a freeze.
pub const fn beats_fit(beat_ms: u64, beat_timeout_ms: u64, fence_ms: u64) -> bool {
    beat_timeout_ms <= beat_ms && 3 * beat_ms + beat_timeout_ms < fence_ms
}

const _: () = assert!(fence_fits(FENCE_MS, ACT_MS, GONE_MS, CLOCK_ERROR_PERMILLE));
const _: () = assert!(beats_fit(BEAT_MS, BEAT_TIMEOUT_MS, FENCE_MS));
const _: () = assert!(GONE_MS < GONE_AFTER_OUTAGE_MS && NODES_READ_MS < OUTAGE_MS);
const _: () = assert!(2 * BEAT_MS < FENCED_SEEN_MS && OUTAGE_MS < FENCE_MS);
const _: () = assert!(DEMAND_REFRESH_MS < DEMAND_TTL_S as u64 * 1000);
/// Any plain read or write of a database, one page of a scan included.
pub const STORE_PLAIN_TIMEOUT_MS: u64 = 1_000;
/// A compare-and-set, or a serial read.
pub const STORE_CAS_TIMEOUT_MS: u64 = 1_000;
/// All pages of a scan.
pub const STORE_SCAN_TIMEOUT_MS: u64 = 10_000;
/// A connection to a database node.
pub const STORE_CONNECT_TIMEOUT_MS: u64 = 1_000;
/// How often an idle connection is tried.
pub const STORE_KEEPALIVE_MS: u64 = 1_000;
/// And how long it may take to answer that before it is given up.
pub const STORE_KEEPALIVE_TIMEOUT_MS: u64 = 800;
/// How often it is looked whether any connection is left, and tried to connect when there is none.
pub const STORE_RECONNECT_MS: u64 = 250;
/// After this long an idempotent request is asked of a second node too.
pub const STORE_SPECULATE_MS: u64 = 120;
/// Connecting, and the first round of requests, each take this long at most.
pub const STORE_START_MS: u64 = 15_000;
/// Beats, reads of them, and changes of lives in flight to a database.
pub const STORE_PULSE_IN_FLIGHT_MAX: usize = 64;
/// Compare-and-sets of claims in flight.
pub const STORE_CAS_IN_FLIGHT_MAX: usize = 64;
/// Other requests in flight.
pub const STORE_BULK_IN_FLIGHT_MAX: usize = 128;
/// Of those, writes of one request that says which regions are needed.
pub const STORE_DEMAND_IN_FLIGHT_MAX: usize = 32;
/// Rows of one page of a scan.
pub const STORE_PAGE_ROWS: i32 = 2_000;
/// Rows of a seal in one batch, and their bytes: databases refuse what is larger than half a commit log's segment.
pub const SEAL_BATCH_ROWS_MAX: usize = 2_048;
/// See [`SEAL_BATCH_ROWS_MAX`].
pub const SEAL_BATCH_BYTES_MAX: usize = 256 * 1024;
/// How far the clocks of two database nodes may be apart.
pub const STORE_CLOCKS_APART_MS_MAX: i64 = 5_000;
/// How far the database's clocks may be from this machine's before it is mentioned.
pub const STORE_OWN_CLOCK_APART_MS_MAX: i64 = 60_000;

const _: () = assert!(SUBSCRIBE_MARGIN >= uo_combat::ARENA_MARGIN);
const _: () = assert!(HANDOFF_DEPTH < HANDOFF_DEPTH_FIGHTING);
const _: () = assert!(HANDOFF_DEPTH_FIGHTING < uo_combat::ARENA_MARGIN);
const _: () = assert!(CHECKPOINT_URGENT_MS < CHECKPOINT_MS);
const _: () = assert!(CAS_RETRY_MS * 4 < HANDOFF_TIMEOUT_MS);
const _: () = assert!(FLUSH_WAIT_MS < uo_proto::TICK_MS);
const _: () = assert!(CHECKPOINT_MS < LINGER_MS);
const _: () = assert!(ORDERS_SETTLE_MS < HANDOFF_TIMEOUT_MS);
const _: () = assert!(HANDOFF_TIMEOUT_MS < STOP_MS);
const _: () = assert!(DRAINS_MAX < DRAINS_PEOPLED_MAX && DRAINS_PEOPLED_MAX < DRAINS_STOPPING_MAX);
const _: () = assert!(DRAINS_STOPPING_MAX < REGION_CLAIMS_MAX);
const _: () = assert!(EVACUATE_MS + DRAIN_TIMEOUT_MS < STOP_MS);
const _: () = assert!(HANDOFF_TIMEOUT_MS < DRAIN_TIMEOUT_MS && CAS_RETRY_MS < DRAIN_TIMEOUT_MS);
const _: () = assert!(SLOW_OLDEST_MS < PUBLIC_KEPT_MS);
const _: () = assert!(TOKEN_STOCK_LOW < TOKEN_STOCK_MAX);
const _: () = assert!(SNAPSHOT_WAIT_MS <= FEED_WAIT_MS && RETRY_MAX_MS <= ATTACH_WAIT_MS);
const _: () = assert!(STORE_SPECULATE_MS * 3 < BEAT_TIMEOUT_MS);
const _: () = assert!(BEAT_TIMEOUT_MS <= STORE_PLAIN_TIMEOUT_MS);
// A database node that is lost costs some requests, and not the fence.
const _: () = assert!(STORE_PLAIN_TIMEOUT_MS < FENCE_MS && STORE_CAS_TIMEOUT_MS < FENCE_MS);
const _: () = assert!(STORE_KEEPALIVE_MS + STORE_KEEPALIVE_TIMEOUT_MS < FENCE_MS);
const _: () = assert!(OBJECT_WRITE_ROWS_MAX <= SEAL_BATCH_ROWS_MAX);
const _: () = assert!(2 * PEER_PING_MS < PEER_SILENT_MS && PEER_SILENT_MS < GONE_MS);
const _: () = assert!(PEER_GREETING_BYTES_MAX < PEER_FRAME_BYTES_MAX);
const _: () = assert!(PEER_FRAME_BYTES_MAX < PEER_QUEUE_BYTES_MAX);
const _: () = assert!(PEER_GREETING_BYTES_MAX > 16 * NAME_BYTES_MAX);
const _: () = assert!(SESSION_ORDERS_MAX < PEER_WAITING_MAX);
