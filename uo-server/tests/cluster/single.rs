//! One node, gateway and sim in one: the whole of a small shard.

use uo_proto::{ObjectKind, Order, Target};
use uo_server::store::row::Role;

use super::nodes::{Cluster, run};
use super::places;
use super::player::Player;

/// Red when a client cannot log in, walk over a border, or strike at something and see what came of it.
#[test]
fn a_player_logs_in_walks_and_fights() {
    run(async {
        let mut cluster = Cluster::new(256);
        cluster.start("all-1", Role::All).await;
        cluster.ready().await;
        let walk = places::walks_of_one(&cluster.world, 1).remove(0);
        let mut player = Player::enter(&cluster.gateway("all-1"), &walk.name).await;
        assert_eq!(player.pos(), walk.start);
        player.walk(walk.goal).await;
        cluster.until_owned(&walk.name, "all-1").await;
        let tree = player.client.world().nearest_object(ObjectKind::Tree, 18);
        let tree = tree.expect("there is a tree in view");
        player.order(Order::Attack {
            target: Target::Object(tree.key),
        });
        player
            .until("the tree shows the blows", |player| {
                let now = player.client.world().object(tree.key);
                now.is_none_or(|now| now.hits < tree.hits)
            })
            .await;
        assert!(!player.was_disturbed());
        cluster.end().await;
    });
}
