//! One suite that every store must pass: what the cluster relies on, and nothing else.
//!
//! - [`claims`]: rows that change by what was seen, however many try at once;
//! - [`lives`]: dead is for ever; [`registers`]: the world, and sick regions;
//! - [`stamps`]: the later stamp wins, whenever it arrives; [`seals`]: nothing older shows again;
//! - [`expiry`]: whole seconds; beats.
//!
//! A case uses rows that no other uses, so that all of them can run on one database.

pub mod claims;
pub mod expiry;
pub mod lives;
pub mod registers;
pub mod seals;
pub mod stamps;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uo_proto::{CharId, ObjectKey, RegionId};
use uo_server::identity::{BootId, Holder, Nonce};
use uo_server::store::{ClaimRow, Reply, Request, Right, Seen, Store, StoreError};

/// A case by its name.
pub type Case<S> = (
    &'static str,
    fn(Arc<S>) -> Pin<Box<dyn Future<Output = ()> + Send>>,
);

/// All of them.
pub fn cases<S: Store>() -> Vec<Case<S>> {
    macro_rules! list {
        ($($path:path,)*) => { vec![$((stringify!($path), |store| Box::pin($path(store)))),*] };
    }
    list![
        claims::change_by_what_was_seen,
        claims::races_have_one_winner,
        claims::every_lease_is_listed,
        claims::a_repeated_attempt_finds_its_nonce,
        lives::dead_is_final,
        lives::races_have_one_winner,
        registers::the_world_is_pinned_once,
        registers::faults_change_by_what_was_seen,
        stamps::stale_writes_lose,
        stamps::deletes_are_stamped,
        stamps::a_number_ends_before_the_next_begins,
        stamps::ties_are_settled_as_the_databases_do,
        stamps::batches_are_as_large_as_they_get,
        seals::hide_late_writes_to_a_character,
        seals::hide_late_writes_to_objects,
        seals::leave_their_own_rows,
        expiry::sessions_are_whole_or_gone,
        expiry::rows_expire_at_whole_seconds,
        expiry::late_beats_lose,
        expiry::every_boot_has_its_own_row,
        expiry::demand_is_said_again,
    ]
}

/// A number that no other case of this run got, nor another run on the same machine.
fn fresh() -> u64 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        AtomicU64::new(u64::from(u32::from_be_bytes(bytes) >> 2))
    });
    next.fetch_add(1, Ordering::Relaxed)
}

/// A region of this case.
pub fn a_region() -> RegionId {
    RegionId(fresh() as u32)
}

/// A character of this case.
pub fn a_character() -> CharId {
    CharId((1 << 50) + fresh())
}

/// A boot of this case.
pub fn a_boot() -> BootId {
    BootId(u128::from(fresh()) << 64 | 7)
}

/// A holder.
pub fn holder(node: &str, boot: u128) -> Holder {
    Holder {
        node: node.into(),
        boot: BootId(boot),
    }
}

/// A row of a claim.
pub fn row(holder: Option<Holder>, number: u64, nonce: u128) -> ClaimRow {
    ClaimRow {
        holder,
        number,
        nonce: Nonce(nonce),
    }
}

/// Asks for what cannot fail, except that a busy database may let an answer be waited for in vain: then again, and a
/// compare-and-set that is refused because its first sending applied did apply.
pub async fn ask(store: &impl Store, request: Request) -> Reply {
    let mut in_doubt = false;
    for _ in 0..20 {
        match store.call(request.clone()).await {
            Ok(reply) if in_doubt => return settled(&request, reply),
            Ok(reply) => return reply,
            Err(StoreError::Unknown(why)) => {
                in_doubt = true;
                eprintln!("  asked again, because {why}");
            }
            Err(StoreError::Refused(why)) => panic!("refused: {why} (asked for {request:?})"),
        }
    }
    panic!("no answer to {request:?}")
}

/// The reply to a request that was sent before, by the only one who asks for this row.
fn settled(request: &Request, reply: Reply) -> Reply {
    match (request, reply) {
        (
            Request::ClaimCas { to, .. },
            Reply::ClaimCas {
                row: Some(there), ..
            },
        ) if there == *to => Reply::ClaimCas {
            applied: true,
            row: None,
        },
        (
            Request::LifeCas { to, .. },
            Reply::LifeCas {
                row: Some(there), ..
            },
        ) if there == *to => Reply::LifeCas {
            applied: true,
            row: None,
        },
        (
            Request::FaultCas { to, .. },
            Reply::FaultCas {
                row: Some(there), ..
            },
        ) if there == *to => Reply::FaultCas {
            applied: true,
            row: None,
        },
        (_, reply) => reply,
    }
}

/// A compare-and-set.
pub async fn cas(
    store: &impl Store,
    right: Right,
    seen: Option<Seen>,
    to: ClaimRow,
) -> (bool, Option<ClaimRow>) {
    match ask(store, Request::ClaimCas { right, seen, to }).await {
        Reply::ClaimCas { applied, row } => (applied, row),
        other => panic!("not an answer to a compare-and-set: {other:?}"),
    }
}

/// A compare-and-set among so many that its outcome may be unknown: repeated, as it is, until that is final.
pub async fn cas_until_final(
    store: &impl Store,
    right: Right,
    seen: Option<Seen>,
    to: ClaimRow,
) -> bool {
    for _ in 0..600 {
        let request = Request::ClaimCas {
            right,
            seen: seen.clone(),
            to: to.clone(),
        };
        match store.call(request).await {
            Ok(Reply::ClaimCas { applied: true, .. }) => return true,
            Ok(Reply::ClaimCas { row: Some(row), .. }) if row.nonce == to.nonce => return true,
            Ok(Reply::ClaimCas { row, .. }) if row.as_ref().map(ClaimRow::seen) != seen => {
                return false;
            }
            Ok(Reply::ClaimCas { .. }) | Err(_) => {}
            Ok(other) => panic!("not an answer to a compare-and-set: {other:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("a compare-and-set never became final");
}

/// The row of a claim as every compare-and-set before left it.
pub async fn claim(store: &impl Store, right: Right) -> Option<ClaimRow> {
    let serial = true;
    match ask(store, Request::ClaimRead { right, serial }).await {
        Reply::Claim(row) => row,
        other => panic!("not a claim: {other:?}"),
    }
}

/// What is stored of a character.
pub async fn character(store: &impl Store, char_id: CharId) -> Option<Vec<u8>> {
    match ask(store, Request::CharacterRead { char_id }).await {
        Reply::Character(row) => row,
        other => panic!("not a character: {other:?}"),
    }
}

/// What is stored of the objects of a region.
pub async fn objects(store: &impl Store, region: RegionId) -> Vec<(ObjectKey, Vec<u8>)> {
    match ask(store, Request::ObjectsRead { region }).await {
        Reply::Objects(rows) => rows,
        other => panic!("not objects: {other:?}"),
    }
}

/// Asks for what must be acknowledged.
pub async fn done(store: &impl Store, request: Request) {
    assert_eq!(ask(store, request).await, Reply::Done);
}
