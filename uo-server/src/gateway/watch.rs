//! The thread of a [`Lookout`]: what the tick thread is to a member, for a process that has a gateway only.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::connection::Hub;
use super::lookout::Lookout;
use super::mailbox::{self, GatewayMail};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::cluster::core::{DrainRefusal, ExitReason};
use crate::crash::Crash;
use crate::peer::Transport;
use crate::sim::mailbox::SimMail;
use crate::sim::member::{Effect, Input};
use crate::store::any::Driver;
use crate::store::row::NodeLoad;

/// The longest time between two looks at the time.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the others are told how busy this node is.
const LOAD_EVERY: Duration = Duration::from_secs(1);

/// Everything that the thread works with.
pub struct LookoutLoop<T: ?Sized> {
    /// The core.
    pub lookout: Lookout,
    /// The node's clock.
    pub clock: Clock,
    /// Where letters arrive.
    pub inbox: Receiver<SimMail>,
    /// Where store replies are posted: the same inbox.
    pub replies: Sender<SimMail>,
    /// The gateway of this process.
    pub gateway: Sender<GatewayMail>,
    /// Its connections.
    pub hub: Arc<Hub>,
    /// The way to other nodes.
    pub transport: Arc<T>,
    /// Set once this thread is to end without another word.
    pub crash: Crash,
    /// The way to the store.
    pub driver: Driver,
    /// What is measured.
    pub meters: Arc<Meters>,
}

impl<T: Transport + ?Sized> LookoutLoop<T> {
    /// Runs until the core wants to exit, and says why; none: nobody can write to it any more.
    pub fn run(mut self) -> Option<ExitReason> {
        let mut load_told: Option<Instant> = None;
        let mut tick_due = Instant::now();
        while !self.crash.has_come() {
            // Time passes also while letters come faster than that.
            if Instant::now() >= tick_due {
                tick_due = Instant::now() + LOOK_EVERY;
                let tick = Input::Tick { parallel: false };
                if let Some(end) = self.handle(tick) {
                    return Some(end);
                }
            }
            if load_told.is_none_or(|told| told.elapsed() > LOAD_EVERY) {
                load_told = Some(Instant::now());
                self.handle(Input::Load(NodeLoad {
                    sessions: self.hub.open.load(Ordering::Relaxed) as u32,
                    ..NodeLoad::default()
                }));
            }
            let end = match self.inbox.recv_deadline(tick_due) {
                Ok(SimMail::Input(input)) => self.handle(input),
                Ok(SimMail::Observe { answer, .. }) => {
                    // Whoever asked may have gone.
                    let _ = answer.send(self.lookout.observe());
                    None
                }
                Ok(SimMail::Drain { answer, .. }) => {
                    let _ = answer.send(Err(DrainRefusal::IsGateway));
                    None
                }
                Ok(SimMail::Crossings { answer, .. }) => {
                    // Nobody crosses a border here.
                    let _ = answer.send(Vec::new());
                    None
                }
                #[cfg(feature = "planted-bugs")]
                Ok(SimMail::Panic(_)) => None,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return None,
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }

    fn handle(&mut self, input: Input) -> Option<ExitReason> {
        let mut effects = Vec::new();
        self.lookout.handle(self.clock.now(), input, &mut effects);
        let mut end = None;
        for effect in effects {
            match effect {
                Effect::Store { ticket, request } => {
                    let replies = self.replies.clone();
                    let timer = self.meters.store.start();
                    self.driver.run(request, move |reply| {
                        timer.stop();
                        // The thread has ended: so has whoever wanted the reply.
                        let _ = replies.send(SimMail::Input(Input::Store { ticket, reply }));
                    });
                }
                Effect::Reach(reach) => mailbox::tell_reach(&self.gateway, reach),
                Effect::Peers { peers } => self.transport.peers_are(peers),
                Effect::Exit { why } => end = Some(why),
                // It says nothing to other nodes, and is never reborn.
                Effect::Send { .. } | Effect::WantBoot => {}
            }
        }
        end
    }
}
