//! A sim ends without a word.

use futures_util::future::join_all;
use uo_proto::{Order, Slot};
use uo_server::store::row::Role;

use super::nodes::{Cluster, run};
use super::places;
use super::player::Player;

/// A sim crashes: the others take what it held, its players come back where they were saved at the latest, and nobody's
/// connection breaks. Then a process of the same name starts, is let in, and takes part.
///
/// Red when gateways do not hear of a lost link, when a dead boot's leases stay its own, or when its name stays taken.
#[test]
fn players_of_a_crashed_sim_come_back() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster
            .start_all(&["sim-1", "sim-2", "sim-3", "gate-1", "gate-2"])
            .await;
        let holders = cluster.holders().await;
        let gateways = [cluster.gateway("gate-1"), cluster.gateway("gate-2")];
        let mut players = Vec::new();
        for index in 0..12 {
            let sim = ["sim-1", "sim-2", "sim-3"][index % 3];
            let name = places::name_in(&cluster.world, |region| holders[&region] == sim, index / 3);
            players.push(Player::enter(&gateways[index % 2], &name).await);
        }
        let asking = players.iter_mut().map(|player| async {
            player.ask().await;
            // What a character carries is written at once.
            player.order(Order::Unequip { slot: Slot::Weapon });
            player
                .until("it is promised something", |player| player.saved > 0)
                .await;
        });
        join_all(asking).await;
        let saved: Vec<u64> = players.iter().map(|player| player.saved).collect();

        cluster.crash("sim-1").await;
        let coming_back = players.iter_mut().map(|player| player.ask());
        join_all(coming_back).await;

        for (player, saved) in players.iter().zip(saved) {
            assert_eq!(
                (player.losses, player.resumes),
                (0, 0),
                "{} kept its socket",
                player.name
            );
            let ack = player.client.world().ack();
            assert!(
                ack >= saved,
                "{}: {saved} was saved, and {ack} is known",
                player.name
            );
            let owners = cluster.owners(&player.name).await;
            assert_eq!(owners.len(), 1, "{} is at {owners:?}", player.name);
        }
        let held = cluster.holders().await;
        assert_eq!(held.len(), 16, "every region is held again");

        cluster.start("sim-1", Role::Sim).await;
        cluster.ready().await;
        let asking = players.iter_mut().map(|player| player.ask());
        join_all(asking).await;
        cluster.end().await;
    });
}
