//! Fingerprints: one number for much content, so that "has anything changed?" is one comparison. They are sums of well-mixed
//! parts: a part that is taken out again leaves no trace, in whatever order things were done and undone. That two contents have
//! the same fingerprint by chance happens once in 2^64 comparisons.

use super::tasks::{Task, TaskId};

/// A fingerprint of a set of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Adds a part, or takes it out where the sign is negative.
    pub fn add(&mut self, part: u64, sign: i64) {
        self.0 = if sign > 0 { self.0.wrapping_add(part) } else { self.0.wrapping_sub(part) };
    }
}

/// One number for several in their order.
pub fn mix(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |mixed, word| {
        // The finisher of splitmix64.
        let mut word = (mixed ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// The part of a pod that has, or had, a node: who it is, where it is, how it stands there and since when.
pub fn of_placed(id: TaskId, row: &Task) -> u64 {
    mix([
        u64::from(id) << 32 | u64::from(row.node),
        u64::from(row.job) << 32 | u64::from(row.class),
        (row.started_ms as u64) << 8 ^ row.status as u64,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_leaves_no_trace_in_any_order() {
        let mut sum = Fingerprint::default();
        let parts = [[1, 2], [2, 1], [0, 0]].map(mix);
        parts.iter().for_each(|&part| sum.add(part, 1));
        let all = sum;
        sum.add(parts[0], -1);
        assert_ne!(sum, all);
        sum.add(parts[2], -1);
        sum.add(parts[1], -1);
        assert_eq!(sum, Fingerprint::default());
    }
}
