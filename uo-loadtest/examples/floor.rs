//! The least that a WebSocket server can do for wandering sessions: what Felucca costs is told against it.
//!
//! It speaks just enough of the protocol (in JSON) that the same bots take the same walk: it lets everybody in, moves who
//! walks, and sends each tick one delta to whoever sees a change. All in one list on one thread: no ground to stumble over,
//! no fight, no second region, no store, no resume, nothing that must arrive. `capacity --floor` starts it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use uo_proto::{
    AOI_RADIUS, Action, CharId, ClientMsg, DeltaParts, Dir, Encoding::Json, EntityId, EntityState,
    Order, Pos, TICK_MS,
};

const STEP_TICKS: u64 = 5;
const NO_OBJECTS: [[u8; 0]; 0] = [];

struct Walker {
    state: EntityState,
    name: String,
    /// Its parts of frames, made once for everybody who sees it.
    enter: String,
    update: String,
    heading: Option<Dir>,
    goal: Option<Pos>,
    steps: VecDeque<Dir>,
    due: u64,
    changed: bool,
    ack: u64,
    acked: u64,
    /// Whom it was last shown, in the order of ids.
    view: Vec<EntityId>,
    socket: SplitSink<WebSocketStream<TcpStream>, Message>,
}

struct World {
    size: u16,
    tick: u64,
    /// In the order of ids.
    walkers: Vec<Walker>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, size] = &arguments[..] else {
        return Err("floor ADDRESS MAP-SIZE".into());
    };
    let (size, tick, walkers) = (size.parse()?, 0, Vec::new());
    let world = Rc::new(RefCell::new(World {
        size,
        tick,
        walkers,
    }));
    let listener = TcpListener::bind(address).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    let serving = async {
        loop {
            tokio::select! {
                _ = ticks.tick() => world.borrow_mut().tick(),
                Ok((stream, _)) = listener.accept() => {
                    let serving = serve(world.clone(), stream);
                    tokio::task::spawn_local(async move { drop(serving.await) });
                }
            }
        }
    };
    tokio::task::LocalSet::new().run_until(serving).await
}

/// One connection, from its handshake to its end.
async fn serve(world: Rc<RefCell<World>>, stream: TcpStream) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    #[allow(clippy::result_large_err, reason = "the library's own type")]
    let agree = |request: &Request, mut response: Response| {
        let key = "sec-websocket-protocol";
        let asked = request.headers().get(key).cloned();
        response.headers_mut().insert(key, asked.unwrap_or(HeaderValue::from_static("")));
        Ok(response)
    };
    let (socket, mut incoming) = accept_hdr_async(stream, agree).await?.split();
    let first = incoming.next().await.ok_or("no login")??;
    let ClientMsg::Login(login) = Json.decode_client(&first.into_data())? else {
        return Err("no login".into());
    };
    let id = world.borrow_mut().enter(login.name, socket);
    while let Some(Ok(message)) = incoming.next().await {
        if message.is_text() {
            world
                .borrow_mut()
                .hear(id, Json.decode_client(&message.into_data())?);
        }
    }
    world
        .borrow_mut()
        .walkers
        .retain(|walker| walker.state.id != id);
    Ok(())
}

impl Walker {
    /// Sends without waiting: who does not read misses it.
    fn send(&mut self, text: impl Into<String>) {
        drop(self.socket.send(Message::text(text.into())).now_or_never());
    }

    fn encode(&mut self) {
        self.update = String::from_utf8(Json.encode(&self.state)).expect("JSON is text");
        self.enter = format!(
            r#"{{"info":{{"kind":"player","class":"archer","name":"{}","look":7,"hits_max":200}},"state":{}}}"#,
            self.name, self.update
        );
    }

    fn advance(&mut self, tick: u64, size: u16) {
        self.changed = false;
        if tick < self.due {
            return;
        }
        let before = self.state;
        let to_goal = self.goal.and_then(|goal| before.pos().dir_to(goal));
        let dir = self.steps.pop_front().or(to_goal).or(self.heading);
        let ahead = dir.and_then(|dir| Some((dir, before.pos().step(dir)?)));
        self.state.action = Action::Idle;
        if let Some((heading, Pos { x, y })) = ahead.filter(|(_, pos)| pos.x.max(pos.y) < size) {
            let action = Action::Run;
            self.state = EntityState {
                x,
                y,
                heading,
                action,
                ..before
            };
            self.due = tick + STEP_TICKS;
        }
        self.changed = self.state != before;
        if self.changed {
            self.encode();
        }
    }
}

