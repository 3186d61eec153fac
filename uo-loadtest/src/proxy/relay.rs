//! Accepts connections and pairs each with one of its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::pipe;
use super::way::Way;

/// How long the other side may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to leave the listener alone when the system has no socket to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a caller may take to say who it is.
const CALLER_WAIT: Duration = Duration::from_secs(5);

/// Finds out who calls, from the first bytes, and by which way that is; none if it does not say.
pub type Caller = Box<
    dyn for<'a> Fn(&'a TcpStream) -> Pin<Box<dyn Future<Output = Option<Way>> + Send + 'a>>
        + Send
        + Sync,
>;

/// What went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Connections relayed.
    pub connections: u64,
    /// Connections closed at once: too many, or the other side did not accept.
    pub refused: u64,
    /// Bytes towards the far side.
    pub bytes_up: u64,
    /// Bytes back.
    pub bytes_down: u64,
}

/// All connections from one listener to one address.
pub struct Relay {
    link: Arc<Link>,
    room: Arc<Semaphore>,
    connections: JoinSet<()>,
}

/// What every connection shares.
struct Link {
    to: String,
    way: Way,
    caller: Option<Caller>,
    connections: AtomicU64,
    refused: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

impl Relay {
    /// Relays to `to`, `HOST:PORT`, along that way, at most `connections_max` at a time.
    pub fn new(to: String, way: Way, connections_max: u32) -> Relay {
        let zero = || AtomicU64::new(0);
        let (connections, refused, bytes_up, bytes_down) = (zero(), zero(), zero(), zero());
        Relay {
            link: Arc::new(Link {
                to,
                way,
                caller: None,
                connections,
                refused,
                bytes_up,
                bytes_down,
            }),
            room: Arc::new(Semaphore::new(connections_max as usize)),
            connections: JoinSet::new(),
        }
    }

    /// Whoever connects says who it is first, and has a stretch of the way for itself.
    pub fn known_callers(mut self, caller: Caller) -> Relay {
        let link = Arc::get_mut(&mut self.link).expect("nobody has connected yet");
        link.caller = Some(caller);
        self
    }

    /// Accepts for ever. Connections go on while this is not polled.
    pub async fn serve(&mut self, listener: &TcpListener) {
        loop {
            while self.connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((near, _)) => match Arc::clone(&self.room).try_acquire_owned() {
                    Ok(room) => drop(
                        self.connections
                            .spawn(Arc::clone(&self.link).relay(near, room)),
                    ),
                    Err(_) => self.link.refuse("there are too many connections"),
                },
                Err(error) => {
                    self.link.refuse(&error.to_string());
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Closes every connection.
    pub async fn stop(mut self) -> Totals {
        self.connections.shutdown().await;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            connections: read(&self.link.connections),
            refused: read(&self.link.refused),
            bytes_up: read(&self.link.bytes_up),
            bytes_down: read(&self.link.bytes_down),
        }
    }
}

impl Link {
    async fn relay(self: Arc<Link>, mut near: TcpStream, _room: OwnedSemaphorePermit) {
        let mut way = self.way.clone();
        if let Some(caller) = &self.caller {
            // What it says is looked at and not taken: it is relayed like everything else.
            match timeout(CALLER_WAIT, caller(&near)).await {
                Ok(Some(known)) => way = known,
                _ => return reset(&near),
            }
        }
        way.open().await;
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.to)).await;
        let mut far = match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(far) => far,
            Err(error) => {
                self.refuse(&format!("{} does not accept: {error}", self.to));
                reset(&near);
                return;
            }
        };
        self.connections.fetch_add(1, Ordering::Relaxed);
        let relayed = {
            for stream in [&near, &far] {
                // Fails only on a connection that is gone already, which the first read tells.
                let _ = stream.set_nodelay(true);
            }
            let (near_in, near_out) = near.split();
            let (far_in, far_out) = far.split();
            tokio::try_join!(
                pipe::relay(near_in, far_out, way.clone(), &self.bytes_up),
                pipe::relay(far_in, near_out, way.clone(), &self.bytes_down),
            )
        };
        // A connection that broke on one side is not to look like one that was closed in order on the other.
        if relayed.is_err() {
            reset(&near);
            reset(&far);
        }
    }

