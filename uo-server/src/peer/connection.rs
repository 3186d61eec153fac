//! One connection to one peer, from the first byte to the last: who is there, is it still there, and what does it say.
//!
//! ```text
//!  dialer                         acceptor
//!    Hello            ---->                     may the two talk at all?
//!                     <----       Hello
//!                     <----       Challenge
//!    Challenge        ---->
//!    Proof            ---->                     is it one of us, and is its link the one that counts?
//!                     <----       Proof
//!    Carry, Ping, Pong  <-->  Carry, Ping, Pong
//! ```
//!
//! The dialer proves first: whoever calls without knowing the secret learns nothing that was made with it. Whether a proven
//! connection becomes *the* link of its pair is decided by [`links`](super::links), for all connections of a node.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::Message;
use super::proof::{Hello, Nonce, Secret, Side, Transcript};
use super::wire::{FrameError, Packet, Received};
use crate::Millis;
use crate::identity::{Holder, NodeName};
use crate::limits::{
    NAME_BYTES_MAX, PEER_FRAME_BYTES_MAX, PEER_GREETING_BYTES_MAX, PEER_HANDSHAKE_MS, PEER_PING_MS,
    PEER_SILENT_MS,
};
use crate::store::row::Role;

/// Why a connection ended, or did not begin.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// Nobody answered there.
    #[error("nobody answers there: {0}")]
    Unreachable(String),
    /// It speaks for another cluster.
    #[error("it belongs to the cluster {theirs:?}, not to {ours:?}")]
    WrongCluster {
        /// This node's.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// There is no version that both understand.
    #[error("it speaks versions {theirs_min} to {theirs_max}, this node {ours_min} to {ours_max}")]
    NoCommonVersion {
        /// The oldest version that this node understands.
        ours_min: u16,
        /// The newest.
        ours_max: u16,
        /// The oldest version that the peer understands.
        theirs_min: u16,
        /// The newest.
        theirs_max: u16,
    },
    /// It does not know the secret, or said something else before than it did now.
    #[error("it does not know the cluster's secret")]
    WrongProof,
    /// Somebody else lives at the address that was dialed.
    #[error("{found} answers where {expected} should be")]
    WrongNode {
        /// Who was dialed.
        expected: NodeName,
        /// Who it was.
        found: NodeName,
    },
    /// It has this node's name.
    #[error("it has the name of this node")]
    SameName,
    /// Of two nodes the one with the smaller name dials, and this was the other.
    #[error("the node with the smaller name dials")]
    WrongDirection,
    /// A name that is none.
    #[error("a name of it is empty, or longer than {NAME_BYTES_MAX} bytes")]
    BadName,
    /// A newer boot of its name has taken its link before.
    #[error("a newer boot of its name is known")]
    OlderBoot,
    /// A newer connection, or a newer boot, takes the place of this one.
    #[error("a newer connection takes its place")]
    Replaced,
    /// There are as many peers or unproven connections as there may be.
    #[error("there are too many peers")]
    TooMany,
    /// It comes from another machine, and without a secret nobody else is to be let in.
    #[error("it is on another machine, and this node was given no secret of the cluster")]
    NotLoopback,
    /// Something out of turn.
    #[error("it said {0} out of turn")]
    OutOfTurn(&'static str),
    /// It took too long to prove itself.
    #[error("it did not prove itself in time")]
    Overdue,
    /// Nothing was heard for too long.
    #[error("nothing was heard of it for {PEER_SILENT_MS} ms")]
    Silent,
    /// It reads too slowly for what may not be lost.
    #[error("it does not read what is sent to it")]
    Overflow,
    /// Its bytes are no frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It says that it has refused this node.
    #[error("it refuses this node: {0}")]
    RefusedByPeer(String),
    /// It hung up.
    #[error("the connection was closed")]
    HungUp,
    /// This node stops.
    #[error("this node stops")]
    Stopped,
}

/// A peer that has proven itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    /// Its name, and the boot with which its process began.
    pub holder: Holder,
    /// What it does.
    pub role: Role,
    /// The version to speak.
    pub version: u16,
}

/// What happens to a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The socket is open.
    Opened,
    /// Bytes arrived, of whatever kind.
    Heard,
    /// A frame arrived.
    Frame(Received),
    /// The bytes that arrived are no frames.
    BadFrame(FrameError),
    /// Time passes.
    Tick,
    /// The proven peer is linked by this connection from now on.
    Admitted,
    /// It is to end.
    Close(Ended),
}

/// What a connection wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Send this.
    Write(Packet),
    /// The peer knows the secret. Nothing more is to be read before this was answered by [`Input::Admitted`] or
    /// [`Input::Close`].
    Proven(Proven),
    /// The peer says this, in the name of that boot of it.
    Deliver {
        /// Who.
        from: Holder,
        /// What.
        message: Message,
    },
    /// Write what is still to be written, and end it.
    End(Ended),
}

/// Whom a connection is to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Toward {
    /// This node was dialed.
    Dialed(NodeName),
    /// Whoever called.
    Accepted,
}

