//! Pauses between attempts: exponential with jitter, seeded, so that a simulation repeats exactly.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Pauses of 100 ms, doubling up to 10 s, each stretched by up to its own length at random.
pub(crate) fn writes(seed: u64) -> ExponentialBackoff {
    pauses(seed, Duration::from_millis(100), Duration::from_secs(10))
}

/// Pauses of 800 ms, doubling up to 30 s: for lists and watches.
pub(crate) fn reads(seed: u64) -> ExponentialBackoff {
    pauses(seed, Duration::from_millis(800), Duration::from_secs(30))
}

fn pauses(seed: u64, least: Duration, most: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(least)
        .with_max_delay(most)
        .with_factor(2.0)
        .without_max_times()
        .with_jitter()
        .with_jitter_seed(seed)
        .build()
}

/// A seed from a name: the same object waits the same pauses in every run of a simulation.
pub(crate) fn seed(name: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    name.hash(&mut hasher);
    hasher.finish()
}
