//! Three sims, two gateways: borders between nodes that nobody notices.

use futures_util::future::join_all;

use super::nodes::{Cluster, run};
use super::places::{self, Walk};
use super::player::Player;

const NODES: [&str; 5] = ["sim-1", "sim-2", "sim-3", "gate-1", "gate-2"];

/// Walks there and back, and says something on each side.
async fn go_to_and_fro(cluster: &Cluster, walk: &Walk, gateway: &str, at: (&str, &str)) -> Player {
    let mut player = Player::enter(gateway, &walk.name).await;
    let (here, there) = at;
    player.during(cluster.until_owned(&walk.name, here)).await;
    player.walk(walk.goal).await;
    player.during(cluster.until_owned(&walk.name, there)).await;
    player.speak("there").await;
    player.walk(walk.start).await;
    player.during(cluster.until_owned(&walk.name, here)).await;
    player.speak("back").await;
    player
}

/// Players of both gateways walk from one node's region to another's and back. Their connections stay, they are told of
/// nothing, what they order is done once, and in the end one sim has each.
///
/// Red when a gateway knows only the sims of its own process, when `Moved` does not reach it, or when a sim offers over no
/// link.
#[test]
fn borders_between_nodes_are_crossed_unnoticed() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&NODES).await;
        let holders = cluster.holders().await;
        assert_eq!(holders.len(), 16, "every region is held");
        for sim in cluster.sims() {
            assert!(
                holders.values().any(|holder| *holder == sim),
                "{sim} has its share"
            );
        }
        let walks = places::walks(&cluster.world, &holders, 8);
        let gateways = [cluster.gateway("gate-1"), cluster.gateway("gate-2")];
        let walking = walks.iter().enumerate().map(|(index, walk)| {
            let at = (&*holders[&walk.from], &*holders[&walk.to]);
            go_to_and_fro(&cluster, walk, &gateways[index % 2], at)
        });
        for player in join_all(walking).await {
            assert!(
                !player.was_disturbed(),
                "{} was told {:?}",
                player.name,
                player.told
            );
            assert_eq!(player.resumes, 0);
            let heard = player.heard.iter().filter(|(who, _)| *who == player.id());
            assert_eq!(heard.count(), 2, "each word is said once");
        }
        let mut handed = 0;
        for sim in cluster.sims() {
            handed += cluster.counter(&sim, "handoffs_accepted").await;
        }
        assert!(
            handed >= 16,
            "each crossed twice, and {handed} were handed over"
        );
        are_recorded(&cluster).await;
        cluster.end().await;
    });
}

/// Each flight recorder has its part of every way: the sims the claims, the gateways what players felt.
async fn are_recorded(cluster: &Cluster) {
    let mut felt = 0;
    for gateway in ["gate-1", "gate-2"] {
        for crossing in cluster.crossings(gateway).await {
            assert_eq!(crossing["cause"], "border", "{crossing}");
            assert_ne!(crossing["source"], crossing["destination"], "{crossing}");
            let known = ["leave_ms", "claim_ms", "seal_ms", "gap_ms"];
            assert!(
                known.iter().all(|name| crossing[name].is_u64()),
                "{crossing}"
            );
            felt += 1;
        }
    }
    assert!(felt >= 16, "{felt} were felt");
    for sim in cluster.sims() {
        let given = cluster.crossings(&sim).await;
        let given = given.iter().filter(|crossing| crossing["source"] == *sim);
        let heard = given
            .filter(|crossing| crossing["accept_ms"].is_u64())
            .count();
        let accepted = cluster.counter(&sim, "handoffs_accepted").await;
        assert_eq!(heard as u64, accepted, "{sim} heard of each");
    }
}

/// Two players at different gateways, one on each side of a border between two nodes, see and hear each other.
///
/// Red when a gateway subscribes at one sim only.
#[test]
fn players_see_each_other_over_a_border() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster
            .start_all(&["sim-1", "sim-2", "gate-1", "gate-2"])
            .await;
        let holders = cluster.holders().await;
        let walk = places::walks(&cluster.world, &holders, 1).remove(0);
        let beside = places::find(&cluster.world, 1, |from, to| {
            from == walk.to && to == walk.from && holders[&from] != holders[&to]
        });
        let mut ada = Player::enter(&cluster.gateway("gate-1"), &walk.name).await;
        let mut ben = Player::enter(&cluster.gateway("gate-2"), &beside[0].name).await;
        // Ada goes to the other side and stays near the border, where Ben comes to meet her.
        ada.walk(walk.goal).await;
        let (to_ada, to_ben) = (ada.id(), ben.id());
        let meet = walk.start;
        ada.walk(meet).await;
        ada.during(async {
            ben.walk(walk.goal).await;
            ben.until("it sees the other", |ben| {
                ben.client.world().entity(to_ada).is_some()
            })
            .await;
        })
        .await;
        ben.during(ada.until("it sees the other", |ada| {
            ada.client.world().entity(to_ben).is_some()
        }))
        .await;
        ada.order(uo_proto::Order::Say {
            text: "hello over there".into(),
        });
        ada.during(ben.until("it hears the other", |ben| {
            ben.heard
                .iter()
                .any(|(who, text)| *who == to_ada && text == "hello over there")
        }))
        .await;
        let owners = (
            cluster.owners(&ada.name).await,
            cluster.owners(&ben.name).await,
        );
        assert_ne!(owners.0, owners.1, "each is at another sim");
        cluster.end().await;
    });
}
