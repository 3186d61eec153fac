//! A database that loses requests and answers: a proxy in front of it that knows frames, and picks those that carry
//! certain bytes (the nonce of an attempt).

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It never arrives.
    Lost,
    /// It arrives, and its answer does not.
    Unanswered,
    /// It arrives, and the connection breaks before its answer does.
    Cut,
    /// It arrives later.
    Late(Duration),
}

struct Rule {
    bytes: Vec<u8>,
    /// What becomes of the first, the second, ..; those after the last pass.
    fates: Vec<Fate>,
}

#[derive(Default)]
struct State {
    rules: Mutex<Vec<Rule>>,
    silent: AtomicBool,
    late_arrived: AtomicU32,
    late_news: Notify,
}

/// Runs until it is dropped.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    /// In front of the database at `upstream`.
    pub async fn before(upstream: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State::default());
        let (shared, upstream) = (state.clone(), upstream.to_owned());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(&upstream).await {
                    tokio::spawn(carry(client, server, shared.clone()));
                }
            }
        });
        Proxy {
            address,
            state,
            accepting,
        }
    }

    /// Requests that carry these bytes suffer these fates, one each, in this order.
    pub fn fate(&self, bytes: &[u8], fates: &[Fate]) {
        let rule = Rule {
            bytes: bytes.to_vec(),
            fates: fates.to_vec(),
        };
        self.rules().push(rule);
    }

    /// Drops all rules.
    pub fn forget(&self) {
        self.rules().clear();
    }

    /// How many fates are still to come.
    pub fn fates_left(&self) -> usize {
        self.rules().iter().map(|rule| rule.fates.len()).sum()
    }

    /// Whether nothing at all is carried to the database.
    pub fn be_silent(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    /// Waits until so many late requests have been carried on.
    pub async fn late_arrived(&self, count: u32) {
        loop {
            let news = self.state.late_news.notified();
            if self.state.late_arrived.load(Ordering::SeqCst) >= count {
                return;
            }
            news.await;
        }
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        self.state.rules.lock().expect("no panic holds it")
    }
}

impl State {
    fn fate_of(&self, body: &[u8]) -> Option<Fate> {
        let mut rules = self.rules.lock().expect("no panic holds it");
        let hit = |rule: &&mut Rule| {
            !rule.fates.is_empty()
                && body
                    .windows(rule.bytes.len())
                    .any(|part| part == rule.bytes)
        };
        let rule = rules.iter_mut().find(hit)?;
        Some(rule.fates.remove(0))
    }
}

/// The streams of a connection whose answers are not to arrive.
#[derive(Default)]
struct Doomed {
    unanswered: Mutex<BTreeSet<[u8; 2]>>,
    cut: Mutex<BTreeSet<[u8; 2]>>,
}

/// A frame: nine bytes, of which 2 and 3 are its stream and the last four its length; then as much.
struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    async fn read(from: &mut OwnedReadHalf) -> io::Result<Frame> {
        let mut bytes = vec![0; 9];
        from.read_exact(&mut bytes).await?;
        let length = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        bytes.resize(9 + length as usize, 0);
        from.read_exact(&mut bytes[9..]).await?;
        Ok(Frame { bytes })
    }

    fn stream(&self) -> [u8; 2] {
        [self.bytes[2], self.bytes[3]]
    }
}

async fn carry(client: TcpStream, server: TcpStream, state: Arc<State>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let doomed = Arc::new(Doomed::default());
    // Either way ended ends both: the sockets are closed when they are dropped.
    tokio::select! {
        _ = requests(from_client, to_server, state, doomed.clone()) => {}
        _ = answers(from_server, to_client, doomed) => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    to: OwnedWriteHalf,
    state: Arc<State>,
    doomed: Arc<Doomed>,
) -> io::Result<()> {
    let to = Arc::new(tokio::sync::Mutex::new(to));
    loop {
        let frame = Frame::read(&mut from).await?;
        if state.silent.load(Ordering::SeqCst) {
            continue;
        }
        let stream = frame.stream();
        match state.fate_of(&frame.bytes[9..]) {
            Some(Fate::Lost) => continue,
            Some(Fate::Unanswered) => {
                doomed.unanswered.lock().expect("no panic").insert(stream);
            }
            Some(Fate::Cut) => {
                doomed.cut.lock().expect("no panic").insert(stream);
            }
            Some(Fate::Late(wait)) => {
                let (to, state) = (to.clone(), state.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let written = to.lock().await.write_all(&frame.bytes).await;
                    if written.is_ok() {
                        state.late_arrived.fetch_add(1, Ordering::SeqCst);
                        state.late_news.notify_waiters();
                    }
                });
                continue;
            }
            None => {}
        }
        to.lock().await.write_all(&frame.bytes).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    doomed: Arc<Doomed>,
) -> io::Result<()> {
    loop {
        let frame = Frame::read(&mut from).await?;
        let stream = frame.stream();
        if doomed.cut.lock().expect("no panic").contains(&stream) {
            return Ok(());
        }
        if doomed.unanswered.lock().expect("no panic").remove(&stream) {
            continue;
        }
        to.write_all(&frame.bytes).await?;
    }
}
