//! Nodes in the order in which a search for room looks at them: those where a copy of a class fits once enough pods
//! leave, the one that lacks least first. Blocks of nodes are evaluated as a whole; what was tried in vain is left out.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::index::kernel::Backend;
use crate::index::lack::{Demand, lacks};
use crate::state::State;
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::nodes::{LANES, NodeId};
use crate::state::reach::Leaving;
use crate::state::resource::Dim;

/// Part of a resource's cluster total that a copy lacks, summed over resources; [`f64::INFINITY`] for "never fits".
type Lack = f64;

/// What is to be ranked.
#[derive(Clone, Debug)]
pub(super) struct Question<'q> {
    /// Class of the pods.
    pub(super) class: ClassId,
    /// Step of [`crate::state::reach::Reach`].
    pub(super) step: usize,
    /// Who may leave.
    pub(super) leaving: Leaving,
    /// Instruction set.
    pub(super) backend: Backend,
    /// Nodes where somebody may leave, by block; others count only if nobody has to.
    pub(super) among: Option<&'q [u64]>,
    /// Nodes that may be used at all, by block.
    pub(super) within: Option<Arc<[u64]>>,
}

/// Nodes for one class at one step of [`crate::state::reach::Reach`].
#[derive(Debug)]
pub(super) struct Ranking {
    /// Dimension, amount of a copy, and the weight of a unit that is missing.
    request: Vec<(Dim, f64, f64)>,
    step: usize,
    leaving: Leaving,
    backend: Backend,
    within: Option<Arc<[u64]>>,
    /// Lanes that may still be looked at, by block.
    open: Vec<u64>,
    /// Least lack of each block and its lane.
    best: Vec<(Lack, u8)>,
}

impl Ranking {
    pub(super) fn new(state: &State, question: Question<'_>) -> Self {
        let Question { class, step, leaving, backend, among, within } = question;
        let row = &state.classes.list[class as usize];
        let weight = |dim| 1.0 / (state.total.get(dim).max(1) as f64);
        let request =
            row.request.iter().map(|&(dim, amount)| (dim, amount as f64, weight(dim))).collect();
        let blocks = state.nodes.blocks();
        let (open, best) = (vec![0; blocks], vec![(Lack::INFINITY, 0); blocks]);
        let mut ranking = Self { request, step, leaving, backend, within, open, best };
        if row.key == NO_KEY || row.impossible.is_some() {
            return ranking;
        }
        let key = &state.classes.keys[row.key as usize];
        for block in 0..blocks {
            let mask = key.mask.get(block).copied().unwrap_or(0)
                & lanes_of(ranking.within.as_deref(), block);
            let among = among.map_or(u64::MAX, |among| among[block]);
            if mask == 0 {
                continue;
            }
            ranking.open[block] = mask & (among | ranking.free_lanes(state, block));
            ranking.evaluate(state, block);
        }
        ranking
    }

    /// The node that lacks least; the lowest slot among equals.
    pub(super) fn best(&self) -> Option<NodeId> {
        let mut best = (Lack::INFINITY, 0);
        for (block, &(lack, lane)) in self.best.iter().enumerate() {
            if lack < best.0 {
                best = (lack, block * LANES + usize::from(lane));
            }
        }
        (best.0 < Lack::INFINITY).then_some(best.1 as NodeId)
    }

    /// Looks again at nodes that somebody left or came to, also if they were left out before. They are in order.
    pub(super) fn see_changes(&mut self, state: &State, class: ClassId, nodes: &[NodeId]) {
        let block_of = |node: NodeId| node as usize / LANES;
        let key = state.classes.list[class as usize].key;
        for nodes in nodes.chunk_by(|&a, &b| block_of(a) == block_of(b)) {
            let block = block_of(nodes[0]);
            for &node in nodes {
                let lane = node as usize % LANES;
                let may = key != NO_KEY && state.classes.keys[key as usize].allows(node);
                if may && lanes_of(self.within.as_deref(), block) >> lane & 1 == 1 {
                    self.open[block] |= 1 << lane;
                }
            }
            self.evaluate(state, block);
        }
    }

    /// Leaves a node out from now on.
    pub(super) fn exclude(&mut self, state: &State, node: NodeId) {
        self.open[node as usize / LANES] &= !(1 << (node as usize % LANES));
        self.evaluate(state, node as usize / LANES);
    }

    /// Looks at the block of a node again.
    fn evaluate(&mut self, state: &State, block: usize) {
        let demands: SmallVec<[Demand<'_>; 6]> = self
            .request
            .iter()
            .map(|&(dim, amount, weight)| {
                let now = lanes(state.reach.column(0, Leaving::Surplus, dim), block);
                let then = lanes(state.reach.column(self.step, self.leaving, dim), block);
                Demand { amount, weight, now, then }
            })
            .collect();
        let lacks = lacks(self.backend, &demands);
        let mut best = (Lack::INFINITY, 0);
        for (lane, &lack) in lacks.iter().enumerate() {
            if lack < best.0 && self.open[block] >> lane & 1 == 1 {
                best = (lack, lane as u8);
            }
        }
        self.best[block] = best;
    }

    /// Lanes where a copy fits without anybody leaving.
    fn free_lanes(&self, state: &State, block: usize) -> u64 {
        let mut fits = [true; LANES];
        for &(dim, amount, _) in &self.request {
            let now = lanes(state.reach.column(0, Leaving::Surplus, dim), block);
            for (fits, now) in fits.iter_mut().zip(now) {
                *fits &= amount <= *now;
            }
        }
        (0..LANES).fold(0, |bits, lane| bits | u64::from(fits[lane]) << lane)
    }
}

/// Copies of a class that would fit if everybody left who may, counted until there are `need`: an upper bound that mostly
/// ends after a few blocks.
pub(super) fn copies(state: &State, question: &Question<'_>, need: u64) -> u64 {
    let row = &state.classes.list[question.class as usize];
    if row.key == NO_KEY || row.impossible.is_some() {
        return 0;
    }
    let key = &state.classes.keys[row.key as usize];
    let mut total = 0;
    for block in 0..state.nodes.blocks() {
        let within = lanes_of(question.within.as_deref(), block);
        let mask = key.mask.get(block).copied().unwrap_or(0) & within;
        if mask == 0 {
            continue;
        }
        let mut copies = [f64::MAX; LANES];
        for &(dim, amount) in row.request.iter().filter(|(_, amount)| *amount > 0) {
            let room = lanes(state.reach.column(question.step, question.leaving, dim), block);
            for (copies, room) in copies.iter_mut().zip(room) {
                *copies = copies.min((room / amount as f64).floor());
            }
        }
        let open = |lane: &usize| mask >> lane & 1 == 1;
        total += (0..LANES).filter(open).map(|lane| copies[lane].max(0.0) as u64).sum::<u64>();
        if total >= need {
            break;
        }
    }
    total
}

/// Lanes of a block that a set of nodes has; no set is all nodes.
pub(super) fn lanes_of(nodes: Option<&[u64]>, block: usize) -> u64 {
    nodes.map_or(u64::MAX, |bits| bits.get(block).copied().unwrap_or(0))
}

/// The lanes of a block; a column is always padded to whole blocks.
fn lanes(column: &[f64], block: usize) -> &[f64; LANES] {
    static NONE: [f64; LANES] = [0.0; LANES];
    column.as_chunks().0.get(block).unwrap_or(&NONE)
}
