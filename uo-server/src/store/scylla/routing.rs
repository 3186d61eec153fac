//! Which node a compare-and-set is sent to. Two coordinators that propose for one row at the same time make each other
//! start over; if everybody asks the same replica first, it puts them in order itself.

use scylla::cluster::{ClusterState, NodeRef};
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;

/// The replicas of the row in the order of the ring, then the other nodes; those without a connection last.
#[derive(Debug)]
pub(super) struct FixedOrder;

impl LoadBalancingPolicy for FixedOrder {
    /// Leaves it to the plan.
    fn pick<'a>(
        &'a self,
        _: &'a RoutingInfo,
        _: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        None
    }

    fn fallback<'a>(
        &'a self,
        request: &'a RoutingInfo,
        cluster: &'a ClusterState,
    ) -> FallbackPlan<'a> {
        let replicas = match (request.token, request.table) {
            (Some(token), Some(table)) => {
                cluster.get_token_endpoints(table.ks_name(), table.table_name(), token)
            }
            _ => Vec::new(),
        };
        let rank = |node: NodeRef<'_>| {
            let at = replicas
                .iter()
                .position(|(replica, _)| replica.host_id == node.host_id);
            (
                !node.is_connected(),
                at.unwrap_or(replicas.len()),
                node.host_id,
            )
        };
        let mut nodes: Vec<_> = cluster
            .get_nodes_info()
            .iter()
            .map(|node| (rank(node), node))
            .collect();
        nodes.sort_unstable_by_key(|(rank, _)| *rank);
        let shard = move |node: NodeRef<'_>| {
            let mut there = replicas.iter();
            there
                .find(|(replica, _)| replica.host_id == node.host_id)
                .map(|(_, shard)| *shard)
        };
        Box::new(nodes.into_iter().map(move |(_, node)| (node, shard(node))))
    }

    fn name(&self) -> String {
        "FixedOrder".into()
    }
}
