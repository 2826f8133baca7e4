//! The weighted tree of hierarchical dominant resource fairness (4.2). Inner nodes are the elements of the paths in the
//! annotation `volcano.sh/hierarchy` of queues, leaves are jobs. A node's share counts each child as if all children
//! that want more had as little as the one with the least, so that a child cannot push its siblings back by taking what
//! they have no use for. Only what is above a job that changed is computed anew, unless a resource of the cluster ran out
//! or came back: that concerns every job (P14).

use rustc_hash::FxHashMap;

use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::resource::{Dim, EPSILON, Ledger, Request};

const ROOT: usize = 0;

/// An inner node.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    weight: f64,
    children: Vec<usize>,
    jobs: Vec<usize>,
    figures: Figures,
}

/// A leaf.
#[derive(Clone, Debug)]
struct Leaf {
    parent: usize,
    allocated: Ledger,
    request: Ledger,
    figures: Figures,
}

/// What orders nodes.
#[derive(Clone, Debug)]
struct Figures {
    /// Scaled amounts by dimension.
    allocated: Vec<f64>,
    share: f64,
    saturated: bool,
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Hierarchy {
    total: Vec<f64>,
    used: Ledger,
    /// By dimension: the cluster has some left.
    demanding: Vec<bool>,
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    leaf_of: FxHashMap<JobId, usize>,
    /// Nodes of each queue's path, below the root.
    paths: FxHashMap<QueueId, Vec<usize>>,
}

impl Hierarchy {
    /// The tree of all queues and their jobs. Queues come in order of their names: where two disagree about the weight of
    /// a node above both, the first one decides (P12).
    pub(super) fn derive(state: &State) -> Self {
        let total: Vec<f64> =
            (0..state.dims.len() as Dim).map(|dim| state.total.get(dim) as f64).collect();
        let root = Node {
            parent: None,
            weight: 1.0,
            children: Vec::new(),
            jobs: Vec::new(),
            figures: Figures::none(),
        };
        let mut tree = Self { total, nodes: vec![root], ..Self::default() };
        let mut queues: Vec<QueueId> = (0..state.queues.len() as QueueId)
            .filter(|&queue| state.queues[queue as usize].exists)
            .collect();
        queues.sort_by(|&a, &b| state.queues[a as usize].name.cmp(&state.queues[b as usize].name));
        let mut names: FxHashMap<(usize, &str), usize> = FxHashMap::default();
        for queue in queues {
            let row = &state.queues[queue as usize];
            let mut weights = row.hierarchy_weights.split('/').skip(1).map(weight);
            let mut at = ROOT;
            let mut path = Vec::new();
            for name in row.hierarchy.split('/').skip(1) {
                let weight = weights.next().unwrap_or(1.0);
                at = *names.entry((at, name)).or_insert_with(|| tree.grow(at, weight));
                path.push(at);
            }
            tree.paths.insert(queue, path);
        }
        for (id, job) in state.jobs.iter().enumerate() {
            let Some(path) = tree.paths.get(&job.queue) else { continue };
            if !job.live || job.group.is_none() {
                continue;
            }
            let parent = path.last().copied().unwrap_or(ROOT);
            let mut request = job.allocated.clone();
            request.add_all(&job.pending);
            tree.used.add_all(&job.allocated);
            tree.nodes[parent].jobs.push(tree.leaves.len());
            tree.leaf_of.insert(id as JobId, tree.leaves.len());
            let figures = Figures::none();
            tree.leaves.push(Leaf { parent, allocated: job.allocated.clone(), request, figures });
        }
        tree.demanding = tree.left_over();
        tree.compute_all();
        tree
    }

