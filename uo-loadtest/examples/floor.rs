//! The least that a WebSocket server can do for wandering sessions: what Felucca costs is told against it.
//!
//! It speaks just enough of the protocol (in JSON) that the same bots take the same walk: it lets everybody in, moves who
//! walks, and sends each tick one delta to whoever sees a change. All in one map on one thread: no ground to stumble over,
//! no fight, no second region, no store, no resume, nothing that must arrive. `capacity --floor` starts it.

use std::error::Error;
use std::time::Duration;
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use futures_util::{FutureExt, SinkExt, StreamExt, stream::SplitSink};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::coop::unconstrained;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::{Message, http::HeaderValue};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use uo_proto::{AOI_RADIUS, CharId, ClientMsg, Dir, Encoding::Json, EntityId, Order, Pos, TICK_MS};

const STEP_TICKS: u64 = 5;

type Socket = SplitSink<WebSocketStream<TcpStream>, Message>;

#[derive(Default)]
struct Walker {
    id: EntityId,
    info: String,
    pos: Pos,
    is_running: bool,
    heading: Option<Dir>,
    goal: Option<Pos>,
    due: u64,
    changed: bool,
    /// Its parts of frames, made once for everybody who sees it.
    enter: String,
    update: String,
    socket: Option<Socket>,
    ack: u64,
    acked: u64,
    /// Whom it was last shown, in the order of ids.
    view: Vec<EntityId>,
}

#[derive(Default)]
struct World {
    size: u16,
    tick: u64,
    walkers: BTreeMap<EntityId, Walker>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("floor ADDRESS MAP-SIZE")?;
    let world = Rc::new(RefCell::new(World::default()));
    world.borrow_mut().size = arguments.next().ok_or("floor ADDRESS MAP-SIZE")?.parse()?;
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
    let agree = |_: &Request, mut response: Response| {
        let json = HeaderValue::from_static(Json.subprotocol());
        let headers = response.headers_mut();
        headers.insert("sec-websocket-protocol", json);
        Ok(response)
    };
    let (socket, mut incoming) = accept_hdr_async(stream, agree).await?.split();
    let first = incoming.next().await.ok_or("no login")??;
    let ClientMsg::Login(login) = Json.decode_client(&first.into_data())? else {
        return Err("no login".into());
    };
    let id = world.borrow_mut().enter(socket, &login.name);
    while let Some(Ok(Message::Text(text))) = incoming.next().await {
        if let Some(walker) = world.borrow_mut().walkers.get_mut(&id) {
            walker.hear(Json.decode_client(text.as_bytes())?);
        }
    }
    world.borrow_mut().walkers.remove(&id);
    Ok(())
}

impl Walker {
    /// Sends without waiting: who does not read misses it.
    fn send(&mut self, text: String) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        // A task may write to about a hundred sockets before it has to yield; a tick writes to all of them.
        drop(unconstrained(socket.send(Message::text(text))).now_or_never());
    }

    fn encode(&mut self) {
        let (id, info, Pos { x, y }) = (self.id, &self.info, self.pos);
        let action = if self.is_running { "run" } else { "idle" };
        self.update = format!(
            r#"{{"id":"{id}","x":{x},"y":{y},"heading":"s","hits":200,"action":"{action}","target":null}}"#
        );
        self.enter = format!(r#"{{"info":{info},"state":{}}}"#, self.update);
    }

    fn hear(&mut self, message: ClientMsg) {
        if let ClientMsg::Ping(ping) = message {
            self.send(format!(
                r#"{{"type":"pong","nonce":{},"at_ms":0}}"#,
                ping.nonce
            ));
        } else if let ClientMsg::Order(order) = message {
            self.ack = order.seq;
            (self.heading, self.goal) = match order.order {
                Order::Move { dir } => (dir, None),
                Order::Step { dir } => (None, self.pos.step(dir)),
                Order::WalkTo { x, y } => (None, Some(Pos { x, y })),
                _ => return,
            };
        }
    }

    fn advance(&mut self, tick: u64, size: u16) {
        self.changed = false;
        if tick < self.due {
            return;
        }
        let to_goal = self.goal.and_then(|goal| self.pos.dir_to(goal));
        let dir = to_goal.or(self.heading);
        let ahead = dir.and_then(|dir| self.pos.step(dir));
        let ahead = ahead.filter(|pos| pos.x.max(pos.y) < size);
        self.changed = ahead.is_some() || self.is_running;
        self.is_running = ahead.is_some();
        if self.changed {
            self.pos = ahead.unwrap_or(self.pos);
            self.due = tick + if self.is_running { STEP_TICKS } else { 0 };
            self.encode();
        }
    }

    /// What changed of those it sees, if anything did.
    fn delta(&self, tick: u64, seen: &[&Walker], ids: &[EntityId]) -> Option<String> {
        let gone = self.view.iter().filter(|id| ids.binary_search(id).is_err());
        let leave: Vec<String> = gone.map(|id| format!("\"{id}\"")).collect();
        let is_new = |other: &&&Walker| self.view.binary_search(&other.id).is_err();
        let (enter, known): (Vec<&Walker>, Vec<&Walker>) = seen.iter().partition(is_new);
        let enter: Vec<&str> = enter.iter().map(|other| &other.enter[..]).collect();
        let update = known.iter().filter(|other| other.changed);
        let update: Vec<&str> = update.map(|other| &other.update[..]).collect();
        let [enter, update, leave] = [enter.join(","), update.join(","), leave.join(",")];
        let ack = self.ack;
        let is_calm = enter.is_empty() && update.is_empty() && leave.is_empty();
        (!is_calm || ack != self.acked).then(|| format!(
            r#"{{"type":"delta","tick":{tick},"ack":{ack},"enter":[{enter}],"update":[{update}],"leave":[{leave}]}}"#
        ))
    }
}

