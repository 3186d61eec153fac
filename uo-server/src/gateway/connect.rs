//! From a connection to a session: login, resume, and the ends of both.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{
    CharId, ClientMsg, Encoding, ErrorCode, ErrorMsg, Goodbye, Login, Missed, MissedCount,
    PROTOCOL_VERSION, Pong, Resume, ServerMsg, close,
};

use super::connections::Stage;
use super::core::{Alarm, Asked, ConnId, Effect, GatewayCore};
use super::frames::Frames;
use super::session::{Greeting, Phase, Session};
use super::token;
use crate::limits::{CLIENT_NUMBER_MAX, LOGIN_DEADLINE_MS, SESSION_REFRESH_MS, SESSION_TTL_MS};
use crate::peer::ToSim;
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, SessionRow, StoreError, TokenHash};

/// How often the store is asked about a session before the client is sent away to try later.
const SESSION_READS_MAX: u32 = 3;
/// A close that was asked for.
const NORMAL: u16 = 1000;

impl GatewayCore {
    pub(super) fn opened(&mut self, conn: ConnId, encoding: Encoding) {
        let key = self.conns.insert(conn, encoding, self.now);
        if self.stopping {
            let goodbye = self.goodbye();
            return self.close(key, Some(goodbye), close::RESTART, "the gateway stops");
        }
        self.set_alarm(self.now + LOGIN_DEADLINE_MS, Alarm::Login(conn));
    }

    pub(super) fn login_overdue(&mut self, conn: ConnId) {
        if let Some(key) = self.conns.key(conn)
            && matches!(self.conns[key].stage, Stage::New)
        {
            self.close(key, None, close::POLICY, "no login in time");
        }
    }

    pub(super) fn client(&mut self, conn: ConnId, message: ClientMsg) {
        let Some(key) = self.conns.key(conn) else {
            return;
        };
        let session = match self.conns[key].stage {
            Stage::Bound(session) => Some(session),
            Stage::New | Stage::Resuming(..) => None,
        };
        match (message, session) {
            (ClientMsg::Ping(ping), _) => {
                let since = session.map_or(self.conns[key].opened, |s| self.sessions[s].began);
                let at_ms = self.now.saturating_sub(since);
                let nonce = ping.nonce;
                self.control(key, &ServerMsg::Pong(Pong { nonce, at_ms }));
            }
            (ClientMsg::Order(order), Some(session)) => self.order(session, order),
            (ClientMsg::Order(order), None) => {
                let why = "`login` or `resume` comes first";
                self.refuse(key, ErrorCode::Invalid, why, Some(order.seq));
            }
            (ClientMsg::Login(login), None) if matches!(self.conns[key].stage, Stage::New) => {
                self.login(key, login);
            }
            (ClientMsg::Resume(resume), None) if matches!(self.conns[key].stage, Stage::New) => {
                self.resume(key, resume);
            }
            (ClientMsg::Login(_) | ClientMsg::Resume(_), _) => {
                let why = "this connection has its session already";
                self.refuse(key, ErrorCode::Invalid, why, None);
            }
        }
    }

    pub(super) fn invalid(&mut self, conn: ConnId, reason: String, seq: Option<u64>) {
        self.counters.invalid += 1;
        if let Some(key) = self.conns.key(conn) {
            self.refuse(key, ErrorCode::Invalid, &reason, seq);
        }
    }

    fn login(&mut self, conn: u32, login: Login) {
        if login.version != PROTOCOL_VERSION {
            let message = format!("this gateway speaks version {PROTOCOL_VERSION}");
            let error = error(ErrorCode::Version, message, None);
            return self.close(conn, Some(error), close::PROTOCOL_ERROR, "another version");
        }
        let char_id = CharId::of_name(&login.name);
        if let Some(before) = self.sessions.of_char(char_id) {
            for token in self.end_session(before, Some(ErrorCode::Superseded)) {
                self.tell_store(Request::SessionDelete { token });
            }
        }
        self.counters.logins += 1;
        let lane_max = self.config.reliable_lane_max;
        let session = Session::new(self.now, char_id, &login.name, (0, 0), lane_max);
        let key = self.sessions.insert(session);
        self.bind(conn, key);
        self.locate(key);
    }

    fn resume(&mut self, conn: u32, mut resume: Resume) {
        resume.last_seq = resume.last_seq.min(CLIENT_NUMBER_MAX);
        resume.last_private = resume.last_private.min(CLIENT_NUMBER_MAX);
        let used = token::hash(&resume.token);
        match self.sessions.of_token(used) {
            Some(session) => self.resume_here(conn, session, used, &resume),
            None => self.read_session(conn, resume, 0),
        }
    }

    fn read_session(&mut self, conn: u32, resume: Resume, tries: u32) {
        let id = self.conns[conn].id;
        let token = token::hash(&resume.token);
        let ticket = self.ask_store(Asked::Resume(id), Request::SessionRead { token });
        self.conns[conn].stage = Stage::Resuming(ticket, resume, tries);
    }

