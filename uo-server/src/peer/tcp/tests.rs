//! Nodes in one process, with real sockets between them. Whatever a test waits for is a letter in an inbox or bytes on a
//! socket.

use std::io::{Read, Write};
use std::net::TcpStream as Plain;
use std::time::Duration;

use crossbeam_channel::Receiver;
use tokio::runtime::Runtime;

use super::*;
use crate::gateway::core::Input as GatewayInput;
use crate::gateway::mailbox::GatewayMail;
use crate::identity::BootId;
use crate::limits::PEER_FRAME_BYTES_MAX;
use crate::peer::connection::Input as SocketInput;
use crate::peer::connection::{Connection, Effect as SocketEffect};
use crate::peer::samples::{hello, holder, messages, order, saved};
use crate::peer::wire::{self, FrameReader, Packet, Received};
use crate::peer::{ToGateway, ToSim};
use crate::sim::mailbox::SimMail;
use crate::sim::member::Input as SimInput;
use crate::store::row::Role;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);
const LETTERS_MAX: usize = 32 * 1024;

/// A node of which only the links run.
struct Node {
    me: Holder,
    address: SocketAddr,
    transport: Arc<TcpTransport>,
    sim: Receiver<SimMail>,
    gateway: Receiver<GatewayMail>,
    runtime: Runtime,
}

fn secret() -> Secret {
    Secret::parse("a secret that all share").unwrap()
}

impl Node {
    fn start(name: &str, boot: u128) -> Node {
        Node::bounded(name, boot, Bounds::default())
    }

    fn bounded(name: &str, boot: u128, bounds: Bounds) -> Node {
        Node::with(hello(name, boot), bounds)
    }

    fn with(hello: Hello, bounds: Bounds) -> Node {
        let me = hello.holder.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (to_sim, sim) = crossbeam_channel::bounded(LETTERS_MAX);
        let (to_gateway, gateway) = crossbeam_channel::bounded(LETTERS_MAX);
        let local = LocalTransport::new(me.node.clone(), to_sim, Some(to_gateway));
        let presence = Presence {
            hello,
            secret: secret(),
            bounds,
        };
        let (address, transport) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let clock = Clock::start();
            let transport = TcpTransport::start(listener, presence, Arc::new(local), clock);
            (address, transport)
        });
        Node {
            me,
            address,
            transport,
            sim,
            gateway,
            runtime,
        }
    }

    fn peer(&self) -> PeerAddress {
        PeerAddress {
            holder: self.me.clone(),
            role: Role::Sim,
            address: Some(self.address.to_string()),
        }
    }

    /// It finds the others in the store.
    fn finds(&self, others: &[&Node]) {
        let peers = others.iter().map(|other| other.peer()).collect();
        self.transport.peers_are(peers);
    }

    /// The next letter to its sim.
    fn hears(&self) -> SimInput {
        match self.sim.recv_timeout(PATIENCE) {
            Ok(SimMail::Input(input)) => input,
            Ok(_) => panic!("another letter"),
            Err(_) => panic!("{} hears nothing", self.me.node),
        }
    }

    fn hears_linked(&self, nodes: &[&str]) {
        let nodes = nodes.iter().map(|&node| node.into()).collect();
        assert_eq!(self.hears(), SimInput::Linked { nodes });
    }

    fn hears_lost(&self, node: &str) {
        let node = NodeName::from(node);
        let lost = SimInput::PeerLost { node: node.clone() };
        assert_eq!(self.hears(), lost);
        match self.gateway.recv_timeout(PATIENCE) {
            Ok(GatewayMail::Input(input)) => assert_eq!(input, GatewayInput::PeerLost { node }),
            _ => panic!("the gateway of {} hears nothing of it", self.me.node),
        }
    }

    fn sends(&self, to: &str, message: ToSim) {
        let to = to.into();
        self.transport.send(&self.me, &to, Message::ToSim(message));
    }

    fn hears_from(&self, from: &Holder, message: ToSim) {
        let from = from.clone();
        assert_eq!(self.hears(), SimInput::Peer { from, message });
    }

    /// The machine loses its power.
    fn dies(self) {
        self.runtime.shutdown_background();
    }
}

/// A peer whose every byte the test decides.
struct Stranger {
    stream: Plain,
    frames: FrameReader,
    machine: Connection,
}

