use uo_proto::{
    CharId, Class, Delta, Dir, EntityEnter, EntityInfo, EntityKind, Level, Limits, MapInfo,
    ServerStatus, Snapshot, Target, Welcome,
};

use super::*;

const ME: CharId = CharId(1 << 50);
const FOE: EntityId = EntityId(7);

/// A player in a world that the test makes up.
struct Scene {
    senses: Senses,
    world: LocalWorld,
    now_us: u64,
    tick: u64,
    felt: Felt,
}

fn state(id: EntityId, x: u16, action: Action) -> EntityState {
    EntityState {
        id,
        x,
        y: 10,
        heading: Dir::E,
        hits: 100,
        action,
        target: None,
    }
}

fn enter(state: EntityState) -> EntityEnter {
    let info = EntityInfo {
        kind: EntityKind::Player,
        class: Class::Mage,
        name: "x".into(),
        look: 0,
        hits_max: 100,
    };
    EntityEnter { info, state }
}

impl Scene {
    fn at(x: u16) -> Scene {
        let mut scene = Scene {
            senses: Senses::default(),
            world: LocalWorld::default(),
            now_us: 1_000_000,
            tick: 0,
            felt: Felt::default(),
        };
        scene.welcome(false);
        let entities = [ME.entity(), FOE].map(|id| enter(state(id, x, Action::Idle)));
        scene.tell(ServerMsg::Snapshot(Snapshot {
            entities: entities.into(),
            objects: Vec::new(),
        }));
        scene
    }

    fn event(&mut self, event: Event) {
        self.world.apply(&event).expect("the view fits");
        let felt = self.senses.event(self.now_us, &event, &self.world);
        self.felt.gaps.extend(felt.gaps);
        self.felt.resume_us = felt.resume_us.or(self.felt.resume_us);
        self.felt.fights += felt.fights;
        self.felt.fights_reset += felt.fights_reset;
    }

    fn tell(&mut self, message: ServerMsg) {
        self.event(Event::Message(message));
    }

    fn welcome(&mut self, resumed: bool) {
        let welcome = Box::new(Welcome {
            token: "t".into(),
            char_id: ME,
            gateways: Vec::new(),
            last_order: 0,
            map: MapInfo { seed: 1, size: 256 },
            tick_hz: 20,
            region_size: 64,
            aoi_radius: 18,
            x: 0,
            y: 0,
            spells: Vec::new(),
            limits: Limits {
                messages_per_s: 1,
                messages_burst: 1,
                message_bytes: 1,
                say_bytes: 1,
            },
        });
        self.event(Event::Welcomed { welcome, resumed });
        self.tick = 0;
    }

    fn status(&mut self, world: WorldStatus) {
        self.tell(ServerMsg::ServerStatus(ServerStatus {
            level: Level::Normal,
            accepting: true,
            world,
        }));
    }

    /// So much later, the own character is shown like this.
    fn after(&mut self, ms: u64, change: impl FnOnce(&mut EntityState)) {
        self.now_us += ms * 1_000;
        self.tick += 1;
        let mut me = self.world.me().expect("it is in view").state;
        change(&mut me);
        self.tell(ServerMsg::Delta(Delta {
            tick: self.tick,
            update: vec![me],
            ..Delta::default()
        }));
    }

    fn run(&mut self, ms: u64) {
        self.after(ms, |me| {
            me.x += 1;
            me.action = Action::Run;
        });
    }
}

// Red when the time that a step takes is not taken off: every step would be a gap.
#[test]
fn steps_in_time_are_no_gaps_and_a_late_one_is() {
    let mut scene = Scene::at(10);
    for _ in 0..5 {
        scene.run(250);
    }
    assert_eq!(scene.felt.gaps, []);
    scene.run(430);
    assert_eq!(scene.felt.gaps, [(Cause::Other, 230_000)]);
    // A wound in the middle of a step is not the end of it, and slows what follows.
    scene.after(100, |me| me.hits = 90);
    scene.run(300);
    assert_eq!(scene.felt.gaps.len(), 1);
}

// Red when every region that is entered is a crossing: it happens two tiles in.
#[test]
fn a_crossing_is_the_longest_of_the_steps_behind_the_border() {
    let mut scene = Scene::at(60);
    for _ in 61..=64 {
        scene.run(250);
    }
    assert_eq!(scene.felt.gaps, []);
    scene.run(250);
    scene.run(320);
    scene.run(250);
    assert_eq!(scene.felt.gaps, [], "the next may still be it");
    scene.run(250);
    assert_eq!(scene.felt.gaps, [(Cause::Crossing, 120_000)]);
    scene.run(250);
    assert_eq!(scene.felt.gaps.len(), 1);
}

#[test]
fn a_crossing_that_ends_in_standing_is_told_at_once() {
    let mut scene = Scene::at(62);
    for _ in 63..=65 {
        scene.run(250);
    }
    scene.after(250, |me| me.action = Action::Idle);
    assert_eq!(scene.felt.gaps, [(Cause::Crossing, 50_000)]);
}

