//! A client's WebSocket, shared by the gateway's thread, which writes to it, and its task, which reads from it.
//!
//! Nearly always the system takes at once what is written, and then nobody has to be woken for it: a task for each write
//! costs more than the write. What the system does not take at once is left to the task.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use uo_proto::Encoding;

use super::frames::Frames;
use crate::sys;

/// How long it takes to look again whether a slow line has taken everything: at first, and at the most.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(32);

/// A socket whose handshake is complete.
pub type Socket = WebSocketStream<TcpStream>;

/// See the module.
pub struct Line {
    wire: Mutex<Wire>,
    /// Of the socket, which lives as long as this does.
    descriptor: RawFd,
    encoding: Encoding,
}

struct Wire {
    socket: Socket,
    /// What the socket could not take yet.
    waiting: VecDeque<Message>,
}

impl Line {
    /// The line over `socket`.
    pub fn new(socket: Socket, encoding: Encoding) -> Line {
        Line {
            descriptor: socket.get_ref().as_raw_fd(),
            wire: Mutex::new(Wire {
                socket,
                waiting: VecDeque::new(),
            }),
            encoding,
        }
    }

    /// How messages are written.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("nothing panics while it is held")
    }

    /// The next message of the client; none: it is gone.
    pub async fn next(&self) -> Option<Result<Message, Error>> {
        poll_fn(|cx| self.wire().socket.poll_next_unpin(cx)).await
    }

    /// Queues messages, and then a WebSocket ping with this payload. An error is a message that is no text.
    pub fn queue(&self, frames: Frames, ping: Option<u64>) -> Result<(), Error> {
        let waiting = &mut self.wire().waiting;
        // One buffer for all messages of this write: each is a slice of it.
        let ranges: Vec<_> = frames.ranges().collect();
        let bytes = Bytes::from(frames.bytes);
        for range in ranges {
            let slice = bytes.slice(range);
            waiting.push_back(match self.encoding {
                Encoding::Json => Message::Text(Utf8Bytes::try_from(slice)?),
                Encoding::MessagePack => Message::Binary(slice),
            });
        }
        let ping = ping.map(|payload| Message::Ping(payload.to_be_bytes().to_vec().into()));
        waiting.extend(ping);
        Ok(())
    }

    /// Queues a close frame.
    pub fn queue_close(&self, frame: CloseFrame) {
        let waiting = &mut self.wire().waiting;
        waiting.push_back(Message::Close(Some(frame)));
    }

    fn poll_write(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let wire = &mut *self.wire();
        loop {
            ready!(wire.socket.poll_ready_unpin(cx))?;
            let Some(message) = wire.waiting.pop_front() else {
                break;
            };
            wire.socket.start_send_unpin(message)?;
        }
        wire.socket.poll_flush_unpin(cx)
    }

    /// Writes what is queued as far as the system takes it without waiting. Whether all of it is on its way: if not, or if
    /// the line is broken, [`Line::write`] goes on from there.
    pub fn write_now(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        let written = self.poll_write(&mut nobody);
        matches!(written, Poll::Ready(Ok(()))) && self.is_free()
    }

    /// Writes what is queued, and waits until the line has taken everything: what it has not taken would only grow old in
    /// the system's buffer, and the next delta is better computed then.
    pub async fn write(&self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_write(cx)).await?;
        let mut pause = LOOK_FIRST;
        while !self.is_free() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LAST);
        }
        Ok(())
    }

    fn is_free(&self) -> bool {
        sys::unsent_bytes(self.descriptor) == 0
    }
}
