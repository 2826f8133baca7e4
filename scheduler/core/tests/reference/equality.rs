//! Core and reference decide the same on random stories.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tephra_core::event::QueueState;

use crate::lockstep::Lockstep;
use crate::objects::NodeSeed;
use crate::story::{GangSeed, QueueSeed, RoleSeed, Step, Story, stories};

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

/// Found by a search of 20,000 stories: backfill made a gang whole that allocate had set aside before, and its other pod was
/// not looked at again.
#[test]
fn a_gang_that_backfill_makes_whole_is_not_set_aside_any_more() {
    let node = |shape, taint| NodeSeed { shape, zone: 0, pool: 0, taint, cordoned: false };
    let queue = QueueSeed {
        weight: 1,
        priority: 0,
        capability: None,
        guarantee: None,
        state: QueueState::Open,
        fifo: false,
    };
    let role = |count, shape, constraint, minimum, named| RoleSeed {
        count,
        shape,
        constraint,
        priority: 1,
        minimum,
        named,
        gated: false,
        nominated: None,
    };
    let gang = |roles, minimum, role_minimums| GangSeed {
        queue: 0,
        roles,
        minimum,
        role_minimums,
        priority_class: 0,
        admitted: false,
        min_resources: 0,
        created: 0,
        elsewhere: false,
        absent: false,
    };
    let story = Story {
        conf: 0,
        nodes: vec![node(0, 9), node(0, 9), node(1, 7), node(0, 7)],
        queues: vec![queue.clone(), queue],
        residents: Vec::new(),
        gangs: vec![
            gang(vec![role(2, 0, 15, 2, true), role(1, 1, 0, 0, false)], 2, true),
            gang(vec![role(1, 1, 0, 0, false)], 4, false),
        ],
        present: 2,
        steps: vec![Step::Session],
        ends: vec![2],
    };
    let played = Lockstep::play(&story).unwrap_or_else(|difference| panic!("{difference}"));
    assert_eq!(played.binds.len(), 4, "{:?}", played.binds);
}
