//! A gateway of one connection at a time that says what the test tells it to.

use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::{Message, frame::coding::CloseCode};
use uo_proto::{
    CharId, Class, ClientMsg, Delta, Dir, Encoding, EntityEnter, EntityInfo, EntityKind,
    EntityState, Limits, MapInfo, NumberedOrder, ServerMsg, Snapshot, Welcome,
};

pub struct Gateway {
    listener: TcpListener,
}

pub struct Served {
    socket: WebSocketStream<TcpStream>,
    pub encoding: Encoding,
}

impl Gateway {
    pub async fn open() -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Gateway { listener }
    }

    pub fn url(&self) -> String {
        format!("ws://{}", self.listener.local_addr().unwrap())
    }

    /// The next connection, in the encoding that the client asks for.
    #[allow(
        clippy::result_large_err,
        reason = "the callback's type is the library's"
    )]
    pub async fn accept(&self) -> Served {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut encoding = None;
        let choose = |request: &Request, mut response: Response| {
            let asked = request.headers()[SEC_WEBSOCKET_PROTOCOL].to_str().unwrap();
            encoding = [Encoding::Json, Encoding::MessagePack]
                .into_iter()
                .find(|encoding| encoding.subprotocol() == asked);
            response.headers_mut().insert(
                SEC_WEBSOCKET_PROTOCOL,
                HeaderValue::from_str(asked).unwrap(),
            );
            Ok(response)
        };
        let socket = tokio_tungstenite::accept_hdr_async(stream, choose)
            .await
            .unwrap();
        let encoding = encoding.expect("a subprotocol of ours");
        Served { socket, encoding }
    }

    /// Answers the next connection with plain HTTP.
    pub async fn answer(&self, text: &str) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        // The request is read up to its end, or closing would reset the connection before the answer is read.
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            stream.readable().await.unwrap();
            let mut byte = [0];
            if matches!(stream.try_read(&mut byte), Ok(1)) {
                request.push(byte[0]);
            }
        }
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

impl Served {
    pub async fn receive(&mut self) -> ClientMsg {
        let bytes = match self.socket.next().await.unwrap().unwrap() {
            Message::Text(text) => text.as_bytes().to_vec(),
            Message::Binary(bytes) => bytes.to_vec(),
            other => panic!("{other:?}"),
        };
        self.encoding.decode_client(&bytes).unwrap()
    }

    pub async fn receive_order(&mut self) -> NumberedOrder {
        match self.receive().await {
            ClientMsg::Order(order) => order,
            other => panic!("{other:?}"),
        }
    }

    pub async fn send(&mut self, message: &ServerMsg) {
        let bytes = self.encoding.encode(message);
        let frame = match self.encoding {
            Encoding::Json => Message::text(String::from_utf8(bytes).unwrap()),
            Encoding::MessagePack => Message::binary(bytes),
        };
        self.socket.send(frame).await.unwrap();
    }

    /// Welcomes the client and shows it its own entity.
    pub async fn welcome(&mut self, token: &str, last_order: u64) {
        self.send(&welcome(token, last_order)).await;
        let entities = vec![own_entity(30, 30)];
        let objects = Vec::new();
        self.send(&ServerMsg::Snapshot(Snapshot { entities, objects }))
            .await;
    }

    pub async fn close(mut self, code: u16) {
        let code = CloseCode::from(code);
        let reason = "".into();
        self.socket
            .close(Some(CloseFrame { code, reason }))
            .await
            .unwrap();
    }
}

pub const ME: CharId = CharId(1 << 50);

pub fn own_entity(x: u16, y: u16) -> EntityEnter {
    EntityEnter {
        info: EntityInfo {
            kind: EntityKind::Player,
            class: Class::Warrior,
            name: "anna".into(),
            look: 1,
            hits_max: 220,
        },
        state: EntityState {
            id: ME.entity(),
            x,
            y,
            heading: Dir::E,
            hits: 220,
            action: Default::default(),
            target: None,
        },
    }
}

pub fn moved(tick: u64, ack: u64, x: u16) -> ServerMsg {
    ServerMsg::Delta(Delta {
        tick,
        ack,
        update: vec![own_entity(x, 30).state],
        ..Delta::default()
    })
}

pub fn welcome(token: &str, last_order: u64) -> ServerMsg {
    ServerMsg::Welcome(Box::new(Welcome {
        token: token.into(),
        char_id: ME,
        gateways: Vec::new(),
        last_order,
        map: MapInfo { seed: 1, size: 128 },
        tick_hz: 20,
        region_size: 64,
        aoi_radius: 18,
        x: 30,
        y: 30,
        spells: Vec::new(),
        limits: Limits {
            messages_per_s: 40,
            messages_burst: 120,
            message_bytes: 65_536,
            say_bytes: 256,
        },
    }))
}
