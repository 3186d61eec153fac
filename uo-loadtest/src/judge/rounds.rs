//! Nobody is with two nodes, and nobody is with none, as rounds of looks at every node show.
//!
//! The looks of a round are not of one moment: a handoff between two of them shows its character, or its region, twice or
//! not at all. What is seen twice counts when two rounds in a row show it; once, it is counted as transient. Who is with
//! nobody may be on the way, and has time.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{CharId, RegionId};

use super::Violation;
use crate::node::{Character, Look};

/// How long a character of somebody who plays may be in no battle: a failover, and its claim at a busy store.
const LIMBO_MS: u64 = 15_000;

/// Something that two nodes have, seen in one round.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Twice {
    Region(RegionId, String, String),
    Character(CharId, String, String),
    /// Played under an older generation than the newest.
    Older(CharId, u64, u64),
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rounds {
    before: BTreeSet<Twice>,
    newest: BTreeMap<CharId, u64>,
    /// When each character that is played was seen in a battle last, or was first expected to be.
    seen_ms: BTreeMap<CharId, u64>,
    /// Characters whose limbo was told.
    told: BTreeSet<CharId>,
    /// How many rounds there were in which any node answered.
    pub count: u64,
    /// What was seen twice in one round, and not in the next.
    pub transients: u64,
}

impl Rounds {
    /// Takes a round: what every node that answered showed, by its name, and who should be in a battle somewhere.
    pub fn judge(
        &mut self,
        at_ms: u64,
        looks: &BTreeMap<String, Look>,
        expected: &BTreeSet<CharId>,
    ) -> Vec<Violation> {
        self.count += u64::from(!looks.is_empty());
        let acting: Vec<(&String, &Look)> =
            looks.iter().filter(|(_, look)| !look.is_fenced).collect();
        let mut now = regions_twice(&acting);
        now.extend(self.characters_twice(&acting));
        let violations = now.intersection(&self.before).map(Violation::from);
        let mut violations: Vec<Violation> = violations.collect();
        let gone = self.before.difference(&now).count();
        self.transients += gone as u64;
        self.before = now;
        violations.extend(self.limbo(at_ms, &acting, expected));
        violations
    }

    fn characters_twice(&mut self, acting: &[(&String, &Look)]) -> BTreeSet<Twice> {
        let mut played: BTreeMap<CharId, (&String, &Character)> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for &(node, look) in acting {
            for character in look.characters.iter().filter(|one| one.is_playing()) {
                if let Some((other, _)) = played.insert(character.id, (node, character)) {
                    twice.insert(Twice::Character(character.id, other.clone(), node.clone()));
                }
            }
        }
        for (&id, (_, character)) in &played {
            let newest = self.newest.entry(id).or_default();
            if character.generation < *newest {
                twice.insert(Twice::Older(id, character.generation, *newest));
            }
            *newest = character.generation.max(*newest);
        }
        twice
    }

    fn limbo(
        &mut self,
        at_ms: u64,
        acting: &[(&String, &Look)],
        expected: &BTreeSet<CharId>,
    ) -> Vec<Violation> {
        // While nobody acts, the world stands still as a whole, and everybody is where they were.
        let stands_still = acting.iter().all(|(_, look)| look.regions.is_empty());
        let played: BTreeSet<CharId> = acting
            .iter()
            .flat_map(|(_, look)| &look.characters)
            .filter(|character| character.is_playing())
            .map(|character| character.id)
            .collect();
        self.seen_ms.retain(|id, _| expected.contains(id));
        let mut violations = Vec::new();
        for &id in expected {
            let seen_ms = self.seen_ms.entry(id).or_insert(at_ms);
            if stands_still || played.contains(&id) {
                *seen_ms = at_ms;
            }
            let for_ms = at_ms - *seen_ms;
            if for_ms > LIMBO_MS && self.told.insert(id) {
                violations.push(Violation::Limbo {
                    character: id,
                    for_ms,
                });
            }
        }
        violations
    }
}

fn regions_twice(acting: &[(&String, &Look)]) -> BTreeSet<Twice> {
    let mut served: BTreeMap<RegionId, &String> = BTreeMap::new();
    let mut twice = BTreeSet::new();
    for &(node, look) in acting {
        // One that is moved away does not tick, and is listed until everybody has left.
        for &region in look.regions.keys().filter(|id| !look.draining.contains(id)) {
            if let Some(other) = served.insert(region, node) {
                twice.insert(Twice::Region(region, other.clone(), node.clone()));
            }
        }
    }
    twice
}

