//! The way between two programs, and what is wrong with it: changed while they talk.

use std::time::Duration;

use tokio::sync::watch;

/// How one stretch of a way is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stretch {
    /// Nothing passes. Connections stay open, and what was sent waits.
    pub is_cut: bool,
    /// How much later each byte leaves than it came.
    pub delay: Duration,
}

/// All stretches of a way, one after the other.
#[derive(Clone, Debug)]
pub struct Way(Vec<watch::Receiver<Stretch>>);

impl Way {
    /// A way along these stretches.
    pub fn along(stretches: impl IntoIterator<Item = watch::Receiver<Stretch>>) -> Way {
        Way(stretches.into_iter().collect())
    }

    /// A way that is always like that.
    pub fn steady(delay: Duration) -> Way {
        let is_cut = false;
        let (_, stretch) = watch::channel(Stretch { is_cut, delay });
        Way(vec![stretch])
    }

    /// How much later a byte leaves than it came, as it is now.
    pub fn delay(&self) -> Duration {
        self.0.iter().map(|stretch| stretch.borrow().delay).sum()
    }

    /// Waits until nothing of it is cut.
    pub async fn open(&mut self) {
        while self.0.iter().any(|stretch| stretch.borrow().is_cut) {
            for stretch in &mut self.0 {
                // Whoever could change it may be gone: then it stays as it is, and the run is over.
                if stretch.wait_for(|stretch| !stretch.is_cut).await.is_err() {
                    return;
                }
            }
        }
    }
}
