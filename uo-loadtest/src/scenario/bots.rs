//! All bots of a scenario, on threads of their own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use uo_proto::{CharId, CoinSerial, EntityId};
use uo_sdk::Runner;
use uo_sdk::bots::BotKind;

use super::witness::{Guided, Shared, Wish, Witness};
use crate::judge::Violation;
use crate::judge::oracle::Seen;
use crate::proof::{Broken, doubled};
use crate::swarm;
use crate::swarm::tally::{Tally, Watch};

/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(50);

/// See the module. Dropped, the bots are gone.
pub struct Bots {
    /// What they sent, got and saw.
    pub tally: Arc<Tally>,
    accounts: Vec<Shared>,
    wish: Arc<Wish>,
    runtime: Option<Runtime>,
}

impl Bots {
    /// Sets all bots going; each waits for its turn in the ramp.
    pub fn enter(arguments: &swarm::Arguments, began: Instant) -> anyhow::Result<Bots> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(arguments.threads as usize)
            .thread_name("bots")
            .enable_all()
            .build()
            .context("no runtime for the bots")?;
        let mut bots = Bots {
            tally: Tally::new(),
            accounts: Vec::new(),
            wish: Arc::default(),
            runtime: None,
        };
        let (awakenings, _) = mpsc::channel();
        for number in 0..arguments.bots {
            let start = arguments
                .ramp
                .mul_f64(number as f64 / arguments.bots as f64);
            let swarm::Player {
                kind,
                name,
                options,
                bot,
            } = swarm::player(arguments, number, &awakenings);
            let account = Shared::new(&name);
            let watch = Witness {
                account: account.clone(),
                began,
                other: Watch::new(bots.tally.clone(), kind),
            };
            let bot = Guided::new(bot, bots.wish.clone(), account.clone());
            let runner = Runner::new(options, bot).observed(watch);
            let tally = bots.tally.clone();
            runtime.spawn(async move {
                sleep(start).await;
                if let Err(error) = runner.run().await {
                    tally.note(format!("a bot could not begin: {error}"));
                }
            });
            // A deaf one must expect to be cut off, and sees what it wants to.
            if kind != BotKind::Deaf {
                bots.accounts.push(account);
            }
        }
        bots.runtime = Some(runtime);
        Ok(bots)
    }

    /// Characters that should be in a battle somewhere.
    pub fn expected(&self) -> BTreeSet<CharId> {
        let accounts = self.accounts.iter();
        accounts
            .filter_map(|account| account.lock().expected())
            .collect()
    }

    /// Who is out of the world for too long.
    pub fn overdue(&self, now_ms: u64) -> Vec<Violation> {
        let accounts = self.accounts.iter();
        accounts
            .filter_map(|account| account.lock().overdue(now_ms))
            .collect()
    }

    /// Nobody is let in by anybody now: the time to come back begins anew.
    pub fn excuse(&self, now_ms: u64) {
        self.accounts
            .iter()
            .for_each(|account| account.lock().excuse(now_ms));
    }

    /// Sessions that were lost so far.
    pub fn lost(&self) -> Vec<Violation> {
        let lost = |account: &Shared| {
            let account = account.lock();
            let violation = |why: &String| Violation::SessionLost {
                name: account.name.clone(),
                why: why.clone(),
            };
            account.lost.iter().map(violation).collect::<Vec<_>>()
        };
        self.accounts.iter().flat_map(lost).collect()
    }

    /// Promises received.
    pub fn promises(&self) -> u64 {
        let accounts = self.accounts.iter();
        accounts.map(|account| account.lock().proof.promises).sum()
    }

    /// Promises that were not kept.
    pub fn broken(&self) -> Vec<Broken> {
        let each = self.accounts.iter();
        let mut broken: Vec<Broken> = each
            .flat_map(|account| account.lock().proof.failures.clone())
            .collect();
        broken.extend(doubled_coins(&self.accounts));
        broken
    }

    /// Bots stand from now on, and ask what they carry.
    pub fn stand(&self) {
        self.wish.still.store(true, Relaxed);
    }

    /// Who is in and was not told what it carries since it stands.
    pub fn unanswered(&self) -> Vec<String> {
        let accounts = self.accounts.iter().map(Shared::lock);
        let waiting = accounts.filter(|account| account.is_in() && !account.is_answered);
        waiting.map(|account| account.name.clone()).collect()
    }

    /// What each sees that is in and stands.
    pub async fn views(&self, within: Duration) -> Vec<Seen> {
        let number = self.wish.look.fetch_add(1, Relaxed) + 1;
        let is_here = |account: &Shared| {
            let account = account.lock();
            !account.is_in() || account.view.as_ref().is_some_and(|(of, _)| *of == number)
        };
        let all = timeout(within, async {
            while !self.accounts.iter().all(is_here) {
                sleep(LOOK).await;
            }
        });
        let _ = all.await;
        let view = |account: &Shared| {
            let account = account.lock();
            let (of, seen) = account.view.as_ref()?;
            (account.is_in() && *of == number).then(|| seen.clone())
        };
        self.accounts.iter().filter_map(view).collect()
    }

    /// Ends every session where it stands.
    pub fn leave(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Coins that two characters have, as both of them were told last.
fn doubled_coins(accounts: &[Shared]) -> Vec<Broken> {
    let purse = |account: &Shared| -> Option<(EntityId, Vec<CoinSerial>)> {
        let account = account.lock();
        let coins = account.inventory.as_ref()?.coins.clone();
        Some((account.id?.entity(), coins))
    };
    let purses: Vec<_> = accounts.iter().filter_map(purse).collect();
    doubled(purses.iter().map(|(who, coins)| (*who, coins.as_slice())))
}