impl From<&Twice> for Violation {
    fn from(twice: &Twice) -> Violation {
        match twice.clone() {
            Twice::Region(region, one, other) => Violation::RegionTwice { region, one, other },
            Twice::Character(character, one, other) => Violation::CharacterTwice {
                character,
                one,
                other,
            },
            Twice::Older(character, generation, newest) => Violation::GenerationWentBack {
                character,
                generation,
                newest,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::look::Held;

    fn look(regions: &[u32], players: &[(u64, u64)]) -> Look {
        let held = Held { epoch: 1, ticks: 1 };
        let character = |&(id, generation)| Character {
            id: CharId(id),
            name: format!("bot-{id}"),
            generation,
            phase: "playing".into(),
            session: 1,
            last_order: 0,
            saved: 0,
        };
        Look {
            regions: regions.iter().map(|&id| (RegionId(id), held)).collect(),
            characters: players.iter().map(character).collect(),
            ..Look::default()
        }
    }

    fn judge(rounds: &mut Rounds, at_ms: u64, looks: [Look; 2], expected: &[u64]) -> Vec<String> {
        let [one, other] = looks;
        let looks = [("a".to_owned(), one), ("b".to_owned(), other)].into();
        let expected = expected.iter().map(|&id| CharId(id)).collect();
        let violations = rounds.judge(at_ms, &looks, &expected);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_two_nodes_have_counts_in_the_second_round() {
        let mut rounds = Rounds::default();
        let both = || [look(&[7], &[(1, 3)]), look(&[7], &[(1, 4)])];
        let one = || [look(&[7], &[(1, 4)]), look(&[], &[])];
        assert!(judge(&mut rounds, 0, both(), &[1]).is_empty());
        assert!(judge(&mut rounds, 1_000, one(), &[1]).is_empty());
        assert_eq!(rounds.transients, 2);
        assert!(judge(&mut rounds, 2_000, both(), &[1]).is_empty());
        let wrong = judge(&mut rounds, 3_000, both(), &[1]);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].contains("region 7 is served by a and by b"));
        assert!(wrong[1].contains("in a battle of a and of b"));
    }

    #[test]
    fn one_that_is_moved_or_fenced_is_not_held_twice() {
        let mut rounds = Rounds::default();
        for at_ms in [0, 1_000] {
            let mut source = look(&[7], &[]);
            source.draining.insert(RegionId(7));
            let mut fenced = look(&[8], &[(1, 1)]);
            fenced.is_fenced = true;
            let looks = [source, look(&[7], &[])];
            assert!(judge(&mut rounds, at_ms, looks, &[]).is_empty());
            let looks = [fenced, look(&[8], &[(1, 2)])];
            assert!(judge(&mut rounds, at_ms, looks, &[]).is_empty());
        }
    }

    #[test]
    fn generations_only_grow() {
        let mut rounds = Rounds::default();
        judge(
            &mut rounds,
            0,
            [look(&[1], &[(1, 9)]), Look::default()],
            &[],
        );
        let old = || [Look::default(), look(&[1], &[(1, 8)])];
        assert!(judge(&mut rounds, 1_000, old(), &[]).is_empty());
        let wrong = judge(&mut rounds, 2_000, old(), &[]);
        assert!(wrong[0].contains("generation 8, after 9"), "{wrong:?}");
    }

    #[test]
    fn who_is_nowhere_for_long_is_in_limbo_and_told_once() {
        let mut rounds = Rounds::default();
        let here = || [look(&[1], &[(1, 1)]), Look::default()];
        let nowhere = || [look(&[1], &[]), Look::default()];
        assert!(judge(&mut rounds, 0, here(), &[1]).is_empty());
        assert!(judge(&mut rounds, LIMBO_MS, nowhere(), &[1]).is_empty());
        assert_eq!(judge(&mut rounds, LIMBO_MS + 1, nowhere(), &[1]).len(), 1);
        assert!(judge(&mut rounds, LIMBO_MS + 2, nowhere(), &[1]).is_empty());
        // A world that stands still, and one who plays no more.
        let frozen = || [Look::default(), Look::default()];
        assert!(judge(&mut rounds, 100_000, frozen(), &[2]).is_empty());
        assert!(judge(&mut rounds, 200_000, frozen(), &[2]).is_empty());
        assert!(judge(&mut rounds, 300_000, nowhere(), &[]).is_empty());
    }
}
