//! One client's WebSocket: a task that decodes what comes in, and goes on with what could not be written at once.
//!
//! The core decides what is written and when; the shells only say when everything that they were given is with the system.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use uo_proto::frame::DecodeError;
use uo_proto::{Encoding, close};

use super::core::{ConnId, Input};
use super::frames::Frames;
use super::line::{Line, Socket};
use super::mailbox::{GatewayMail, Outgoing};

/// What a connection's task is told and has not done yet: to go on with the one write under way, and a close.
pub const OUTGOING_MAX: usize = 2;
/// How long the last messages and the closing handshake may take, together.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long a reader waits before it tries a full inbox again: back-pressure on its own socket.
const INBOX_RETRY: Duration = Duration::from_millis(2);

/// What all connections of a gateway share.
pub struct Hub {
    inbox: Sender<GatewayMail>,
    written: Mutex<Vec<ConnId>>,
    next: AtomicU64,
    /// Connections open now.
    pub open: AtomicUsize,
    /// Bytes of messages read.
    pub bytes_in: AtomicU64,
    /// Bytes of messages written.
    pub bytes_out: AtomicU64,
    /// Messages written.
    pub frames_out: AtomicU64,
}

impl Hub {
    /// The hub of the core that reads `inbox`.
    pub fn new(inbox: Sender<GatewayMail>) -> Hub {
        Hub {
            inbox,
            written: Mutex::default(),
            next: AtomicU64::new(1),
            open: AtomicUsize::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            frames_out: AtomicU64::new(0),
        }
    }

    /// The connections whose frames all went out since the last call.
    pub fn take_written(&self) -> Vec<ConnId> {
        std::mem::take(
            &mut self
                .written
                .lock()
                .expect("nothing panics while it is held"),
        )
    }

    /// Counts messages that are written.
    pub fn count(&self, frames: &Frames) {
        self.bytes_out
            .fetch_add(frames.bytes.len() as u64, Ordering::Relaxed);
        self.frames_out
            .fetch_add(frames.len() as u64, Ordering::Relaxed);
    }

    /// Waits for room in the core's inbox; an error when the core is gone.
    async fn post(&self, mut mail: GatewayMail) -> Result<(), CoreGone> {
        loop {
            match self.inbox.try_send(mail) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(CoreGone),
                Err(TrySendError::Full(back)) => mail = back,
            }
            tokio::time::sleep(INBOX_RETRY).await;
        }
    }
}

struct CoreGone;

/// Serves a connection whose handshake is complete, to its end.
pub async fn serve(hub: Arc<Hub>, socket: Socket, encoding: Encoding) {
    let conn = ConnId(hub.next.fetch_add(1, Ordering::Relaxed));
    let line = Arc::new(Line::new(socket, encoding));
    let (task, orders) = mpsc::channel(OUTGOING_MAX);
    let connected = GatewayMail::Connected {
        conn,
        line: line.clone(),
        task,
    };
    if hub.post(connected).await.is_err()
        || hub
            .post(GatewayMail::Input(Input::Opened { conn, encoding }))
            .await
            .is_err()
    {
        return;
    }
    let ending = tokio::select! {
        ending = read(&hub, conn, &line) => ending,
        ending = write(&hub, conn, &line, orders) => ending,
    };
    // The core is told first: a closing handshake with somebody who does not read takes its whole time.
    let _ = hub.post(GatewayMail::Input(Input::Closed { conn })).await;
    let farewell = async {
        if let Some(Ending { last, code, reason }) = ending {
            hub.count(&last);
            line.queue(last, None)?;
            line.queue_close(CloseFrame {
                code: CloseCode::from(code),
                reason: Utf8Bytes::from(reason),
            });
            line.write().await?;
        }
        // A client that closed first has its answer from here: tungstenite sends it with the next read.
        while line.next().await.is_some_and(|message| message.is_ok()) {}
        Ok::<(), Error>(())
    };
    let _ = tokio::time::timeout(CLOSE_WAIT, farewell).await;
}

/// A close frame, and what is said before it. Where there is none, the client closed first, or the socket is gone.
struct Ending {
    last: Frames,
    code: u16,
    reason: String,
}

fn ending(code: u16, reason: &str) -> Option<Ending> {
    close_of(Frames::default(), code, reason)
}

fn close_of(last: Frames, code: u16, reason: &str) -> Option<Ending> {
    Some(Ending {
        last,
        code,
        reason: close_reason(reason),
    })
}