/// How far it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    Opening,
    Hello,
    Challenge {
        theirs: Hello,
    },
    Proof {
        theirs: Hello,
        nonce: Nonce,
    },
    Proven {
        peer: Proven,
        answer: Option<[u8; 32]>,
    },
    Linked {
        peer: Proven,
    },
    Ended,
}

/// Frames that said nothing to this build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// Of kinds that it does not know.
    pub unknown: u64,
    /// Of kinds that it knows, with content that it cannot read.
    pub unreadable: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Connection {
    me: Hello,
    secret: Secret,
    nonce: Nonce,
    toward: Toward,
    stage: Stage,
    opened_at: Millis,
    heard_at: Millis,
    pinged_at: Millis,
    skipped: Skipped,
}

impl Connection {
    /// A connection that is about to be opened; `nonce` is random and was never used before.
    pub fn new(me: Hello, secret: Secret, nonce: Nonce, toward: Toward, now: Millis) -> Connection {
        Connection {
            me,
            secret,
            nonce,
            toward,
            stage: Stage::Opening,
            opened_at: now,
            heard_at: now,
            pinged_at: now,
            skipped: Skipped::default(),
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        if self.stage == Stage::Ended {
            return;
        }
        let result = match input {
            Input::Opened => self.opened(effects),
            Input::Heard => {
                self.heard_at = now;
                Ok(())
            }
            Input::Frame(Received::Packet(packet)) => self.packet(packet, effects),
            // The next version may say more than this one understands; but not before it is known who it is.
            Input::Frame(Received::Unknown { .. }) if self.is_linked() => {
                self.skipped.unknown += 1;
                Ok(())
            }
            Input::Frame(Received::Unreadable { .. }) if self.is_linked() => {
                self.skipped.unreadable += 1;
                Ok(())
            }
            Input::Frame(Received::Unknown { .. } | Received::Unreadable { .. }) => {
                Err(Ended::OutOfTurn("something that is not understood"))
            }
            Input::BadFrame(error) => Err(error.into()),
            Input::Tick => self.tick(now, effects),
            Input::Admitted => self.admitted(now, effects),
            Input::Close(why) => Err(why),
        };
        if let Err(why) = result {
            if !matches!(why, Ended::RefusedByPeer(_) | Ended::HungUp | Ended::Silent) {
                let why = why.to_string();
                effects.push(Effect::Write(Packet::Refused { why }));
            }
            effects.push(Effect::End(why));
            self.stage = Stage::Ended;
        }
    }

    /// When [`Input::Tick`] is wanted next.
    pub fn wake_at(&self) -> Millis {
        match self.stage {
            Stage::Linked { .. } => {
                let silent_at = self.heard_at + PEER_SILENT_MS;
                silent_at.min(self.heard_at.max(self.pinged_at) + PEER_PING_MS)
            }
            Stage::Ended => Millis::MAX,
            _ => self.opened_at + PEER_HANDSHAKE_MS,
        }
    }

    /// How long a frame of the peer may be by now.
    pub fn frame_bytes_max(&self) -> usize {
        match self.is_linked() {
            true => PEER_FRAME_BYTES_MAX,
            false => PEER_GREETING_BYTES_MAX,
        }
    }

    /// Frames that were skipped so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    fn is_linked(&self) -> bool {
        matches!(self.stage, Stage::Linked { .. })
    }

