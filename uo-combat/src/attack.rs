//! Attacks: come near, strike or shoot, again.

use uo_proto::{
    Action, CombatEvent, Dir, Edge, EntityId, ErrorCode, ItemKind, ObjectState, Pos, Target,
};

use crate::battle::Battle;
use crate::fighter::{Act, Attack, Fighter};
use crate::path::Goal;
use crate::table::balance::ABSENT_MS;
use crate::table::{Weapon, object_row, weapon};
use crate::tempo::slowed;
use crate::walk::Stride;
use crate::{Notice, Refusal, STEP_MS};

/// Tiles that a search for a way to a target looks at.
const APPROACH_BUDGET: usize = 600;
/// When no tile beside the target is to be had, a fighter comes this near and waits.
const CROWD_RADIUS: u16 = 3;

/// A few tiles, without an allocation.
#[derive(Default)]
pub(crate) struct Tiles {
    tiles: [Pos; 8],
    count: usize,
}

impl Tiles {
    fn push(&mut self, pos: Pos) {
        self.tiles[self.count] = pos;
        self.count += 1;
    }

    pub(crate) fn as_slice(&self) -> &[Pos] {
        &self.tiles[..self.count]
    }
}

/// What an attack is aimed at, as it stands now.
#[derive(Clone, Copy)]
enum Mark {
    Entity { pos: Pos },
    Object { object: ObjectState },
}

impl Battle {
    /// Goes on with the attack, or strikes what comes into reach of one who holds.
    pub(crate) fn fight(&mut self, at: usize) -> bool {
        let Some(attack) = self.actors[at].fighter.intent.attack else {
            return self.actors[at].fighter.intent.hold && self.strike_near(at);
        };
        let Some(mark) = self.mark(at, attack) else {
            return false;
        };
        let weapon = self.weapon_of(at);
        if self.can_strike(at, mark, weapon) {
            self.begin_strike(at, attack.target);
            return true;
        }
        if self.actors[at].fighter.intent.hold {
            return self.strike_near(at);
        }
        match self.approach(at, mark, weapon) {
            Stride::Began => true,
            // Whoever cannot come near takes who stands near.
            Stride::Crowded | Stride::Waiting => {
                !self.actors[at].is_player() && self.strike_near(at)
            }
            Stride::Failed => {
                let refusal = Refusal::new(ErrorCode::OutOfReach, "no way leads to the target");
                self.give_up(at, refusal);
                false
            }
        }
    }

    /// Finds the target of an attack. One that is dead or broken ends the attack; one that is not there does so after a
    /// while.
    fn mark(&mut self, at: usize, attack: Attack) -> Option<Mark> {
        let mark = match attack.target {
            Target::Entity(id) => match self.find(id) {
                Ok(target) if self.actors[target].fighter.is_dead() => None,
                Ok(target) => Some(Mark::Entity {
                    pos: self.actors[target].fighter.pos,
                }),
                Err(_) => {
                    self.miss_target(at, attack);
                    return None;
                }
            },
            Target::Object(key) => {
                let object = self.arena.object(key).copied();
                object
                    .filter(|object| object_row(object.kind).strength > 0)
                    .map(|object| Mark::Object { object })
            }
            Target::Tile(_) => None,
        };
        let kept = &mut self.fighter_at(at).intent.attack;
        match (mark, kept) {
            (Some(_), Some(attack)) => attack.absent_ms = 0,
            (_, kept) => *kept = None,
        }
        mark
    }

    fn miss_target(&mut self, at: usize, mut attack: Attack) {
        attack.absent_ms += STEP_MS;
        if attack.absent_ms < ABSENT_MS {
            self.fighter_at(at).intent.attack = Some(attack);
        } else {
            let refusal = Refusal::new(ErrorCode::NoTarget, "the target is no longer here");
            self.give_up(at, refusal);
        }
    }

