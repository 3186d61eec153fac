//! One held region: its battle, who is in it, and how its objects differ from what was generated.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_combat::{AdmitError, Battle, Fighter, Notice, ObjectHit, Refusal, Report, Setup};
use uo_proto::{
    CharId, EntityId, EntityInfo, ErrorCode, ObjectKey, ObjectState, Order, Pos, RegionId, Speech,
    Target,
};
use uo_world::{World, build_arena};

use super::feed::{Current, Feed, Scene};
use super::tick::TickOutput;
use super::walk::{Walk, ends_walk};
use super::{look, pin};
use crate::identity::NodeName;
use crate::peer::ToGateway;
use crate::peer::message::{FeedEvent, PublicEvent, Told};

/// A region under a lease. It touches nothing but itself, so that many can be stepped at once.
pub struct Region {
    pub(super) world: World,
    pub(super) id: RegionId,
    pub(super) epoch: u64,
    pub(super) tick: u64,
    pub(super) battle: Battle,
    pub(super) members: BTreeMap<CharId, Member>,
    pub(super) differences: BTreeMap<ObjectKey, ObjectState>,
    pub(super) feed: Feed,
    /// Kept for its buffers.
    pub(super) report: Report,
    /// What happened since the output was taken.
    pub(super) output: TickOutput,
    /// Its next tick panics, to show what then happens.
    #[cfg(feature = "planted-bugs")]
    pub(super) panics: bool,
}

/// What a region knows of a character in its battle, beside the fighter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) generation: u64,
    pub(super) ack: u64,
    pub(super) walk: Option<Walk>,
}

impl Region {
    /// Opens the battle of `id`: `objects` of its own and of its `neighbours` that differ from the generated content.
    pub fn open(
        world: &World,
        id: RegionId,
        epoch: u64,
        objects: Vec<ObjectState>,
        neighbours: &[ObjectState],
    ) -> Region {
        let content = world.content(id);
        let changed = objects.iter().chain(neighbours).copied();
        let battle = Battle::open(Setup {
            region: id,
            epoch,
            seed: battle_seed(world.seed(), id, epoch),
            arena: build_arena(world, id, changed),
            mobs: content.mobs.clone(),
            respawn: content.respawn,
        });
        let told = Told {
            since: epoch,
            count: 0,
        };
        Region::adopt(world, id, epoch, battle, objects, told)
    }

    /// Goes on with a battle that another node began, players withdrawn, and whose feed told of so much: a drain.
    pub fn adopt(
        world: &World,
        id: RegionId,
        epoch: u64,
        mut battle: Battle,
        objects: Vec<ObjectState>,
        told: Told,
    ) -> Region {
        battle.set_epoch(epoch);
        let mut feed = Feed::new(id, epoch, told);
        for entity in battle.entities() {
            feed.touch(entity);
        }
        Region {
            world: world.clone(),
            id,
            epoch,
            tick: 0,
            battle,
            members: BTreeMap::new(),
            differences: objects.into_iter().map(|o| (o.key, o)).collect(),
            feed,
            report: Report::default(),
            output: TickOutput::default(),
            #[cfg(feature = "planted-bugs")]
            panics: false,
        }
    }

    /// Its battle for another node to go on with, and who is in it under which generations: they follow by themselves.
    pub fn copy(&self) -> (Battle, Vec<(CharId, u64)>) {
        let members = self.members.iter();
        let players = members.map(|(&char_id, member)| (char_id, member.generation));
        (self.battle.without_players(), players.collect())
    }

    /// Which.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// The epoch of the lease it runs under.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Ticks since it was opened.
    pub fn tick_count(&self) -> u64 {
        self.tick
    }

    /// Its battle.
    pub fn battle(&self) -> &Battle {
        &self.battle
    }

    /// Its own objects that were ever changed, in the order of their keys. One that is again as it was generated stays
    /// among them: whoever saw the change has to see it undone.
    pub fn differences(&self) -> Vec<ObjectState> {
        self.differences.values().copied().collect()
    }

    /// Takes a character in under `generation`, with everything it was doing. `walk` is the goal and the order's number
    /// of a walk across regions.
    pub fn admit(
        &mut self,
        fighter: Fighter,
        generation: u64,
        ack: u64,
        walk: Option<(Pos, u64)>,
    ) -> Result<(), AdmitError> {
        let id = fighter.id;
        self.battle.admit(fighter)?;
        let char_id = CharId(id.0);
        self.members.insert(
            char_id,
            Member {
                generation,
                ack,
                walk: None,
            },
        );
        self.feed.touch(id);
        if let Some((goal, seq)) = walk {
            self.continue_walk(char_id, Walk::new(goal, seq));
        }
        Ok(())
    }

