//! The client against a gateway of the test's own, over real sockets.

mod gateway;

use std::future::Future;
use std::time::Duration;

use gateway::{Gateway, Served, moved};
use uo_proto::{ClientMsg, Dir, Encoding, Order, ServerMsg, close};
use uo_sdk::bot::{Bot, Cause, Hands, Runner};
use uo_sdk::{Client, Event, LocalWorld, Options, StopReason};

/// Nothing here takes a second unless it hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("it should have happened by now")
}

/// Plays until an event is what is looked for.
async fn until(client: &mut Client, found: impl Fn(&Event) -> bool) -> Event {
    soon(async {
        loop {
            let event = client.next().await;
            if let Event::Violation(violation) = &event {
                panic!("{violation}");
            }
            if found(&event) {
                return event;
            }
        }
    })
    .await
}

fn is_delta(event: &Event) -> bool {
    matches!(event, Event::Message(ServerMsg::Delta(_)))
}

/// A client in the world, and the gateway's end of its connection.
async fn in_world(gateway: &Gateway, encoding: Encoding) -> (Client, Served) {
    let options = Options {
        encoding,
        ..Options::new(gateway.url(), "anna")
    };
    let serve = async {
        let mut served = gateway.accept().await;
        assert!(matches!(served.receive().await, ClientMsg::Login(login) if login.name == "anna"));
        served.welcome("t1", 0).await;
        served
    };
    let (client, served) = soon(async { tokio::join!(Client::connect(options), serve) }).await;
    let mut client = client.unwrap();
    until(&mut client, |event| {
        matches!(event, Event::Message(ServerMsg::Snapshot(_)))
    })
    .await;
    (client, served)
}

#[tokio::test]
async fn it_plays_in_both_encodings() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let gateway = Gateway::open().await;
        let (mut client, mut served) = in_world(&gateway, encoding).await;
        assert_eq!(served.encoding, encoding);
        assert_eq!(client.send(Order::Step { dir: Dir::E }), Ok(1));
        let serve = async {
            let order = served.receive_order().await;
            assert_eq!((order.seq, order.order), (1, Order::Step { dir: Dir::E }));
            served.send(&moved(1, 1, 31)).await;
        };
        tokio::join!(serve, until(&mut client, is_delta));
        assert_eq!(client.world().pos().x, 31);
        assert_eq!(client.world().ack(), 1);
        assert_eq!(client.session().orders_waiting(), 0);
    }
}

#[tokio::test]
async fn a_lost_line_is_resumed_and_what_was_not_taken_is_sent_again() {
    let gateway = Gateway::open().await;
    let (mut client, mut served) = in_world(&gateway, Encoding::Json).await;
    for _ in 0..3 {
        client.send(Order::Stop).unwrap();
    }
    let serve = async {
        for seq in 1..=3 {
            assert_eq!(served.receive_order().await.seq, seq);
        }
        served.send(&moved(1, 1, 31)).await;
    };
    tokio::join!(serve, until(&mut client, is_delta));
    drop(served);
    let serve = async {
        let mut served = gateway.accept().await;
        assert!(matches!(
            served.receive().await,
            ClientMsg::Resume(resume) if resume.token == "t1"
        ));
        served.welcome("t2", 2).await;
        assert_eq!(served.receive_order().await.seq, 3);
        // The gateway is another one: its ticks begin anew.
        served.send(&moved(1, 3, 32)).await;
        served
    };
    let (_served, _) = tokio::join!(soon(serve), until(&mut client, is_delta));
    assert_eq!(client.world().pos().x, 32);
}

#[tokio::test]
async fn a_session_opened_elsewhere_is_the_end() {
    let gateway = Gateway::open().await;
    let (mut client, served) = in_world(&gateway, Encoding::Json).await;
    let stopped = |event: &Event| matches!(event, Event::Stopped(StopReason::Superseded));
    tokio::join!(served.close(close::SUPERSEDED), until(&mut client, stopped));
}

#[tokio::test]
async fn what_is_no_websocket_is_left_alone_as_long_as_it_asks() {
    let gateway = Gateway::open().await;
    let mut client = Client::start(Options::new(gateway.url(), "anna")).unwrap();
    let answer = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
    let lost = |event: &Event| matches!(event, Event::Disconnected { .. });
    let (_, event) = tokio::join!(gateway.answer(answer), until(&mut client, lost));
    let Event::Disconnected { retry_ms, .. } = event else {
        unreachable!()
    };
    assert!(retry_ms >= 9_000, "{retry_ms}");
}

#[tokio::test]
async fn who_does_not_listen_still_sends_and_hears_everything_later() {
    let gateway = Gateway::open().await;
    let (mut client, mut served) = in_world(&gateway, Encoding::MessagePack).await;
    client.set_listening(false);
    client.send(Order::Guard).unwrap();
    let serve = async {
        assert_eq!(served.receive_order().await.order, Order::Guard);
        served.send(&moved(1, 1, 31)).await;
        served.send(&moved(2, 1, 32)).await;
    };
    tokio::select! {
        () = serve => {}
        event = client.next() => panic!("it heard {event:?}"),
    }
    // Both are with this process's system now; a client that reads would have them at once.
    let heard = tokio::time::timeout(Duration::from_millis(100), client.next()).await;
    assert!(heard.is_err(), "it heard {heard:?}");
    assert_eq!(client.world().pos().x, 30);
    client.set_listening(true);
    until(&mut client, is_delta).await;
    until(&mut client, is_delta).await;
    assert_eq!(client.world().pos().x, 32);
}

#[tokio::test]
async fn a_gap_in_a_reliable_stream_is_reported() {
    let gateway = Gateway::open().await;
    let (mut client, mut served) = in_world(&gateway, Encoding::Json).await;
    let (private, x, y) = (2, 1, 1);
    let respawned = ServerMsg::Respawned(uo_proto::Respawned { private, x, y });
    served.send(&respawned).await;
    let violation = soon(async {
        loop {
            if let Event::Violation(violation) = client.next().await {
                return violation.to_string();
            }
        }
    });
    assert_eq!(
        violation.await,
        "a gap in the private stream before number 2"
    );
}

/// Says its number of wakings.
struct Counter(u32);

impl Bot for Counter {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(Event::Welcomed { .. }) => hands.wake_at(now_ms),
            Cause::Time if self.0 < 2 => {
                self.0 += 1;
                let text = format!("{} at {}", self.0, world.pos().x);
                hands.order(Order::Say { text });
                hands.wake_at(now_ms + 1);
            }
            Cause::Time => hands.leave_until(now_ms),
            Cause::Event(_) => {}
        }
    }
}

#[tokio::test]
async fn a_bot_acts_when_it_asked_to_and_comes_back_after_it_left() {
    let gateway = Gateway::open().await;
    let runner = Runner::new(Options::new(gateway.url(), "anna"), Counter(0));
    let play = tokio::spawn(runner.run());
    let serve = async {
        let mut served = gateway.accept().await;
        served.receive().await;
        served.welcome("t1", 0).await;
        for said in ["1 at 30", "2 at 30"] {
            let text = said.to_owned();
            assert_eq!(served.receive_order().await.order, Order::Say { text });
        }
        assert_eq!(served.receive_order().await.order, Order::Logout);
        served.close(1000).await;
        let mut again = gateway.accept().await;
        assert!(matches!(again.receive().await, ClientMsg::Login(_)));
        again.close(close::SUPERSEDED).await;
    };
    soon(serve).await;
    assert_eq!(soon(play).await.unwrap().unwrap(), StopReason::Superseded);
}
