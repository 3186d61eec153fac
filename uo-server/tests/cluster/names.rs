//! Who is let in, and who is not.

use uo_server::peer::proof::Secret;
use uo_server::store::row::Role;

use super::nodes::{Cluster, run};

/// A node with another secret, and one of another cluster, are linked to nobody.
///
/// Red when proofs, or names of clusters, are not compared.
#[test]
fn strangers_are_not_linked() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start_all(&["sim-1", "gate-1"]).await;
        let mut stranger = cluster.config("sim-8", Role::Sim);
        let peer = stranger.peer.as_mut().expect("it has one");
        peer.secret = Secret::parse("not what the others know").expect("long enough");
        let mut foreigner = cluster.config("sim-9", Role::Sim);
        foreigner.peer.as_mut().expect("it has one").cluster = "other".into();
        cluster.start_with(stranger).await.expect("it starts");
        cluster.start_with(foreigner).await.expect("it starts");
        cluster
            .until("each was turned away by each", async || {
                let mut refusals = Vec::new();
                for node in ["sim-1", "gate-1", "sim-8", "sim-9"] {
                    refusals.push(cluster.counter(node, "peer_refusals").await);
                }
                refusals.into_iter().all(|refused| refused > 1)
            })
            .await;
        assert_eq!(cluster.linked("sim-1").await, ["gate-1".to_owned()].into());
        assert!(cluster.linked("sim-8").await.is_empty());
        assert!(cluster.linked("sim-9").await.is_empty());
        cluster.end().await;
    });
}

/// A second process of a name that is in use sees that, writes nothing, and ends with a sentence.
///
/// Red when a newcomer does not watch before it begins.
#[test]
fn a_name_is_taken_once() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start("sim-1", Role::Sim).await;
        cluster.ready().await;
        let twin = cluster.config("sim-1", Role::Sim);
        let why = cluster.ends_by_itself(twin).await;
        assert!(why.contains("same node name"), "{why}");
        let state = cluster.state("sim-1").await;
        assert_eq!((&state["ready"], &state["life"]), (&true.into(), &1.into()));
        cluster.end().await;
    });
}
