//! What is between players and gateways: connections that delay, stall and break, and the players' turns.

use uo_proto::{ClientMsg, Encoding, Login, PROTOCOL_VERSION, Resume};
use uo_server::gateway::core::{self as gateway, ConnId};
use uo_server::gateway::frames::Frames;

use super::client::Client;
use super::node::Node;
use super::queue::InOrder;
use super::script::{self, Deed};
use super::shard::{Conn, Downward, Event, PATIENCE_MS, Shard, Upward};

impl Shard {
    pub(super) fn write(&mut self, conn: ConnId, frames: Frames, ping: Option<u64>) {
        self.fold(&frames.bytes);
        self.note(|| format!("{} frames are written to {conn:?}", frames.len()));
        let delay = self.plan.client.draw(&mut self.dice);
        let reading = self.plan.reading.draw(&mut self.dice);
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        let at = known.down.arrival(self.now, delay);
        self.queue
            .push(at, Event::Down(conn, Downward::Frames(frames, ping)));
        self.queue.push(self.now + reading, Event::Writable(conn));
    }

    pub(super) fn close(&mut self, conn: ConnId, last: Frames, code: u16) {
        let delay = self.plan.client.draw(&mut self.dice);
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        let at = known.down.arrival(self.now, delay);
        self.queue
            .push(at, Event::Down(conn, Downward::Closed(last, code)));
        self.queue
            .push(self.now + delay, Event::Up(conn, Upward::Gone));
    }

    /// The gateway's process is gone: so are its connections.
    pub(super) fn lose_conns(&mut self, gateway: usize) {
        let life = self.life(Node::Gateway(gateway));
        let lost: Vec<ConnId> = self
            .conns
            .iter_mut()
            .filter(|(_, conn)| conn.gateway == gateway && conn.life == life && !conn.is_gone)
            .map(|(&id, conn)| {
                conn.is_gone = true;
                id
            })
            .collect();
        for conn in lost {
            let at = self.now + self.dice.below(400);
            self.queue.push(at, Event::Down(conn, Downward::Lost));
        }
    }

    /// The gateway can be reached by the connection: it is the same life, and was not told that it is gone.
    pub(super) fn up(&mut self, conn: ConnId, what: Upward) {
        let Some(known) = self.conns.get_mut(&conn).filter(|conn| !conn.is_gone) else {
            return;
        };
        let (gateway, life, encoding) = (known.gateway, known.life, known.encoding);
        if life != self.life(Node::Gateway(gateway)) || self.gateways[gateway].is_none() {
            return;
        }
        let input = match what {
            Upward::Opened => gateway::Input::Opened { conn, encoding },
            Upward::Message(message) => {
                self.note(|| format!("{conn:?} -> gw-{}: {message:?}", gateway + 1));
                gateway::Input::Client { conn, message }
            }
            Upward::Pong(payload) => gateway::Input::Pong { conn, payload },
            Upward::Gone => {
                if let Some(known) = self.conns.get_mut(&conn) {
                    known.is_gone = true;
                }
                self.note(|| format!("{conn:?} is gone, says gw-{}", gateway + 1));
                gateway::Input::Closed { conn }
            }
        };
        self.give_gateway(gateway, input);
    }

    pub(super) fn writable(&mut self, conn: ConnId) {
        if let Some(known) = self.conns.get(&conn).filter(|conn| !conn.is_gone)
            && known.life == self.life(Node::Gateway(known.gateway))
        {
            let gateway = known.gateway;
            self.note(|| format!("{conn:?} can be written to"));
            self.give_gateway(gateway, gateway::Input::Writable { conns: vec![conn] });
        }
    }

    /// Something arrives at a client; one that has opened another connection does not read this one any more.
    pub(super) fn down(&mut self, conn: ConnId, what: Downward) -> Result<(), String> {
        let Some(known) = self.conns.get(&conn) else {
            return Ok(());
        };
        let (player, encoding, is_lost) = (known.player, known.encoding, known.is_gone);
        let is_read = |client: &Client| client.wire.as_ref().is_some_and(|w| w.id == conn);
        if !is_read(&self.clients[player]) {
            return Ok(());
        }
        let frames = match &what {
            // A process that died takes what its sockets held with it.
            Downward::Frames(..) if is_lost && !self.is_alive(conn) => return Ok(()),
            Downward::Frames(frames, _) | Downward::Closed(frames, _) => frames.clone(),
            Downward::Lost => Frames::default(),
        };
        for frame in frames.iter() {
            self.read(player, encoding, frame)?;
        }
        match what {
            Downward::Frames(_, Some(ping)) => self.upward(conn, Upward::Pong(ping), 0),
            Downward::Frames(_, None) => {}
            Downward::Closed(_, code) => {
                self.note(|| format!("player{player}: closed with {code}"));
                self.clients[player].closed(code);
            }
            Downward::Lost => self.clients[player].disconnected(),
        }
        Ok(())
    }

