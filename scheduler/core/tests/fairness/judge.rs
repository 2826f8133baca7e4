//! Measures who got how much while who waited, and says whether it was fair.

use std::collections::BTreeMap;

use crate::up;

/// Figures of one story. Service is slots × ms; weights are whole numbers.
pub struct Judge {
    parents: Vec<Option<usize>>,
    weights: Vec<i128>,
    /// Slots of the cluster.
    slots: i128,
    entry_ms: i128,
    served: Vec<i128>,
    /// Most that gangs of a place had to run still, all together.
    under_way: Vec<i128>,
    /// Most slots that a place held.
    most: Vec<i128>,
    /// Pairs that both wait since some time: smallest and largest difference, in service × both weights.
    spans: BTreeMap<(usize, usize), (i128, i128)>,
    /// Largest difference between any two times of one span, by pair.
    worst: BTreeMap<(usize, usize), i128>,
}

/// A gang that runs.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub leaf: usize,
    pub slots: i128,
    pub ends_ms: i64,
}

impl Judge {
    pub fn new(parents: &[Option<usize>], weights: &[i128], slots: i128, entry_ms: i64) -> Self {
        let zeros = vec![0; parents.len()];
        Self {
            parents: parents.to_vec(),
            weights: weights.to_vec(),
            slots,
            entry_ms: entry_ms.into(),
            served: zeros.clone(),
            under_way: zeros.clone(),
            most: zeros,
            spans: BTreeMap::new(),
            worst: BTreeMap::new(),
        }
    }

    /// Time passes.
    pub fn run(&mut self, running: &[Running], ms: i64) {
        for gang in running {
            for at in up(&self.parents, gang.leaf) {
                self.served[at] += gang.slots * i128::from(ms);
            }
        }
    }

    /// A session has ended; `waiting` are the leaves that it left something waiting in.
    pub fn see(&mut self, now_ms: i64, running: &[Running], waiting: &[usize]) {
        let mut under_way = vec![0; self.parents.len()];
        let mut held = under_way.clone();
        for gang in running {
            for at in up(&self.parents, gang.leaf) {
                under_way[at] += gang.slots * i128::from(gang.ends_ms - now_ms);
                held[at] += gang.slots;
            }
        }
        for at in 0..self.parents.len() {
            self.under_way[at] = self.under_way[at].max(under_way[at]);
            self.most[at] = self.most[at].max(held[at]);
        }
        let mut waits = vec![false; self.parents.len()];
        for &leaf in waiting {
            up(&self.parents, leaf).for_each(|at| waits[at] = true);
        }
        for a in 0..self.parents.len() {
            for b in a + 1..self.parents.len() {
                if self.parents[a].is_none() || self.parents[a] != self.parents[b] {
                    continue;
                }
                if !waits[a] || !waits[b] {
                    self.spans.remove(&(a, b));
                    continue;
                }
                let difference =
                    self.served[a] * self.weights[b] - self.served[b] * self.weights[a];
                let span = self.spans.entry((a, b)).or_insert((difference, difference));
                *span = (span.0.min(difference), span.1.max(difference));
                let worst = self.worst.entry((a, b)).or_insert(0);
                *worst = (*worst).max(span.1 - span.0);
            }
        }
    }

    /// Every pair of siblings that waited together, with the difference of their service by weight (times both weights) and what is allowed: what
    /// both had under way, and, where starting is charged ahead, what that moved: their own charges, and twice the largest of a sibling, given back.
    pub fn verdict(&self) -> impl Iterator<Item = ((usize, usize), i128, i128)> + '_ {
        self.worst.iter().map(|(&(a, b), &worst)| {
            let (wa, wb) = (self.weights[a], self.weights[b]);
            let mut allowed = self.under_way[a] * wb + self.under_way[b] * wa;
            if self.entry_ms > 0 {
                let charge = |at: usize| self.entry_ms * self.most[at];
                allowed += charge(a) * wb + charge(b) * wa;
                let siblings =
                    (0..self.parents.len()).filter(|&at| self.parents[at] == self.parents[a]);
                let given_back = |at: usize| charge(at) * wa * wb / self.weights[at] + 1;
                allowed += 2 * siblings.map(given_back).max().unwrap_or(0);
            }
            ((a, b), worst, allowed)
        })
    }

    /// Slots × ms that a place has had.
    pub fn served(&self, at: usize) -> i128 {
        self.served[at]
    }

    /// Slots of the cluster.
    pub fn slots(&self) -> i128 {
        self.slots
    }

    /// # Panics
    /// When somebody got more than the bound allows.
    pub fn assert_fair(&self, story: &str) -> usize {
        let mut pairs = 0;
        for ((a, b), worst, allowed) in self.verdict() {
            // Tags are rounded down at each charge; a thousandth of a slot × ms covers thousands of them.
            let rounding = self.weights[a] * self.weights[b] / 1000 + 1;
            assert!(worst <= allowed + rounding, "{story}: {a} and {b}: {worst} > {allowed}");
            pairs += 1;
        }
        pairs
    }
}
