//! Plugin `wfq` keeps its promise (core.md 9.6): of queues side by side that wait all the time, none gets further ahead by weight than what it has
//! under way. [`model`] checks the arithmetic of turns on very many random trees and loads, [`played`] the whole core on some hundred; [`judge`]
//! measures service by itself and knows nothing of tags.
//!
//! What is assumed: one resource, exact run times, and nobody passes a head that does not fit (in the model the head blocks, in the core all gangs of
//! a story are alike, so that a place for one is a place for any). Equal queue priorities.

#![allow(unreachable_pub, reason = "the judge is written like a library")]
#![allow(clippy::unwrap_used, reason = "a story that cannot be played is a failed test")]

mod judge;
mod model;
mod played;

/// Numbers that look random and follow from a seed.
#[derive(Debug)]
pub struct Noise(pub u64);

impl Noise {
    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

/// Parents by number; 0 is the root. Every inner place has at least one below it, leaves are those with none.
pub fn tree(noise: &mut Noise) -> Vec<Option<usize>> {
    let places = 3 + noise.below(8) as usize;
    let parent = |at: usize, noise: &mut Noise| match at {
        0 => None,
        1 | 2 => Some(0),
        _ => Some(noise.below(at as u64) as usize),
    };
    (0..places).map(|at| parent(at, noise)).collect()
}

/// Places that nothing stands below.
pub fn leaves(parents: &[Option<usize>]) -> Vec<usize> {
    (0..parents.len()).filter(|&at| !parents.contains(&Some(at))).collect()
}

/// The place and all above it but the root.
pub fn up(parents: &[Option<usize>], at: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(at), |&at| parents[at]).take_while(|&at| parents[at].is_some())
}
