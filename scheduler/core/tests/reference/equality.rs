//! Core and reference decide the same on random stories.

use proptest::prelude::*;

use crate::lockstep::Lockstep;
use crate::story::stories;

fn cases(default: u32) -> ProptestConfig {
    // PROPTEST_CASES widens the search.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn small_clusters_are_decided_as_the_reference_decides(story in stories(8)) {
        let played = Lockstep::play(&story);
        prop_assert!(played.is_ok(), "{}", played.err().unwrap_or_default());
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn larger_clusters_are_decided_as_the_reference_decides(story in stories(40)) {
        let played = Lockstep::play(&story);
        prop_assert!(played.is_ok(), "{}", played.err().unwrap_or_default());
    }
}
