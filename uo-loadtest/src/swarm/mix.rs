//! Which bot plays what: `combat=4,wander=4,idle=0`.

use std::str::FromStr;

use uo_sdk::bots::BotKind;

/// Kinds of bots and their shares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mix {
    shares: Vec<(BotKind, u32)>,
}

impl Mix {
    /// What the bot with this number is: kinds take turns by their shares, so that any beginning of the swarm is mixed
    /// like the whole.
    pub fn kind(&self, number: usize) -> BotKind {
        let total: u32 = self.shares.iter().map(|(_, share)| share).sum();
        let turn = (number % total as usize) as u32;
        // The kind that is owed most at this turn, as an ideal division would have it.
        let mut given = vec![0u32; self.shares.len()];
        let mut chosen = 0;
        for turn in 1..=turn + 1 {
            let owed = |at: usize| {
                i64::from(self.shares[at].1) * i64::from(turn)
                    - i64::from(given[at]) * i64::from(total)
            };
            chosen = (0..given.len())
                .filter(|&at| self.shares[at].1 > 0)
                .max_by_key(|&at| (owed(at), std::cmp::Reverse(at)))
                .unwrap_or(0);
            given[chosen] += 1;
        }
        self.shares[chosen].0
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let mut shares: Vec<(BotKind, u32)> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (kind, share) = part.split_once('=').unwrap_or((part, "1"));
            let kind: BotKind = kind.trim().parse()?;
            let share: u32 = share
                .trim()
                .parse()
                .ok()
                .filter(|&share| share <= 1_000)
                .ok_or_else(|| format!("`{share}` is no share: 0 to 1000"))?;
            if shares.iter().any(|(known, _)| *known == kind) {
                return Err(format!("`{kind}` is named twice"));
            }
            shares.push((kind, share));
        }
        if shares.iter().all(|(_, share)| *share == 0) {
            return Err("a mix needs at least one bot".into());
        }
        Ok(Mix { shares })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(mix: &str, bots: usize) -> Vec<&'static str> {
        let mix: Mix = mix.parse().unwrap();
        (0..bots).map(|number| mix.kind(number).name()).collect()
    }

    #[test]
    fn kinds_take_turns_by_their_shares() {
        assert_eq!(
            kinds("combat=1,wander=1", 4),
            ["combat", "wander", "combat", "wander"]
        );
        let many = kinds("combat=3,idle=0,deaf=1", 400);
        let combat = many.iter().filter(|&&kind| kind == "combat").count();
        assert_eq!(combat, 300);
        assert!(!many.contains(&"idle"));
        assert_eq!(kinds("combat-auto", 1), ["combat"]);
    }

    #[test]
    fn a_mix_that_makes_no_sense_is_refused() {
        for wrong in [
            "",
            "dragon=1",
            "combat=x",
            "combat=0",
            "idle=1,idle=2",
            "idle=1001",
        ] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }
}
