//! A question that was asked: answers about nodes, read from the counters without touching them.

use super::affinity::{self, normalize_pod_affinity};
use super::reason::StatefulReason;
use super::spread::normalize_spread;
use super::standing::{Standing, StandingId};
use super::{Counters, StatefulState};
use crate::matching::static_filter::PredicateSwitches;

/// Answers about one waiting pod, for as long as nothing is told to the state.
#[derive(Debug)]
pub struct Asked<'s> {
    state: &'s StatefulState,
    standing: Option<&'s Standing>,
    switches: PredicateSwitches,
}

impl<'s> Asked<'s> {
    pub(super) fn new(
        state: &'s StatefulState,
        id: StandingId,
        switches: PredicateSwitches,
    ) -> Self {
        Self { state, standing: state.standings.get(id), switches }
    }

    /// First reason against a node: NodePorts, InterPodAffinity, PodTopologySpread, in the order of 7.2.
    pub fn filter(&self, slot: u32) -> Result<(), StatefulReason> {
        self.ports(slot)?;
        self.pod_affinity(slot)?;
        self.spread(slot)
    }

    /// All reasons against a node, as Volcano collects them: up to the first that is final (7.4).
    pub fn reasons(&self, slot: u32) -> Vec<StatefulReason> {
        let mut reasons = Vec::new();
        for filter in [Self::ports, Self::pod_affinity, Self::spread] {
            if let Err(reason) = filter(self, slot) {
                reasons.push(reason);
                if reason.code().is_final() {
                    break;
                }
            }
        }
        reasons
    }

    /// True when every filter passes.
    pub fn fits(&self, slot: u32) -> bool {
        self.filter(slot).is_ok()
    }

    /// Of 64 nodes from `block * 64` on, those in `mask` that pass every filter.
    pub fn mask(&self, block: u32, mask: u64) -> u64 {
        let mut left = mask;
        let mut fits = 0;
        while left != 0 {
            let lane = left.trailing_zeros();
            left &= left - 1;
            fits |= u64::from(self.fits(block * 64 + lane)) << lane;
        }
        fits
    }

    fn ports(&self, slot: u32) -> Result<(), StatefulReason> {
        let Some(standing) = self.standing.filter(|_| self.switches.node_ports) else {
            return Ok(());
        };
        if self.state.ports.conflicts(slot, &standing.asker.spec.host_ports) {
            return Err(StatefulReason::Ports);
        }
        Ok(())
    }

    fn pod_affinity(&self, slot: u32) -> Result<(), StatefulReason> {
        match self.standing.filter(|_| self.switches.pod_affinity) {
            Some(standing) => affinity::filter(standing, slot, self.counters()),
            None => Ok(()),
        }
    }

    fn spread(&self, slot: u32) -> Result<(), StatefulReason> {
        let hard = self.standing.and_then(|standing| standing.hard.as_ref());
        let Some((group, itself)) = hard.filter(|_| self.switches.topology_spread) else {
            return Ok(());
        };
        match self.state.groups.get(*group) {
            Some(group) => group.filter(slot, itself, &self.state.topology),
            None => Ok(()),
        }
    }

    /// InterPodAffinity scores 0..100 of the feasible nodes, normalised over them; `None` when nothing can
    /// contribute, which adds 0 everywhere.
    pub fn affinity_scores(&self, feasible: &[u32]) -> Option<Vec<i64>> {
        let standing = self.standing.filter(|standing| affinity::has_score(standing))?;
        let raw: Vec<i64> = feasible
            .iter()
            .map(|&slot| affinity::raw_score(standing, slot, self.counters()))
            .collect();
        let (min, max) = bounds(raw.iter().copied())?;
        Some(raw.into_iter().map(|raw| normalize_pod_affinity(raw, min, max)).collect())
    }

    /// Raw InterPodAffinity score of a node.
    pub fn affinity_raw(&self, slot: u32) -> i64 {
        self.standing.map_or(0, |standing| affinity::raw_score(standing, slot, self.counters()))
    }

    /// PodTopologySpread scores 0..100 of the feasible nodes, normalised over them; `None` for a pod without
    /// soft constraints, which adds 0 everywhere.
    pub fn spread_scores(&self, feasible: &[u32]) -> Option<Vec<i64>> {
        let raw = self.spread_raw(feasible)?;
        let (min, max) = bounds(raw.iter().copied().flatten()).unwrap_or((0, 0));
        Some(raw.into_iter().map(|raw| normalize_spread(raw, min, max.max(0))).collect())
    }

    /// Raw PodTopologySpread scores of the feasible nodes, `None` for those that lack a key.
    pub fn spread_raw(&self, feasible: &[u32]) -> Option<Vec<Option<i64>>> {
        let group = self.state.groups.get(self.standing?.soft?)?;
        let (topology, tallies) = (&self.state.topology, &self.state.tallies);
        let weights = group.weights(feasible, topology);
        let raw = |&slot: &u32| group.raw_score(slot, &weights, tallies, topology);
        Some(feasible.iter().map(raw).collect())
    }

    /// Weighted sum of both scores by feasible node; `None` when both add 0 everywhere.
    pub fn scores(
        &self,
        feasible: &[u32],
        affinity_weight: i64,
        spread_weight: i64,
    ) -> Option<Vec<i64>> {
        let affinity = if affinity_weight == 0 { None } else { self.affinity_scores(feasible) };
        let spread = if spread_weight == 0 { None } else { self.spread_scores(feasible) };
        if affinity.is_none() && spread.is_none() {
            return None;
        }
        let at = |scores: &Option<Vec<i64>>, i: usize| scores.as_ref().map_or(0, |s| s[i]);
        let sum = |i| affinity_weight * at(&affinity, i) + spread_weight * at(&spread, i);
        Some((0..feasible.len()).map(sum).collect())
    }

    /// A number that moves whenever an answer to this question may have changed. Comparable only between
    /// askings of the same question without a [`StatefulState::sweep`] in between.
    pub fn version(&self) -> u64 {
        let Some(standing) = self.standing else { return 0 };
        let state = self.state;
        let mut version = state.topology.version() + standing.version;
        if !standing.asker.spec.host_ports.is_empty() {
            version += state.ports.version();
        }
        let tallies = standing.tallies().filter_map(|id| state.tallies.get(id));
        version += tallies.map(|tally| tally.version()).sum::<u64>();
        let groups = standing.groups().filter_map(|id| state.groups.get(id));
        version += groups.map(|group| group.version()).sum::<u64>();
        let soft = standing.soft.and_then(|id| state.groups.get(id));
        let by_node = soft.into_iter().flat_map(|group| group.tallies());
        version += by_node.filter_map(|id| Some(state.tallies.get(id)?.version())).sum::<u64>();
        let owned = standing.repelled_by.iter().chain(&standing.preferred_by);
        version + owned.filter_map(|&id| Some(state.owned.get(id)?.version())).sum::<u64>()
    }

    fn counters(&self) -> Counters<'s> {
        self.state.counters()
    }
}

fn bounds(values: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    values.fold(None, |bounds, value| {
        let (min, max) = bounds.unwrap_or((value, value));
        Some((value.min(min), value.max(max)))
    })
}
