//! The end: everybody is told where to go, and the characters are let go of.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Goodbye, ServerMsg, close};

use super::connections::Stage;
use super::core::{Alarm, Effect, GatewayCore};
use crate::limits::GATEWAY_STOP_MS;

impl GatewayCore {
    /// What a client is told before a planned close.
    pub(super) fn goodbye(&mut self) -> ServerMsg {
        ServerMsg::Goodbye(Goodbye {
            reason: "the gateway stops".into(),
            gateways: self.elsewhere(),
            // Not all at once to the next gateway.
            after_ms: self.jitter.below(1_000),
        })
    }

    /// Where a client of this gateway can go when it stops. Where nobody else is there, it waits for this one.
    fn elsewhere(&self) -> Vec<String> {
        match self.other_gateways.is_empty() {
            true => self.config.gateways.clone(),
            false => self.other_gateways.clone(),
        }
    }

    /// Closes every connection with 1012. Sessions stay in the store for a resume elsewhere.
    pub(super) fn stop(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        let conns: Vec<u32> = self.conns.iter().map(|(key, _)| key).collect();
        for key in conns {
            let stage = self.conns[key].stage.clone();
            let goodbye = self.goodbye();
            self.close(key, Some(goodbye), close::RESTART, "the gateway stops");
            if let Stage::Bound(session) = stage {
                self.rest(session);
            }
        }
        self.set_alarm(self.now + GATEWAY_STOP_MS, Alarm::Stop);
        self.finish_stop_when_empty();
    }

    pub(super) fn finish_stop_when_empty(&mut self) {
        if self.stopping && self.conns.is_empty() && self.conns.closing.is_empty() {
            self.finish_stop();
        }
    }

    pub(super) fn finish_stop(&mut self) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.out.push(Effect::Stopped);
        }
    }
}