    /// Drops the attack and tells the player why.
    fn give_up(&mut self, at: usize, refusal: Refusal) {
        let fighter = self.fighter_at(at);
        if let Some(attack) = fighter.intent.attack.take() {
            let (id, seq) = (fighter.id, attack.seq);
            self.tell(at, Notice::Refused { id, seq, refusal });
        }
        self.lose_heart(at);
    }

    fn can_strike(&self, at: usize, mark: Mark, weapon: Weapon) -> bool {
        let from = self.actors[at].fighter.pos;
        match mark {
            Mark::Entity { pos } => self.in_reach(from, pos, weapon),
            Mark::Object { object } if object.edge.is_none() => {
                self.in_reach(from, object.pos(), weapon)
            }
            Mark::Object { object } if weapon.ranged => {
                self.in_reach(from, near_side(&object, from), weapon)
            }
            Mark::Object { object } => sides(&object).contains(&Some(from)),
        }
    }

    /// Whether a weapon at `from` reaches `to`.
    pub(crate) fn in_reach(&self, from: Pos, to: Pos, weapon: Weapon) -> bool {
        from.distance(to) <= weapon.reach
            && if weapon.ranged {
                self.arena.line_of_sight(from, to).sees()
            } else {
                self.arena.touches(from, to)
            }
    }

    fn approach(&mut self, at: usize, mark: Mark, weapon: Weapon) -> Stride {
        let from = self.actors[at].fighter.pos;
        let center = match mark {
            Mark::Entity { pos } => pos,
            Mark::Object { object } => near_side(&object, from),
        };
        let distance = from.distance(center);
        // In reach without a line of sight, one comes nearer tile by tile until there is one.
        let near = if distance > weapon.reach {
            weapon.reach
        } else {
            distance.saturating_sub(1)
        };
        if near > 1 {
            return self.follow(
                at,
                (center, near),
                Goal::Within(center, near),
                APPROACH_BUDGET,
            );
        }
        let tiles = self.strike_tiles(mark);
        let goal = Goal::Tiles(tiles.as_slice());
        let stride = self.follow(at, (center, 1), goal, APPROACH_BUDGET);
        if stride == Stride::Crowded && distance > CROWD_RADIUS {
            let goal = Goal::Within(center, CROWD_RADIUS);
            return self.seek(at, (center, CROWD_RADIUS), goal, APPROACH_BUDGET);
        }
        stride
    }

    /// Where one can stand to strike with a short weapon.
    fn strike_tiles(&self, mark: Mark) -> Tiles {
        let center = match mark {
            Mark::Entity { pos } => pos,
            Mark::Object { object } if object.edge.is_none() => object.pos(),
            Mark::Object { object } => {
                let mut tiles = Tiles::default();
                let sides = sides(&object).into_iter().flatten();
                sides
                    .filter(|&pos| self.arena.passable(pos))
                    .for_each(|pos| tiles.push(pos));
                return tiles;
            }
        };
        self.tiles_around(center)
    }

    /// The tiles around `center` from which an arm reaches it.
    pub(crate) fn tiles_around(&self, center: Pos) -> Tiles {
        let mut tiles = Tiles::default();
        for pos in Dir::ALL.into_iter().filter_map(|dir| center.step(dir)) {
            if self.arena.passable(pos) && self.arena.touches(pos, center) {
                tiles.push(pos);
            }
        }
        tiles
    }

    /// Strikes the nearest enemy in reach: one who fought this fighter lately, a mob, or, for a mob, any character.
    fn strike_near(&mut self, at: usize) -> bool {
        let weapon = self.weapon_of(at);
        let from = self.actors[at].fighter.pos;
        let near = (0..self.actors.len())
            .filter(|&other| other != at && self.is_enemy(at, other))
            .map(|other| (from.distance(self.actors[other].fighter.pos), other))
            .filter(|&(distance, _)| distance <= weapon.reach)
            .filter(|&(_, other)| self.in_reach(from, self.actors[other].fighter.pos, weapon))
            .min();
        let Some((_, other)) = near else {
            return false;
        };
        self.begin_strike(at, Target::Entity(self.actors[other].fighter.id));
        true
    }