    fn opened(&mut self, effects: &mut Vec<Effect>) -> Result<(), Ended> {
        if self.stage == Stage::Opening {
            self.stage = Stage::Hello;
            if let Toward::Dialed(_) = self.toward {
                effects.push(Effect::Write(Packet::Hello(self.me.clone())));
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: Millis, effects: &mut Vec<Effect>) -> Result<(), Ended> {
        if !self.is_linked() {
            return match now >= self.opened_at + PEER_HANDSHAKE_MS {
                true => Err(Ended::Overdue),
                false => Ok(()),
            };
        }
        if now >= self.heard_at + PEER_SILENT_MS {
            return Err(Ended::Silent);
        }
        if now >= self.heard_at.max(self.pinged_at) + PEER_PING_MS {
            self.pinged_at = now;
            effects.push(Effect::Write(Packet::Ping { at: now }));
        }
        Ok(())
    }

    fn packet(&mut self, packet: Packet, effects: &mut Vec<Effect>) -> Result<(), Ended> {
        if let Packet::Refused { why } = packet {
            let why = why.chars().take(200).collect();
            return Err(Ended::RefusedByPeer(why));
        }
        match (std::mem::replace(&mut self.stage, Stage::Ended), packet) {
            (Stage::Hello, Packet::Hello(theirs)) => self.hello(theirs, effects),
            (Stage::Challenge { theirs }, Packet::Challenge { nonce }) => {
                self.challenged(theirs, nonce, effects);
                Ok(())
            }
            (Stage::Proof { theirs, nonce }, Packet::Proof { mac }) => {
                self.proof(theirs, nonce, mac, effects)
            }
            (Stage::Linked { peer }, packet) => {
                let said = linked_packet(&peer, packet, effects);
                self.stage = Stage::Linked { peer };
                said
            }
            (_, packet) => Err(Ended::OutOfTurn(name_of(&packet))),
        }
    }

    fn hello(&mut self, theirs: Hello, effects: &mut Vec<Effect>) -> Result<(), Ended> {
        self.judge(&theirs)?;
        self.stage = Stage::Challenge { theirs };
        if self.toward == Toward::Accepted {
            effects.push(Effect::Write(Packet::Hello(self.me.clone())));
            let nonce = self.nonce;
            effects.push(Effect::Write(Packet::Challenge { nonce }));
        }
        Ok(())
    }

    /// Whether the two should talk, if what it says is true.
    fn judge(&self, theirs: &Hello) -> Result<(), Ended> {
        let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        let (me, node) = (&self.me.holder.node, &theirs.holder.node);
        if !is_name(&node.0) || !is_name(&theirs.cluster) {
            return Err(Ended::BadName);
        }
        if theirs.cluster != self.me.cluster {
            return Err(Ended::WrongCluster {
                ours: self.me.cluster.clone(),
                theirs: theirs.cluster.clone(),
            });
        }
        if self.me.common_version(theirs).is_none() {
            return Err(Ended::NoCommonVersion {
                ours_min: self.me.version_min,
                ours_max: self.me.version_max,
                theirs_min: theirs.version_min,
                theirs_max: theirs.version_max,
            });
        }
        if node == me {
            return Err(Ended::SameName);
        }
        match &self.toward {
            Toward::Dialed(expected) if expected != node => Err(Ended::WrongNode {
                expected: expected.clone(),
                found: node.clone(),
            }),
            Toward::Accepted if node > me => Err(Ended::WrongDirection),
            _ => Ok(()),
        }
    }

    fn challenged(&mut self, theirs: Hello, nonce: Nonce, effects: &mut Vec<Effect>) {
        if let Toward::Dialed(_) = self.toward {
            let mac = self
                .transcript(&theirs, &nonce)
                .prove(&self.secret, Side::Dialer);
            let challenge = Packet::Challenge { nonce: self.nonce };
            effects.push(Effect::Write(challenge));
            effects.push(Effect::Write(Packet::Proof { mac }));
        }
        self.stage = Stage::Proof { theirs, nonce };
    }

    fn proof(
        &mut self,
        theirs: Hello,
        nonce: Nonce,
        mac: [u8; 32],
        effects: &mut Vec<Effect>,
    ) -> Result<(), Ended> {
        let transcript = self.transcript(&theirs, &nonce);
        let (prover, answer) = match self.toward {
            Toward::Dialed(_) => (Side::Acceptor, None),
            Toward::Accepted => {
                let answer = transcript.prove(&self.secret, Side::Acceptor);
                (Side::Dialer, Some(answer))
            }
        };
        if !transcript.is_proof(&self.secret, prover, &mac) {
            return Err(Ended::WrongProof);
        }
        let version = self.me.common_version(&theirs).expect("it was judged");
        let peer = Proven {
            holder: theirs.holder,
            role: theirs.role,
            version,
        };
        effects.push(Effect::Proven(peer.clone()));
        self.stage = Stage::Proven { peer, answer };
        Ok(())
    }

    fn admitted(&mut self, now: Millis, effects: &mut Vec<Effect>) -> Result<(), Ended> {
        if let Stage::Proven { peer, answer } = std::mem::replace(&mut self.stage, Stage::Ended) {
            effects.extend(answer.map(|mac| Effect::Write(Packet::Proof { mac })));
            (self.heard_at, self.pinged_at) = (now, now);
            self.stage = Stage::Linked { peer };
            return Ok(());
        }
        Err(Ended::OutOfTurn("an admission"))
    }

    fn transcript<'a>(&'a self, theirs: &'a Hello, nonce: &'a Nonce) -> Transcript<'a> {
        match self.toward {
            Toward::Dialed(_) => Transcript {
                dialer: &self.me,
                dialer_nonce: &self.nonce,
                acceptor: theirs,
                acceptor_nonce: nonce,
            },
            Toward::Accepted => Transcript {
                dialer: theirs,
                dialer_nonce: nonce,
                acceptor: &self.me,
                acceptor_nonce: &self.nonce,
            },
        }
    }
}

fn linked_packet(peer: &Proven, packet: Packet, effects: &mut Vec<Effect>) -> Result<(), Ended> {
    match packet {
        Packet::Ping { at } => effects.push(Effect::Write(Packet::Pong { at })),
        Packet::Pong { .. } => {}
        Packet::Carry { boot, message } => {
            let node = peer.holder.node.clone();
            let from = Holder { node, boot };
            effects.push(Effect::Deliver { from, message });
        }
        packet => return Err(Ended::OutOfTurn(name_of(&packet))),
    }
    Ok(())
}

fn name_of(packet: &Packet) -> &'static str {
    match packet {
        Packet::Hello(_) => "hello",
        Packet::Challenge { .. } => "a challenge",
        Packet::Proof { .. } => "a proof",
        Packet::Refused { .. } => "a refusal",
        Packet::Ping { .. } => "a ping",
        Packet::Pong { .. } => "a pong",
        Packet::Carry { .. } => "a message",
    }
}

#[cfg(test)]
mod tests;
