//! Regions that move on purpose, with everybody in them.

use futures_util::future::join_all;
use uo_proto::RegionId;
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

/// An operator moves a region with a player in it to a sim that is not the best for it.
///
/// Red when a region that somebody wanted elsewhere is handed back at once, and when a mistake is not answered by what it
/// is.
#[test]
fn an_operator_moves_a_region() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "sim-2", "gate-1"]).await;
        let holders = cluster.holders().await;
        let here = |region| holders[&region] == "sim-1";
        let name = places::name_in(&cluster.world, here, 0);
        let mut player = Player::enter(&cluster.gateway("gate-1"), &name).await;
        player.ask().await;
        let region = RegionId::at(cluster.world.size(), player.pos());
        assert!(here(region), "it stands where it began");

        let id = region.0;
        let elsewhere = holders.iter().find(|(_, sim)| *sim == "sim-2");
        let elsewhere = elsewhere.map(|(region, _)| region.0).expect("a share");
        let mistakes = [
            ("sim-1", "/drain".to_owned(), 400, "say which"),
            ("sim-1", format!("/drain?region={id}&node=sim-2"), 400, ""),
            (
                "sim-1",
                "/drain?region=99999".to_owned(),
                404,
                "there is no region 99999",
            ),
            (
                "sim-1",
                format!("/drain?region={id}&to=sim-9"),
                404,
                "there is no sim of the name sim-9 that runs",
            ),
            (
                "sim-1",
                format!("/drain?region={id}&to=sim-1"),
                409,
                "the region is held here",
            ),
            (
                "sim-1",
                format!("/drain?region={elsewhere}"),
                409,
                "held by sim-2: ask that node",
            ),
            ("gate-1", format!("/drain?region={id}"), 409, "is a gateway"),
        ];
        for (node, path, status, sentence) in mistakes {
            let (answered, body) = cluster.post(node, &path).await;
            let error = body["error"].as_str().unwrap_or_default();
            assert_eq!(answered, status, "{path} at {node}: {body}");
            assert!(error.contains(sentence), "{path} at {node}: {error:?}");
        }

        let path = format!("/drain?region={id}&to=sim-2");
        let (status, moved) = player.during(cluster.post("sim-1", &path)).await;
        assert_eq!(status, 200, "{moved}");
        assert_eq!(moved["to"], "sim-2");
        assert!(moved["took_ms"].as_u64() <= moved["with_players_ms"].as_u64());
        assert!(
            moved["player_gap_ms_max"].is_u64(),
            "it had a player: {moved}"
        );
        assert_eq!(cluster.owners(&name).await, ["sim-2"]);
        player.ask().await;
        assert_eq!(
            (player.losses, player.resumes),
            (0, 0),
            "it kept its socket"
        );
        assert!(
            cluster.regions("sim-2").await.contains(&region),
            "it stays there"
        );
        cluster.end().await;
    });
}
