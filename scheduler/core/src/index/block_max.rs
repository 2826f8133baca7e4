//! Block-max index of one class: what it remembers per block, how it catches up with changed blocks, and how
//! it names the best node. Blocks of 64 nodes are grouped by 64 again, so that the best node of 100,000 is
//! found by looking at about 25 groups.

use super::kernel::{Backend, BlockResult, Question, Room, evaluate};
use super::score::ClassHot;
use crate::planted::{Bug, planted};
use crate::state::classes::{KeyId, StaticKey};
use crate::state::nodes::{LANES, NodeId, Nodes};

const NONE: f64 = f64::NEG_INFINITY;

/// Index of one class.
#[derive(Debug)]
pub struct ClassIndex {
    /// The class, prepared for the kernel.
    pub hot: ClassHot,
    /// Its static key.
    pub key: KeyId,
    key_epoch: u32,
    constant: Option<f64>,
    /// Version of each block when it was evaluated; 0 for never.
    seen: Vec<u32>,
    best: Vec<f64>,
    lane: Vec<u8>,
    copies: Vec<u32>,
    /// Best block of each group of 64 blocks.
    group_best: Vec<f64>,
    group_block: Vec<u32>,
    total: u64,
}

impl ClassIndex {
    /// An index that knows nothing yet.
    pub fn new(hot: ClassHot, key: KeyId) -> Self {
        Self {
            hot,
            key,
            key_epoch: 0,
            constant: None,
            seen: Vec::new(),
            best: Vec::new(),
            lane: Vec::new(),
            copies: Vec::new(),
            group_best: Vec::new(),
            group_block: Vec::new(),
            total: 0,
        }
    }

    /// Catches up with every block that changed since the last call.
    pub fn refresh(&mut self, nodes: &Nodes, key: &StaticKey, backend: Backend) {
        let blocks = nodes.blocks();
        if self.key_epoch != key.epoch || self.constant != key.constant {
            self.key_epoch = key.epoch;
            self.constant = key.constant;
            self.seen.iter_mut().for_each(|seen| *seen = 0);
        }
        if self.seen.len() < blocks {
            self.seen.resize(blocks, 0);
            self.best.resize(blocks, NONE);
            self.lane.resize(blocks, 0);
            self.copies.resize(blocks, 0);
            self.group_best.resize(blocks.div_ceil(LANES), NONE);
            self.group_block.resize(blocks.div_ceil(LANES), 0);
        }
        let mut out = BlockResult::default();
        let mut fixed = [key.constant.unwrap_or(0.0); LANES];
        for group in 0..self.group_best.len() {
            let mut moved = false;
            for block in group * LANES..((group + 1) * LANES).min(blocks) {
                if self.seen[block] != nodes.version[block] {
                    self.evaluate(nodes, key, backend, block, &mut fixed, &mut out);
                    moved = true;
                }
            }
            if moved {
                self.regroup(group);
            }
        }
    }

    /// Evaluates one block again, after a placement on it.
    pub fn refresh_block(
        &mut self,
        nodes: &Nodes,
        key: &StaticKey,
        backend: Backend,
        block: usize,
    ) {
        let mut out = BlockResult::default();
        let mut fixed = [key.constant.unwrap_or(0.0); LANES];
        self.evaluate(nodes, key, backend, block, &mut fixed, &mut out);
        self.regroup(block / LANES);
    }

    fn evaluate(
        &mut self,
        nodes: &Nodes,
        key: &StaticKey,
        backend: Backend,
        block: usize,
        fixed: &mut [f64; LANES],
        out: &mut BlockResult,
    ) {
        self.seen[block] = nodes.version[block];
        self.total -= u64::from(self.copies[block]);
        let mask = key.mask.get(block).copied().unwrap_or(0);
        if mask == 0 {
            self.best[block] = NONE;
            self.copies[block] = 0;
            return;
        }
        if key.constant.is_none() {
            fill_fixed(key, nodes, block, fixed);
        }
        let class = &self.hot;
        let question = Question { class, nodes, block, mask, room: Room::Free, fixed };
        evaluate(backend, &question, out);
        let (best, lane, copies) = summary(out);
        self.best[block] = best;
        self.lane[block] = lane;
        self.copies[block] = copies;
        self.total += u64::from(copies);
    }

    fn regroup(&mut self, group: usize) {
        let start = group * LANES;
        let end = (start + LANES).min(self.best.len());
        let (mut best, mut at) = (NONE, start);
        for block in start..end {
            if self.best[block] > best {
                best = self.best[block];
                at = block;
            }
        }
        self.group_best[group] = best;
        self.group_block[group] = at as u32;
    }

    /// The best node for one more copy; the lowest slot among equals.
    pub fn best(&self) -> Option<NodeId> {
        let (mut best, mut block) = (NONE, 0);
        for (value, at) in self.group_best.iter().zip(&self.group_block) {
            if *value > best {
                best = *value;
                block = *at as usize;
            }
        }
        (best > NONE).then(|| (block * LANES) as NodeId + NodeId::from(self.lane[block]))
    }

    /// Copies that fit in the whole cluster.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Static scores of the lanes of a block.
pub fn fill_fixed(key: &StaticKey, nodes: &Nodes, block: usize, fixed: &mut [f64; LANES]) {
    for (lane, fixed) in fixed.iter_mut().enumerate() {
        let slot = block * LANES + lane;
        *fixed = key.score(slot as NodeId, nodes.signature[slot]);
    }
}

/// Best score, its lane (lowest among equals) and the sum of copies of a block.
pub fn summary(out: &BlockResult) -> (f64, u8, u32) {
    let mut fitting = [NONE; LANES];
    let mut copies = [0.0; 8];
    for chunk in 0..LANES / 8 {
        for (i, copies) in copies.iter_mut().enumerate() {
            let lane = chunk * 8 + i;
            fitting[lane] = if out.copies[lane] >= 1.0 { out.score[lane] } else { NONE };
            *copies += out.copies[lane];
        }
    }
    let mut top = [NONE; 8];
    for chunk in fitting.chunks_exact(8) {
        for i in 0..8 {
            top[i] = if chunk[i] > top[i] { chunk[i] } else { top[i] };
        }
    }
    let best = top.into_iter().fold(NONE, |a, b| if b > a { b } else { a });
    let lane = if planted(Bug::TieByHash) {
        (0..LANES)
            .filter(|&lane| fitting[lane] == best)
            .max_by_key(|lane| lane.wrapping_mul(0x9E37) % 61)
    } else {
        fitting.iter().position(|&score| score == best)
    };
    let sum: f64 = copies.into_iter().sum();
    (best, lane.unwrap_or(0) as u8, sum.min(f64::from(u32::MAX)) as u32)
}