    /// Counts, and says why the first time: thousands of clients that try again would say nothing new.
    fn refuse(&self, why: &str) {
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("refused a connection: {why} (further ones are only counted)");
        }
    }
}

/// Has the stream close with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    // Fails only on a connection that is gone already.
    let _ = stream.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    async fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// A relay that runs until `stop` is used, and its address.
    async fn start(
        to: SocketAddr,
        delay_ms: u64,
        max: u32,
    ) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<Totals>) {
        let (listener, address) = listen().await;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut relay = Relay::new(
                to.to_string(),
                Way::steady(Duration::from_millis(delay_ms)),
                max,
            );
            tokio::select! {
                () = relay.serve(&listener) => {}
                _ = stopped => {}
            }
            relay.stop().await
        });
        (address, stop, task)
    }

    /// Sends back what it gets, connection after connection.
    async fn echo() -> SocketAddr {
        let (listener, address) = listen().await;
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    // Breaks when a test drops its end, which ends this connection and nothing else.
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        address
    }

    /// Whether the connection was closed or reset by the other side, without a byte.
    async fn is_closed(stream: &mut TcpStream) -> bool {
        matches!(stream.read(&mut [0]).await, Ok(0) | Err(_))
    }

    #[tokio::test]
    async fn a_round_trip_takes_two_delays_longer() {
        let (address, stop, task) = start(echo().await, 30, 10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let sent = Instant::now();
        client.write_all(b"there and back").await.unwrap();
        let mut received = [0; 14];
        client.read_exact(&mut received).await.unwrap();
        assert!(
            sent.elapsed() >= Duration::from_millis(60),
            "{:?}",
            sent.elapsed()
        );
        assert_eq!(&received, b"there and back");
        stop.send(()).unwrap();
        let totals = Totals {
            connections: 1,
            refused: 0,
            bytes_up: 14,
            bytes_down: 14,
        };
        assert_eq!(task.await.unwrap(), totals);
        assert!(
            is_closed(&mut client).await,
            "a stopped relay keeps nothing open"
        );
    }

    #[tokio::test]
    async fn a_half_that_ended_leaves_the_other_open() {
        let (address, _stop, _task) = start(echo().await, 1, 10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"all").await.unwrap();
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"all");
    }

    #[tokio::test]
    async fn one_connection_too_many_is_closed_and_its_place_is_free_again_later() {
        let (address, stop, task) = start(echo().await, 0, 1).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"x").await.unwrap();
        first.read_u8().await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        assert!(is_closed(&mut second).await);
        first.shutdown().await.unwrap();
        assert!(is_closed(&mut first).await);
        // The place is given back when both halves have ended, which may be a moment after we saw the end.
        let mut tried = 0;
        loop {
            let mut next = TcpStream::connect(address).await.unwrap();
            let echoed = async {
                next.write_all(b"y").await?;
                next.read_u8().await
            };
            if echoed.await.is_ok() {
                break;
            }
            tried += 1;
            assert!(
                tried < 1_000,
                "the place of a closed connection stays taken"
            );
        }
        stop.send(()).unwrap();
        assert_eq!(task.await.unwrap().refused, 1 + tried);
    }

    #[tokio::test]
    async fn a_far_side_that_does_not_accept_is_told_as_a_reset() {
        let (listener, nobody) = listen().await;
        drop(listener);
        let (address, stop, task) = start(nobody, 0, 10).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let error = client.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        stop.send(()).unwrap();
        assert_eq!(task.await.unwrap().refused, 1);
    }
}
