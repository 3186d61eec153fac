//! An upgrade, node by node: old and new side by side.

use futures_util::future::join_all;
use uo_server::peer::proof::VERSION;
use uo_server::store::row::Role;

use super::nodes::{Cluster, run};
use super::places;
use super::player::Player;

/// A sim and a gateway of the version before join nodes of this one. They are spoken to in their version, and the others in
/// theirs; players cross from old to new and back; and when the new sim crashes, the old one takes over.
///
/// Red when the newest version is spoken to everybody, or when the version before is refused.
#[test]
fn nodes_of_the_version_before_take_part() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.leave_to_heirs().await;
        for (name, role) in [("sim-2", Role::Sim), ("gate-2", Role::Gateway)] {
            let mut old = cluster.config(name, role);
            old.peer.as_mut().expect("it has one").versions = (VERSION - 1, VERSION - 1);
            cluster.start_with(old).await.expect("it starts");
        }
        cluster.start_all(&["sim-1", "gate-1"]).await;
        let old = u64::from(VERSION) - 1;
        let spoken = cluster.versions("sim-1").await;
        assert_eq!(
            (spoken["sim-2"], spoken["gate-2"], spoken["gate-1"]),
            (old, old, old + 1)
        );

        let holders = cluster.holders().await;
        let walks = places::walks(&cluster.world, &holders, 4);
        let gateways = [cluster.gateway("gate-1"), cluster.gateway("gate-2")];
        let crossing = walks.iter().enumerate().map(async |(index, walk)| {
            let mut player = Player::enter(&gateways[index % 2], &walk.name).await;
            player.walk(walk.goal).await;
            player
                .during(cluster.until_owned(&walk.name, &holders[&walk.to]))
                .await;
            player.walk(walk.start).await;
            player
                .during(cluster.until_owned(&walk.name, &holders[&walk.from]))
                .await;
            player
        });
        let mut players = join_all(crossing).await;
        cluster.crash("sim-1").await;
        join_all(players.iter_mut().map(Player::ask)).await;
        for player in &players {
            assert_eq!(player.losses, 0, "{} kept its socket", player.name);
            assert_eq!(cluster.owners(&player.name).await, ["sim-2"]);
        }
        cluster.end().await;
    });
}

/// A node that speaks only what nobody else does any more is turned away, with both ranges in the reason.
#[test]
fn nodes_that_are_too_old_are_turned_away() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "gate-1"]).await;
        let mut ancient = cluster.config("sim-0", Role::Sim);
        ancient.peer.as_mut().expect("it has one").versions = (VERSION - 2, VERSION - 2);
        cluster.start_with(ancient).await.expect("it starts");
        cluster
            .until("it was turned away", async || {
                cluster.counter("sim-1", "peer_refusals").await > 0
                    && cluster.counter("gate-1", "peer_refusals").await > 0
            })
            .await;
        assert!(cluster.linked("sim-0").await.is_empty());
        cluster.end().await;
    });
}
