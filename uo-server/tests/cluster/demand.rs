//! A world so large that only what somebody needs of it runs.

use super::nodes::{Cluster, run};
use super::player::Player;

/// Nobody is there, and nothing runs. Players come, and the regions around them run, on both sims together, and no others.
///
/// Red when a gateway does not say which region it needs, or when a sim takes regions that nobody does.
#[test]
fn only_what_is_needed_runs() {
    run(async {
        // 65 regions a side: more than always run.
        let mut cluster = Cluster::new(65 * 64);
        cluster.start_all(&["sim-1", "sim-2", "gate-1"]).await;
        assert!(cluster.holders().await.is_empty(), "nobody needs anything");
        let gateway = cluster.gateway("gate-1");
        let mut players = Vec::new();
        for name in ["far", "away", "from", "all"] {
            players.push(Player::enter(&gateway, name).await);
        }
        for player in &mut players {
            player.ask().await;
        }
        let needed: std::collections::BTreeSet<_> = players
            .iter()
            .flat_map(|player| {
                let here = cluster.world.region_at(player.pos());
                cluster.world.neighbours(here).chain([here])
            })
            .collect();
        cluster
            .until("exactly what is needed runs", async || {
                let held = cluster.holders().await;
                held.len() == needed.len() && held.keys().all(|region| needed.contains(region))
            })
            .await;
        cluster.end().await;
    });
}
