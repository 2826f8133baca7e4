//! Core and reference decide the same on random stories.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::lockstep::Lockstep;
use crate::story::stories;

/// Always the same stories, so that a change is judged by itself; the variables PROPTEST_CASES and PROPTEST_RNG_SEED
/// search further.
fn cases(default: u32) -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    ProptestConfig {
        cases: number("PROPTEST_CASES").map_or(default, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("PROPTEST_RNG_SEED").unwrap_or(20_261_202)),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn small_clusters_are_decided_as_the_reference_decides(story in stories(8)) {
        let played = Lockstep::play(&story);
        prop_assert!(played.is_ok(), "{}", played.err().unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn larger_clusters_are_decided_as_the_reference_decides(story in stories(40)) {
        let played = Lockstep::play(&story);
        prop_assert!(played.is_ok(), "{}", played.err().unwrap_or_default());
    }
}
