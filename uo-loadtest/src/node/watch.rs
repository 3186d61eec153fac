//! Looks at many nodes, again and again.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Look;
use crate::http::Line;

/// Looks that wait to be judged.
const SAMPLES_MAX: usize = 1_024;
/// How long an answer may take. A paused node answers when it wakes, with what is true then, so that it is better waited
/// for than asked again.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// One look at one node. Whatever it shows was true at some moment from `sent_ms` to `received_ms`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Which node, counted from 0.
    pub node: usize,
    /// When it was asked for, since the watch began.
    pub sent_ms: u64,
    /// When it was there.
    pub received_ms: u64,
    /// What it showed, or why it showed nothing.
    pub look: Result<Look, String>,
}

/// Tasks that look at nodes. Dropped, they end.
pub struct Watch {
    began: Instant,
    samples: mpsc::Receiver<Sample>,
    pace: watch::Sender<Duration>,
    _tasks: JoinSet<()>,
}

impl Watch {
    /// Looks at each of `admins` every `pace`, at this page of it. Times are told since
    /// `began`.
    pub fn begin(
        admins: &[String],
        page: &'static str,
        pace: Duration,
        began: Instant,
    ) -> anyhow::Result<Watch> {
        let (sender, samples) = mpsc::channel(SAMPLES_MAX);
        let (pace, paced) = watch::channel(pace);
        let mut tasks = JoinSet::new();
        for (node, admin) in admins.iter().enumerate() {
            let looker = Looker {
                node,
                line: Line::new(admin)?,
                page,
                began,
                samples: sender.clone(),
                pace: paced.clone(),
            };
            tasks.spawn(looker.run());
        }
        Ok(Watch {
            began,
            samples,
            pace,
            _tasks: tasks,
        })
    }

    /// Looks that often from now on.
    pub fn set_pace(&self, pace: Duration) {
        self.pace.send_replace(pace);
    }

    /// Milliseconds since it began.
    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// The next look at any node.
    pub async fn next(&mut self) -> Sample {
        self.samples
            .recv()
            .await
            .expect("its tasks live as long as it does")
    }
}

/// Looks at one node.
struct Looker {
    node: usize,
    line: Line,
    page: &'static str,
    began: Instant,
    samples: mpsc::Sender<Sample>,
    pace: watch::Receiver<Duration>,
}

impl Looker {
    async fn run(mut self) {
        loop {
            let sent = Instant::now();
            let look = tokio::time::timeout(ANSWER_MAX, self.look()).await;
            let sample = Sample {
                node: self.node,
                sent_ms: (sent - self.began).as_millis() as u64,
                received_ms: self.began.elapsed().as_millis() as u64,
                look: match look {
                    Ok(Ok(look)) => Ok(look),
                    Ok(Err(error)) => Err(format!("{error:#}")),
                    Err(_) => Err("no answer".into()),
                },
            };
            if self.samples.send(sample).await.is_err() {
                return;
            }
            let due = sent + *self.pace.borrow_and_update();
            // A new pace counts at once.
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                Ok(()) = self.pace.changed() => {}
            }
        }
    }

    async fn look(&mut self) -> anyhow::Result<Look> {
        let answer = self.line.ask("GET", self.page).await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
        Look::parse(&answer.body)
    }
}
