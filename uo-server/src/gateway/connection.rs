//! One client's WebSocket: a task that decodes what comes in and writes what the core says.
//!
//! The core decides what is written and when; this shell only says when everything it was given is with the system.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Sender, TrySendError};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use uo_proto::frame::DecodeError;
use uo_proto::{Encoding, close};

use super::core::{ConnId, Input};
use super::frames::Frames;
use super::mailbox::{GatewayMail, Outgoing};
use crate::sys;

/// What is handed to a connection's task and not yet done: the one write that may be under way, and a close.
pub const OUTGOING_MAX: usize = 2;
/// How long the last messages and the closing handshake may take, together.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// How long it takes to look again whether a slow line has taken everything: at first, and at the most.
const LINE_LOOK_FIRST: Duration = Duration::from_millis(2);
const LINE_LOOK_LAST: Duration = Duration::from_millis(32);
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

type Socket = WebSocketStream<TcpStream>;

/// Serves a connection whose handshake is complete, to its end.
pub async fn serve(hub: Arc<Hub>, socket: Socket, encoding: Encoding) {
    let conn = ConnId(hub.next.fetch_add(1, Ordering::Relaxed));
    let (frames, outgoing) = mpsc::channel(OUTGOING_MAX);
    if hub
        .post(GatewayMail::Connected { conn, frames })
        .await
        .is_err()
        || hub
            .post(GatewayMail::Input(Input::Opened { conn, encoding }))
            .await
            .is_err()
    {
        return;
    }
    // Both halves live to the end of this function, and so does the descriptor.
    let descriptor = socket.get_ref().as_raw_fd();
    let (mut sink, mut stream) = socket.split();
    let ending = tokio::select! {
        ending = read(&hub, conn, encoding, &mut stream) => ending,
        ending = write(&hub, conn, (encoding, descriptor), &mut sink, outgoing) => ending,
    };
    // The core is told first: a closing handshake with somebody who does not read takes its whole time.
    let _ = hub.post(GatewayMail::Input(Input::Closed { conn })).await;
    let farewell = async {
        if let Some(Ending { last, code, reason }) = ending {
            hub.write(&mut sink, encoding, last).await?;
            let frame = CloseFrame {
                code: CloseCode::from(code),
                reason: Utf8Bytes::from(reason),
            };
            sink.send(Message::Close(Some(frame))).await?;
        }
        // A client that closed first has its answer from here: tungstenite sends it with the next read.
        while stream.next().await.is_some_and(|message| message.is_ok()) {}
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

async fn read(
    hub: &Hub,
    conn: ConnId,
    encoding: Encoding,
    stream: &mut SplitStream<Socket>,
) -> Option<Ending> {
    while let Some(message) = stream.next().await {
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

async fn write(
    hub: &Hub,
    conn: ConnId,
    (encoding, descriptor): (Encoding, RawFd),
    sink: &mut SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<Outgoing>,
) -> Option<Ending> {
    while let Some(out) = outgoing.recv().await {
        let (frames, ping) = match out {
            Outgoing::Write { frames, ping } => (frames, ping),
            Outgoing::Close { last, code, reason } => return close_of(last, code, reason),
        };
        let delivery = async {
            hub.write(sink, encoding, frames).await?;
            if let Some(payload) = ping {
                let payload = payload.to_be_bytes().to_vec();
                sink.feed(Message::Ping(payload.into())).await?;
            }
            sink.flush().await?;
            line_is_free(descriptor).await;
            Ok::<(), Error>(())
        };
        // A close waits for no line that takes nothing. What such a line has not taken yet is lost with the connection,
        // from some message on to the last, and a resume asks for it.
        tokio::select! {
            biased;
            delivered = delivery => delivered.ok()?,
            Some(Outgoing::Close { last, code, reason }) = outgoing.recv() => {
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

/// Waits until the line has taken everything: what it has not taken would only grow old in the system's buffer, and the
/// next delta is better computed then.
async fn line_is_free(descriptor: RawFd) {
    let mut pause = LINE_LOOK_FIRST;
    while sys::unsent_bytes(descriptor) > 0 {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LINE_LOOK_LAST);
    }
}

impl Hub {
    /// Hands messages to the socket; the caller flushes.
    async fn write(
        &self,
        sink: &mut SplitSink<Socket, Message>,
        encoding: Encoding,
        frames: Frames,
    ) -> Result<(), Error> {
        self.bytes_out
            .fetch_add(frames.bytes.len() as u64, Ordering::Relaxed);
        self.frames_out
            .fetch_add(frames.len() as u64, Ordering::Relaxed);
        // One buffer for all messages of this write: each is a slice of it.
        let ranges: Vec<_> = frames.ranges().collect();
        let bytes = Bytes::from(frames.bytes);
        for range in ranges {
            let slice = bytes.slice(range);
            let message = match encoding {
                Encoding::Json => Message::Text(Utf8Bytes::try_from(slice)?),
                Encoding::MessagePack => Message::Binary(slice),
            };
            sink.feed(message).await?;
        }
        Ok(())
    }
}
#[cfg(test)]
mod tests {
    use crossbeam_channel::Receiver;
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// A connection that is served, with what its core sees and says, and the client's end of it.
    async fn connection() -> (Receiver<GatewayMail>, mpsc::Sender<Outgoing>, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("somebody connects");
        let server = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        let (inbox, letters) = crossbeam_channel::bounded(16);
        tokio::spawn(serve(Arc::new(Hub::new(inbox)), server, Encoding::Json));
        let GatewayMail::Connected { frames, .. } = next(&letters).await else {
            panic!("a connection is announced first");
        };
        assert!(matches!(
            next(&letters).await,
            GatewayMail::Input(Input::Opened { .. })
        ));
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        (letters, frames, client)
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

    fn write(bytes: usize) -> Outgoing {
        Outgoing::Write {
            frames: Frames::one(vec![b' '; bytes]),
            ping: None,
        }
    }

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
            let (letters, frames, _client) = connection().await;
            // More than both sockets' buffers hold.
            frames.send(write(64 << 20)).await.expect("it is served");
            frames.send(close()).await.expect("it is served");
            assert!(matches!(
                next(&letters).await,
                GatewayMail::Input(Input::Closed { .. })
            ));
        });
    }

    #[test]
    fn what_was_said_before_a_close_arrives_before_it() {
        run(async {
            let (_letters, frames, mut client) = connection().await;
            frames.send(write(3)).await.expect("it is served");
            frames.send(close()).await.expect("it is served");
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
            let (letters, _frames, mut client) = connection().await;
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
}
