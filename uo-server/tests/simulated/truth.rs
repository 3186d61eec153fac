//! When everything is quiet, what each player sees is what is.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{
    AOI_RADIUS, CharId, CoinSerial, EntityId, EntityInfo, EntityState, ObjectKey, ObjectState,
};
use uo_server::sim::Region;

use super::client::Client;
use super::node::Node;
use super::shard::Shard;

/// What is in the world.
#[derive(Debug, Default)]
pub struct Truth {
    entities: BTreeMap<EntityId, (EntityInfo, EntityState)>,
    /// What differs from the generated content.
    objects: BTreeMap<ObjectKey, ObjectState>,
    coins: BTreeMap<CoinSerial, CharId>,
    /// The versions of the inventories.
    inventories: BTreeMap<CharId, u64>,
}

impl Shard {
    /// Looks at every region, at the only sim that runs it.
    pub(super) fn truth(&self) -> Result<Truth, String> {
        let mut truth = Truth::default();
        for id in self.world.regions() {
            let sims = self.sims.iter().flatten().filter(|sim| sim.may_act());
            let mut regions = sims.filter_map(|sim| sim.core().region(id));
            let (Some(region), None) = (regions.next(), regions.next()) else {
                return Err(format!("{id:?} does not run at one sim"));
            };
            let battle = region.battle();
            for id in battle.entities() {
                if let (Some(info), Some(state)) = (battle.info(id), battle.state(id)) {
                    truth.entities.insert(id, (info, state));
                }
            }
            let objects = region.differences().into_iter();
            truth.objects.extend(objects.map(|o| (o.key, o)));
            truth.count_coins(region)?;
        }
        Ok(truth)
    }

    /// Everybody is back, and sees what there is.
    pub(super) fn compare_with_truth(&mut self) -> Result<(), String> {
        let nodes: Vec<Node> = self.plan.nodes().collect();
        nodes
            .into_iter()
            .for_each(|node| self.collect_counters(node));
        let Some(truth) = self.truth.take() else {
            return Err("the sims never stood still".into());
        };
        for client in &self.clients {
            let compared = self.compare(client, &truth.entities, &truth.objects);
            let inventory = truth.inventories.get(&client.char_id);
            if inventory.is_some_and(|&version| version < client.inventory_saved) {
                return Err(format!(
                    "{}: inventory {} was saved, and {inventory:?} is left",
                    client.name, client.inventory_saved
                ));
            }
            compared.map_err(|why| format!("{}: {why}", client.name))?;
            let expected = client.session.as_ref().map(|session| &session.expected);
            if let Some(line) = expected.and_then(|expected| expected.first()) {
                return Err(format!(
                    "{} never heard {line:?}, and was not told that it missed anything",
                    client.name
                ));
            }
        }
        Ok(())
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
}

impl Truth {
    /// A coin is in one purse.
    fn count_coins(&mut self, region: &Region) -> Result<(), String> {
        for char_id in region.characters() {
            let Some(inventory) = region.battle().inventory(char_id.entity()) else {
                continue;
            };
            self.inventories.insert(char_id, inventory.version);
            for coin in &inventory.coins {
                if let Some(other) = self.coins.insert(*coin, char_id) {
                    return Err(format!("{coin} is with {other:?} and {char_id:?}"));
                }
            }
        }
        Ok(())
    }
}