/// A close frame is a control frame: 125 bytes at most, two of them the code.
fn close_reason(reason: &str) -> String {
    reason[..reason.floor_char_boundary(123)].to_owned()
}

async fn read(hub: &Hub, conn: ConnId, line: &Line) -> Option<Ending> {
    let encoding = line.encoding();
    while let Some(message) = line.next().await {
        let bytes = match (message, encoding) {
            (Ok(Message::Text(text)), Encoding::Json) => text.into(),
            (Ok(Message::Binary(bytes)), Encoding::MessagePack) => bytes,
            (Ok(Message::Text(_) | Message::Binary(_)), _) => {
                let want = if encoding == Encoding::Json {
                    "text"
                } else {
                    "binary"
                };
                return ending(
                    close::WRONG_KIND,
                    &format!("{} takes {want} frames", encoding.subprotocol()),
                );
            }
            (Ok(Message::Close(_)), _) => return None,
            (Ok(Message::Pong(payload)), _) => {
                // Pongs of another length answer no ping of ours.
                let Ok(payload) = <[u8; 8]>::try_from(payload.as_ref()) else {
                    continue;
                };
                let input = Input::Pong {
                    conn,
                    payload: u64::from_be_bytes(payload),
                };
                match hub.post(GatewayMail::Input(input)).await {
                    Ok(()) => continue,
                    Err(CoreGone) => return ending(close::GOING_AWAY, "the server stops"),
                }
            }
            (Ok(Message::Ping(_) | Message::Frame(_)), _) => continue,
            (Err(error), _) => return refusal(&error),
        };
        hub.bytes_in
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let input = match encoding.decode_client(&bytes) {
            Ok(message) => Input::Client { conn, message },
            Err(DecodeError::Garbage(reason)) => return ending(close::NOT_DECODABLE, &reason),
            Err(error) => Input::Invalid {
                conn,
                reason: error.to_string(),
                seq: error.seq(),
            },
        };
        if hub.post(GatewayMail::Input(input)).await.is_err() {
            return ending(close::GOING_AWAY, "the server stops");
        }
    }
    None
}

/// What a client is told when its bytes are not WebSocket as agreed.
fn refusal(error: &Error) -> Option<Ending> {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            ending(close::TOO_BIG, "the message is too big")
        }
        Error::Utf8(_) => ending(close::NOT_DECODABLE, "text frames are UTF-8"),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(error) => ending(close::PROTOCOL_ERROR, &error.to_string()),
        _ => None,
    }
}