    /// Takes a character out, with everything it was doing, and its walk across regions.
    pub fn withdraw(&mut self, char_id: CharId) -> Option<(Fighter, Option<(Pos, u64)>)> {
        let member = self.members.remove(&char_id)?;
        let fighter = self.battle.withdraw(char_id.entity())?;
        self.feed.touch(char_id.entity());
        Some((fighter, member.walk.map(|walk| (walk.goal, walk.seq))))
    }

    /// A copy of a character, for its checkpoint.
    pub fn fighter(&self, char_id: CharId) -> Option<Fighter> {
        self.battle.fighter(char_id.entity())
    }

    /// Whether a character is in the battle.
    pub fn contains(&self, char_id: CharId) -> bool {
        self.members.contains_key(&char_id)
    }

    /// The characters in the battle, in the order of ids.
    pub fn characters(&self) -> impl Iterator<Item = CharId> {
        self.members.keys().copied()
    }

    /// Where a character stands.
    pub fn pos(&self, char_id: CharId) -> Option<Pos> {
        self.battle.pos(char_id.entity())
    }

    /// The walk across regions of a character: goal and order number.
    pub fn walk(&self, char_id: CharId) -> Option<(Pos, u64)> {
        let walk = self.members.get(&char_id)?.walk?;
        Some((walk.goal, walk.seq))
    }

    /// The owner applied the orders of a character up to `seq`: its gateway shows that with the next frame. A new
    /// session counts from one again.
    pub fn set_ack(&mut self, char_id: CharId, seq: u64) {
        if let Some(member) = self.members.get_mut(&char_id)
            && member.ack != seq
        {
            member.ack = seq;
            self.feed.touch(char_id.entity());
        }
    }

    /// The character is owned under a new generation.
    pub fn set_generation(&mut self, char_id: CharId, generation: u64) {
        if let Some(member) = self.members.get_mut(&char_id) {
            member.generation = generation;
            self.feed.touch(char_id.entity());
        }
    }

    /// Takes an order of a character. A `walk_to` may lead anywhere on the map. That an order was taken does not say
    /// that it will succeed; see [`Notice`].
    pub fn order(&mut self, char_id: CharId, seq: u64, order: &Order) -> Result<(), Refusal> {
        if let Order::WalkTo { x, y } = *order {
            return self.order_walk(char_id, seq, Pos::new(x, y));
        }
        self.battle.order(char_id.entity(), seq, order)?;
        if ends_walk(order) {
            self.end_walk(char_id);
        }
        Ok(())
    }

    fn order_walk(&mut self, char_id: CharId, seq: u64, goal: Pos) -> Result<(), Refusal> {
        if !self.world.contains(goal) {
            return Err(Refusal::new(
                ErrorCode::OutOfReach,
                "that lies beyond the edge of the world",
            ));
        }
        let walk = Walk::new(goal, seq);
        if self.walk_on(char_id, walk)? {
            return Ok(());
        }
        // It does not do what it did before either: it was told to go elsewhere.
        self.battle.order(char_id.entity(), seq, &Order::Stop)?;
        self.walk_failed(char_id, walk);
        Ok(())
    }

    /// Goes on with a walk, or ends it with a notice if there is no way.
    pub(super) fn continue_walk(&mut self, char_id: CharId, walk: Walk) {
        if !self.walk_on(char_id, walk).unwrap_or(false) {
            self.walk_failed(char_id, walk);
        }
    }

    /// Plans a leg and gives it to the battle. Says whether there is a way.
    fn walk_on(&mut self, char_id: CharId, mut walk: Walk) -> Result<bool, Refusal> {
        let id = char_id.entity();
        let Some(pos) = self.battle.pos(id) else {
            return Err(Refusal::new(ErrorCode::NotNow, "nobody of that id is here"));
        };
        let Some(leg) = walk.plan(&self.world, self.battle.arena(), pos) else {
            return Ok(false);
        };
        let order = Order::WalkTo { x: leg.x, y: leg.y };
        self.battle.order(id, walk.seq, &order)?;
        if let Some(member) = self.members.get_mut(&char_id) {
            member.walk = Some(walk);
        }
        Ok(true)
    }

    fn walk_failed(&mut self, char_id: CharId, walk: Walk) {
        self.end_walk(char_id);
        let id = char_id.entity();
        if let Some(pos) = self.battle.pos(id) {
            let seq = walk.seq;
            self.output
                .notices
                .push(Notice::WalkFailed { id, pos, seq });
        }
    }

