//! Plugin `network-topology-aware`: in which hypernodes a gang may be placed and in which order they are tried.
//!
//! | argument | default |
//! | --- | --- |
//! | `weight` | 1; below 0 becomes 1 |
//! | `hypernode.binpack.cpu`, `hypernode.binpack.memory` | 1; below 0 becomes 1 |
//! | `hypernode.binpack.resources` | names, comma separated |
//! | `hypernode.binpack.resources.<name>` | 1; below 0 becomes 1; only for listed names |
//! | `hypernode.binpack.normal-pod.enable` | true |
//! | `hypernode.binpack.normal-pod.fading` | 0.8; below 0 becomes 0.8; 0: only the lowest tier counts |
//! | `hypernode.gradient.evict.max-hypernodes` | 8; below 1 becomes 8 |
//!
//! Hypernodes are scored by how full they would be. How nodes of one hypernode compare is asked of [`closeness`]; where
//! a gang goes does not depend on it, because the session picks the hypernodes that hold the whole gang.

mod closeness;
mod sums;

use tephra_api::conf::Arguments;

use super::{DomainSearch, Figures, Hooks, Plugin, weight};
use crate::state::State;
use crate::state::hyper_nodes::{DomainId, Limit, Tree};
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::resource::{CPU, Dim, MEMORY};
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::TaskId;
use sums::Sums;

/// Score of a hypernode or node that could not be better, before weighting.
const FULL: f64 = 100.0;

/// The plugin.
#[derive(Debug)]
pub struct NetworkTopologyAware {
    weight: f64,
    cpu: f64,
    memory: f64,
    resources: Vec<(String, f64)>,
    normal_pods: bool,
    fading: f64,
    most_for_eviction: usize,
    sums: Sums,
}

impl Default for NetworkTopologyAware {
    fn default() -> Self {
        Self {
            weight: 1.0,
            cpu: 1.0,
            memory: 1.0,
            resources: Vec::new(),
            normal_pods: true,
            fading: 0.8,
            most_for_eviction: 8,
            sums: Sums::default(),
        }
    }
}

impl Plugin for NetworkTopologyAware {
    fn hooks(&self) -> Hooks {
        Hooks::HYPER_NODE_GRADIENT | Hooks::HYPER_NODE_ORDER | Hooks::NODE_ORDER
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        self.weight = weight(arguments, "weight", warnings);
        self.cpu = weight(arguments, "hypernode.binpack.cpu", warnings);
        self.memory = weight(arguments, "hypernode.binpack.memory", warnings);
        let listed = arguments.string("hypernode.binpack.resources", warnings).unwrap_or_default();
        let names = listed.split(',').map(str::trim);
        self.resources = names
            .filter(|name| !name.is_empty() && !matches!(*name, "cpu" | "memory"))
            .map(|name| {
                let key = format!("hypernode.binpack.resources.{name}");
                (name.to_owned(), weight(arguments, &key, warnings))
            })
            .collect();
        let enabled = arguments.bool("hypernode.binpack.normal-pod.enable", warnings);
        self.normal_pods = enabled.unwrap_or(true);
        let fading = arguments.float("hypernode.binpack.normal-pod.fading", warnings);
        self.fading = fading.filter(|fading| *fading >= 0.0).unwrap_or(0.8);
        let most = arguments.int("hypernode.gradient.evict.max-hypernodes", warnings);
        self.most_for_eviction = most.filter(|most| *most > 0).map_or(8, |most| most as usize);
    }

    /// The state alone decides.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    fn hyper_node_gradient(&self, state: &State, search: &DomainSearch) -> Vec<Vec<DomainId>> {
        gradient(state.hyper_nodes.tree(), search)
    }

    /// How full each hypernode would be with all pods of the job or sub-group; those that would be overfull score 0.
    /// Among equally good ones the part of the pods that is there already decides.
    fn hyper_node_order(
        &mut self,
        state: &State,
        job: JobId,
        sub_job: Option<SubJobId>,
        domains: &[DomainId],
        scores: &mut [f64],
    ) {
        let members = members(state, job, sub_job);
        let dims = self.weighted_dims(state);
        let request = request_of(state, &members, &dims);
        self.sums.refresh(state, &dims);
        let mut own: Vec<f64> =
            domains.iter().map(|&domain| self.sums.packed(domain, &request)).collect();
        prefer_home(state, &members, &mut own, |at, node| {
            state.hyper_nodes.tree().containing(node).contains(&domains[at])
        });
        for (score, own) in scores.iter_mut().zip(own) {
            *score += own * FULL * self.weight;
        }
    }

    fn node_order(&mut self, state: &State, task: TaskId, nodes: &[NodeId]) -> Option<Vec<f64>> {
        self.closeness(state, task, nodes)
    }
}

