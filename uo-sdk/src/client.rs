//! The thin shell around a [`Session`] and a [`LocalWorld`]: the socket and the clock. One task a client, no thread.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tokio_tungstenite::tungstenite::protocol::Message;
use uo_proto::{Encoding, Order, Welcome};

use crate::connection::{ConnectError, Connection, Incoming};
use crate::event::{Event, SendError, StopReason, Violation};
use crate::session::{Action, Input, Session};
use crate::{LocalWorld, Options};

/// Why a client could not log in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The options name no gateway, or one that is not `ws://host:port`.
    #[error("`{0}` is not an address of the form ws://host:port")]
    Address(String),
    /// The server will not have this client.
    #[error("{0}")]
    Refused(#[from] StopReason),
}

type Opening = Pin<Box<dyn Future<Output = Result<Connection, ConnectError>> + Send>>;

enum Link {
    None,
    Opening(Opening),
    Open(Box<Connection>),
}

/// How much went over the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Payload bytes of all frames received.
    pub bytes_received: u64,
    /// Frames received.
    pub frames_received: u64,
}

/// One character's client. It reconnects by itself; it lives only while [`Client::next`] is awaited.
pub struct Client {
    options: Options,
    session: Session,
    world: LocalWorld,
    welcome: Option<Box<Welcome>>,
    link: Link,
    began: Instant,
    alarm: Pin<Box<Sleep>>,
    listening: bool,
    traffic: Traffic,
    /// What does not fit in the event that found it: told next.
    found: Option<Violation>,
}

impl Client {
    /// Connects and logs in. Tries until the server says yes or no: wrap it in a timeout to bound it.
    pub async fn connect(options: Options) -> Result<Client, LoginError> {
        let mut client = Client::start(options)?;
        loop {
            match client.next().await {
                Event::Welcomed { .. } => return Ok(client),
                Event::Stopped(reason) => return Err(reason.into()),
                _ => {}
            }
        }
    }

    /// A client that begins to connect when [`Client::next`] is first awaited.
    pub fn start(options: Options) -> Result<Client, LoginError> {
        let wrong = |gateway: &&String| !gateway.starts_with("ws://");
        if options.gateways.is_empty() {
            return Err(LoginError::Address(String::new()));
        }
        if let Some(gateway) = options.gateways.iter().find(wrong) {
            return Err(LoginError::Address(gateway.clone()));
        }
        let began = Instant::now();
        Ok(Client {
            session: Session::new(&options),
            options,
            world: LocalWorld::default(),
            welcome: None,
            link: Link::None,
            began,
            alarm: Box::pin(tokio::time::sleep_until(began)),
            listening: true,
            traffic: Traffic::default(),
            found: None,
        })
    }

    /// The next event. Dropping the future before it is ready loses nothing. After [`Event::Stopped`] it never returns.
    pub async fn next(&mut self) -> Event {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Numbers an order and queues it; it goes out as soon as [`Client::next`] is awaited. Returns its number.
    pub fn send(&mut self, order: Order) -> Result<u64, SendError> {
        let now_ms = self.now_ms();
        self.session.send(order, now_ms)
    }

    /// The world as this client knows it.
    pub fn world(&self) -> &LocalWorld {
        &self.world
    }

    /// The newest answer to a login or a resume; none before the first.
    pub fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_deref()
    }

    /// The rules' side of this client, to look at.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Milliseconds since this client began: the clock of its events' times.
    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// What went over the wire so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Stops or begins again to read from the socket, while orders still go out: what a client does whose line is stuck.
    pub fn set_listening(&mut self, listening: bool) {
        self.listening = listening;
        let now_ms = self.now_ms();
        self.session.set_listening(listening, now_ms);
    }

    /// Breaks the connection without a word, as a lost line does; the session comes back by itself.
    pub fn drop_connection(&mut self) {
        self.link = Link::None;
        let now_ms = self.now_ms();
        self.session.handle(Input::Closed { code: None }, now_ms);
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(violation) = self.found.take() {
                return Poll::Ready(Event::Violation(violation));
            }
            self.act();
            if let Some(event) = self.session.next_event() {
                self.observe(&event);
                return Poll::Ready(event);
            }
            let Poll::Ready(input) = self.poll_input(cx) else {
                return Poll::Pending;
            };
            let now_ms = self.now_ms();
            self.session.handle(input, now_ms);
        }
    }

    /// Does what the session asks for.
    fn act(&mut self) {
        while let Some(action) = self.session.next_action() {
            match (action, &mut self.link) {
                (Action::Connect { gateway }, _) => {
                    let (encoding, bytes) =
                        (self.options.encoding, self.options.receive_buffer_bytes);
                    self.link = Link::Opening(Box::pin(async move {
                        Connection::open(&gateway, encoding, bytes).await
                    }));
                }
                (Action::Send(message), Link::Open(connection)) => connection.queue(&message),
                (Action::Send(_), _) => {}
                (Action::Abandon, link) => *link = Link::None,
            }
        }
    }

    fn observe(&mut self, event: &Event) {
        if let Err(error) = self.world.apply(event) {
            self.found = Some(Violation::View(error));
        }
        if let Event::Welcomed { welcome, .. } = event {
            self.welcome = Some(welcome.clone());
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Poll::Ready(input) = self.poll_link(cx) {
            return Poll::Ready(input);
        }
        let Some(deadline_ms) = self.session.deadline_ms() else {
            return Poll::Pending;
        };
        let due = self.began + Duration::from_millis(deadline_ms);
        if self.alarm.deadline() != due {
            self.alarm.as_mut().reset(due);
        }
        self.alarm.as_mut().poll(cx).map(|()| Input::Time)
    }

    fn poll_link(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let input = match &mut self.link {
            Link::None => return Poll::Pending,
            Link::Opening(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                Ok(connection) => {
                    self.link = Link::Open(Box::new(connection));
                    return Poll::Ready(Input::Opened);
                }
                Err(error) => {
                    tracing::debug!(name = self.options.name, %error, "could not connect");
                    failed(&error)
                }
            },
            Link::Open(connection) => {
                if let Poll::Ready(Err(_)) = connection.poll_send(cx) {
                    // The close code, if the server gave one, is still to be read.
                    connection.give_up_sending();
                }
                if !self.listening {
                    return Poll::Pending;
                }
                match std::task::ready!(connection.poll_receive(cx)) {
                    Incoming::Frame(frame) => {
                        return Poll::Ready(self.take_frame(&frame));
                    }
                    Incoming::Closed(code) => Input::Closed { code },
                }
            }
        };
        self.link = Link::None;
        Poll::Ready(input)
    }

    fn take_frame(&mut self, frame: &Message) -> Input {
        let (encoding, bytes) = match frame {
            Message::Text(text) => (Encoding::Json, text.as_bytes()),
            Message::Binary(bytes) => (Encoding::MessagePack, bytes.as_ref()),
            _ => return Input::Time,
        };
        self.traffic.bytes_received += bytes.len() as u64;
        self.traffic.frames_received += 1;
        if encoding != self.options.encoding {
            return Input::Undecodable("a frame of the other kind".into());
        }
        let message = encoding.decode_server(bytes);
        match message {
            Ok(message) => Input::Message(message),
            Err(error) => Input::Undecodable(error.to_string()),
        }
    }
}

fn failed(error: &ConnectError) -> Input {
    let retry_after_ms = match error {
        ConnectError::Handshake { retry_after_ms, .. } => *retry_after_ms,
        _ => None,
    };
    Input::Failed { retry_after_ms }
}
