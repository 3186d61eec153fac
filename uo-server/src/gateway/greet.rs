//! What a connection is told when its session is attached: `welcome`, `server_status`, what it missed; and later how its
//! part of the world is.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{
    AOI_RADIUS, Level, MapInfo, Pos, REGION_SIZE, ServerMsg, ServerStatus, TICK_HZ, Welcome,
    WorldStatus,
};

use super::core::{Alarm, GatewayCore};
use super::session::{Greeting, Phase};
use super::token;
use crate::limits::{GATEWAYS_TOLD_MAX, SNAPSHOT_WAIT_MS};

impl GatewayCore {
    /// Welcomes the connection of a session that is attached, once there is a token for it.
    pub(super) fn greet(&mut self, key: u32) {
        let session = &self.sessions[key];
        let (Greeting::Welcome, Phase::Attached, Some(conn)) =
            (session.greeting, &session.phase, session.conn)
        else {
            return;
        };
        let Some(token) = self.tokens.take() else {
            self.tokenless.push(key);
            return;
        };
        self.sessions.set_token(key, token::hash(&token));
        self.store_session(key);
        let until = self.now + SNAPSHOT_WAIT_MS;
        let session = &mut self.sessions[key];
        session.greeting = Greeting::Snapshot(until);
        session.world_told = WorldStatus::Ok;
        session.ack_told = session.ack;
        session.orders.resume(session.ack);
        let missed = session.missed.take();
        let (char_id, last_order) = (session.char_id, session.ack);
        let pos = session.sight.centre.unwrap_or_default();
        let welcome = Box::new(self.welcome(token, char_id, last_order, pos));
        self.control(conn, &ServerMsg::Welcome(welcome));
        self.control(conn, &self.status(WorldStatus::Ok));
        if let Some(missed) = missed {
            self.control(conn, &ServerMsg::Missed(missed));
        }
        self.unsnapped.insert(key);
        self.set_alarm(until, Alarm::Snapshot(key));
        self.try_snapshot(key);
    }

    fn welcome(
        &self,
        token: String,
        char_id: uo_proto::CharId,
        last_order: u64,
        pos: Pos,
    ) -> Welcome {
        let config = &self.config;
        Welcome {
            token,
            char_id,
            gateways: self.all_gateways(),
            last_order,
            map: MapInfo {
                seed: config.world.seed(),
                size: config.world.size(),
            },
            tick_hz: TICK_HZ,
            region_size: REGION_SIZE,
            aoi_radius: AOI_RADIUS,
            x: pos.x,
            y: pos.y,
            spells: config.spells.clone(),
            limits: config.limits,
        }
    }

    /// This gateway first: whose line breaks comes back to where its session is still known.
    fn all_gateways(&self) -> Vec<String> {
        let gateways = self.config.gateways.iter().chain(&self.other_gateways);
        gateways.take(GATEWAYS_TOLD_MAX).cloned().collect()
    }

    fn status(&self, world: WorldStatus) -> ServerMsg {
        ServerMsg::ServerStatus(ServerStatus {
            level: Level::Normal,
            accepting: !self.stopping,
            world,
        })
    }

    /// Tells a session's client how its part of the world is, if it believes otherwise.
    pub(super) fn tell_world(&mut self, key: u32, world: WorldStatus) {
        let session = &mut self.sessions[key];
        let before = std::mem::replace(&mut session.world_told, world);
        if let Some(conn) = session.conn
            && before != world
        {
            let status = self.status(world);
            self.control(conn, &status);
        }
    }

    /// Entropy came: whoever waits for a token is welcomed.
    pub(super) fn entropy(&mut self, tokens: Vec<[u8; 24]>) {
        self.tokens.refill(tokens);
        for key in std::mem::take(&mut self.tokenless) {
            if self.sessions.get(key).is_some() {
                self.greet(key);
            }
        }
    }
}
