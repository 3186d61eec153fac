//! One WebSocket: frames in, frames out, nothing of the protocol's meaning.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Sink, Stream};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error as WsError;
use tokio_tungstenite::tungstenite::http::header::{RETRY_AFTER, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use uo_proto::{ClientMsg, Encoding};

/// Allocated for each connection while it lasts; the library's default of 128 KiB would be most of a bot.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Largest message taken from a server: a snapshot of a crowded place is some tens of KiB.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest wait that a server's `Retry-After` is honoured for.
const RETRY_AFTER_S_MAX: u64 = 300;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not `ws://host:port`.
    #[error("`{0}` is not an address of the form ws://host:port")]
    Address(String),
    /// Nobody answers there.
    #[error("no connection to {address}: {source}")]
    Io {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody answers, but not with a WebSocket.
    #[error("no WebSocket: {source}")]
    Handshake {
        /// From a `Retry-After` header, in milliseconds.
        retry_after_ms: Option<u64>,
        /// Why.
        source: Box<WsError>,
    },
}

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// A text or binary frame.
    Frame(Message),
    /// The end, with the server's code if it gave one.
    Closed(Option<u16>),
}

/// An open WebSocket.
pub struct Connection {
    socket: WebSocketStream<TcpStream>,
    encoding: Encoding,
    outgoing: VecDeque<Message>,
    unflushed: bool,
}

impl Connection {
    /// Opens a connection to `ws://host:port[/path]`.
    pub async fn open(
        gateway: &str,
        encoding: Encoding,
        receive_buffer_bytes: Option<u32>,
    ) -> Result<Connection, ConnectError> {
        let wrong = || ConnectError::Address(gateway.to_owned());
        let rest = gateway.strip_prefix("ws://").ok_or_else(wrong)?;
        let host = rest.split('/').next().unwrap_or(rest);
        let mut request = gateway.into_client_request().map_err(|_| wrong())?;
        request.headers_mut().insert(
            SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static(encoding.subprotocol()),
        );
        let io = |source| ConnectError::Io {
            address: host.to_owned(),
            source,
        };
        let stream = dial(host, receive_buffer_bytes).await.map_err(io)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config))
                .await
                .map_err(|source| ConnectError::Handshake {
                    retry_after_ms: retry_after_ms(&source),
                    source: Box::new(source),
                })?;
        Ok(Connection {
            socket,
            encoding,
            outgoing: VecDeque::new(),
            unflushed: false,
        })
    }

    /// Queues a message; [`Connection::poll_send`] writes it.
    pub fn queue(&mut self, message: &ClientMsg) {
        let bytes = self.encoding.encode_client(message);
        self.outgoing.push_back(match self.encoding {
            Encoding::Json => {
                Message::text(String::from_utf8(bytes).expect("JSON is written as UTF-8"))
            }
            Encoding::MessagePack => Message::binary(bytes),
        });
    }

    /// Writes what is queued, as far as the socket takes it. `Err` is the end of the connection.
    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WsError>> {
        while !self.outgoing.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx))?;
            if let Some(message) = self.outgoing.pop_front() {
                Pin::new(&mut self.socket).start_send(message)?;
                self.unflushed = true;
            }
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Forgets what is queued: the socket takes no more, but what it brought may still be read.
    pub fn give_up_sending(&mut self) {
        self.outgoing.clear();
        self.unflushed = false;
    }

    /// The next frame, or the end.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Incoming> {
        loop {
            return Poll::Ready(match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(frame @ (Message::Text(_) | Message::Binary(_)))) => Incoming::Frame(frame),
                Some(Ok(Message::Close(frame))) => {
                    // The library has the reply ready; if the socket does not take it at once, so be it.
                    let _ = Pin::new(&mut self.socket).poll_flush(cx);
                    Incoming::Closed(frame.map(|frame| u16::from(frame.code)))
                }
                // Pings are answered inside the library.
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => Incoming::Closed(None),
            });
        }
    }
}

async fn dial(host: &str, receive_buffer_bytes: Option<u32>) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host(host).await? {
        match dial_address(address, receive_buffer_bytes).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn dial_address(
    address: SocketAddr,
    receive_buffer_bytes: Option<u32>,
) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(bytes) = receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn retry_after_ms(error: &WsError) -> Option<u64> {
    let WsError::Http(response) = error else {
        return None;
    };
    let response: &Response<_> = response;
    let seconds: u64 = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(seconds.min(RETRY_AFTER_S_MAX) * 1000)
}
