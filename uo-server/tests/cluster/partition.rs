//! Links that break while both of their ends live.

use futures_util::future::join_all;

use super::nodes::{Cluster, run};
use super::places;
use super::player::Player;

/// Two sims cannot reach each other, while the store and the gateways reach both. Nobody dies of that. Whoever walks over
/// their border stays with the sim where it began, and goes on from there once the link is back.
///
/// Red when a silent link is taken for a good one, when a character is offered over no link, or when a lost link is never
/// dialed again.
#[test]
fn two_sims_that_cannot_reach_each_other_keep_their_players() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "sim-2", "gate-1"]).await;
        let holders = cluster.holders().await;
        let walk = places::walks(&cluster.world, &holders, 1).remove(0);
        let (here, there) = (holders[&walk.from].clone(), holders[&walk.to].clone());
        let mut player = Player::enter(&cluster.gateway("gate-1"), &walk.name).await;

        // The node with the smaller name dials.
        cluster.door("sim-2").shut_for("sim-1");
        player
            .during(cluster.until("both see that the link is lost", async || {
                !cluster.linked("sim-1").await.contains("sim-2")
                    && !cluster.linked("sim-2").await.contains("sim-1")
            }))
            .await;
        player.walk(walk.goal).await;
        player.ask().await;
        assert_eq!(cluster.owners(&walk.name).await, [here]);

        cluster.door("sim-2").reopen();
        player.during(cluster.until_owned(&walk.name, &there)).await;
        player.ask().await;
        assert_eq!(player.losses, 0);
        for sim in cluster.sims() {
            let state = cluster.state(&sim).await;
            assert_eq!(state["cluster"]["rebirths"], 0, "nobody was declared dead");
        }
        cluster.end().await;
    });
}

/// Two of three gateways cannot reach a sim, which everybody else can. It gives way to the other, so that everybody plays
/// on, and gets its share back once it can be reached.
///
/// Red when a sim that is cut off goes on as if nothing was the matter, and when the others hand regions to it.
#[test]
fn a_sim_that_most_gateways_cannot_reach_gives_way() {
    run(async {
        let mut cluster = Cluster::new(256);
        let gates = ["gate-1", "gate-2", "gate-3"];
        cluster
            .start_all(&["sim-1", "sim-2", gates[0], gates[1], gates[2]])
            .await;
        let holders = cluster.holders().await;
        let here = |region| holders[&region] == "sim-1";
        let name = places::name_in(&cluster.world, here, 0);
        let mut player = Player::enter(&cluster.gateway("gate-1"), &name).await;

        // The node with the smaller name dials.
        for gate in &gates[..2] {
            cluster.door("sim-1").shut_for(gate);
        }
        let everything = cluster.until("the other has everything", async || {
            cluster.holders().await.values().all(|sim| sim == "sim-2")
        });
        player.during(everything).await;
        player.ask().await;
        assert_eq!(cluster.state("sim-1").await["cluster"]["cut_off"], true);

        cluster.door("sim-1").reopen();
        player.during(cluster.ready()).await;
        player.ask().await;
        assert_eq!(
            (player.losses, player.resumes),
            (0, 0),
            "it kept its socket"
        );
        for sim in cluster.sims() {
            let state = cluster.state(&sim).await;
            assert_eq!(state["cluster"]["cut_off"], false);
            assert_eq!(state["cluster"]["rebirths"], 0, "nobody was declared dead");
        }
        cluster.end().await;
    });
}

/// Every link of a node is cut at once, several times. They come back, the gateway asks for its feeds again, and what
/// happened meanwhile is shown.
///
/// Red when a gateway goes on with the feeds of a lost link as if nothing was missing.
#[test]
fn feeds_begin_again_after_links_are_cut() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "sim-2", "gate-1"]).await;
        let names = ["k0", "k1", "k2", "k3"];
        let gateway = cluster.gateway("gate-1");
        let mut players = join_all(names.iter().map(|name| Player::enter(&gateway, name))).await;
        for _ in 0..3 {
            for sim in ["sim-1", "sim-2"] {
                cluster.door(sim).cut();
            }
            join_all(players.iter_mut().map(Player::ask)).await;
        }
        for player in &players {
            assert_eq!(
                (player.losses, player.resumes),
                (0, 0),
                "{} kept its socket",
                player.name
            );
        }
        assert!(cluster.counter("gate-1", "peer_links_lost").await >= 6);
        cluster.end().await;
    });
}