impl Stranger {
    /// Connects, and introduces itself as far as it is let.
    fn calls(node: &Node, hello: Hello, secret: Secret) -> (Stranger, Result<(), Ended>) {
        let stream = Plain::connect(node.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let toward = Toward::Dialed(node.me.node.clone());
        let mut stranger = Stranger {
            stream,
            frames: FrameReader::default(),
            machine: Connection::new(hello, secret, [5; 32], toward, 0),
        };
        let mut result = stranger.does(SocketInput::Opened);
        while result.is_ok() && stranger.machine.frame_bytes_max() < PEER_FRAME_BYTES_MAX {
            let packet = stranger.reads().expect("it is answered");
            result = stranger.does(SocketInput::Frame(Received::Packet(packet)));
        }
        (stranger, result)
    }

    fn does(&mut self, input: SocketInput) -> Result<(), Ended> {
        let mut effects = Vec::new();
        self.machine.handle(0, input, &mut effects);
        for effect in effects {
            match effect {
                SocketEffect::Write(packet) => self.says(&packet),
                SocketEffect::Proven(_) => self.does(SocketInput::Admitted)?,
                SocketEffect::End(why) => return Err(why),
                SocketEffect::Deliver { .. } => {}
            }
        }
        Ok(())
    }

    fn says(&mut self, packet: &Packet) {
        let mut bytes = Vec::new();
        wire::write(packet, PEER_FRAME_BYTES_MAX, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next packet; none when the other side has hung up.
    fn reads(&mut self) -> Option<Packet> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(content) = self.frames.next(PEER_FRAME_BYTES_MAX).unwrap() {
                match wire::read(content).unwrap() {
                    Received::Packet(packet) => return Some(packet),
                    other => panic!("{other:?}"),
                }
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.frames.push(&bytes[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing is said: {error}"),
            }
        }
    }

    /// Reads on until it is told why it is sent away.
    fn is_told(&mut self, why: &Ended) {
        let want = why.to_string();
        loop {
            match self.reads() {
                Some(Packet::Refused { why }) => return assert_eq!(why, want),
                Some(_) => {}
                None => panic!("it is hung up on without a word"),
            }
        }
    }
}

#[test]
fn two_nodes_link_and_a_new_boot_of_a_dead_one_links_again() {
    let one = Node::start("sim-1", 1);
    let two = Node::start("sim-2", 2);
    // Only the smaller name dials, whoever is told of whom first.
    two.finds(&[&one]);
    one.finds(&[&two]);
    one.hears_linked(&["sim-2"]);
    two.hears_linked(&["sim-1"]);
    let subscribe = |region| ToSim::Subscribe {
        region: uo_proto::RegionId(region),
    };
    one.sends("sim-2", subscribe(1));
    two.hears_from(&one.me, subscribe(1));
    two.sends("sim-1", subscribe(2));
    one.hears_from(&two.me, subscribe(2));

    two.dies();
    one.hears_lost("sim-2");
    one.hears_linked(&[]);
    one.sends("sim-2", subscribe(3));

    let two = Node::start("sim-2", 3);
    one.finds(&[&two]);
    one.hears_linked(&["sim-2"]);
    two.hears_linked(&["sim-1"]);
    // What was for the boot before is not told to this one.
    one.sends("sim-2", subscribe(4));
    two.hears_from(&one.me, subscribe(4));
    two.sends("sim-1", subscribe(5));
    one.hears_from(&holder("sim-2", 3), subscribe(5));
    let not_linked = one
        .transport
        .counts()
        .not_linked
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(not_linked, 1);
}

#[test]
fn everything_arrives_in_order_and_in_the_name_of_its_boot() {
    let one = Node::start("sim-1", 1);
    let two = Node::start("sim-2", 2);
    one.finds(&[&two]);
    one.hears_linked(&["sim-2"]);
    two.hears_linked(&["sim-1"]);
    let reborn = Holder {
        boot: BootId(99),
        ..one.me.clone()
    };
    let to = NodeName::from("sim-2");
    for seq in 1..=10_000 {
        let message = Message::ToSim(ToSim::Order(order(seq)));
        one.transport.send(&reborn, &to, message);
    }
    for seq in 1..=10_000 {
        two.hears_from(&reborn, ToSim::Order(order(seq)));
    }
    // Of each kind one; none of them is skipped.
    for message in messages() {
        one.transport.send(&one.me, &to, message.clone());
        match message {
            Message::ToSim(message) => two.hears_from(&one.me, message),
            Message::ToGateway(message) => {
                let from = one.me.clone();
                match two.gateway.recv_timeout(PATIENCE) {
                    Ok(GatewayMail::Input(input)) => {
                        assert_eq!(input, GatewayInput::Peer { from, message });
                    }
                    _ => panic!("the gateway hears nothing"),
                }
            }
        }
    }
}

/// Red when the newest is sent to everybody, or when whoever offers a region waits for an answer that never comes.
#[test]
fn a_node_that_is_not_upgraded_yet_is_not_sent_what_it_does_not_know() {
    let one = Node::start("sim-1", 1);
    let older = Hello {
        version_max: 1,
        ..hello("sim-2", 2)
    };
    let two = Node::with(older, Bounds::default());
    one.finds(&[&two]);
    one.hears_linked(&["sim-2"]);
    two.hears_linked(&["sim-1"]);
    let offer = messages().into_iter().find_map(|message| match message {
        Message::ToSim(ToSim::DrainOffer(offer)) => Some(offer),
        _ => None,
    });
    let offer = offer.expect("there is one of each kind");
    let (region, epoch) = (offer.region, offer.epoch);
    one.sends("sim-2", ToSim::DrainOffer(offer));
    let SimInput::Peer { from, message } = one.hears() else {
        panic!("it is answered");
    };
    assert_eq!(from, two.me);
    assert!(
        matches!(message, ToSim::DrainAbort { region: of, epoch: at, .. } if (of, at) == (region, epoch))
    );
    // Everything else arrives.
    one.sends("sim-2", ToSim::Order(order(1)));
    two.hears_from(&one.me, ToSim::Order(order(1)));
}

#[test]
fn a_message_to_oneself_goes_nowhere_near_the_wire() {
    let one = Node::start("sim-1", 1);
    one.sends("sim-1", ToSim::Order(order(1)));
    one.hears_from(&one.me, ToSim::Order(order(1)));
    let message = Message::ToGateway(saved(1));
    one.transport.send(&one.me, &one.me.node, message);
    assert!(one.gateway.recv_timeout(PATIENCE).is_ok());
}

#[test]
fn strangers_are_told_why_they_are_sent_away() {
    let sim = Node::start("sim-2", 2);
    let wrong = Secret::parse("a secret that is another").unwrap();
    let (_, result) = Stranger::calls(&sim, hello("sim-1", 1), wrong);
    let want = Ended::RefusedByPeer(Ended::WrongProof.to_string());
    assert_eq!(result, Err(want));

    let mut elsewhere = hello("sim-1", 1);
    elsewhere.cluster = "elsewhere".into();
    let (_, result) = Stranger::calls(&sim, elsewhere, secret());
    assert!(matches!(result, Err(Ended::RefusedByPeer(why)) if why.contains("elsewhere")));

    // And a friend is let in still.
    let (_friend, result) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    assert_eq!(result, Ok(()));
    sim.hears_linked(&["sim-1"]);
}

#[test]
fn noise_is_hung_up_on_and_disturbs_no_link() {
    let sim = Node::start("sim-2", 2);
    let (mut friend, _) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    sim.hears_linked(&["sim-1"]);
    let noises: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01\xc1",
        b"\x00\x00\x00\x02\xa1x",
    ];
    for noise in noises {
        let mut stream = Plain::connect(sim.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(noise).unwrap();
        let mut rest = Vec::new();
        // A reset is an end, too: some of what was sent was not read.
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
    friend.says(&Packet::Ping { at: 7 });
    loop {
        match friend.reads() {
            Some(Packet::Pong { at }) => break assert_eq!(at, 7),
            Some(_) => {}
            None => panic!("the link is gone"),
        }
    }
}

#[test]
fn a_newer_boot_takes_the_place_of_a_half_open_link() {
    let sim = Node::start("sim-2", 2);
    let (mut old, _) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    sim.hears_linked(&["sim-1"]);
    // The old one neither reads nor hangs up.
    let (mut new, result) = Stranger::calls(&sim, hello("sim-1", 7), secret());
    assert_eq!(result, Ok(()));
    sim.hears_lost("sim-1");
    sim.hears_linked(&["sim-1"]);
    old.is_told(&Ended::Replaced);
    let (_, result) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    let want = Ended::RefusedByPeer(Ended::OlderBoot.to_string());
    assert_eq!(result, Err(want));
    let boot = BootId(7);
    let message = Message::ToSim(ToSim::Order(order(1)));
    new.says(&Packet::Carry { boot, message });
    sim.hears_from(&holder("sim-1", 7), ToSim::Order(order(1)));
}

/// Guards the cut: were an overflow only counted, the node would go on as if nothing were missing.
#[test]
fn a_node_that_does_not_read_is_cut_off() {
    let bounds = Bounds {
        waiting_max: 64,
        keyed_max: 64,
        ..Bounds::default()
    };
    let sim = Node::bounded("sim-2", 2, bounds);
    let (_deaf, _) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    sim.hears_linked(&["sim-1"]);
    // More than the system's own buffers hold.
    for seq in 0.. {
        sim.sends("sim-1", ToSim::Order(order(seq)));
        if !sim.sim.is_empty() {
            break;
        }
        assert!(seq < 1_000_000, "nobody minds");
    }
    sim.hears_lost("sim-1");
    sim.hears_linked(&[]);
    let message = Message::ToGateway(ToGateway::FeedsDone);
    sim.transport.send(&sim.me, &"sim-1".into(), message);
}

#[test]
fn a_node_that_stops_says_so() {
    let sim = Node::start("sim-2", 2);
    let (mut friend, _) = Stranger::calls(&sim, hello("sim-1", 1), secret());
    sim.hears_linked(&["sim-1"]);
    sim.transport.stop();
    friend.is_told(&Ended::Stopped);
    assert_eq!(friend.reads(), None);
}
