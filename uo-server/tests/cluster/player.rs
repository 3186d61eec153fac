//! A player: the client library, and a test that says what it waits for. A broken promise of the protocol ends the test.

use std::collections::BTreeMap;

use tokio::time::{Instant, timeout_at};
use uo_proto::{CharId, EntityId, Order, Pos, ServerMsg, WorldStatus};
use uo_sdk::{Client, Event, Options};

use super::nodes::PATIENCE;

/// Somebody who plays.
pub struct Player {
    pub client: Client,
    pub name: String,
    /// Connections lost so far.
    pub losses: u32,
    /// Sessions that went on at a new connection.
    pub resumes: u32,
    /// The highest order that was promised to be durable.
    pub saved: u64,
    /// How often each state of the world was told.
    pub told: BTreeMap<String, u32>,
    /// Answers to questions about the own inventory.
    pub answers: u32,
    /// Texts heard, each with who said it.
    pub heard: Vec<(EntityId, String)>,
}

impl Player {
    /// Logs in, and waits until the own character is in view.
    pub async fn enter(gateway: &str, name: &str) -> Player {
        let client = Client::start(Options::new(gateway, name)).expect("good options");
        let mut player = Player {
            client,
            name: name.into(),
            losses: 0,
            resumes: 0,
            saved: 0,
            told: BTreeMap::new(),
            answers: 0,
            heard: Vec::new(),
        };
        player
            .until("it is in the world", |player| player.is_in_view())
            .await;
        player
    }

    pub fn id(&self) -> EntityId {
        CharId::of_name(&self.name).entity()
    }

    pub fn pos(&self) -> Pos {
        self.client.world().pos()
    }

    pub fn is_in_view(&self) -> bool {
        self.client.world().me().is_some()
    }

    /// Whether it was told that its world stands still or is on its way.
    pub fn was_disturbed(&self) -> bool {
        let is_bad = |(status, _): (&String, &u32)| status != &format!("{:?}", WorldStatus::Ok);
        self.losses > 0 || self.told.iter().any(is_bad)
    }

    /// Plays until `is_so`; it is looked at after each event.
    pub async fn until(&mut self, what: &str, mut is_so: impl FnMut(&Player) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            let Ok(event) = timeout_at(deadline, self.client.next()).await else {
                let (ack, waiting) = (
                    self.client.world().ack(),
                    self.client.session().orders_waiting(),
                );
                panic!(
                    "{} waited in vain: {what}; it is at {:?}, in view {}, {} answers, ack {ack}, {waiting} orders wait, told {:?}",
                    self.name,
                    self.pos(),
                    self.is_in_view(),
                    self.answers,
                    self.told
                );
            };
            self.take(event);
        }
    }

    /// Plays for as long as `other` takes.
    pub async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = std::pin::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                event = self.client.next() => self.take(event),
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Violation(violation) => panic!("{}: {violation}", self.name),
            Event::Stopped(reason) => panic!("{} was stopped: {reason}", self.name),
            Event::Disconnected { .. } => self.losses += 1,
            Event::Welcomed { resumed, .. } => self.resumes += u32::from(resumed),
            Event::Message(ServerMsg::ServerStatus(status)) => {
                *self.told.entry(format!("{:?}", status.world)).or_default() += 1;
            }
            Event::Message(ServerMsg::Saved(saved)) => self.saved = self.saved.max(saved.seq),
            Event::Message(ServerMsg::Said(said)) => self
                .heard
                .push((said.speech.char_id.entity(), said.speech.text)),
            Event::Message(ServerMsg::Inventory(_)) => self.answers += 1,
            Event::Message(_) => {}
        }
    }

    pub fn order(&mut self, order: Order) -> u64 {
        self.client.send(order).expect("an order is taken")
    }

    /// Walks there.
    pub async fn walk(&mut self, goal: Pos) {
        self.order(Order::WalkTo {
            x: goal.x,
            y: goal.y,
        });
        self.until("it arrives", |player| player.pos() == goal)
            .await;
    }

    /// Asks for its inventory, and waits for the answer, which comes by the private stream, and until its view shows that
    /// the order was taken, which comes by a feed. Unlike what is said aloud, neither may get lost.
    pub async fn ask(&mut self) {
        let answers = self.answers;
        let seq = self.order(Order::Inventory);
        self.until("it is answered", |player| {
            player.answers > answers && player.client.world().ack() >= seq
        })
        .await;
    }

    /// Says something, and waits until it hears itself: an order went all the way down, and what came of it up again.
    pub async fn speak(&mut self, text: &str) {
        let id = self.id();
        self.order(Order::Say { text: text.into() });
        self.until("it hears itself", |player| {
            player
                .heard
                .iter()
                .any(|(who, said)| *who == id && said == text)
        })
        .await;
    }
}
