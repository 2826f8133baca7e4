//! How many copies of a class fit into each hypernode, exactly: copies by node, added up along the tree, caught up
//! strip by strip with what changed since. Only classes of gangs that ask for a hypernode have one.

use super::kernel::{Backend, BlockResult, Question, Room, evaluate, evaluate_lanes};
use super::score::ClassHot;
use crate::state::classes::StaticKey;
use crate::state::hyper_nodes::{ROOT, Tree};
use crate::state::nodes::{LANES, NodeId, Nodes, STRIP, STRIPS};

/// Copies by domain of one class.
#[derive(Debug, Default)]
pub struct Capacity {
    tree_epoch: u32,
    key_epoch: u32,
    /// Version of each block and strip when it was evaluated; 0 for never.
    seen: Vec<u32>,
    seen_strips: Vec<u32>,
    by_slot: Vec<u32>,
    by_domain: Vec<u64>,
}

impl Capacity {
    /// Copies that fit now, by domain.
    pub fn by_domain(&self) -> &[u64] {
        &self.by_domain
    }

    /// Catches up with nodes, the class's key and the tree.
    pub fn refresh(
        &mut self,
        class: &ClassHot,
        key: &StaticKey,
        nodes: &Nodes,
        tree: &Tree,
        backend: Backend,
    ) {
        let blocks = nodes.blocks();
        if (self.tree_epoch, self.key_epoch) != (tree.epoch, key.epoch)
            || self.by_domain.len() != tree.len()
        {
            *self = Self { tree_epoch: tree.epoch, key_epoch: key.epoch, ..Self::default() };
            self.by_domain.resize(tree.len(), 0);
        }
        self.seen.resize(blocks, 0);
        self.seen_strips.resize(blocks * STRIPS, 0);
        self.by_slot.resize(blocks * LANES, 0);
        let mut lanes = BlockResult::default();
        for block in 0..blocks {
            if self.seen[block] == nodes.version[block] {
                continue;
            }
            self.seen[block] = nodes.version[block];
            let question = question(class, key, nodes, block, Room::Free);
            for strip in 0..STRIPS {
                let at = block * STRIPS + strip;
                if self.seen_strips[at] == nodes.strip_version[at] {
                    continue;
                }
                self.seen_strips[at] = nodes.strip_version[at];
                let range = strip * STRIP..(strip + 1) * STRIP;
                if question.mask != 0 {
                    evaluate_lanes(backend, &question, range.clone(), &mut lanes);
                }
                for lane in range {
                    let copies = if question.mask == 0 { 0 } else { whole(lanes.copies[lane]) };
                    self.set(block * LANES + lane, copies, tree);
                }
            }
        }
    }

    fn set(&mut self, slot: usize, copies: u32, tree: &Tree) {
        let before = std::mem::replace(&mut self.by_slot[slot], copies);
        if before == copies {
            return;
        }
        for &domain in std::iter::once(&ROOT).chain(tree.containing(slot as NodeId)) {
            let sum = &mut self.by_domain[domain as usize];
            *sum = *sum + u64::from(copies) - u64::from(before);
        }
    }
}

/// Copies that will fit once what is being deleted is gone, by domain. Looks at every node.
pub fn future_copies(
    class: &ClassHot,
    key: &StaticKey,
    nodes: &Nodes,
    tree: &Tree,
    backend: Backend,
) -> Vec<u64> {
    let mut by_domain = vec![0; tree.len()];
    let mut lanes = BlockResult::default();
    for block in 0..nodes.blocks() {
        let question = question(class, key, nodes, block, Room::Future);
        if question.mask == 0 {
            continue;
        }
        evaluate(backend, &question, &mut lanes);
        for (lane, &copies) in lanes.copies.iter().enumerate().filter(|(_, copies)| **copies >= 1.0)
        {
            let holders = tree.containing((block * LANES + lane) as NodeId);
            for &domain in std::iter::once(&ROOT).chain(holders) {
                by_domain[domain as usize] += u64::from(whole(copies));
            }
        }
    }
    by_domain
}

fn question<'q>(
    class: &'q ClassHot,
    key: &StaticKey,
    nodes: &'q Nodes,
    block: usize,
    room: Room,
) -> Question<'q> {
    let mask = key.mask.get(block).copied().unwrap_or(0);
    Question { class, nodes, block, mask, room, fixed: &[0.0; LANES] }
}

fn whole(copies: f64) -> u32 {
    copies.clamp(0.0, f64::from(u32::MAX)) as u32
}
