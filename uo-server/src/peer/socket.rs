//! One socket: bytes into the machine of its connection, and what that wants said into bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::connection::{Connection, Effect, Ended, Input, Proven};
use super::lane::{Counts, Lane, add};
use super::links::ConnId;
use super::local::LocalTransport;
use super::wire::{self, FrameReader, Packet};
use crate::clock::Clock;
use crate::limits::{PEER_FRAME_BYTES_MAX, PEER_SILENT_MS, PEER_WRITE_BYTES};

/// Packets of the machine itself that wait to be written. One greeting is five; of pings it is no loss.
const CONTROLS_MAX: usize = 16;
/// How long the reason of an end may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What a connection tells the links.
pub(super) enum Event {
    /// Its peer knows the secret. Answered once this is its link; or by an end.
    Proven {
        conn: ConnId,
        peer: Proven,
        admitted: oneshot::Sender<()>,
    },
    /// Nothing more comes of it.
    Ended { conn: ConnId, why: Ended },
}

/// What the task of a connection works with.
pub(super) struct Endpoint {
    pub conn: ConnId,
    pub machine: Connection,
    pub lane: Arc<Lane>,
    pub closing: mpsc::Receiver<Ended>,
    pub events: mpsc::Sender<Event>,
    pub local: Arc<LocalTransport>,
    pub counts: Arc<Counts>,
    pub clock: Clock,
}

impl Endpoint {
    /// Runs until the connection has ended, and says so.
    pub async fn run(mut self, stream: TcpStream) {
        // Without it a message waits for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let (conn, events) = (self.conn, self.events.clone());
        let (lane, counts) = (self.lane.clone(), self.counts.clone());
        let (read, write) = stream.into_split();
        let (controls, to_write) = mpsc::channel(CONTROLS_MAX);
        let why = {
            let reading = self.read_on(read, controls);
            let writing = write_on(write, to_write, lane, counts);
            tokio::pin!(reading, writing);
            tokio::select! {
                why = &mut reading => {
                    let _ = timeout(LAST_WORDS, &mut writing).await;
                    why
                }
                why = &mut writing => why,
            }
        };
        // This node stops, and wants to know nothing any more.
        let _ = events.send(Event::Ended { conn, why }).await;
    }

    async fn read_on(
        &mut self,
        mut socket: OwnedReadHalf,
        controls: mpsc::Sender<Packet>,
    ) -> Ended {
        let mut frames = FrameReader::default();
        let mut arrived = vec![0; PEER_WRITE_BYTES];
        let mut effects = Vec::new();
        self.handle(Input::Opened, &mut effects);
        loop {
            if let Some(why) = self.carry_out(&mut effects, &controls).await {
                return why;
            }
            // Before what was read is worked off: that may take a while.
            if let Ok(why) = self.closing.try_recv() {
                self.handle(Input::Close(why), &mut effects);
                continue;
            }
            match frames.next(self.machine.frame_bytes_max()) {
                Ok(Some(content)) => {
                    let input = wire::read(content).map_or_else(Input::BadFrame, Input::Frame);
                    self.handle(input, &mut effects);
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    self.handle(Input::BadFrame(error), &mut effects);
                    continue;
                }
            }
            let due = self.due();
            let input = tokio::select! {
                read = socket.read(&mut arrived) => match read {
                    Ok(0) | Err(_) => Input::Close(Ended::HungUp),
                    Ok(bytes) => {
                        add(&self.counts.bytes_in, bytes as u64);
                        frames.push(&arrived[..bytes]);
                        Input::Heard
                    }
                },
                Some(why) = self.closing.recv() => Input::Close(why),
                () = due => Input::Tick,
            };
            self.handle(input, &mut effects);
        }
    }

    /// Waits for the next tick of the machine.
    fn due(&self) -> impl Future<Output = ()> + use<> {
        let wait_ms = self.machine.wake_at().saturating_sub(self.clock.now());
        sleep(Duration::from_millis(wait_ms))
    }

