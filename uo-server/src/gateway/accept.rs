//! The accept loop: from a TCP connection to a WebSocket in one of the two encodings.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::{
    CloseFrame, WebSocketConfig, frame::coding::CloseCode,
};
use uo_proto::{Encoding, close};

use super::connection::{self, Hub};
use crate::limits::CLIENT_MESSAGE_BYTES_MAX;
use crate::sys;

/// How long the WebSocket handshake may take.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// The system's send buffer of a client's socket, in bytes.
const SEND_BUFFER_BYTES: u32 = 64 * 1024;
/// tungstenite's own read buffer; its default of 128 KiB would be most of what a session costs.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// How many connections over the limit are told so at one time; beyond it they are dropped without a word.
const TURNED_AWAY_MAX: usize = 256;
/// How long accepting rests after the system refused (out of descriptors, say).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Binds `address` for clients.
pub fn listen(address: std::net::SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(4096)
}

/// Accepts clients until the task is dropped.
pub async fn run(listener: TcpListener, hub: Arc<Hub>, connections_max: usize) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let open = hub.open.fetch_add(1, Ordering::Relaxed);
                if open >= connections_max + TURNED_AWAY_MAX {
                    hub.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let guest = Guest {
                    hub: hub.clone(),
                    welcome: open < connections_max,
                };
                tokio::spawn(guest.handle(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections for a moment");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// A connection that counts as open until it is dropped.
struct Guest {
    hub: Arc<Hub>,
    welcome: bool,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.hub.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Guest {
    #[expect(
        clippy::result_large_err,
        reason = "the callback's signature is tungstenite's"
    )]
    async fn handle(self, stream: TcpStream) {
        // Refused options cost latency or memory, never correctness.
        let _ = stream.set_nodelay(true);
        let _ = sys::write_only_when_sent(stream.as_fd());
        let mut encoding = Encoding::default();
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(READ_BUFFER_BYTES)
            .max_write_buffer_size(usize::MAX)
            .max_message_size(Some(CLIENT_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(CLIENT_MESSAGE_BYTES_MAX));
        let choose = |request: &Request, response: Response| {
            choose_encoding(request, response, &mut encoding)
        };
        let handshake = accept_hdr_async_with_config(stream, choose, Some(config));
        let Ok(Ok(mut socket)) = tokio::time::timeout(HANDSHAKE_WAIT, handshake).await else {
            return;
        };
        if self.welcome {
            // One pass writes to more clients than Tokio's cooperative budget would let it.
            connection::serve(self.hub.clone(), socket, encoding).await;
        } else {
            let frame = CloseFrame {
                code: CloseCode::from(close::TRY_LATER),
                reason: "full; try again later".into(),
            };
            let _ = tokio::time::timeout(HANDSHAKE_WAIT, socket.close(Some(frame))).await;
        }
    }
}

/// Takes the first subprotocol that is known; none offered means JSON, and only unknown ones is an error.
#[expect(clippy::result_large_err, reason = "the signature is tungstenite's")]
fn choose_encoding(
    request: &Request,
    mut response: Response,
    encoding: &mut Encoding,
) -> Result<Response, ErrorResponse> {
    let offers = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL);
    let mut offered = false;
    for offer in offers
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
    {
        offered = true;
        let known = [Encoding::Json, Encoding::MessagePack];
        if let Some(chosen) = known
            .into_iter()
            .find(|known| known.subprotocol() == offer.trim())
        {
            *encoding = chosen;
            let name = HeaderValue::from_static(chosen.subprotocol());
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
            return Ok(response);
        }
    }
    if offered {
        let body = format!(
            "unknown subprotocol; this server speaks {} and {}\n",
            Encoding::Json.subprotocol(),
            Encoding::MessagePack.subprotocol()
        );
        let mut refusal = ErrorResponse::new(Some(body));
        *refusal.status_mut() = StatusCode::BAD_REQUEST;
        return Err(refusal);
    }
    Ok(response)
}