// Red when the first delta after the loss ends it: those of other sims come all the time.
#[test]
fn what_the_server_says_of_the_world_is_believed() {
    for (world, cause) in [
        (WorldStatus::Moving, Cause::Crash),
        (WorldStatus::Frozen, Cause::Store),
    ] {
        let mut scene = Scene::at(10);
        scene.run(250);
        scene.after(100, |me| me.heading = Dir::W);
        scene.now_us += 2_400_000;
        scene.status(world);
        scene.after(500, |me| me.heading = Dir::E);
        assert_eq!(scene.felt.gaps, []);
        scene.now_us += 500_000;
        scene.status(WorldStatus::Ok);
        scene.after(50, |me| me.action = Action::Idle);
        assert_eq!(scene.felt.gaps, [(cause, 3_450_000)]);
        assert_eq!(scene.felt.resume_us, None);
    }
}

#[test]
fn a_resume_runs_from_the_loss_to_the_first_state() {
    let mut scene = Scene::at(10);
    scene.after(50, |me| me.heading = Dir::W);
    scene.now_us += 40_000;
    for retry_ms in [1, 2] {
        let code = None;
        scene.event(Event::Disconnected { code, retry_ms });
        scene.now_us += 150_000;
    }
    scene.welcome(true);
    scene.now_us += 20_000;
    let entities = vec![enter(state(ME.entity(), 10, Action::Idle))];
    scene.tell(ServerMsg::Snapshot(Snapshot {
        entities,
        objects: Vec::new(),
    }));
    assert_eq!(scene.felt.resume_us, Some(320_000));
    assert_eq!(scene.felt.gaps, [(Cause::Gateway, 360_000)]);
}

// Red when the time in which nothing happened around somebody who stands about counts.
#[test]
fn who_waits_for_nothing_misses_nothing_until_it_is_told() {
    let mut scene = Scene::at(10);
    scene.after(50, |me| me.heading = Dir::W);
    scene.now_us += 20_000_000;
    scene.status(WorldStatus::Moving);
    scene.now_us += 500_000;
    scene.status(WorldStatus::Ok);
    scene.after(50, |me| me.heading = Dir::E);
    assert_eq!(scene.felt.gaps, [(Cause::Crash, 550_000)]);
}

fn fight(scene: &mut Scene, target: Option<EntityId>) {
    scene.after(2_000, |me| me.target = target);
}

// Red when orders, refusals or deaths are no reasons.
#[test]
fn a_fight_is_reset_if_nothing_else_explains_its_end() {
    let mut scene = Scene::at(10);
    let attack = Order::Attack {
        target: Target::Entity(FOE),
    };
    scene.senses.sent(scene.now_us, 1, &attack);
    fight(&mut scene, Some(FOE));
    scene.senses.steering.clear();
    fight(&mut scene, None);
    scene.after(900, |me| me.heading = Dir::W);
    assert_eq!((scene.felt.fights, scene.felt.fights_reset), (1, 0));
    scene.after(200, |me| me.heading = Dir::E);
    assert_eq!(scene.felt.fights_reset, 1);

    // The player ended it.
    fight(&mut scene, Some(FOE));
    scene.now_us += 1_500_000;
    scene.senses.sent(scene.now_us, 2, &Order::Stop);
    scene.after(100, |me| me.target = None);
    scene.after(1_200, |me| me.heading = Dir::W);
    assert_eq!(scene.felt.fights_reset, 1);

    // The battle did, and says so.
    scene.senses.steering.clear();
    fight(&mut scene, Some(FOE));
    fight(&mut scene, None);
    scene.tell(ServerMsg::Error(uo_proto::ErrorMsg {
        code: uo_proto::ErrorCode::OutOfReach,
        message: String::new(),
        seq: Some(2),
        private: Some(1),
    }));
    scene.after(1_200, |me| me.heading = Dir::E);
    assert_eq!(scene.felt.fights_reset, 1);

    // It says so before it shows it: what is for one player alone does not wait for the next frame.
    fight(&mut scene, Some(FOE));
    scene.now_us += 2_000_000;
    scene.tell(ServerMsg::Error(uo_proto::ErrorMsg {
        code: uo_proto::ErrorCode::NoSight,
        message: String::new(),
        seq: Some(2),
        private: Some(2),
    }));
    scene.after(20, |me| me.target = None);
    scene.after(1_200, |me| me.heading = Dir::W);
    assert_eq!(scene.felt.fights_reset, 1);

    // The other one died.
    fight(&mut scene, Some(FOE));
    fight(&mut scene, None);
    scene.tick += 1;
    let mut dead = state(FOE, 10, Action::Dead);
    dead.hits = 0;
    scene.tell(ServerMsg::Delta(Delta {
        tick: scene.tick,
        update: vec![dead],
        ..Delta::default()
    }));
    scene.after(1_200, |me| me.heading = Dir::W);
    assert_eq!(scene.felt.fights_reset, 1);
}
