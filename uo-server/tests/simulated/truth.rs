//! When everything is quiet, what each player sees is what is.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{AOI_RADIUS, EntityId, EntityInfo, EntityState, ObjectKey, ObjectState};

use super::client::Client;
use super::shard::{Node, Shard};

impl Shard {
    pub(super) fn compare_with_truth(&mut self) -> Result<(), String> {
        self.collect_counters(Node::Sim);
        let Some(sim) = &self.sim else {
            return Err("the sim did not come back".into());
        };
        let mut entities: BTreeMap<EntityId, (EntityInfo, EntityState)> = BTreeMap::new();
        let mut objects: BTreeMap<ObjectKey, ObjectState> = BTreeMap::new();
        for id in self.world.regions() {
            let Some(region) = sim.core.region(id) else {
                return Err(format!("{id:?} did not come back"));
            };
            let battle = region.battle();
            for id in battle.entities() {
                if let (Some(info), Some(state)) = (battle.info(id), battle.state(id)) {
                    entities.insert(id, (info, state));
                }
            }
            objects.extend(region.differences().into_iter().map(|o| (o.key, o)));
        }
        for client in &self.clients {
            let compared = self.compare(client, &entities, &objects);
            compared.map_err(|why| format!("{}: {why}", client.name))?;
        }
        self.compare_coins()
    }

    fn compare(
        &self,
        client: &Client,
        entities: &BTreeMap<EntityId, (EntityInfo, EntityState)>,
        objects: &BTreeMap<ObjectKey, ObjectState>,
    ) -> Result<(), String> {
        if !client.is_in_world() {
            return Err(format!("still outside at the end: {:?}", client.wire));
        }
        let Some((_, own)) = entities.get(&client.char_id.entity()) else {
            return Err("nowhere at the end".into());
        };
        let is_near = |pos: uo_proto::Pos| pos.distance(own.pos()) <= AOI_RADIUS;
        let in_view: BTreeMap<_, _> = entities
            .iter()
            .filter(|(_, (_, state))| is_near(state.pos()))
            .map(|(&id, seen)| (id, seen.clone()))
            .collect();
        let all: BTreeSet<EntityId> = client
            .entities
            .keys()
            .chain(in_view.keys())
            .copied()
            .collect();
        for id in all {
            let (seen, true_one) = (client.entities.get(&id), in_view.get(&id));
            if seen != true_one {
                return Err(format!("sees {seen:?}, and there is {true_one:?}"));
            }
        }
        for object in objects.values().filter(|object| is_near(object.pos())) {
            let known = client.objects.get(&object.key).copied().or_else(|| {
                let content = self.world.content(object.key.region());
                content.object(object.key).copied()
            });
            if known != Some(*object) {
                return Err(format!("sees {known:?}, and there is {object:?}"));
            }
        }
        for object in client.objects.values().filter(|o| is_near(o.pos())) {
            let is_there = objects.contains_key(&object.key);
            if !object.gone && object.key.is_runtime() && !is_there {
                return Err(format!("sees {object:?}, which is gone"));
            }
        }
        self.all_applied(client)
    }

    /// Nothing a client gave is forgotten for good, unless a crash took it and nobody could tell.
    fn all_applied(&self, client: &Client) -> Result<(), String> {
        let Some(session) = &client.session else {
            return Err("no session at the end".into());
        };
        match session.unapplied() {
            Some(left) if !left.is_empty() => Err(format!("orders {left:?} were never applied")),
            _ => Ok(()),
        }
    }

    /// A coin is in one purse.
    fn compare_coins(&self) -> Result<(), String> {
        let Some(sim) = &self.sim else { return Ok(()) };
        let mut owners = BTreeMap::new();
        for id in self.world.regions() {
            let Some(region) = sim.core.region(id) else {
                continue;
            };
            for char_id in region.characters() {
                let Some(inventory) = region.battle().inventory(char_id.entity()) else {
                    continue;
                };
                for coin in &inventory.coins {
                    if let Some(other) = owners.insert(*coin, char_id) {
                        return Err(format!("{coin} is with {other:?} and {char_id:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}
