//! Scores of nodes: for pods of a gang with a topology how close a node is to those that run, for all others how full
//! the hypernodes around it are.

use super::{FULL, NetworkTopologyAware, members, prefer_home, request_of};
use crate::state::State;
use crate::state::hyper_nodes::{DomainId, ROOT, Tree};
use crate::state::nodes::NodeId;
use crate::state::tasks::{NO_JOB, TaskId};

/// Tiers are numbers that users choose: no more than so many of them count, from the lowest.
const MOST_TIERS: usize = 1000;

impl NetworkTopologyAware {
    /// Scores of nodes for a waiting task, in their order; `None` where nothing is to be said.
    pub(super) fn closeness(
        &mut self,
        state: &State,
        task: TaskId,
        nodes: &[NodeId],
    ) -> Option<Vec<f64>> {
        let row = &state.tasks[task];
        if row.job == NO_JOB || nodes.is_empty() {
            return None;
        }
        let job = &state.jobs[row.job as usize];
        let (sub_job, topology) = match &job.sub_jobs {
            Some(sub_jobs) => {
                (Some(row.sub_job), sub_jobs.topology(row.sub_job, job.topology.as_ref()))
            }
            None => (None, job.topology.as_ref()),
        };
        let members = members(state, row.job, sub_job);
        let scores = if topology.is_some() {
            let running = members.iter().map(|&task| &state.tasks[task]);
            let running = running.filter(|task| task.status.is_allocated()).map(|task| task.node);
            let home = state.hyper_nodes.tree().home(job.named_home(), running)?;
            near(state, home, &members, nodes)
        } else if self.normal_pods {
            self.packed_around(state, task, nodes)
        } else {
            return None;
        };
        Some(scores.into_iter().map(|score| score * FULL * self.weight).collect())
    }

    /// Mean over the tiers of how full the hypernode of that tier would be, the lowest tier weighing most; outside every
    /// hypernode as if it were full, so that such nodes fill first (P100).
    fn packed_around(&mut self, state: &State, task: TaskId, nodes: &[NodeId]) -> Vec<f64> {
        let dims = self.weighted_dims(state);
        let request = request_of(state, &[task], &dims);
        self.sums.refresh(state, &dims);
        let tree = state.hyper_nodes.tree();
        let (lowest, highest) = tiers(tree);
        let weights: Vec<(i32, f64)> = (lowest..=highest)
            .take(MOST_TIERS)
            .map(|tier| (tier, self.fading.powi(tier.saturating_sub(1))))
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let score = |&node: &NodeId| {
            let of_tier = |tier| {
                let around = tree.containing(node).iter().chain(std::iter::once(&ROOT));
                around.copied().find(|&domain| tree[domain].tier == tier)
            };
            let parts = weights.iter().map(|&(tier, weight)| {
                weight * of_tier(tier).map_or(1.0, |domain| self.sums.packed(domain, &request))
            });
            let sum: f64 = parts.sum();
            if total > 0.0 { sum / total } else { 0.0 }
        };
        nodes.iter().map(score).collect()
    }
}

/// 1 in the hypernode of the running members, less the higher one must go to have both; the part of the members that is
/// near decides between the best.
fn near(state: &State, home: DomainId, members: &[TaskId], nodes: &[NodeId]) -> Vec<f64> {
    let tree = state.hyper_nodes.tree();
    let (lowest, highest) = tiers(tree);
    let score = |&node: &NodeId| {
        let Some(here) = tree.lowest(node) else { return 0.0 };
        if here == home {
            return 1.0;
        }
        let tier = tree[tree.common(here, home)].tier;
        match f64::from(highest) - f64::from(lowest) {
            0.0 => 1.0,
            span if (lowest..=highest).contains(&tier) => f64::from(highest - tier) / span,
            _ => 0.0,
        }
    };
    let mut scores: Vec<f64> = nodes.iter().map(score).collect();
    prefer_home(state, members, &mut scores, |at, node| {
        tree.lowest(nodes[at]).is_some_and(|here| tree.containing(node).contains(&here))
    });
    scores
}

/// Lowest and highest tier, the root's included.
fn tiers(tree: &Tree) -> (i32, i32) {
    let highest = tree[ROOT].tier;
    let lowest = tree.hyper_nodes().next().map_or(highest, |first| tree[first].tier);
    (lowest, highest)
}
