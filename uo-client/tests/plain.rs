//! The program itself, against a gateway of one connection that says just enough: it logs in, prints what is in view,
//! logs out and ends.

use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use uo_proto::*;

const SPOT: Pos = Pos::new(512, 512);
/// No step of the test takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn one_screen_is_printed_and_the_character_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = Command::new(env!("CARGO_BIN_EXE_uo-client"))
        .args(["--plain", "--name", "Ann", "--server"])
        .arg(format!("ws://{address}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let gateway = async {
        let (socket, _) = listener.accept().await.unwrap();
        serve(socket).await
    };
    let served = tokio::time::timeout(PATIENCE, gateway).await.unwrap();
    assert_eq!(served, Order::Logout);

    let output = client.wait_with_output().unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert!(screen.contains('@'), "{screen}");
    assert!(
        screen.contains("Ann (Mage)  hits 90/100  at 512,512  Idle"),
        "{screen}"
    );
}

#[test]
fn a_bad_name_is_refused_before_anything_is_sent() {
    let output = Command::new(env!("CARGO_BIN_EXE_uo-client"))
        .args(["--plain", "--name", "two words"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("a name is 1 to 32 letters"), "{errors}");
}

/// Serves one session and returns its first order.
async fn serve(socket: TcpStream) -> Order {
    const ENCODING: Encoding = Encoding::MessagePack;
    let mut socket = tokio_tungstenite::accept_hdr_async(socket, agree)
        .await
        .unwrap();
    let mut order = None;
    while order.is_none() {
        let Message::Binary(frame) = socket.next().await.unwrap().unwrap() else {
            continue;
        };
        let answers = match ENCODING.decode_client(&frame).unwrap() {
            ClientMsg::Login(login) => first_messages(&login),
            ClientMsg::Order(numbered) => {
                order = Some(numbered.order);
                Vec::new()
            }
            ClientMsg::Ping(_) | ClientMsg::Resume(_) => Vec::new(),
        };
        for answer in answers {
            let frame = Message::binary(ENCODING.encode(&answer));
            socket.send(frame).await.unwrap();
        }
    }
    socket.close(None).await.unwrap();
    order.unwrap()
}

/// Takes the subprotocol that the client offers.
#[expect(
    clippy::result_large_err,
    reason = "the library's callback has this type"
)]
fn agree(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let name = "sec-websocket-protocol";
    let offered = request.headers().get(name).unwrap();
    assert_eq!(offered, Encoding::MessagePack.subprotocol());
    response.headers_mut().insert(name, offered.clone());
    Ok(response)
}

fn first_messages(login: &Login) -> Vec<ServerMsg> {
    let char_id = CharId::of_name(&login.name);
    let welcome = Welcome {
        token: "token".into(),
        char_id,
        gateways: Vec::new(),
        last_order: 0,
        map: MapInfo {
            seed: 7,
            size: 1_024,
        },
        tick_hz: TICK_HZ,
        region_size: REGION_SIZE,
        aoi_radius: AOI_RADIUS,
        x: SPOT.x,
        y: SPOT.y,
        spells: Vec::new(),
        limits: Limits {
            messages_per_s: 40,
            messages_burst: 120,
            message_bytes: 65_536,
            say_bytes: 256,
        },
    };
    let myself = EntityEnter {
        info: EntityInfo {
            kind: EntityKind::Player,
            class: Class::Mage,
            name: login.name.clone(),
            look: 1,
            hits_max: 100,
        },
        state: EntityState {
            id: char_id.entity(),
            x: SPOT.x,
            y: SPOT.y,
            heading: Dir::S,
            hits: 90,
            action: Action::Idle,
            target: None,
        },
    };
    vec![
        ServerMsg::Welcome(Box::new(welcome)),
        ServerMsg::ServerStatus(ServerStatus {
            accepting: true,
            ..ServerStatus::default()
        }),
        ServerMsg::Snapshot(Snapshot {
            entities: vec![myself],
            objects: Vec::new(),
        }),
    ]
}
