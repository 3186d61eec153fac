//! What bots do has an effect on a real server: duels end in deaths, camps break, and sessions come and go.

mod support;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uo_proto::{CombatEvent, ObjectKind, ServerMsg};
use uo_sdk::bot::Observer;
use uo_sdk::bots::BotKind;
use uo_sdk::{Event, LocalWorld, Options, Runner};
use uo_server::node::Node;

use support::{gateway, server, soon, swarm};

/// Passes on what one bot sees of the world.
struct Witness(mpsc::UnboundedSender<CombatEvent>);

impl Observer for Witness {
    fn event(&mut self, event: &Event, _: &LocalWorld) {
        match event {
            Event::Message(ServerMsg::Event(happened)) => {
                // Whoever listened may be gone: it has seen enough.
                let _ = self.0.send(happened.combat.clone());
            }
            Event::Violation(violation) => panic!("{violation}"),
            _ => {}
        }
    }
}

/// Bots of this kind on a server; what they see, each for itself. Dropped, they leave.
async fn play(
    node: &Node,
    kind: BotKind,
    bots: u64,
) -> (JoinSet<()>, mpsc::UnboundedReceiver<CombatEvent>) {
    let (seen, events) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for seed in 0..bots {
        let options = Options::new(gateway(node), format!("{kind}-{seed}"));
        let runner = Runner::new(options, kind.make(seed)).observed(Witness(seen.clone()));
        tasks.spawn(async move {
            let ended = runner.run().await;
            panic!("a bot's session ended: {ended:?}");
        });
    }
    (tasks, events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duels_end_in_deaths_again_and_again() {
    let node = server(64).await;
    let (bots, mut events) = play(&node, BotKind::Duel, 6).await;
    let mut killed = Vec::new();
    soon(async {
        while killed.len() < 3 {
            if let CombatEvent::Died { who, by: Some(by) } = events.recv().await.unwrap() {
                // Several see it; bandits kill as well, and do not duel.
                let is_duel = who.character().is_some() && by.character().is_some();
                if is_duel && !killed.contains(&(who, by)) {
                    killed.push((who, by));
                }
            }
        }
    })
    .await;
    drop(bots);
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_siege_blows_up_and_breaks_a_camp() {
    let node = server(128).await;
    let (bots, mut events) = play(&node, BotKind::Siege, 8).await;
    let (mut planted, mut exploded, mut broken) = (false, false, std::collections::BTreeSet::new());
    soon(async {
        while !(planted && exploded && broken.len() >= 10) {
            match events.recv().await.unwrap() {
                CombatEvent::Planted { .. } => planted = true,
                CombatEvent::Exploded { .. } => exploded = true,
                CombatEvent::Broke { object, into } if into != Some(ObjectKind::Stump) => {
                    broken.insert(object);
                }
                _ => {}
            }
        }
    })
    .await;
    drop(bots);
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_come_and_go_and_none_is_lost() {
    let node = server(128).await;
    let (passed, report) = swarm(&[
        format!("--gateways={}", gateway(&node)),
        format!("--admin=http://{}", node.admin),
        "--mix=churn=1".into(),
        "--seconds=20".into(),
    ])
    .await;
    assert!(passed, "{report:#}");
    let (logins, logouts) = (&report["sessions"]["logins"], &report["swarm"]["logouts"]);
    assert!(logins.as_u64() >= Some(16), "{report:#}");
    assert!(logouts.as_u64() >= Some(8), "{report:#}");
    assert_eq!(report["sessions"]["lost"], 0);
    assert_eq!(report["sessions"]["resumes"], 0);
    assert_eq!(report["swarm"]["protocol_errors"], 0);
    assert_eq!(report["player_gap_ms"]["gateway"]["count"], 0);
    node.stop().await.unwrap();
}
