//! Compare-and-sets whose outcome is unknown, resolved by the claim machine that the server runs.

use std::sync::Arc;
use std::time::Duration;

use uo_server::cluster::claim::{Claim, Context, Input, Output};
use uo_server::identity::{BootId, Holder, Nonce, Nonces};
use uo_server::limits::CAS_RETRY_MS;
use uo_server::planted::Planted;
use uo_server::store::scylla::{Access, Place, ScyllaStore};
use uo_server::store::{Reply, Request, Right, Store};

use crate::contract::{a_boot, a_character, cas, claim, row};
use crate::harness::{Bench, Case, Needs};
use crate::proxy::{Fate, Proxy};

const LATE: Duration = Duration::from_secs(5);

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("unknown::lost_on_the_way_there", Needs::OneNode, |bench| {
            resolved(bench, &[Fate::Lost, Fate::Lost])
        }),
        Case::new("unknown::lost_on_the_way_back", Needs::OneNode, |bench| {
            resolved(bench, &[Fate::Unanswered, Fate::Unanswered])
        }),
        Case::new("unknown::broken_connection", Needs::OneNode, |bench| {
            resolved(bench, &[Fate::Cut])
        }),
        Case::new("unknown::late", Needs::OneNode, |bench| {
            resolved(bench, &[Fate::Late(LATE)])
        }),
        Case::new(
            "unknown::late_and_too_late",
            Needs::OneNode,
            late_and_too_late,
        ),
        Case::new("unknown::release", Needs::OneNode, release),
    ]
}

/// The store of `bench`, through a proxy.
pub async fn through_a_proxy(bench: &Bench) -> (Proxy, Arc<ScyllaStore>) {
    let proxy = Proxy::before(&bench.access.place.hosts[0]).await;
    let place = Place {
        hosts: vec![proxy.address.to_string()],
        keyspace: bench.access.place.keyspace.clone(),
    };
    let access = Access {
        place,
        ..bench.access.clone()
    };
    let store = ScyllaStore::open(access).await.expect("it opens");
    (proxy, Arc::new(store))
}

/// One right of one node, and the machine that decides about it.
struct Claimer {
    store: Arc<ScyllaStore>,
    right: Right,
    me: Holder,
    nonces: Nonces,
    machine: Claim,
    sent: Vec<Nonce>,
}

impl Claimer {
    fn new(store: Arc<ScyllaStore>, right: Right, boot: BootId) -> Claimer {
        Claimer {
            store,
            right,
            me: Holder {
                node: "sim-1".into(),
                boot,
            },
            nonces: Nonces::new(boot),
            machine: Claim::default(),
            sent: Vec::new(),
        }
    }

    /// The nonce of its next attempt, as the database is sent it.
    fn next_nonce(&self) -> [u8; 16] {
        self.nonces.clone().fresh().0.to_be_bytes()
    }

    /// Carries out what the machine says until it asks for nothing more.
    async fn drive(&mut self, input: Input) -> Output {
        let mut input = input;
        loop {
            let output = self.handle(input);
            input = match output {
                Output::Read => self.read().await,
                Output::Cas(attempt) => {
                    self.sent.push(attempt.to.nonce);
                    let request = Request::ClaimCas {
                        right: self.right,
                        seen: attempt.seen,
                        to: attempt.to,
                    };
                    match self.store.call(request).await {
                        Ok(Reply::ClaimCas { applied: true, .. }) => Input::Applied,
                        Ok(Reply::ClaimCas { row, .. }) => Input::Refused(row),
                        _ => Input::Failed,
                    }
                }
                Output::RetryLater => {
                    tokio::time::sleep(Duration::from_millis(CAS_RETRY_MS)).await;
                    Input::Retry
                }
                Output::Load { .. } => Input::Loaded(None),
                Output::Seal { number } => self.seal(number).await,
                settled => return settled,
            };
        }
    }

    fn handle(&mut self, input: Input) -> Output {
        let mut context = Context {
            me: &self.me,
            is_dead: &|_| false,
            nonces: &mut self.nonces,
            planted: Planted::default(),
        };
        self.machine.handle(input, &mut context)
    }

