//! InterPodAffinity (7.5, 8): counts of matching pods per topology domain, from the waiting pod's terms and from
//! the terms of placed pods. `hardPodAffinityWeight` is 0 (P46).

use std::collections::BTreeMap;

use super::reason::StatefulReason;
use super::{Query, StatefulState};

/// Key and value of a node label.
type Domain = (String, String);

/// Counts for one waiting pod.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Placed pods that match all own required terms, per domain of each term.
    affinity: BTreeMap<Domain, u32>,
    /// The pod matches its own required terms: the first of its kind may go anywhere.
    matches_itself: bool,
    /// Placed pods that match an own anti-affinity term.
    anti: BTreeMap<Domain, u32>,
    /// Placed pods whose required anti-affinity keeps this pod away.
    existing: BTreeMap<Domain, u32>,
    /// Preferences, own and of placed pods.
    preference: BTreeMap<Domain, i64>,
}

impl Counts {
    pub(super) fn of(state: &StatefulState, query: &Query<'_>) -> Self {
        let spec = query.spec;
        let mut counts = Self {
            matches_itself: !spec.pod_affinity.is_empty()
                && spec.pod_affinity.iter().all(|term| {
                    state.selects(term, query.namespace, query.namespace, query.labels)
                }),
            ..Self::default()
        };
        for pod in state.pods.values() {
            let domain = |key: &str| {
                state.domain(pod.node, key).map(|value| (key.to_owned(), value.to_owned()))
            };
            let own = |term| state.selects(term, query.namespace, &pod.namespace, &pod.labels);
            let theirs = |term| state.selects(term, &pod.namespace, query.namespace, query.labels);
            if !spec.pod_affinity.is_empty() && spec.pod_affinity.iter().all(own) {
                for found in spec.pod_affinity.iter().filter_map(|t| domain(&t.topology_key)) {
                    *counts.affinity.entry(found).or_default() += 1;
                }
            }
            for term in spec.pod_anti_affinity.iter().filter(|term| own(term)) {
                if let Some(found) = domain(&term.topology_key) {
                    *counts.anti.entry(found).or_default() += 1;
                }
            }
            for term in pod.spec.pod_anti_affinity.iter().filter(|term| theirs(term)) {
                if let Some(found) = domain(&term.topology_key) {
                    *counts.existing.entry(found).or_default() += 1;
                }
            }
            let preferred = spec
                .preferred_pod_affinity
                .iter()
                .filter(|(_, term)| own(term))
                .chain(pod.spec.preferred_pod_affinity.iter().filter(|(_, term)| theirs(term)));
            for (weight, term) in preferred {
                if let Some(found) = domain(&term.topology_key) {
                    *counts.preference.entry(found).or_default() += i64::from(*weight);
                }
            }
        }
        counts
    }

    pub(super) fn filter(
        &self,
        state: &StatefulState,
        query: &Query<'_>,
        node: u32,
    ) -> Result<(), StatefulReason> {
        let count = |counts: &BTreeMap<Domain, u32>, key: &str| {
            state.domain(node, key).map(|value| {
                counts.get(&(key.to_owned(), value.to_owned())).copied().unwrap_or(0)
            })
        };
        let mut near = true;
        for term in &query.spec.pod_affinity {
            match count(&self.affinity, &term.topology_key) {
                None => return Err(StatefulReason::Affinity),
                Some(found) => near &= found > 0,
            }
        }
        if !near && !(self.affinity.is_empty() && self.matches_itself) {
            return Err(StatefulReason::Affinity);
        }
        let apart = |key: &str| count(&self.anti, key).unwrap_or(0) == 0;
        if !query.spec.pod_anti_affinity.iter().all(|term| apart(&term.topology_key)) {
            return Err(StatefulReason::AntiAffinity);
        }
        let kept_away = self
            .existing
            .keys()
            .any(|(key, value)| state.domain(node, key) == Some(value.as_str()));
        if kept_away { Err(StatefulReason::ExistingAntiAffinity) } else { Ok(()) }
    }

    /// 0..100 between the least and the most preferred node; `None` when nobody has a preference.
    pub(super) fn scores(&self, state: &StatefulState, nodes: &[u32]) -> Option<Vec<i64>> {
        if self.preference.is_empty() {
            return None;
        }
        let raw: Vec<i64> = nodes
            .iter()
            .map(|&node| {
                self.preference
                    .iter()
                    .filter(|((key, value), _)| state.domain(node, key) == Some(value.as_str()))
                    .map(|(_, weight)| weight)
                    .sum()
            })
            .collect();
        let (min, max) = (raw.iter().copied().min()?, raw.iter().copied().max()?);
        let scaled = |value: i64| {
            if max == min { 0 } else { (100.0 * ((value - min) as f64 / (max - min) as f64)) as i64 }
        };
        Some(raw.into_iter().map(scaled).collect())
    }
}