impl NetworkTopologyAware {
    /// Dimensions that count, with their weights.
    fn weighted_dims(&self, state: &State) -> Vec<(Dim, f64)> {
        let listed = self.resources.iter();
        let listed = listed.filter_map(|(name, weight)| Some((state.dims.get(name)?, *weight)));
        [(CPU, self.cpu), (MEMORY, self.memory)].into_iter().chain(listed).collect()
    }
}

/// Hypernodes in which a gang may be placed (4.2.9). A gang that runs in part stays as close to its members as can be:
/// their hypernode first, then what is new one level up, and so on.
pub(super) fn gradient(tree: &Tree, search: &DomainSearch) -> Vec<Vec<DomainId>> {
    let Limit::UpTo { tier, .. } = search.limit else { return vec![vec![search.within]] };
    let Some(home) = search.allocated else { return tree.below(search.within, tier) };
    let highest = tree.ancestors(home).take_while(|&above| tree[above].tier <= tier).last();
    let Some(highest) = highest else { return Vec::new() };
    let top = if tree.is_within(search.within, highest) {
        search.within
    } else if tree.is_within(highest, search.within) {
        highest
    } else {
        return Vec::new();
    };
    if !tree.is_within(home, top) {
        return tree.below(top, tier);
    }
    let mut groups = Vec::new();
    let mut inner: Option<DomainId> = None;
    for above in tree.ancestors(home) {
        for mut group in tree.below(above, tier) {
            group.retain(|&id| inner.is_none_or(|inner| !tree.is_within(id, inner)));
            if !group.is_empty() {
                groups.push(group);
            }
        }
        inner = Some(above);
        if above == top {
            break;
        }
    }
    groups
}

/// Tasks of a job, or of one of its sub-groups.
fn members(state: &State, job: JobId, sub_job: Option<SubJobId>) -> Vec<TaskId> {
    let tasks = state.jobs[job as usize].tasks.iter().copied();
    tasks.filter(|&task| sub_job.is_none_or(|own| state.tasks[task].sub_job == own)).collect()
}

/// What tasks ask for of the dimensions that count, with their weights.
fn request_of(state: &State, tasks: &[TaskId], dims: &[(Dim, f64)]) -> Vec<(usize, f64, f64)> {
    let mut sums = vec![0.0; dims.len()];
    for &task in tasks {
        for &(dim, amount) in &state.classes.list[state.tasks[task].class as usize].request {
            if let Some(at) = dims.iter().position(|&(known, _)| known == dim) {
                sums[at] += amount as f64;
            }
        }
    }
    let asked = sums.into_iter().enumerate().filter(|(_, amount)| *amount > 0.0);
    asked.map(|(at, amount)| (at, amount, dims[at].1)).collect()
}

/// Adds to the scores that share the maximum the part of the tasks that is `there`, at that position, already.
fn prefer_home(
    state: &State,
    members: &[TaskId],
    scores: &mut [f64],
    there: impl Fn(usize, NodeId) -> bool,
) {
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let tied: Vec<usize> = (0..scores.len()).filter(|&at| scores[at] == best).collect();
    let placed: Vec<NodeId> = members
        .iter()
        .map(|&task| &state.tasks[task])
        .filter(|task| task.status.occupies() && (task.node as usize) < state.nodes.len())
        .map(|task| task.node)
        .collect();
    if tied.len() < 2 || placed.is_empty() {
        return;
    }
    for at in tied {
        let count = placed.iter().filter(|&&node| there(at, node)).count();
        scores[at] += count as f64 / members.len() as f64;
    }
}

#[cfg(test)]
mod tests;