impl World {
    fn enter(&mut self, socket: Socket, name: &str) -> EntityId {
        let (id, size) = (EntityId(CharId::of_name(name).0), self.size);
        // Ids of names that are alike are alike in some of their bits; everybody has to stand somewhere else.
        let mixed = (id.0 ^ id.0 >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = |shift: u32| ((mixed >> shift) % u64::from(size)) as u16;
        let (x, y) = (place(24), place(44));
        let mut walker = Walker::default();
        (walker.id, walker.pos) = (id, Pos { x, y });
        (walker.socket, walker.view) = (Some(socket), vec![id]);
        walker.info = format!(
            r#"{{"kind":"player","class":"archer","name":"{name}","look":3735928559,"hits_max":220}}"#
        );
        walker.encode();
        walker.send(format!(
            r#"{{"type":"welcome","token":"t","char_id":"{id}","gateways":[],"last_order":0,"map":{{"seed":"7","size":{size}}},"tick_hz":20,"region_size":64,"aoi_radius":{AOI_RADIUS},"x":{x},"y":{y},"spells":[],"limits":{{"messages_per_s":40,"messages_burst":120,"message_bytes":65536,"say_bytes":256}}}}"#
        ));
        let status = r#"{"type":"server_status","level":"normal","accepting":true,"world":"ok"}"#;
        walker.send(status.into());
        let me = &walker.enter;
        walker.send(format!(
            r#"{{"type":"snapshot","entities":[{me}],"objects":[]}}"#
        ));
        self.walkers.insert(id, walker);
        id
    }

    fn tick(&mut self) {
        self.tick += 1;
        for walker in self.walkers.values_mut() {
            walker.advance(self.tick, self.size);
        }
        // Squares as wide as one sees: whoever is in view is in the same or a neighbouring one.
        let across = usize::from(self.size / AOI_RADIUS) + 3;
        let row = |at: u16| usize::from(at / AOI_RADIUS + 1);
        let square = |pos: Pos| row(pos.y) * across + row(pos.x);
        let mut squares: Vec<Vec<&Walker>> = vec![Vec::new(); across * across];
        for walker in self.walkers.values() {
            squares[square(walker.pos)].push(walker);
        }
        let mut shown = Vec::new();
        for me in self.walkers.values() {
            let here = square(me.pos);
            let rows = [here - across, here, here + across].into_iter();
            let near = rows.flat_map(|row| squares[row - 1..=row + 1].iter().flatten());
            let mut seen: Vec<&Walker> = near.copied().collect();
            seen.retain(|other| other.pos.distance(me.pos) <= AOI_RADIUS);
            seen.sort_unstable_by_key(|other| other.id);
            let ids: Vec<EntityId> = seen.iter().map(|other| other.id).collect();
            shown.push((me.delta(self.tick, &seen, &ids), ids));
        }
        for (walker, (frame, ids)) in self.walkers.values_mut().zip(shown) {
            (walker.view, walker.acked) = (ids, walker.ack);
            frame.into_iter().for_each(|frame| walker.send(frame));
        }
    }
}