    fn grow(&mut self, parent: usize, weight: f64) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            parent: Some(parent),
            weight,
            children: Vec::new(),
            jobs: Vec::new(),
            figures: Figures::none(),
        });
        self.nodes[parent].children.push(node);
        node
    }

    /// A job gets or loses pods.
    pub(super) fn add(&mut self, job: JobId, request: &Request, count: i64) {
        let Some(&leaf) = self.leaf_of.get(&job) else { return };
        self.used.add_request(request, count);
        self.leaves[leaf].allocated.add_request(request, count);
        let demanding = self.left_over();
        if demanding == self.demanding {
            self.compute_leaf(leaf);
            let mut next = Some(self.leaves[leaf].parent);
            while let Some(node) = next {
                self.compute_node(node);
                next = self.nodes[node].parent;
            }
        } else {
            self.demanding = demanding;
            self.compute_all();
        }
    }

    /// Per level below the root how a queue stands: whether its node has all that it can use, and its share by weight.
    pub(super) fn standing(&self, queue: QueueId) -> impl Iterator<Item = (bool, f64)> + '_ {
        self.paths.get(&queue).into_iter().flatten().map(|&node| {
            let Node { weight, figures, .. } = &self.nodes[node];
            (figures.saturated, figures.share / weight)
        })
    }

    /// True when `a` stands before `b`: at the first level where they differ.
    pub(super) fn goes_before(&self, a: QueueId, b: QueueId) -> bool {
        let levels = self.standing(a).zip(self.standing(b));
        levels
            .map(|(a, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .find(|order| order.is_ne())
            .is_some_and(std::cmp::Ordering::is_lt)
    }

    /// By dimension of which the cluster has some left.
    fn left_over(&self) -> Vec<bool> {
        let has_room = |(dim, &total): (usize, &f64)| (self.used.get(dim as Dim) as f64) < total;
        self.total.iter().enumerate().map(has_room).collect()
    }

    /// Children have higher numbers than their parents.
    fn compute_all(&mut self) {
        (0..self.leaves.len()).for_each(|leaf| self.compute_leaf(leaf));
        (0..self.nodes.len()).rev().for_each(|node| self.compute_node(node));
    }

    /// A job is saturated when it has all it asks for of something that it has, or something of it ran out.
    fn compute_leaf(&mut self, leaf: usize) {
        let Leaf { allocated, request, .. } = &self.leaves[leaf];
        let saturated = allocated.iter().any(|(dim, amount)| {
            let asked = request.get(dim);
            let runs_out = !self.demanding.get(dim as usize).copied().unwrap_or(false);
            amount > 0 && asked > 0 && (amount >= asked || runs_out)
        });
        let allocated: Vec<f64> =
            (0..self.total.len()).map(|dim| allocated.get(dim as Dim) as f64).collect();
        let share = self.share(&allocated);
        self.leaves[leaf].figures = Figures { allocated, share, saturated };
    }

    fn compute_node(&mut self, node: usize) {
        let Node { children, jobs, .. } = &self.nodes[node];
        let below = || {
            let nodes = children.iter().map(|&child| &self.nodes[child].figures);
            nodes.chain(jobs.iter().map(|&leaf| &self.leaves[leaf].figures))
        };
        let wants = below().filter(|child| child.share != 0.0 && !child.saturated);
        let least = wants.map(|child| child.share).fold(1.0, f64::min);
        let mut allocated = vec![0.0; self.total.len()];
        for child in below().filter(|child| child.share != 0.0) {
            let scale = if child.saturated { 1.0 } else { least / child.share };
            for (sum, amount) in allocated.iter_mut().zip(&child.allocated) {
                *sum += amount * scale;
            }
        }
        let saturated = below().all(|child| child.saturated);
        let share = self.share(&allocated);
        self.nodes[node].figures = Figures { allocated, share, saturated };
    }

    /// Largest part of the cluster in any dimension (P13: the number of pods counts).
    fn share(&self, allocated: &[f64]) -> f64 {
        let parts = allocated.iter().zip(&self.total).filter(|(_, total)| **total >= EPSILON);
        parts.map(|(amount, total)| amount / total).fold(0.0, f64::max)
    }
}

impl Figures {
    fn none() -> Self {
        Self { allocated: Vec::new(), share: 0.0, saturated: false }
    }
}

/// A weight as written; what is no number from 1 on is 1 (P10, P12).
fn weight(text: &str) -> f64 {
    text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 1.0).unwrap_or(1.0)
}
