//! InterPodAffinity (7.5, section 8): answers a standing question about one node from the counters.

use super::owned::OwnedTable;
use super::reason::StatefulReason;
use super::standing::Standing;
use super::tally::Tallies;
use super::topology::{KeyId, Topology};
use crate::matching::MAX_NODE_SCORE;

/// The counters that answer.
#[derive(Clone, Copy, Debug)]
pub struct Counters<'c> {
    /// Pods that match the asker's terms.
    pub tallies: &'c Tallies,
    /// Terms of placed pods.
    pub owned: &'c OwnedTable,
    /// Domains.
    pub topology: &'c Topology,
}

/// Filter InterPodAffinity: required affinity, own required anti-affinity, then required anti-affinity of
/// placed pods.
pub fn filter(
    standing: &Standing,
    slot: u32,
    counters: Counters<'_>,
) -> Result<(), StatefulReason> {
    if !affinity_holds(standing, slot, counters) {
        return Err(StatefulReason::Affinity);
    }
    let meets_own =
        standing.anti_affinity.iter().any(|&(tally, key)| matching(counters, tally, key, slot) > 0);
    if meets_own {
        return Err(StatefulReason::AntiAffinity);
    }
    let repelled =
        standing.repelled_by.iter().filter_map(|&id| counters.owned.get(id)).any(|term| {
            counters
                .topology
                .value(term.key(), slot)
                .is_some_and(|value| term.counts().get(value) > 0)
        });
    if repelled { Err(StatefulReason::ExistingAntiAffinity) } else { Ok(()) }
}

/// Every term needs its key on the node and a pod that matches all terms in that domain. When no such pod is
/// in any domain, a pod that matches itself may be the first.
fn affinity_holds(standing: &Standing, slot: u32, counters: Counters<'_>) -> bool {
    let Some(affinity) = &standing.affinity else {
        return true;
    };
    let Some(tally) = counters.tallies.get(affinity.tally) else {
        return false;
    };
    let mut all_met = true;
    for &key in &affinity.keys {
        let Some(value) = counters.topology.value(key, slot) else {
            return false;
        };
        all_met &= tally.in_domain(key, value) > 0;
    }
    all_met || (tally.anywhere() == 0 && affinity.matches_itself)
}

fn matching(counters: Counters<'_>, tally: u32, key: KeyId, slot: u32) -> i64 {
    let value = counters.topology.value(key, slot);
    let tally = counters.tallies.get(tally);
    value.zip(tally).map_or(0, |(value, tally)| tally.in_domain(key, value))
}

/// True when placed pods can add to the InterPodAffinity score at all.
pub fn has_score(standing: &Standing) -> bool {
    !(standing.preferred.is_empty() && standing.preferred_by.is_empty())
}

/// Raw InterPodAffinity score: own preferences times matching pods in the node's domains, plus the preferences
/// of placed pods about this pod. `hardPodAffinityWeight` is 0 (P46): required affinity of placed pods adds
/// nothing.
pub fn raw_score(standing: &Standing, slot: u32, counters: Counters<'_>) -> i64 {
    let own = standing
        .preferred
        .iter()
        .map(|&(tally, key, weight)| weight.saturating_mul(matching(counters, tally, key, slot)));
    let theirs = standing.preferred_by.iter().filter_map(|&id| {
        let term = counters.owned.get(id)?;
        Some(term.counts().get(counters.topology.value(term.key(), slot)?))
    });
    own.chain(theirs).fold(0, i64::saturating_add)
}

/// InterPodAffinity score 0..100 of a raw one: `100 * ((raw - min) / (max - min))` in `f64`, truncated; 0 for
/// all when `max` equals `min`. `min` and `max` are taken over the candidate nodes.
pub fn normalize_pod_affinity(raw: i64, min: i64, max: i64) -> i64 {
    let range = max.saturating_sub(min);
    if range <= 0 {
        return 0;
    }
    (MAX_NODE_SCORE as f64 * (raw.saturating_sub(min) as f64 / range as f64)) as i64
}

#[cfg(test)]
mod tests {
    use super::normalize_pod_affinity;

    #[test]
    fn pod_affinity_is_stretched_from_the_worst_to_the_best_candidate() {
        let scaled = [-2, -1, 0, 1].map(|raw| normalize_pod_affinity(raw, -2, 1));
        assert_eq!(scaled, [0, 33, 66, 100]);
    }

    #[test]
    fn equal_candidates_score_nothing() {
        assert_eq!(normalize_pod_affinity(7, 7, 7), 0);
        assert_eq!(normalize_pod_affinity(0, 0, 0), 0);
    }

    #[test]
    fn the_quotient_is_taken_before_the_product_as_kubernetes_does() {
        // 0.29 is not exact: 100 * 0.29 falls just short of 29.
        assert_eq!(normalize_pod_affinity(29, 0, 100), 28);
        assert_eq!(normalize_pod_affinity(57, 0, 100), 56);
        assert_eq!(normalize_pod_affinity(50, 0, 100), 50);
    }
}