    fn handle(&mut self, input: Input, effects: &mut Vec<Effect>) {
        let before = self.machine.skipped();
        self.machine.handle(self.clock.now(), input, effects);
        self.counts.skipped(before, self.machine.skipped());
    }

    /// Turns effects into calls; why the connection has ended, if it has.
    async fn carry_out(
        &mut self,
        effects: &mut Vec<Effect>,
        controls: &mpsc::Sender<Packet>,
    ) -> Option<Ended> {
        let mut proven = None;
        for effect in effects.drain(..) {
            match effect {
                // Only pings can be too many, and one that is lost is no loss.
                Effect::Write(packet) => drop(controls.try_send(packet)),
                Effect::Proven(peer) => proven = Some(peer),
                Effect::Deliver { from, message } => {
                    add(&self.counts.received, 1);
                    self.local.deliver(from, message).await;
                }
                Effect::End(why) => return Some(why),
            }
        }
        let input = self.admission(proven?).await;
        let is_admitted = input == Input::Admitted;
        self.handle(input, effects);
        // One level deep: nobody is proven twice.
        for effect in effects.drain(..) {
            match effect {
                Effect::Write(packet) => drop(controls.try_send(packet)),
                Effect::End(why) => return Some(why),
                Effect::Proven(_) | Effect::Deliver { .. } => {}
            }
        }
        if is_admitted {
            self.lane.open();
        }
        None
    }

    /// Waits until this connection is the link of its pair, or is told to end.
    async fn admission(&mut self, peer: Proven) -> Input {
        let conn = self.conn;
        let (admitted, mut answer) = oneshot::channel();
        let proven = Event::Proven {
            conn,
            peer,
            admitted,
        };
        if self.events.send(proven).await.is_err() {
            return Input::Close(Ended::Stopped);
        }
        let due = self.due();
        tokio::select! {
            Ok(()) = &mut answer => Input::Admitted,
            Some(why) = self.closing.recv() => Input::Close(why),
            () = due => Input::Close(Ended::Overdue),
        }
    }
}

/// Writes what there is to write, until the machine is gone or the socket fails.
async fn write_on(
    mut socket: OwnedWriteHalf,
    mut controls: mpsc::Receiver<Packet>,
    lane: Arc<Lane>,
    counts: Arc<Counts>,
) -> Ended {
    let mut out = Vec::with_capacity(PEER_WRITE_BYTES);
    let control = |packet: &Packet, out: &mut Vec<u8>| {
        // A reason is bounded, and everything else is short.
        let _ = wire::write(packet, PEER_FRAME_BYTES_MAX, out);
    };
    loop {
        // In this order: the proof, which is what opens the lane, goes before the first message.
        let is_open = lane.is_open();
        while let Ok(packet) = controls.try_recv() {
            control(&packet, &mut out);
        }
        if is_open && !controls.is_closed() {
            lane.fill(&mut out, &counts);
        }
        if out.is_empty() {
            tokio::select! {
                packet = controls.recv() => match packet {
                    Some(packet) => control(&packet, &mut out),
                    None => return Ended::HungUp,
                },
                () = lane.rung() => continue,
            }
        }
        if let Err(why) = write_all(&mut socket, &out).await {
            return why;
        }
        add(&counts.bytes_out, out.len() as u64);
        out.clear();
        // After a rare large frame its memory is given back.
        out.shrink_to(4 * PEER_WRITE_BYTES);
    }
}

/// A peer that takes nothing for as long as a link may be silent does not read.
async fn write_all(socket: &mut OwnedWriteHalf, mut bytes: &[u8]) -> Result<(), Ended> {
    while !bytes.is_empty() {
        match timeout(Duration::from_millis(PEER_SILENT_MS), socket.write(bytes)).await {
            Ok(Ok(written)) if written > 0 => bytes = &bytes[written..],
            Ok(_) => return Err(Ended::HungUp),
            Err(_) => return Err(Ended::Overflow),
        }
    }
    Ok(())
}
