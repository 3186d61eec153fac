//! Regions that move on purpose, with everybody in them.

use futures_util::future::join_all;
use uo_server::store::row::Role;

use super::nodes::{Cluster, run};
use super::places;
use super::player::Player;

async fn enter_everywhere(cluster: &Cluster, gateways: &[String], count: usize) -> Vec<Player> {
    let mut players = Vec::new();
    for index in 0..count {
        let name = places::name_in(&cluster.world, |_| true, index);
        players.push(Player::enter(&gateways[index % gateways.len()], &name).await);
    }
    join_all(players.iter_mut().map(Player::ask)).await;
    players
}

/// Everybody plays on for as long as `other` takes.
async fn all_during<T>(players: &mut [Player], other: impl Future<Output = T>) -> T {
    let (done, over) = tokio::sync::watch::channel(false);
    let playing = players.iter_mut().map(|player| {
        let mut over = over.clone();
        async move {
            let over = over.wait_for(|&over| over);
            let _ = player.during(over).await;
        }
    });
    let waiting = async {
        let came = other.await;
        done.send_replace(true);
        came
    };
    tokio::join!(waiting, join_all(playing)).0
}

/// A sim joins one that holds everything. It gets its share, with the players in it, who go on playing.
///
/// Red when nobody hands a region to a better sim, or when what is handed over leaves its players behind.
#[test]
fn a_joining_sim_gets_its_share() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "gate-1"]).await;
        let mut players = enter_everywhere(&cluster, &[cluster.gateway("gate-1")], 10).await;
        cluster.start("sim-2", Role::Sim).await;
        all_during(&mut players, cluster.ready()).await;
        let share = cluster.regions("sim-2").await;
        assert!(share.len() >= 4, "it holds {share:?}");
        join_all(players.iter_mut().map(Player::ask)).await;
        for player in &players {
            assert_eq!(
                (player.losses, player.resumes),
                (0, 0),
                "{} kept its socket",
                player.name
            );
            let owners = cluster.owners(&player.name).await;
            assert_eq!(owners.len(), 1, "{} is at {owners:?}", player.name);
        }
        cluster.end().await;
    });
}

/// A sim stops in order: it hands over what it holds and ends, and nobody's connection breaks.
///
/// Red when a sim that stops drops its players, or waits for somebody who never comes.
#[test]
fn a_sim_that_stops_hands_everything_over() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster
            .start_all(&["sim-1", "sim-2", "sim-3", "gate-1", "gate-2"])
            .await;
        let gateways = [cluster.gateway("gate-1"), cluster.gateway("gate-2")];
        let mut players = enter_everywhere(&cluster, &gateways, 10).await;
        all_during(&mut players, cluster.stop("sim-1")).await;
        all_during(&mut players, cluster.ready()).await;
        join_all(players.iter_mut().map(Player::ask)).await;
        for player in &players {
            assert_eq!(
                (player.losses, player.resumes),
                (0, 0),
                "{} kept its socket",
                player.name
            );
            let owners = cluster.owners(&player.name).await;
            assert_eq!(owners.len(), 1, "{} is at {owners:?}", player.name);
        }
        cluster.end().await;
    });
}