    pub(super) fn end_walk(&mut self, char_id: CharId) {
        if let Some(member) = self.members.get_mut(&char_id) {
            member.walk = None;
        }
    }

    /// Lets a character say something to everyone around, with the next frame.
    pub fn say(&mut self, char_id: CharId, text: String) {
        if let Some(event) = self.speech(char_id, text) {
            self.feed.event(event);
        }
    }

    /// The same at once: frames for its subscribers, to be sent now.
    pub fn say_at_once(&mut self, char_id: CharId, text: String) -> Vec<(NodeName, ToGateway)> {
        self.speech(char_id, text)
            .map(|event| self.feed.say(event))
            .unwrap_or_default()
    }

    fn speech(&self, char_id: CharId, text: String) -> Option<FeedEvent> {
        let id = char_id.entity();
        let name = self.battle.info(id)?.name;
        Some(FeedEvent {
            at: self.battle.pos(id)?,
            also: None,
            what: PublicEvent::Said(Speech {
                char_id,
                name,
                text,
            }),
        })
    }

    /// What one sees who looks at `target`, in a sentence; none if it is not to be seen from here.
    pub fn look(&self, target: Target) -> Option<String> {
        look::sentence(&self.world, &self.battle, target)
    }

    /// The region whose battle the character has to join before it can carry out `order`; none: this one. `hint` is the
    /// region whose feed shows the target, as the gateway sees it.
    pub fn pin_for(
        &self,
        world: &World,
        char_id: CharId,
        order: &Order,
        hint: Option<RegionId>,
    ) -> Option<RegionId> {
        pin::region_for(world, &self.battle, char_id.entity(), order, hint)
    }

    /// Shows the region to `node`, beginning with its full state in the next output.
    pub fn subscribe(&mut self, node: NodeName) {
        self.feed.subscribe(node);
    }

    /// Shows it no longer.
    pub fn unsubscribe(&mut self, node: &NodeName) {
        self.feed.unsubscribe(node);
    }

    /// Who is shown the region.
    pub fn subscribers(&self) -> impl Iterator<Item = &NodeName> {
        self.feed.subscribers()
    }

    /// A neighbour's battle did harm to objects of this region.
    pub fn hit(&mut self, hits: &[ObjectHit]) {
        for hit in hits.iter().filter(|hit| hit.key.region() == self.id) {
            self.battle.hit_object(hit);
        }
    }

    /// Objects of neighbours changed.
    pub fn place_foreign(&mut self, objects: &[ObjectState]) {
        for object in objects.iter().filter(|o| o.key.region() != self.id) {
            self.battle.place_object(*object);
        }
    }

    /// Everything of `neighbour` that differs from its generated content, told anew: what is not among `objects` is as it
    /// was generated.
    pub fn replace_foreign(&mut self, neighbour: RegionId, objects: &[ObjectState]) {
        if neighbour == self.id {
            return;
        }
        let content = self.world.content(neighbour);
        let made: Vec<ObjectState> = self
            .battle
            .arena()
            .objects()
            .filter(|object| object.key.region() == neighbour && object.key.is_runtime())
            .copied()
            .collect();
        for object in made {
            self.battle.place_object(ObjectState {
                gone: true,
                ..object
            });
        }
        for object in &content.objects {
            let differs = self.battle.arena().object(object.key) != Some(object);
            if differs && self.battle.arena().contains(object.pos()) {
                self.battle.place_object(*object);
            }
        }
        self.place_foreign(objects);
    }
}

/// What a region's feed shows, borrowed from it.
pub(super) struct Shown<'a> {
    pub(super) battle: &'a Battle,
    pub(super) members: &'a BTreeMap<CharId, Member>,
    pub(super) differences: &'a BTreeMap<ObjectKey, ObjectState>,
    pub(super) epoch: u64,
}

impl Scene for Shown<'_> {
    fn current(&self, id: EntityId) -> Option<Current> {
        let state = self.battle.state(id)?;
        let member = id
            .character()
            .and_then(|char_id| self.members.get(&char_id));
        Some(Current {
            number: member.map_or(self.epoch, |member| member.generation),
            ack: member.map_or(0, |member| member.ack),
            state,
        })
    }

    fn info(&self, id: EntityId) -> Option<EntityInfo> {
        self.battle.info(id)
    }

    fn objects(&self) -> Vec<ObjectState> {
        self.differences.values().copied().collect()
    }
}

/// A battle never repeats under another epoch, and neighbours do not fight alike.
fn battle_seed(world_seed: u64, region: RegionId, epoch: u64) -> u64 {
    let mut seed = world_seed;
    for part in [u64::from(region.0), epoch] {
        seed = (seed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        seed ^= seed >> 32;
    }
    seed
}
