//! Rendezvous hashing: for each region every sim has a weight, and the highest is the best.
//!
//! All who know the same sims come to the same order without a word. When a sim joins or leaves only its own share moves,
//! because the order of the others does not change. It is the lasting name that counts, so a restarted node gets its
//! regions back.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use crate::identity::NodeName;

/// What of a name goes into weights. To be kept where many regions are ranked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeKey(u64);

impl NodeKey {
    /// The key of `node`: FNV-1a over its bytes, then mixed, because short names differ in few bits.
    pub fn of(node: &NodeName) -> NodeKey {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in node.0.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        NodeKey(mix(hash))
    }
}

/// The finisher of splitmix64: every bit of the input bears on every bit of the output.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How much `key` weighs for `region`; equal weights are ordered by key.
fn weight(region: RegionId, key: NodeKey) -> (u64, NodeKey) {
    let seed = u64::from(region.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mix(key.0 ^ seed), key)
}

/// The indexes of `keys`, best first.
pub fn order(region: RegionId, keys: &[NodeKey]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| weight(region, keys[*b]).cmp(&weight(region, keys[*a])));
    order
}

/// How many of `keys` are better than `mine`: 0 is the best.
pub fn rank(region: RegionId, mine: NodeKey, keys: &[NodeKey]) -> u32 {
    let own = weight(region, mine);
    let better = keys.iter().filter(|key| weight(region, **key) > own);
    better.count() as u32
}

/// The index of the best of `keys`; none: there are none.
pub fn best(region: RegionId, keys: &[NodeKey]) -> Option<usize> {
    (0..keys.len()).max_by_key(|index| weight(region, keys[*index]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(nodes: usize) -> Vec<NodeKey> {
        let name = |i| NodeName::from(format!("sim-{i}").as_str());
        (0..nodes).map(|i| NodeKey::of(&name(i))).collect()
    }

    const REGIONS: u32 = 4096;

    fn holders(keys: &[NodeKey]) -> Vec<NodeKey> {
        let best = |region| best(RegionId(region), keys).expect("there are some");
        (0..REGIONS).map(|region| keys[best(region)]).collect()
    }

    /// A share is spread like a draw of `REGIONS` with chance 1/N each; six deviations are never seen by chance.
    fn share_max(nodes: usize) -> usize {
        let share = f64::from(REGIONS) / nodes as f64;
        (share + 6.0 * share.sqrt()).ceil() as usize
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_leave_moves_what_the_leaver_had_and_nothing_else(nodes in 2_usize..40, leaver in any::<prop::sample::Index>()) {
            let all = keys(nodes);
            let gone = all[leaver.index(nodes)];
            let rest: Vec<NodeKey> = all.iter().copied().filter(|key| *key != gone).collect();
            let mut moved = 0;
            for (before, after) in holders(&all).into_iter().zip(holders(&rest)) {
                if before == gone {
                    moved += 1;
                } else {
                    prop_assert_eq!(before, after);
                }
            }
            prop_assert!(moved <= share_max(nodes), "{} of {} moved", moved, REGIONS);
        }

        #[test]
        fn a_join_moves_regions_to_the_joiner_only(nodes in 1_usize..40) {
            let all = keys(nodes + 1);
            let joiner = all[nodes];
            let mut moved = 0;
            for (before, after) in holders(&all[..nodes]).into_iter().zip(holders(&all)) {
                if before != after {
                    prop_assert_eq!(after, joiner);
                    moved += 1;
                }
            }
            prop_assert!(moved <= share_max(nodes + 1), "{} of {} moved", moved, REGIONS);
        }

        #[test]
        fn ranks_are_a_permutation_in_the_order_told(nodes in 1_usize..60, region in 0_u32..65_536) {
            let keys = keys(nodes);
            let order = order(RegionId(region), &keys);
            let ranks: Vec<u32> = order.iter().map(|index| rank(RegionId(region), keys[*index], &keys)).collect();
            prop_assert_eq!(ranks, (0..nodes as u32).collect::<Vec<_>>());
            prop_assert_eq!(best(RegionId(region), &keys), Some(order[0]));
        }

        #[test]
        fn the_order_does_not_depend_on_the_order_of_the_names(region in 0_u32..65_536, turn in 0_usize..20) {
            let keys = keys(20);
            let mut turned = keys.clone();
            turned.rotate_left(turn);
            let by_key = |keys: &[NodeKey]| order(RegionId(region), keys).into_iter().map(|i| keys[i]).collect::<Vec<_>>();
            prop_assert_eq!(by_key(&keys), by_key(&turned));
        }
    }
}
