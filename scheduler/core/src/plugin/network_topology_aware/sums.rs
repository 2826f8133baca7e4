//! What all nodes of a hypernode offer and have in use, followed strip by strip: only nodes that changed are read again.

use crate::state::State;
use crate::state::hyper_nodes::{DomainId, ROOT};
use crate::state::nodes::{LANES, NodeId, STRIP, STRIPS};
use crate::state::resource::Dim;

/// Amounts in one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amounts {
    used: f64,
    allocatable: f64,
}

/// Sums by hypernode.
#[derive(Debug, Default)]
pub(super) struct Sums {
    tree_epoch: u32,
    dims: Vec<Dim>,
    seen: Vec<u32>,
    seen_strips: Vec<u32>,
    /// By slot, then dimension.
    nodes: Vec<Amounts>,
    /// By hypernode, then dimension.
    domains: Vec<Amounts>,
}

impl Sums {
    /// Catches up with what changed.
    pub(super) fn refresh(&mut self, state: &State, dims: &[(Dim, f64)]) {
        let (nodes, tree) = (&state.nodes, state.hyper_nodes.tree());
        let same = self.dims.iter().copied().eq(dims.iter().map(|&(dim, _)| dim));
        if !same || self.tree_epoch != tree.epoch || self.domains.len() != tree.len() * dims.len() {
            *self = Self {
                tree_epoch: tree.epoch,
                dims: dims.iter().map(|&(dim, _)| dim).collect(),
                ..Self::default()
            };
            self.domains.resize(tree.len() * dims.len(), Amounts::default());
        }
        self.seen.resize(nodes.blocks(), 0);
        self.seen_strips.resize(nodes.blocks() * STRIPS, 0);
        self.nodes.resize(nodes.blocks() * LANES * dims.len(), Amounts::default());
        for block in 0..nodes.blocks() {
            if std::mem::replace(&mut self.seen[block], nodes.version[block])
                == nodes.version[block]
            {
                continue;
            }
            for strip in block * STRIPS..(block + 1) * STRIPS {
                let version = nodes.strip_version[strip];
                if std::mem::replace(&mut self.seen_strips[strip], version) != version {
                    for slot in strip * STRIP..(strip + 1) * STRIP {
                        self.read(state, slot);
                    }
                }
            }
        }
    }

    fn read(&mut self, state: &State, slot: usize) {
        let count = self.dims.len();
        for at in 0..count {
            let column = &state.nodes.columns[self.dims[at] as usize];
            let now = Amounts {
                used: column.used[slot] + column.pipelined[slot],
                allocatable: column.alloc[slot],
            };
            let before = std::mem::replace(&mut self.nodes[slot * count + at], now);
            if before == now {
                continue;
            }
            let holders = state.hyper_nodes.tree().containing(slot as NodeId);
            for &domain in std::iter::once(&ROOT).chain(holders) {
                let sum = &mut self.domains[domain as usize * count + at];
                sum.used += now.used - before.used;
                sum.allocatable += now.allocatable - before.allocatable;
            }
        }
    }

    /// Weighted mean of the parts in use after a request, 0 where it would be more than all. The request is a list of
    /// position of the dimension, amount and weight.
    pub(super) fn packed(&self, domain: DomainId, request: &[(usize, f64, f64)]) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for &(at, amount, weight) in request {
            let Amounts { used, allocatable } =
                self.domains[domain as usize * self.dims.len() + at];
            if used + amount > allocatable {
                return 0.0;
            }
            sum += weight * (used + amount) / allocatable;
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }
}