    async fn read(&self) -> Input {
        let (right, serial) = (self.right, true);
        match self.store.call(Request::ClaimRead { right, serial }).await {
            Ok(Reply::Claim(row)) => Input::Row(row),
            _ => Input::Failed,
        }
    }

    async fn seal(&self, number: u64) -> Input {
        let Right::Character(char_id) = self.right else {
            return Input::Sealed;
        };
        let seal = Request::CharacterSeal {
            char_id,
            number,
            row: None,
        };
        match self.store.call(seal).await {
            Ok(_) => Input::Sealed,
            Err(_) => Input::Failed,
        }
    }
}

/// Whatever becomes of the first requests, the same nonce goes on until it is known that the claim is ours, once.
async fn resolved(bench: Arc<Bench>, fates: &'static [Fate]) {
    let (proxy, store) = through_a_proxy(&bench).await;
    for takes in [1, 2] {
        let right = Right::Character(a_character());
        if takes == 2 {
            // From a released row, by the other statement.
            cas(&*store, right, None, row(None, 1, 1)).await;
        }
        let mut claimer = Claimer::new(store.clone(), right, a_boot());
        let nonce = claimer.next_nonce();
        proxy.fate(&nonce, fates);
        let served = claimer.drive(Input::Take).await;
        assert_eq!(served, Output::Serve { number: takes });
        assert_eq!(proxy.fates_left(), 0, "the proxy saw no request");
        assert!(claimer.sent.len() > fates.len(), "{:?}", claimer.sent);
        assert!(
            claimer
                .sent
                .iter()
                .all(|sent| sent.0.to_be_bytes() == nonce)
        );
        if let [Fate::Late(_)] = fates {
            // It has its answer already; now the first request arrives as well, and changes nothing.
            proxy.late_arrived(takes as u32).await;
        }
        let there = claim(&*bench.store, right).await.expect("there is a row");
        assert_eq!(there.number, takes);
        assert_eq!(there.nonce.0.to_be_bytes(), nonce);
        assert_eq!(there.holder, Some(claimer.me.clone()));
    }
}

/// While a request is on its way another takes the claim; the request arrives, and is refused; and who sent it learns
/// that it lost.
async fn late_and_too_late(bench: Arc<Bench>) {
    let (proxy, store) = through_a_proxy(&bench).await;
    let right = Right::Character(a_character());
    cas(&*bench.store, right, None, row(None, 1, 1)).await;
    let mut slow = Claimer::new(store, right, a_boot());
    let mut quick = Claimer::new(bench.store.clone(), right, a_boot());
    // The repetitions are lost until the first has arrived.
    let mut fates = vec![Fate::Late(LATE)];
    fates.extend([Fate::Lost; 20]);
    proxy.fate(&slow.next_nonce(), &fates);
    let slowly = tokio::spawn(async move { slow.drive(Input::Take).await });
    while proxy.fates_left() > 19 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let served = quick.drive(Input::Take).await;
    assert_eq!(served, Output::Serve { number: 2 });
    proxy.late_arrived(1).await;
    proxy.forget();
    let there = claim(&*bench.store, right).await;
    assert_eq!(there.as_ref().map(|row| row.number), Some(2));
    assert_eq!(
        there.as_ref().and_then(|row| row.holder.clone()),
        Some(quick.me.clone())
    );
    assert_eq!(slowly.await.expect("it ends"), Output::Gone(there));
}

/// A release is an attempt like any other.
async fn release(bench: Arc<Bench>) {
    let (proxy, store) = through_a_proxy(&bench).await;
    for fate in [Fate::Lost, Fate::Unanswered, Fate::Cut] {
        let right = Right::Character(a_character());
        let mut claimer = Claimer::new(store.clone(), right, a_boot());
        claimer.drive(Input::Take).await;
        proxy.fate(&claimer.next_nonce(), &[fate]);
        let released = claimer.drive(Input::Release).await;
        assert_eq!(released, Output::Released { number: 2 });
        assert_eq!(proxy.fates_left(), 0, "the proxy saw no request");
        let there = claim(&*bench.store, right).await.expect("there is a row");
        assert_eq!((there.holder, there.number), (None, 2));
    }
}
