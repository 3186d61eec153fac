//! A small world for tests of bots.

use uo_proto::{
    CharId, Class, Delta, Dir, EntityEnter, EntityId, EntityInfo, EntityKind, EntityState, Limits,
    MapInfo, Order, Pos, ServerMsg, Snapshot, Welcome,
};

use crate::bot::{Bot, Cause, Hands};
use crate::{Event, LocalWorld};

pub const ME: EntityId = EntityId(1 << 50);

/// A bot in a world that a test makes up.
pub struct Scene<B> {
    pub bot: B,
    pub world: LocalWorld,
    pub now_ms: u64,
    pub hands: Hands,
    tick: u64,
}

impl<B: Bot> Scene<B> {
    /// The bot's character of this class enters the world at `pos`.
    pub fn new(bot: B, class: Class, pos: Pos) -> Scene<B> {
        let mut scene = Scene {
            bot,
            world: LocalWorld::default(),
            now_ms: 0,
            hands: Hands::default(),
            tick: 0,
        };
        scene.event(Event::Welcomed {
            welcome: Box::new(welcome(pos)),
            resumed: false,
        });
        scene.tell(ServerMsg::Snapshot(Snapshot {
            entities: vec![entity(ME, class, pos)],
            objects: Vec::new(),
        }));
        scene
    }

    /// Something happens.
    pub fn event(&mut self, event: Event) {
        self.world.apply(&event).expect("the test's view fits");
        let cause = Cause::Event(&event);
        self.bot
            .act(self.now_ms, &self.world, cause, &mut self.hands);
    }

    /// The server says something.
    pub fn tell(&mut self, message: ServerMsg) {
        self.event(Event::Message(message));
    }

    /// Others come into view.
    pub fn enter(&mut self, entities: impl IntoIterator<Item = EntityEnter>) {
        self.tick += 1;
        self.tell(ServerMsg::Delta(Delta {
            tick: self.tick,
            enter: entities.into_iter().collect(),
            ..Delta::default()
        }));
    }

    /// Somebody in view changes.
    pub fn change(&mut self, id: EntityId, change: impl FnOnce(&mut EntityState)) {
        let mut state = self.world.entity(id).expect("it is in view").state;
        change(&mut state);
        self.tick += 1;
        self.tell(ServerMsg::Delta(Delta {
            tick: self.tick,
            update: vec![state],
            ..Delta::default()
        }));
    }

    /// Time goes on to the bot's next waking; what it orders then.
    pub fn wake(&mut self) -> Vec<Order> {
        let wake_ms = self.hands.wake_ms().expect("it asked to be woken");
        self.now_ms = self.now_ms.max(wake_ms);
        self.bot
            .act(self.now_ms, &self.world, Cause::Time, &mut self.hands);
        self.hands.take_orders()
    }
}

/// Someone of this class, unhurt and idle; bandits are mobs.
pub fn entity(id: EntityId, class: Class, pos: Pos) -> EntityEnter {
    let kind = match class {
        Class::Warrior | Class::Archer | Class::Mage => EntityKind::Player,
        _ => EntityKind::Mob,
    };
    EntityEnter {
        info: EntityInfo {
            kind,
            class,
            name: "x".into(),
            look: 0,
            hits_max: 200,
        },
        state: EntityState {
            id,
            x: pos.x,
            y: pos.y,
            heading: Dir::S,
            hits: 200,
            action: Default::default(),
            target: None,
        },
    }
}

pub fn welcome(pos: Pos) -> Welcome {
    Welcome {
        token: "t".into(),
        char_id: CharId(ME.0),
        gateways: Vec::new(),
        last_order: 0,
        map: MapInfo {
            seed: 11,
            size: 256,
        },
        tick_hz: 20,
        region_size: 64,
        aoi_radius: 18,
        x: pos.x,
        y: pos.y,
        spells: Vec::new(),
        limits: Limits {
            messages_per_s: 40,
            messages_burst: 120,
            message_bytes: 65_536,
            say_bytes: 256,
        },
    }
}
