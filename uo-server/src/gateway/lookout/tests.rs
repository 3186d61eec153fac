//! A lookout beside real cluster cores of sims, in one store and virtual time.

use std::collections::VecDeque;

use super::*;
use crate::cluster::core::ExitReason;
use crate::cluster::timing::Timing;
use crate::identity::{BootId, NodeName};
use crate::peer::PeerAddress;
use crate::planted::Planted;
use crate::store::row::{self, NodeLoad, NodeRow, NodeState};
use crate::store::tables::Tables;
use crate::store::{Request, StoreError};

struct Rig {
    lookout: Lookout,
    tables: Tables,
    now: Millis,
    sims: Vec<Holder>,
    gateways: Vec<String>,
    peers: Vec<PeerAddress>,
    asked: Vec<Request>,
    exit: Option<ExitReason>,
    beats: u64,
}

fn holder(node: &str, boot: u128) -> Holder {
    Holder {
        node: node.into(),
        boot: BootId(boot),
    }
}

impl Rig {
    fn new() -> Rig {
        let config = ClusterConfig {
            me: holder("gate", 7),
            role: Role::Gateway,
            regions: 16,
            demand_driven: false,
            others_are_dead: false,
            peer: Some("gate:1".into()),
            clients: vec!["ws://gate".into()],
            timing: Timing::default(),
            planted: Planted::default(),
        };
        Rig {
            lookout: Lookout::new(config, 0),
            tables: Tables::default(),
            now: 0,
            sims: Vec::new(),
            gateways: Vec::new(),
            peers: Vec::new(),
            asked: Vec::new(),
            exit: None,
            beats: 0,
        }
    }

    /// The store answers at once.
    fn give(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut effects = Vec::new();
            self.lookout.handle(self.now, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Store { ticket, request } => {
                        let reply: Result<_, StoreError> = self.tables.apply(self.now, &request);
                        self.asked.push(request);
                        inputs.push_back(Input::Store { ticket, reply });
                    }
                    Effect::Reach(reach) => {
                        (self.sims, self.gateways) = (reach.sims, reach.gateways)
                    }
                    Effect::Peers { peers } => self.peers = peers,
                    Effect::Exit { why } => self.exit = Some(why),
                    other => panic!("a lookout does not ask for {other:?}"),
                }
            }
        }
    }

    /// Another node beats, unless it is silent.
    fn beat(&mut self, who: &Holder, role: Role) {
        self.beats += 1;
        let row = NodeRow {
            beat: self.beats,
            role,
            life: 1,
            state: NodeState::Running,
            peer: Some(format!("{}:1", who.node)),
            clients: Vec::new(),
            up_ms: 10_000,
            starts: 1,
            load: NodeLoad::default(),
            is_cut_off: false,
        };
        let request = Request::NodeBeat {
            node: who.node.clone(),
            boot: who.boot,
            beat: self.beats,
            row: row::encode(&row),
            ttl_s: 3_600,
        };
        self.tables
            .apply(self.now, &request)
            .expect("it is written");
    }

    fn run(&mut self, ms: u64, beating: &[(&Holder, Role)]) {
        for _ in 0..ms / 50 {
            self.now += 50;
            if self.now.is_multiple_of(400) {
                beating.iter().for_each(|(who, role)| self.beat(who, *role));
            }
            self.give(Input::Tick { parallel: false });
        }
    }

    fn link(&mut self, nodes: &[&str]) {
        let nodes = nodes.iter().map(|&node| NodeName::from(node)).collect();
        self.give(Input::Linked { nodes });
    }
}

/// Red when the gateway is told of sims that it has no link to, or not of those that it has.
#[test]
fn it_finds_the_sims_and_tells_of_those_that_are_linked() {
    let mut rig = Rig::new();
    let (a, b) = (holder("sim-a", 1), holder("sim-b", 2));
    rig.run(1_000, &[(&a, Role::Sim), (&b, Role::Sim)]);
    let dialed: Vec<&str> = rig.peers.iter().map(|it| &*it.holder.node.0).collect();
    assert_eq!(dialed, ["sim-a", "sim-b"]);
    assert!(rig.sims.is_empty() && !rig.lookout.is_ready());
    rig.link(&["sim-a"]);
    assert_eq!(rig.sims, std::slice::from_ref(&a));
    assert!(!rig.lookout.is_ready(), "one of two cannot be reached");
    rig.link(&["sim-a", "sim-b"]);
    assert_eq!(rig.sims, [a, b]);
    assert!(rig.lookout.is_ready());
}

/// Red when a gateway begins a life, claims, or declares somebody dead.
#[test]
fn it_has_no_life_and_ends_none() {
    let mut rig = Rig::new();
    let (a, b) = (holder("sim-a", 1), holder("sim-b", 2));
    rig.run(1_000, &[(&a, Role::Sim), (&b, Role::Sim)]);
    rig.link(&["sim-a", "sim-b"]);
    rig.run(10_000, &[(&b, Role::Sim)]);
    assert_eq!(rig.sims, [b], "the silent one is presumed gone");
    let is_harmless =
        |request: &Request| matches!(request, Request::NodeBeat { .. } | Request::NodesRead);
    let other = rig.asked.iter().find(|request| !is_harmless(request));
    assert_eq!(other, None);
    assert_eq!(rig.lookout.observe()["life"], 0);
}

/// Red when a gateway that stops is taken for one that died.
#[test]
fn it_says_that_it_is_done() {
    let mut rig = Rig::new();
    rig.run(1_000, &[]);
    rig.give(Input::Stop);
    assert_eq!(rig.exit, Some(ExitReason::Stopped));
    let Some(Request::NodeBeat { row: bytes, .. }) = rig.asked.last() else {
        panic!("the last word is a beat");
    };
    let said = row::decode::<NodeRow>(bytes).expect("it is a row");
    assert_eq!(said.state, NodeState::Done);
}

#[test]
fn what_is_meant_for_a_sim_is_counted() {
    let mut rig = Rig::new();
    let from = holder("sim-a", 1);
    let message = crate::peer::ToSim::Unsubscribe {
        region: uo_proto::RegionId(0),
    };
    rig.give(Input::Peer { from, message });
    assert_eq!(rig.lookout.observe()["cluster"]["counters"]["misled"], 1);
}
