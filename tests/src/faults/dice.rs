//! Randomness from a seed. Each part of a run throws its own dice, so that a change in one part does not shift the others.

use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;

/// Dice of one part of a run.
#[derive(Clone, Debug)]
pub struct Dice(XorShiftRng);

impl Dice {
    /// Dice for `part` of the run of `seed`.
    #[must_use]
    pub fn new(seed: u64, part: u64) -> Self {
        let mixed =
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ part.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self(XorShiftRng::seed_from_u64(mixed))
    }

    /// A number from `least` to `most`, both included.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    /// True this often.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability.clamp(0.0, 1.0))
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.random_range(0..of.len())]
    }

    /// One of several by weight.
    pub fn weighted<T: Copy>(&mut self, of: &[(u32, T)]) -> T {
        let total = of.iter().map(|(weight, _)| weight).sum::<u32>().max(1);
        let mut at = self.0.random_range(0..total);
        for (weight, thing) in of {
            if at < *weight {
                return *thing;
            }
            at -= weight;
        }
        of[0].1
    }
}