    /// The store answered about a session that is not here.
    pub(super) fn session_read(
        &mut self,
        conn: ConnId,
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    ) {
        let Some(key) = self.conns.key(conn) else {
            return;
        };
        let Stage::Resuming(asked, resume, tries) = self.conns[key].stage.clone() else {
            return;
        };
        if asked != ticket {
            return;
        }
        match reply {
            Ok(Reply::Session(Some(row))) => self.resume_from(key, row, &resume),
            Ok(_) => {
                self.counters.resumes_refused += 1;
                let why = "the session is unknown or has expired";
                let error = error(ErrorCode::Unauthorised, why.into(), None);
                self.close(key, Some(error), close::UNAUTHORISED, "not authorised");
            }
            Err(_) if tries < SESSION_READS_MAX => self.read_session(key, resume, tries + 1),
            Err(_) => {
                let why = "sessions cannot be read now";
                let error = error(ErrorCode::Busy, why.into(), None);
                self.close(key, Some(error), close::TRY_LATER, "try again later");
            }
        }
    }

    /// Resumes a session that this gateway holds.
    fn resume_here(&mut self, conn: u32, key: u32, used: TokenHash, resume: &Resume) {
        self.counters.resumes += 1;
        if let Some(before) = self.sessions[key].conn {
            self.supersede(before);
        }
        if let Some(token) = self.sessions.rotate(key, used) {
            self.tell_store(Request::SessionDelete { token });
        }
        self.bind(conn, key);
        self.note_resume(key);
        let session = &mut self.sessions[key];
        session.tries = 0;
        let public = session
            .reliable
            .rebind(self.now, resume.last_seq, resume.last_private);
        self.missed_public(key, public);
        match self.sessions[key].phase.clone() {
            // The owner sends again what this client does not have.
            Phase::Attaching { to, .. } => self.attach_to(key, to),
            Phase::Attached | Phase::Resting | Phase::Waiting { .. } => self.locate(key),
            Phase::AskingOwner(_) | Phase::AskingPlace(_) | Phase::AskingHolder(..) => {}
        }
    }

    /// Resumes a session of another gateway, or of an earlier life of this one.
    fn resume_from(&mut self, conn: u32, row: SessionRow, resume: &Resume) {
        if let Some(here) = self.sessions.of_char(row.char_id) {
            if self.sessions[here].number > Some(row.number) {
                let message = "the character was opened elsewhere".into();
                let error = error(ErrorCode::Superseded, message, None);
                return self.close(conn, Some(error), close::SUPERSEDED, "opened elsewhere");
            }
            self.end_session(here, Some(ErrorCode::Superseded));
        }
        self.counters.resumes += 1;
        let (public, private) = (resume.last_seq, resume.last_private);
        let lane_max = self.config.reliable_lane_max;
        let mut session = Session::new(
            self.now,
            row.char_id,
            &row.name,
            (public, private),
            lane_max,
        );
        session.number = Some(row.number);
        session.reliable.begin_behind_a_hole();
        let key = self.sessions.insert(session);
        self.sessions.adopt_token(key, token::hash(&resume.token));
        self.bind(conn, key);
        self.note_resume(key);
        self.missed_public(key, MissedCount::Unknown);
        self.locate(key);
    }

    fn bind(&mut self, conn: u32, key: u32) {
        self.conns[conn].stage = Stage::Bound(key);
        let session = &mut self.sessions[key];
        session.conn = Some(conn);
        session.greeting = Greeting::Welcome;
        session.world_told = uo_proto::WorldStatus::Ok;
        session.sight.forget();
        session.sight.wants_snapshot = false;
        session.missed = None;
    }

    fn missed_public(&mut self, key: u32, public: MissedCount) {
        let private = MissedCount::Count(0);
        if public != MissedCount::Count(0) {
            self.sessions[key].missed = Some(Missed { public, private });
        }
    }

    /// The connection is gone, and its session waits for a resume.
    pub(super) fn closed(&mut self, conn: ConnId) {
        self.conns.closing.remove(&conn);
        if let Some(key) = self.conns.key(conn) {
            let conn = self.conns.remove(key);
            if let Stage::Bound(session) = conn.stage {
                self.rest(session);
            }
        }
        self.finish_stop_when_empty();
    }

    /// A session has lost its connection: its character lingers, and its row lives on from now.
    pub(super) fn rest(&mut self, key: u32) {
        self.detach(key, false);
        self.set_phase(key, Phase::Resting);
        self.unsnapped.remove(&key);
        let session = &mut self.sessions[key];
        session.conn = None;
        session.rests_since = self.now;
        session.sight.forget();
        session.gap.forget(&mut self.recorder);
        self.store_session(key);
    }

    fn detach(&mut self, key: u32, logout: bool) {
        let session = &self.sessions[key];
        let to = match &session.phase {
            Phase::Attached => session.owner.clone(),
            Phase::Attaching { to, .. } => Some(to.clone()),
            _ => None,
        };
        if let Some(to) = to {
            let (char_id, attach) = (session.char_id, session.attach);
            let detach = ToSim::Detach {
                char_id,
                attach,
                logout,
            };
            self.send(&to.node, detach);
        }
    }