impl World {
    fn enter(
        &mut self,
        name: String,
        socket: SplitSink<WebSocketStream<TcpStream>, Message>,
    ) -> EntityId {
        let id = EntityId(CharId::of_name(&name).0);
        let size = self.size;
        let place = |shift: u32| ((id.0 >> shift) % u64::from(size)) as u16;
        let (x, y, heading, action) = (place(7), place(31), Dir::S, Action::Idle);
        let state = EntityState {
            id,
            x,
            y,
            heading,
            hits: 200,
            action,
            target: None,
        };
        let (enter, update, steps, view) =
            (String::new(), String::new(), VecDeque::new(), vec![id]);
        let (heading, goal, due, changed, ack, acked) = (None, None, 0, false, 0, 0);
        let mut walker = Walker {
            state,
            name,
            enter,
            update,
            heading,
            goal,
            steps,
            due,
            changed,
            ack,
            acked,
            view,
            socket,
        };
        walker.encode();
        walker.send(format!(
            r#"{{"type":"welcome","token":"t","char_id":"{id}","gateways":[],"last_order":0,"map":{{"seed":"7","size":{size}}},"tick_hz":20,"region_size":64,"aoi_radius":{AOI_RADIUS},"x":{x},"y":{y},"spells":[],"limits":{{"messages_per_s":40,"messages_burst":120,"message_bytes":65536,"say_bytes":256}}}}"#
        ));
        walker.send(r#"{"type":"server_status","level":"normal","accepting":true,"world":"ok"}"#);
        walker.send(format!(
            r#"{{"type":"snapshot","entities":[{}],"objects":[]}}"#,
            walker.enter
        ));
        let at = self.walkers.partition_point(|other| other.state.id < id);
        self.walkers.insert(at, walker);
        id
    }

    fn hear(&mut self, id: EntityId, message: ClientMsg) {
        let Ok(at) = self
            .walkers
            .binary_search_by_key(&id, |walker| walker.state.id)
        else {
            return;
        };
        let walker = &mut self.walkers[at];
        match message {
            ClientMsg::Order(order) => {
                walker.ack = order.seq;
                match order.order {
                    Order::Move { dir } => (walker.heading, walker.goal) = (dir, None),
                    Order::Step { dir } => walker.steps.push_back(dir),
                    Order::WalkTo { x, y } => {
                        (walker.heading, walker.goal) = (None, Some(Pos { x, y }))
                    }
                    _ => {}
                }
            }
            ClientMsg::Ping(ping) => {
                walker.send(format!(
                    r#"{{"type":"pong","nonce":{},"at_ms":0}}"#,
                    ping.nonce
                ));
            }
            ClientMsg::Login(_) | ClientMsg::Resume(_) => {}
        }
    }

    fn tick(&mut self) {
        self.tick += 1;
        // Squares as wide as one sees: whoever is in view is in the same or a neighbouring one.
        let across = usize::from(self.size / AOI_RADIUS) + 3;
        let square = |pos: Pos| {
            usize::from(pos.y / AOI_RADIUS + 1) * across + usize::from(pos.x / AOI_RADIUS + 1)
        };
        let mut squares: Vec<Vec<usize>> = vec![Vec::new(); across * across];
        for (at, walker) in self.walkers.iter_mut().enumerate() {
            walker.advance(self.tick, self.size);
            squares[square(walker.state.pos())].push(at);
        }
        for me in 0..self.walkers.len() {
            let pos = self.walkers[me].state.pos();
            let middle = square(pos);
            let around = [middle - across, middle, middle + across];
            let around = around
                .into_iter()
                .flat_map(|row| &squares[row - 1..=row + 1])
                .flatten();
            let sees =
                |other: &&usize| self.walkers[**other].state.pos().distance(pos) <= AOI_RADIUS;
            let mut seen: Vec<usize> = around.filter(sees).copied().collect();
            seen.sort_unstable();
            self.show(me, &seen);
        }
    }

    /// Sends a walker what changed of those it sees, if anything did.
    fn show(&mut self, me: usize, seen: &[usize]) {
        let view = &self.walkers[me].view;
        let ids: Vec<EntityId> = seen
            .iter()
            .map(|&other| self.walkers[other].state.id)
            .collect();
        let gone = |id: &&EntityId| ids.binary_search(id).is_err();
        let leave: Vec<EntityId> = view.iter().filter(gone).copied().collect();
        let is_known = |walker: &Walker| view.binary_search(&walker.state.id).is_ok();
        let all = || seen.iter().map(|&other| &self.walkers[other]);
        let enter: Vec<&String> = all()
            .filter(|other| !is_known(other))
            .map(|other| &other.enter)
            .collect();
        let update: Vec<&String> = all()
            .filter(|other| other.changed && is_known(other))
            .map(|other| &other.update)
            .collect();
        let Walker { ack, acked, .. } = self.walkers[me];
        let is_calm = enter.is_empty() && update.is_empty() && leave.is_empty() && ack == acked;
        let (mut frame, tick, objects) = (Vec::new(), self.tick, NO_OBJECTS.iter());
        let (enter, update, leave) = (enter.into_iter(), update.into_iter(), &leave[..]);
        Json.write_delta(
            &mut frame,
            DeltaParts {
                tick,
                ack,
                enter,
                update,
                leave,
                objects,
            },
        );
        let walker = &mut self.walkers[me];
        (walker.view, walker.acked) = (ids, ack);
        if !is_calm {
            walker.send(String::from_utf8(frame).expect("JSON is text"));
        }
    }
}
