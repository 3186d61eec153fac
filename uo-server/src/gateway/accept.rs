//! The accept loop: from a TCP connection to a WebSocket in one of the two encodings.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::{
    CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode,
};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};
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
    async fn handle(self, mut stream: TcpStream) {
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
        let handshake = async {
            let shaken = accept_hdr_async_with_config(&mut stream, choose, Some(config)).await;
            match shaken.map(drop) {
                Ok(()) => true,
                Err(error) => {
                    explain(&mut stream, &error).await;
                    false
                }
            }
        };
        if tokio::time::timeout(HANDSHAKE_WAIT, handshake).await != Ok(true) {
            return;
        }
        // Nothing was read ahead: a client that does not wait for the answer to its upgrade fails the handshake.
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        if self.welcome {
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

/// Answers a request that is no WebSocket upgrade: a browser that was pointed here by mistake, say.
async fn explain(stream: &mut TcpStream, error: &Error) {
    let Some((status, headers)) = refusal(error) else {
        return;
    };
    let body = format!("This address is for WebSocket clients: {error}.\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    // Whoever is gone by now needs no explanation.
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// The status and the headers that answer a failed handshake; none when it was answered, or nobody is there.
fn refusal(error: &Error) -> Option<(&'static str, &'static str)> {
    const CLOSE: &str = "connection: close\r\n";
    Some(match error {
        Error::Protocol(
            ProtocolError::MissingConnectionUpgradeHeader
            | ProtocolError::MissingUpgradeWebSocketHeader
            | ProtocolError::MissingSecWebSocketVersionHeader,
        ) => (
            "426 Upgrade Required",
            "connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n",
        ),
        Error::Protocol(ProtocolError::WrongHttpMethod) => (
            "405 Method Not Allowed",
            "connection: close\r\nallow: GET\r\n",
        ),
        Error::Protocol(ProtocolError::HandshakeIncomplete) => return None,
        Error::Capacity(_) | Error::AttackAttempt => ("431 Request Header Fields Too Large", CLOSE),
        Error::Protocol(_) | Error::HttpFormat(_) | Error::Utf8(_) => ("400 Bad Request", CLOSE),
        _ => return None,
    })
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
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_no_upgrade_have_an_answer() {
        let status =
            |error: ProtocolError| refusal(&Error::Protocol(error)).map(|(status, _)| status);
        assert_eq!(
            status(ProtocolError::MissingUpgradeWebSocketHeader),
            Some("426 Upgrade Required")
        );
        assert_eq!(
            status(ProtocolError::WrongHttpMethod),
            Some("405 Method Not Allowed")
        );
        assert_eq!(
            status(ProtocolError::InvalidSecWebSocketKey),
            Some("400 Bad Request")
        );
        assert_eq!(status(ProtocolError::HandshakeIncomplete), None);
        assert_eq!(refusal(&Error::ConnectionClosed), None);
    }
}
