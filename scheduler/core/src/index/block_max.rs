//! Block-max index of one class: what it remembers per block, how it catches up with changed blocks, and how
//! it names the best node. Blocks of 64 nodes are grouped by 64 again, so that the best node of 100,000 is
//! found by looking at about 25 groups. Within a block only the strips of eight lanes that changed are evaluated again.

use std::ops::Range;
use std::sync::Arc;

use super::kernel::{Backend, BlockResult, Question, Room, evaluate, evaluate_lanes};
use super::score::ClassHot;
use crate::planted::{Bug, planted};
use crate::state::classes::{KeyId, StaticKey};
use crate::state::nodes::{LANES, NodeId, Nodes, STRIP, STRIPS};

const NONE: f64 = f64::NEG_INFINITY;

/// Index of one class.
#[derive(Debug)]
pub struct ClassIndex {
    /// The class, prepared for the kernel.
    pub hot: ClassHot,
    /// Its static key.
    pub key: KeyId,
    /// Bit per slot: only these count.
    only: Option<Arc<[u64]>>,
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
    /// Version of each strip when it was evaluated; 0 for never.
    seen_strips: Vec<u32>,
    strips: Vec<Strip>,
    /// Where the kernel writes.
    lanes: Box<BlockResult>,
}

/// Some neighbouring lanes in short.
#[derive(Clone, Copy, Debug)]
struct Strip {
    /// Best score, [`NONE`] where nothing fits.
    best: f64,
    /// Copies that fit.
    copies: u32,
    /// Lane of the best, the lowest among equals.
    lane: u8,
}

impl Default for Strip {
    fn default() -> Self {
        Self { best: NONE, copies: 0, lane: 0 }
    }
}

impl Strip {
    fn of(lanes: &BlockResult, strip: usize) -> Self {
        let range = strip * STRIP..(strip + 1) * STRIP;
        let (copies, scores) = (&lanes.copies[range.clone()], &lanes.score[range]);
        let mut fitting = [NONE; STRIP];
        for lane in 0..STRIP {
            fitting[lane] = if copies[lane] >= 1.0 { scores[lane] } else { NONE };
        }
        let best = fitting.into_iter().fold(NONE, |a, b| if b > a { b } else { a });
        let lane = if planted(Bug::TieByHash) {
            (0..STRIP).filter(|&lane| fitting[lane] == best).max_by_key(|lane| lane * 5 % STRIP)
        } else {
            fitting.iter().position(|&score| score == best)
        };
        let lane = (strip * STRIP + lane.unwrap_or(0)) as u8;
        let copies: f64 = copies.iter().sum();
        Self { best, copies: copies.min(f64::from(u32::MAX)) as u32, lane }
    }
}

impl ClassIndex {
    /// An index that knows nothing yet.
    pub fn new(hot: ClassHot, key: KeyId) -> Self {
        Self {
            hot,
            key,
            only: None,
            key_epoch: 0,
            constant: None,
            seen: Vec::new(),
            best: Vec::new(),
            lane: Vec::new(),
            copies: Vec::new(),
            group_best: Vec::new(),
            group_block: Vec::new(),
            total: 0,
            seen_strips: Vec::new(),
            strips: Vec::new(),
            lanes: Box::default(),
        }
    }

    /// An index of some nodes only: a bit per slot says which.
    pub fn within(hot: ClassHot, key: KeyId, only: Arc<[u64]>) -> Self {
        Self { only: Some(only), ..Self::new(hot, key) }
    }

    /// Lanes of a block that may take the class.
    fn mask(&self, key: &StaticKey, block: usize) -> u64 {
        let mask = key.mask.get(block).copied().unwrap_or(0);
        match &self.only {
            Some(only) => mask & only.get(block).copied().unwrap_or(0),
            None => mask,
        }
    }

    /// Makes room for new blocks, and forgets what a changed key makes wrong.
    fn prepare(&mut self, blocks: usize, key: &StaticKey) {
        if self.key_epoch != key.epoch || self.constant != key.constant {
            self.key_epoch = key.epoch;
            self.constant = key.constant;
            self.seen.fill(0);
            self.seen_strips.fill(0);
        }
        if self.seen.len() < blocks {
            self.seen.resize(blocks, 0);
            self.best.resize(blocks, NONE);
            self.lane.resize(blocks, 0);
            self.copies.resize(blocks, 0);
            self.seen_strips.resize(blocks * STRIPS, 0);
            self.strips.resize(blocks * STRIPS, Strip::default());
            self.group_best.resize(blocks.div_ceil(LANES), NONE);
            self.group_block.resize(blocks.div_ceil(LANES), 0);
        }
    }

    /// Catches up after one copy was placed on a node.
    pub fn placed(&mut self, nodes: &Nodes, key: &StaticKey, backend: Backend, node: NodeId) {
        let block = node as usize / LANES;
        self.catch_up(nodes, key, backend, block);
        self.regroup_after(block);
    }

