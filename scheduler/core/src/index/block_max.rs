//! Block-max index of one class: what it remembers per block, how it catches up with changed blocks, and how
//! it names the best node. Blocks of 64 nodes are grouped by 64 again, so that the best node of 100,000 is
//! found by looking at about 25 groups.

use std::ops::Range;

use super::kernel::{Backend, BlockResult, Question, Room, evaluate, evaluate_lanes};
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
    /// The block that was evaluated last, with all its lanes: the next placement often falls on it again.
    last: Option<Box<Recent>>,
}

/// Every lane of one block.
#[derive(Debug, Default)]
struct Recent {
    block: Option<usize>,
    lanes: BlockResult,
    strips: [Strip; STRIPS],
}

/// Some neighbouring lanes in short.
#[derive(Clone, Copy, Debug)]
struct Strip {
    /// Best score, [`NONE`] where nothing fits.
    best: f64,
    /// Its lane, the lowest among equals.
    lane: u8,
    /// Copies that fit.
    copies: f64,
}

impl Default for Strip {
    fn default() -> Self {
        Self { best: NONE, lane: 0, copies: 0.0 }
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
        Self { best, lane, copies: copies.iter().sum() }
    }
}

/// Lanes that are evaluated together after a placement: as many as the widest vectors hold.
const STRIP: usize = 8;
const STRIPS: usize = LANES / STRIP;

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
            last: None,
        }
    }

    /// Makes room for new blocks, and forgets what a changed key makes wrong.
    fn prepare(&mut self, blocks: usize, key: &StaticKey) {
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
    }

    /// Catches up after one copy was placed on a node.
    pub fn placed(&mut self, nodes: &Nodes, key: &StaticKey, backend: Backend, node: NodeId) {
        let (block, lane) = (node as usize / LANES, node as usize % LANES);
        let mut last = self.last.take().unwrap_or_default();
        let mut fixed = [key.constant.unwrap_or(0.0); LANES];
        let only_this = nodes.version[block] == self.seen[block].wrapping_add(1);
        if last.block == Some(block) && only_this {
            let strip = lane / STRIP;
            let lanes = strip * STRIP..(strip + 1) * STRIP;
            if key.constant.is_none() {
                fill_fixed(key, nodes, block, lanes.clone(), &mut fixed);
            }
            let question = self.question(nodes, key, block, &fixed);
            evaluate_lanes(backend, &question, lanes, &mut last.lanes);
            last.strips[strip] = Strip::of(&last.lanes, strip);
            self.note(nodes, block, &last.strips);
        } else {
            self.evaluate(nodes, key, backend, block, &mut fixed, &mut last);
        }
        self.last = Some(last);
        self.regroup_after(block);
    }

    fn question<'q>(
        &'q self,
        nodes: &'q Nodes,
        key: &StaticKey,
        block: usize,
        fixed: &'q [f64; LANES],
    ) -> Question<'q> {
        let mask = key.mask.get(block).copied().unwrap_or(0);
        Question { class: &self.hot, nodes, block, mask, room: Room::Free, fixed }
    }

    fn evaluate(
        &mut self,
        nodes: &Nodes,
        key: &StaticKey,
        backend: Backend,
        block: usize,
        fixed: &mut [f64; LANES],
        last: &mut Recent,
    ) {
        if key.mask.get(block).is_none_or(|&mask| mask == 0) {
            self.seen[block] = nodes.version[block];
            self.total -= u64::from(self.copies[block]);
            self.best[block] = NONE;
            self.copies[block] = 0;
            return;
        }
        if key.constant.is_none() {
            fill_fixed(key, nodes, block, 0..LANES, fixed);
        }
        last.block = Some(block);
        evaluate(backend, &self.question(nodes, key, block, fixed), &mut last.lanes);
        for (number, strip) in last.strips.iter_mut().enumerate() {
            *strip = Strip::of(&last.lanes, number);
        }
        self.note(nodes, block, &last.strips);
    }

    /// Remembers what a block offers now.
    fn note(&mut self, nodes: &Nodes, block: usize, strips: &[Strip; STRIPS]) {
        let (mut best, mut lane, mut copies) = (NONE, 0, 0.0);
        for strip in strips {
            if strip.best > best {
                (best, lane) = (strip.best, strip.lane);
            }
            copies += strip.copies;
        }
        let copies = copies.min(f64::from(u32::MAX)) as u32;
        self.seen[block] = nodes.version[block];
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

    /// Nodes that would take a copy. Looks at every block that has room: not for loops.
    pub fn choices(&self, nodes: &Nodes, key: &StaticKey, backend: Backend) -> u32 {
        let mut lanes = BlockResult::default();
        let with_room = (0..self.copies.len()).filter(|&block| self.copies[block] > 0);
        let choices = with_room.map(|block| {
            evaluate(backend, &self.question(nodes, key, block, &[0.0; LANES]), &mut lanes);
            lanes.copies.iter().filter(|&&copies| copies >= 1.0).count() as u32
        });
        choices.sum()
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
    let mut all: Vec<(&mut ClassIndex, &StaticKey, Box<Recent>)> = indexes
        .map(|index| {
            let key = &keys[index.key as usize];
            index.prepare(blocks, key);
            let last = index.last.take().unwrap_or_default();
            (index, key, last)
        })
        .collect();
    for group in 0..blocks.div_ceil(LANES) {
        let mut moved = vec![false; all.len()];
        for block in group * LANES..((group + 1) * LANES).min(blocks) {
            for ((index, key, last), moved) in all.iter_mut().zip(&mut moved) {
                if index.seen[block] != nodes.version[block] {
                    let mut fixed = [key.constant.unwrap_or(0.0); LANES];
                    index.evaluate(nodes, key, backend, block, &mut fixed, last);
                    *moved = true;
                }
            }
        }
        for ((index, ..), _) in all.iter_mut().zip(moved).filter(|(_, moved)| *moved) {
            index.regroup(group);
        }
    }
    for (index, _, last) in all {
        index.last = Some(last);
    }
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