    /// Whether `at` strikes `other` of its own accord.
    pub(crate) fn is_enemy(&self, at: usize, other: usize) -> bool {
        let (one, two) = (&self.actors[at], &self.actors[other]);
        if two.fighter.is_dead() {
            return false;
        }
        match (one.is_player(), two.is_player()) {
            (false, false) => false,
            (true, true) => one.fighter.remembers(two.fighter.id),
            _ => true,
        }
    }

    fn begin_strike(&mut self, at: usize, target: Target) {
        let to = self.target_pos(target);
        let fighter = self.fighter_at(at);
        let held = fighter.inventory.equipment.weapon;
        let from = fighter.pos;
        let who = fighter.id;
        fighter.guard = false;
        fighter.heading = to.and_then(|to| from.dir_to(to)).unwrap_or(fighter.heading);
        fighter.act = Act::Windup {
            target,
            weapon: held,
        };
        fighter.act_ms = slowed(fighter, weapon(held).windup_ms);
        if matches!(target, Target::Entity(_)) {
            self.enter_fight(at);
        }
        if !weapon(held).ranged {
            let event = CombatEvent::Swung {
                who,
                target,
                weapon: held,
            };
            self.happen(from, to, event);
        }
    }

    /// The blow lands, or the arrow does.
    pub(crate) fn land_strike(&mut self, at: usize, target: Target, held: Option<ItemKind>) {
        let row = weapon(held);
        let fighter = self.fighter_at(at);
        let (who, from) = (fighter.id, fighter.pos);
        let shown = fighter.action();
        fighter.act = Act::Recover { shown };
        fighter.act_ms = slowed(fighter, row.recover_ms);
        let to = self.target_pos(target);
        if row.ranged {
            let event = CombatEvent::Shot {
                who,
                target,
                weapon: held,
            };
            self.happen(from, to, event);
        }
        match target {
            Target::Entity(id) => {
                if let Ok(other) = self.find(id)
                    && !self.actors[other].fighter.is_dead()
                {
                    self.strike_entity(at, other, row);
                }
            }
            Target::Object(key) => {
                let damage = self.weapon_damage(at, row) * row.object_percent / 100;
                self.damage_object(key, damage.max(1), Some(who), false);
            }
            Target::Tile(_) => {}
        }
    }

    /// What an entity holds, as a weapon.
    pub(crate) fn weapon_of(&self, at: usize) -> Weapon {
        weapon(self.actors[at].fighter.inventory.equipment.weapon)
    }

    /// Where a target is.
    pub(crate) fn target_pos(&self, target: Target) -> Option<Pos> {
        match target {
            Target::Entity(id) => self.pos(id),
            Target::Object(key) => self.arena.object(key).map(ObjectState::pos),
            Target::Tile(pos) => Some(pos),
        }
    }
}

impl Fighter {
    /// Whether `id` fought it lately.
    pub(crate) fn remembers(&self, id: EntityId) -> bool {
        self.foes.iter().any(|foe| foe.id == id)
    }

    /// What an action shows while its fighter recovers from it.
    pub(crate) fn recover(&mut self, shown: Action, ms: u32) {
        self.act = Act::Recover { shown };
        self.act_ms = slowed(self, ms);
    }
}

/// The tiles on both sides of an edge object.
pub(crate) fn sides(object: &ObjectState) -> [Option<Pos>; 2] {
    let pos = object.pos();
    let other = match object.edge {
        Some(Edge::North) => pos.y.checked_sub(1).map(|y| Pos::new(pos.x, y)),
        Some(Edge::West) => pos.x.checked_sub(1).map(|x| Pos::new(x, pos.y)),
        None => None,
    };
    [Some(pos), other]
}

/// The tile of an object that is nearer to `from`.
pub(crate) fn near_side(object: &ObjectState, from: Pos) -> Pos {
    let sides = sides(object).into_iter().flatten();
    sides
        .min_by_key(|side| side.distance(from))
        .unwrap_or(object.pos())
}