    /// Evaluates the strips of a block that changed, and remembers what the block offers now.
    fn catch_up(&mut self, nodes: &Nodes, key: &StaticKey, backend: Backend, block: usize) {
        let mask = self.mask(key, block);
        let (first, end) = (block * STRIPS, (block + 1) * STRIPS);
        let mut at = if mask == 0 { end } else { first };
        if mask == 0 {
            self.strips[first..end].fill(Strip::default());
        }
        let mut fixed = [key.constant.unwrap_or(0.0); LANES];
        let current = |seen: &[u32], strip: usize| seen[strip] == nodes.strip_version[strip];
        while let Some(from) = (at..end).find(|&strip| !current(&self.seen_strips, strip)) {
            let to = (from..end).find(|&strip| current(&self.seen_strips, strip)).unwrap_or(end);
            let lanes = (from - first) * STRIP..(to - first) * STRIP;
            if key.constant.is_none() {
                fill_fixed(key, nodes, block, lanes.clone(), &mut fixed);
            }
            let question = question(&self.hot, nodes, mask, block, &fixed);
            evaluate_lanes(backend, &question, lanes, &mut self.lanes);
            for strip in from..to {
                self.strips[strip] = Strip::of(&self.lanes, strip - first);
                self.seen_strips[strip] = nodes.strip_version[strip];
            }
            at = to;
        }
        self.seen[block] = nodes.version[block];
        self.note(block);
    }

    /// Puts together what the strips of a block offer.
    fn note(&mut self, block: usize) {
        let (mut best, mut lane, mut copies) = (NONE, 0, 0_u32);
        for strip in &self.strips[block * STRIPS..(block + 1) * STRIPS] {
            if strip.best > best {
                (best, lane) = (strip.best, strip.lane);
            }
            copies = copies.saturating_add(strip.copies);
        }
        self.total -= u64::from(self.copies[block]);
        self.best[block] = best;
        self.lane[block] = lane;
        self.copies[block] = copies;
        self.total += u64::from(copies);
    }

    /// Keeps a group's best after one of its blocks changed.
    fn regroup_after(&mut self, block: usize) {
        let (group, best) = (block / LANES, self.best[block]);
        let (top, at) = (self.group_best[group], self.group_block[group] as usize);
        if best > top || best == top && block < at {
            self.group_best[group] = best;
            self.group_block[group] = block as u32;
        } else if block == at {
            self.regroup(group);
        }
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

    /// Nodes that would take a copy, in order. Looks at every block that has room: not for loops.
    pub fn takers<'i>(
        &'i self,
        nodes: &'i Nodes,
        key: &'i StaticKey,
        backend: Backend,
    ) -> impl Iterator<Item = NodeId> + 'i {
        let mut lanes = BlockResult::default();
        let with_room = (0..self.copies.len()).filter(|&block| self.copies[block] > 0);
        with_room.flat_map(move |block| {
            let question = question(&self.hot, nodes, self.mask(key, block), block, &[0.0; LANES]);
            evaluate(backend, &question, &mut lanes);
            let copies = lanes.copies;
            let takes = (0..LANES).filter(move |&lane| copies[lane] >= 1.0);
            takes.map(move |lane| (block * LANES + lane) as NodeId)
        })
    }
}

/// Lets indexes catch up with every block that changed since they looked last. The blocks are the outer loop: many
/// classes read the columns of a block while it is in the cache.
pub fn refresh_all<'i>(
    indexes: impl Iterator<Item = &'i mut ClassIndex>,
    nodes: &Nodes,
    keys: &[StaticKey],
    backend: Backend,
) {
    let blocks = nodes.blocks();
    let mut all: Vec<(&mut ClassIndex, &StaticKey)> = indexes
        .map(|index| {
            let key = &keys[index.key as usize];
            index.prepare(blocks, key);
            (index, key)
        })
        .collect();
    let mut moved = vec![false; all.len()];
    for group in 0..blocks.div_ceil(LANES) {
        moved.fill(false);
        for block in group * LANES..((group + 1) * LANES).min(blocks) {
            for ((index, key), moved) in all.iter_mut().zip(&mut moved) {
                if index.seen[block] != nodes.version[block] {
                    index.catch_up(nodes, key, backend, block);
                    *moved = true;
                }
            }
        }
        for ((index, _), _) in all.iter_mut().zip(&moved).filter(|(_, moved)| **moved) {
            index.regroup(group);
        }
    }
}

fn question<'q>(
    class: &'q ClassHot,
    nodes: &'q Nodes,
    mask: u64,
    block: usize,
    fixed: &'q [f64; LANES],
) -> Question<'q> {
    Question { class, nodes, block, mask, room: Room::Free, fixed }
}

/// Static scores of the lanes of a block.
pub fn fill_fixed(
    key: &StaticKey,
    nodes: &Nodes,
    block: usize,
    lanes: Range<usize>,
    fixed: &mut [f64; LANES],
) {
    for lane in lanes {
        let slot = block * LANES + lane;
        fixed[lane] = key.score(slot as NodeId, nodes.signature[slot]);
    }
}
