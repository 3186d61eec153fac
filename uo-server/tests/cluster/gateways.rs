//! A gateway ends, with or without a word.

use futures_util::future::join_all;

use super::nodes::{Cluster, run};
use super::player::Player;

async fn enter_all(gateway: &str, count: usize) -> Vec<Player> {
    let names: Vec<String> = (0..count).map(|index| format!("g{index}")).collect();
    let players = join_all(names.iter().map(|name| Player::enter(gateway, name))).await;
    let mut players: Vec<Player> = players;
    join_all(players.iter_mut().map(|player| player.ask())).await;
    players
}

async fn resume_all(players: &mut [Player]) {
    let coming_back = players.iter_mut().map(|player| async {
        player
            .until("its line breaks", |player| player.losses > 0)
            .await;
        player
            .until("its session goes on", |player| {
                player.resumes > 0 && player.is_in_view()
            })
            .await;
        player.ask().await;
    });
    join_all(coming_back).await;
    for player in players {
        assert_eq!(player.resumes, 1, "{} came back once", player.name);
    }
}

/// A gateway crashes. Its players know of the other one from it alone, and their sessions go on there: nothing private is
/// missing or repeated, or the client library would say so.
///
/// Red when `welcome` names this gateway only, when sessions are not written, or when an order that was taken between a
/// welcome and its snapshot is acknowledged with the next change only.
#[test]
fn sessions_of_a_crashed_gateway_go_on_at_another() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster
            .start_all(&["sim-1", "sim-2", "gate-1", "gate-2"])
            .await;
        let mut players = enter_all(&cluster.gateway("gate-1"), 10).await;
        cluster.crash("gate-1").await;
        resume_all(&mut players).await;
        assert_eq!(cluster.counter("gate-2", "gateway_resumes").await, 10);
        cluster.end().await;
    });
}

/// A gateway stops in order: it tells its players where to go, and they go there.
///
/// Red when `goodbye` sends them back to the one that stops.
#[test]
fn a_gateway_that_stops_sends_its_players_to_another() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "gate-1", "gate-2"]).await;
        let mut players = enter_all(&cluster.gateway("gate-1"), 6).await;
        let (stopped, ()) = tokio::join!(cluster.stop("gate-1"), resume_all(&mut players));
        let () = stopped;
        let sessions = cluster.state("gate-2").await["gateway"]["gauges"]["sessions"].clone();
        assert_eq!(sessions, 6);
        // It said that it is done: nobody waits for it.
        cluster
            .until("the others see that it is gone", async || {
                let members = cluster.state("sim-1").await["cluster"]["members"].clone();
                members.as_array().map(Vec::len) == Some(2)
            })
            .await;
        cluster.end().await;
    });
}