    pub(super) fn is_alive(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|conn| {
            conn.life == self.life(Node::Gateway(conn.gateway))
                && self.gateways[conn.gateway].is_some()
        })
    }

    pub(super) fn read(
        &mut self,
        player: usize,
        encoding: Encoding,
        frame: &[u8],
    ) -> Result<(), String> {
        let message = encoding
            .decode(frame)
            .map_err(|error| format!("player{player} cannot read a frame: {error}"))?;
        self.note(|| format!("player{player} reads {message:?}"));
        let now = self.now;
        let again = self.clients[player]
            .read(now, message, &self.ledger)
            .map_err(|why| format!("player{player}: {why}"))?;
        for order in again {
            self.say_up(player, ClientMsg::Order(order));
        }
        Ok(())
    }

    pub(super) fn say_up(&mut self, player: usize, message: ClientMsg) {
        if let Some(wire) = &self.clients[player].wire {
            let conn = wire.id;
            self.upward(conn, Upward::Message(message), 0);
        }
    }

    pub(super) fn upward(&mut self, conn: ConnId, what: Upward, extra: u64) {
        let delay = self.plan.client.draw(&mut self.dice) + extra;
        if let Some(known) = self.conns.get_mut(&conn) {
            let at = known.up.arrival(self.now, delay);
            self.queue.push(at, Event::Up(conn, what));
        }
    }

    pub(super) fn turn(&mut self, player: usize) {
        if self.is_frozen {
            return;
        }
        let dice = &mut self.turns[player];
        let next_turn = self.now + dice.between(60, 700);
        let client = &self.clients[player];
        let mut deed = script::next(client, &self.world, self.plan.restless_percent, dice);
        let is_impatient = client
            .wire
            .as_ref()
            .is_some_and(|wire| !client.is_in_world() && self.now - wire.opened_at > PATIENCE_MS);
        if is_impatient {
            deed = Deed::Drop;
        }
        if self.is_recovering && matches!(deed, Deed::Order(_)) {
            deed = Deed::Wait;
        }
        self.queue.push(next_turn, Event::Turn(player));
        self.perform(player, deed);
    }

    pub(super) fn perform(&mut self, player: usize, deed: Deed) {
        match deed {
            Deed::Wait => {}
            Deed::Order(order) => {
                if let Some(order) = self.clients[player].give(order, &mut self.ledger) {
                    self.say_up(player, ClientMsg::Order(order));
                }
            }
            Deed::Drop | Deed::Abandon => {
                let Some(wire) = self.clients[player].wire.take() else {
                    return;
                };
                let is_silent = deed == Deed::Abandon;
                let unnoticed = if is_silent {
                    self.dice.between(500, 9_000)
                } else {
                    self.dice.below(300)
                };
                self.note(|| format!("player{player} drops its connection ({unnoticed} ms)"));
                self.upward(wire.id, Upward::Gone, unnoticed);
                if is_silent {
                    self.connect(player, false);
                }
            }
            Deed::Connect { fresh } => self.connect(player, fresh),
        }
    }

    pub(super) fn connect(&mut self, player: usize, fresh: bool) {
        let gateway = self.dice.below(self.plan.gateways as u64) as usize;
        if self.gateways[gateway].is_none() {
            return; // Refused; the player tries again at its next turn.
        }
        let life = self.life(Node::Gateway(gateway));
        let encoding = self.dice.pick(&[Encoding::Json, Encoding::MessagePack]);
        let conn = ConnId(self.conns.len() as u64 + 1);
        self.conns.insert(
            conn,
            Conn {
                player,
                gateway,
                life,
                encoding,
                up: InOrder::default(),
                down: InOrder::default(),
                is_gone: false,
            },
        );
        let client = &mut self.clients[player];
        let fresh = fresh || !client.has_token();
        client.connect(self.now, conn, (gateway, life), fresh);
        let session = client.session.as_ref();
        let message = match session.and_then(|s| Some((s.token.clone()?, s.last_seen()))) {
            Some((token, (last_seq, last_private))) => ClientMsg::Resume(Resume {
                token,
                last_seq,
                last_private,
            }),
            None => ClientMsg::Login(Login {
                name: client.name.clone(),
                password: None,
                version: PROTOCOL_VERSION,
            }),
        };
        if matches!(message, ClientMsg::Resume(_)) {
            client.stats.resumes += 1;
        }
        self.note(|| format!("player{player} connects to gw-{} as {conn:?}", gateway + 1));
        self.upward(conn, Upward::Opened, 0);
        self.upward(conn, Upward::Message(message), 0);
    }
}