    /// The player leaves the world.
    pub(super) fn logout(&mut self, key: u32) {
        self.counters.logouts += 1;
        self.detach(key, true);
        for token in self.end_session(key, None) {
            self.tell_store(Request::SessionDelete { token });
        }
    }

    /// Forgets a session that is over here; `because` closes its connection with 4000. Returns its tokens.
    pub(super) fn end_session(&mut self, key: u32, because: Option<ErrorCode>) -> Vec<TokenHash> {
        match (self.sessions[key].conn, because) {
            (Some(conn), Some(_)) => self.supersede(conn),
            (Some(conn), None) => {
                let goodbye = ServerMsg::Goodbye(Goodbye {
                    reason: "logout".into(),
                    gateways: Vec::new(),
                    after_ms: 0,
                });
                self.close(conn, Some(goodbye), NORMAL, "logout");
            }
            (None, _) => {}
        }
        self.counters.supersessions += u64::from(because.is_some());
        self.set_centre(key, None);
        self.unsnapped.remove(&key);
        let session = self.sessions.remove(key);
        self.left_phase(key, &session.phase);
        session
            .token
            .into_iter()
            .chain(session.token_before)
            .collect()
    }

    fn supersede(&mut self, conn: u32) {
        let message = "the character was opened elsewhere".into();
        let error = error(ErrorCode::Superseded, message, None);
        self.close(conn, Some(error), close::SUPERSEDED, "opened elsewhere");
    }

    /// Closes a connection, with everything of its control lane and one more message. Its session is not touched.
    pub(super) fn close(
        &mut self,
        key: u32,
        message: Option<ServerMsg>,
        code: u16,
        reason: &'static str,
    ) {
        let mut conn = self.conns.remove(key);
        let mut last = Frames::default();
        conn.control.write(&mut last);
        if let Some(message) = message {
            last.push(|out| conn.encoding.write(&message, out));
        }
        self.counters.closed(code);
        self.conns.closing.insert(conn.id);
        self.out.push(Effect::Close {
            conn: conn.id,
            last,
            code,
            reason,
        });
    }

    /// Closes a connection that does not read; its session waits for a resume.
    pub(super) fn close_slow(&mut self, key: u32) {
        let stage = self.conns[key].stage.clone();
        self.close(
            key,
            None,
            close::SLOW_CONSUMER,
            "the client reads too slowly",
        );
        if let Stage::Bound(session) = stage {
            self.rest(session);
        }
    }

    /// Queues a control message, to be written at once if the connection can take it.
    pub(super) fn control(&mut self, key: u32, message: &ServerMsg) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let bytes = conn.encoding.encode(message);
        match conn.control.push(self.now, bytes) {
            Ok(()) => self.urgent.push(key),
            Err(_) => self.close_slow(key),
        }
    }

    pub(super) fn refuse(&mut self, key: u32, code: ErrorCode, why: &str, seq: Option<u64>) {
        self.control(key, &error(code, why.to_owned(), seq));
    }

    pub(super) fn sweep_connections(&mut self) {
        let mut slow = Vec::new();
        for (key, conn) in self.conns.iter() {
            let is_stuck = match conn.stage {
                Stage::Bound(session) => self.sessions[session].reliable.is_stuck(self.now),
                Stage::New | Stage::Resuming(..) => false,
            };
            if is_stuck || conn.control.is_stuck(self.now) {
                slow.push(key);
            }
        }
        slow.into_iter().for_each(|key| self.close_slow(key));
    }

    pub(super) fn sweep_sessions(&mut self) {
        for key in self.sessions.keys() {
            let session = &mut self.sessions[key];
            let is_bound = session.conn.is_some();
            session.reliable.forget_old(self.now, !is_bound);
            if let Some(conn) = session.conn {
                if session.reliable.wants_ping() {
                    self.urgent.push(conn);
                }
                if self.now.saturating_sub(session.stored_at) >= SESSION_REFRESH_MS {
                    self.store_session(key);
                }
            } else if self.now.saturating_sub(session.rests_since) >= SESSION_TTL_MS {
                self.set_centre(key, None);
                self.sessions.remove(key);
            } else {
                self.forget_resting_sight(key);
            }
        }
    }

    /// Writes the row of a session, so that another gateway can resume it, for the time that a session lives without a
    /// connection.
    pub(super) fn store_session(&mut self, key: u32) {
        let session = &mut self.sessions[key];
        session.stored_at = self.now;
        let (Some(number), Some(token)) = (session.number, session.token) else {
            return;
        };
        let row = SessionRow {
            char_id: session.char_id,
            name: session.name.to_string(),
            number,
        };
        let ttl_s = (SESSION_TTL_MS / 1_000) as u32;
        self.tell_store(Request::SessionPut { token, row, ttl_s });
    }
}

/// An `error` of the gateway.
pub(super) fn error(code: ErrorCode, message: String, seq: Option<u64>) -> ServerMsg {
    ServerMsg::Error(ErrorMsg {
        code,
        message,
        seq,
        private: None,
    })
}
