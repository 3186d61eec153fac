//! A client, as far as a gateway core has to do with it.

use std::collections::BTreeMap;

use uo_proto::{Delta, Encoding, EntityEnter, EntityId, ObjectKey, ObjectState, ServerMsg};

/// A client as the wire shows it.
#[derive(Default)]
pub struct Client {
    pub encoding: Encoding,
    /// Everything it was sent.
    pub got: Vec<ServerMsg>,
    pub closed: Option<u16>,
    /// Whether its socket takes nothing: its write stays under way.
    pub is_deaf: bool,
    /// What it knows by snapshots and deltas.
    pub entities: BTreeMap<EntityId, EntityEnter>,
    pub objects: BTreeMap<ObjectKey, ObjectState>,
    pub token: String,
    pub last_tick: u64,
    /// Bytes of everything it was sent.
    pub bytes: usize,
}

impl Client {
    /// It is sent a message.
    pub fn take(&mut self, message: ServerMsg) {
        match &message {
            ServerMsg::Welcome(welcome) => self.token = welcome.token.clone(),
            ServerMsg::Snapshot(snapshot) => {
                let enter = snapshot.entities.iter();
                self.entities = enter.map(|e| (e.state.id, e.clone())).collect();
                self.objects = snapshot.objects.iter().map(|o| (o.key, *o)).collect();
            }
            ServerMsg::Delta(delta) => self.apply(delta),
            _ => {}
        }
        self.got.push(message);
    }

    fn apply(&mut self, delta: &Delta) {
        assert!(delta.tick > self.last_tick, "two deltas in one tick");
        self.last_tick = delta.tick;
        for id in &delta.leave {
            assert!(self.entities.remove(id).is_some(), "{id} was not known");
        }
        for enter in &delta.enter {
            self.entities.insert(enter.state.id, enter.clone());
        }
        for update in &delta.update {
            let known = self.entities.get_mut(&update.id);
            known.expect("an update is about what is known").state = *update;
        }
        self.objects
            .extend(delta.objects.iter().map(|o| (o.key, *o)));
    }

    /// What it was sent since this was called last.
    pub fn take_got(&mut self) -> Vec<ServerMsg> {
        std::mem::take(&mut self.got)
    }

    pub fn deltas(&self) -> usize {
        let is_delta = |message: &&ServerMsg| matches!(message, ServerMsg::Delta(_));
        self.got.iter().filter(is_delta).count()
    }
}