/// Goes on with writes that the gateway's thread could not end by itself.
async fn write(
    hub: &Hub,
    conn: ConnId,
    line: &Line,
    mut orders: mpsc::Receiver<Outgoing>,
) -> Option<Ending> {
    while let Some(order) = orders.recv().await {
        if let Outgoing::Close { last, code, reason } = order {
            return close_of(last, code, reason);
        }
        // A close waits for no line that takes nothing. What such a line has not taken yet is lost with the connection,
        // from some message on to the last, and a resume asks for it.
        tokio::select! {
            biased;
            written = line.write() => written.ok()?,
            Some(Outgoing::Close { last, code, reason }) = orders.recv() => {
                return close_of(last, code, reason);
            }
        }
        hub.written
            .lock()
            .expect("nothing panics while it is held")
            .push(conn);
    }
    ending(close::GOING_AWAY, "the server stops")
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::Receiver;
    use futures_util::{SinkExt, StreamExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// A connection that is served, as its gateway's thread has it.
    struct Served {
        line: Arc<Line>,
        task: mpsc::Sender<Outgoing>,
    }

    impl Served {
        /// As the gateway's thread does it. Whether nobody else was needed for it.
        async fn write(&self, bytes: usize) -> bool {
            let frames = Frames::one(vec![b' '; bytes]);
            self.line.queue(frames, None).expect("it is text");
            let is_done = self.line.write_now();
            if !is_done {
                self.tell(Outgoing::GoOn).await;
            }
            is_done
        }

        async fn tell(&self, order: Outgoing) {
            self.task.send(order).await.expect("it is served");
        }
    }

    /// A connection with what its core sees, and the client's end of it.
    async fn connection() -> (Arc<Hub>, Receiver<GatewayMail>, Served, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("somebody connects");
        let server = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        let (inbox, letters) = crossbeam_channel::bounded(16);
        let hub = Arc::new(Hub::new(inbox));
        tokio::spawn(serve(hub.clone(), server, Encoding::Json));
        let GatewayMail::Connected { line, task, .. } = next(&letters).await else {
            panic!("a connection is announced first");
        };
        assert!(matches!(
            next(&letters).await,
            GatewayMail::Input(Input::Opened { .. })
        ));
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        (hub, letters, Served { line, task }, client)
    }

    /// The next letter to the core. It panics where none comes for much longer than a test may take.
    async fn next(letters: &Receiver<GatewayMail>) -> GatewayMail {
        let letters = letters.clone();
        tokio::task::spawn_blocking(move || letters.recv_timeout(Duration::from_secs(20)))
            .await
            .expect("it does not panic")
            .expect("a letter comes")
    }

    fn close() -> Outgoing {
        Outgoing::Close {
            last: Frames::one(b"{\"type\":\"bye\"}".to_vec()),
            code: close::RESTART,
            reason: "the gateway stops",
        }
    }

    /// More than both sockets' buffers hold, and as much as a client takes in a frame.
    const LARGE: usize = 15 << 20;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(test);
    }

    #[test]
    fn a_close_does_not_wait_for_a_client_that_does_not_read() {
        run(async {
            let (_hub, letters, served, _client) = connection().await;
            assert!(!served.write(LARGE).await);
            served.tell(close()).await;
            assert!(matches!(
                next(&letters).await,
                GatewayMail::Input(Input::Closed { .. })
            ));
        });
    }

    #[test]
    fn what_was_said_before_a_close_arrives_before_it() {
        run(async {
            let (_hub, _letters, served, mut client) = connection().await;
            served.write(3).await;
            served.tell(close()).await;
            // The gateway's thread forgets a connection that it closes.
            drop(served);
            let mut got = Vec::new();
            while let Some(Ok(message)) = client.next().await {
                got.push(message);
            }
            assert_eq!(got[0], Message::text("   "));
            assert_eq!(got[1], Message::text("{\"type\":\"bye\"}"));
            let Message::Close(Some(frame)) = &got[2] else {
                panic!("{got:?} ends with a close");
            };
            assert_eq!(u16::from(frame.code), close::RESTART);
        });
    }

    #[test]
    fn a_client_that_closes_is_answered() {
        run(async {
            let (_hub, letters, _served, mut client) = connection().await;
            let bye = CloseFrame {
                code: CloseCode::Normal,
                reason: "bye".into(),
            };
            client.close(Some(bye)).await.expect("it is open");
            let answer = client.next().await.expect("an answer");
            assert!(matches!(answer, Ok(Message::Close(Some(_)))), "{answer:?}");
            assert!(matches!(
                next(&letters).await,
                GatewayMail::Input(Input::Closed { .. })
            ));
        });
    }

    /// Red when the task does not go on where the gateway's thread had to stop, and when it tells nobody that it is done.
    #[test]
    fn what_the_line_does_not_take_at_once_is_written_by_the_task() {
        run(async {
            let (hub, _letters, served, mut client) = connection().await;
            assert!(
                served.write(3).await,
                "nobody has to be woken for so little"
            );
            assert!(!served.write(LARGE).await);
            let mut sizes = Vec::new();
            while sizes.len() < 2 {
                let message = client.next().await.expect("it is open");
                sizes.push(message.expect("it is whole").len());
            }
            assert_eq!(sizes, [3, LARGE]);
            let done = async {
                while hub.take_written().is_empty() {
                    tokio::task::yield_now().await;
                }
            };
            let done = tokio::time::timeout(Duration::from_secs(20), done).await;
            done.expect("it is told when the line is free again");
            assert!(served.write(4).await);
            let message = client.next().await.expect("it is open");
            assert_eq!(message.expect("it is whole").len(), 4);
        });
    }

    /// Red when the reader sleeps on while the gateway's thread writes.
    #[test]
    fn reading_and_writing_do_not_disturb_each_other() {
        run(async {
            let (_hub, letters, served, mut client) = connection().await;
            for _ in 0..200 {
                served.write(100).await;
                let order = r#"{"type":"ping","nonce":1}"#;
                client.send(Message::text(order)).await.expect("it is open");
                let letter = next(&letters).await;
                assert!(matches!(letter, GatewayMail::Input(Input::Client { .. })));
                let got = client.next().await.expect("it is open");
                assert_eq!(got.expect("it is whole").len(), 100);
            }
        });
    }
}
