//! The formulas against worked examples and against integer arithmetic as Volcano does it.

use proptest::prelude::*;

use super::*;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

fn balanced(pairs: &[(f64, f64)]) -> f64 {
    let resources: Vec<Balanced> =
        pairs.iter().map(|&(requested, allocatable)| Balanced { requested, allocatable }).collect();
    balanced_allocation(&resources)
}

fn packed(request: f64, used: f64, allocatable: f64, weight: f64) -> Packed {
    Packed { request, used, allocatable, weight }
}

#[test]
fn least_allocated_prefers_the_emptier_node() {
    assert_eq!(least_allocated([1000.0, 1e9], [2000.0, 4.0 * GIB]), 63.0); // (50 + 76) / 2
    assert_eq!(least_allocated([1000.0, 1e9], [4000.0, 8.0 * GIB]), 81.0); // (75 + 88) / 2, cut
    assert_eq!(least_allocated([0.0, 0.0], [4000.0, 8.0 * GIB]), 100.0);
    assert_eq!(least_allocated([4000.0, 8.0 * GIB], [4000.0, 8.0 * GIB]), 0.0);
}

#[test]
fn most_allocated_prefers_the_fuller_node() {
    assert_eq!(most_allocated([1000.0, 1e9], [2000.0, 4.0 * GIB]), 36.0); // (50 + 23) / 2, cut
    assert_eq!(most_allocated([1000.0, 1e9], [4000.0, 8.0 * GIB]), 18.0); // (25 + 11) / 2
    assert_eq!(most_allocated([0.0, 0.0], [4000.0, 8.0 * GIB]), 0.0);
}

#[test]
fn an_overfull_resource_counts_as_full() {
    assert_eq!(least_allocated([5000.0, 0.0], [4000.0, GIB]), 50.0);
    assert_eq!(most_allocated([5000.0, 0.0], [4000.0, GIB]), 50.0);
}

#[test]
fn a_resource_that_the_node_lacks_is_left_out_of_the_mean() {
    assert_eq!(least_allocated([1000.0, GIB], [4000.0, 0.0]), 75.0);
    assert_eq!(most_allocated([1000.0, GIB], [0.0, 4.0 * GIB]), 25.0);
    assert_eq!(least_allocated([1000.0, GIB], [0.0, 0.0]), 0.0);
    assert_eq!(most_allocated([1000.0, GIB], [0.0, 0.0]), 0.0);
}

#[test]
fn balanced_allocation_of_two_is_half_their_distance() {
    assert_eq!(balanced(&[(1000.0, 2000.0), (GIB, 2.0 * GIB)]), 100.0);
    assert_eq!(balanced(&[(2000.0, 2000.0), (0.0, 2.0 * GIB)]), 50.0);
    assert_eq!(balanced(&[(1000.0, 4000.0), (GIB, 2.0 * GIB)]), 87.0);
}

#[test]
fn balanced_allocation_of_three_is_their_standard_deviation() {
    // Fractions 1, 0, 0: deviation sqrt(2)/3.
    assert_eq!(balanced(&[(8.0, 8.0), (0.0, 8.0), (0.0, 8.0)]), 52.0);
    assert_eq!(balanced(&[(4.0, 8.0), (2.0, 4.0), (1.0, 2.0)]), 100.0);
}

#[test]
fn balanced_allocation_caps_fractions_and_skips_what_the_node_lacks() {
    assert_eq!(balanced(&[(9.0, 3.0), (5.0, 5.0)]), 100.0);
    assert_eq!(balanced(&[(1.0, 2.0), (1.0, 0.0), (1.0, 2.0)]), 100.0);
    assert_eq!(balanced(&[(1.0, 0.0), (1.0, 4.0)]), 100.0);
    assert_eq!(balanced(&[]), 100.0);
}

#[test]
fn balanced_allocation_is_silent_for_pods_that_ask_for_nothing() {
    assert!(!balanced_applies(0, 0, 0));
    assert!(balanced_applies(1, 0, 0));
    assert!(balanced_applies(0, 1, 0));
    assert!(balanced_applies(0, 0, 1));
}

#[test]
fn binpack_weighs_how_full_each_resource_becomes() {
    let cpu = packed(1000.0, 1000.0, 4000.0, 5.0);
    let memory = packed(GIB, 0.0, 4.0 * GIB, 1.0);
    assert_eq!(binpack([cpu, memory], 10.0), (2.5 + 0.25) / 6.0 * 1000.0);
}

#[test]
fn binpack_is_zero_when_any_weighted_resource_does_not_fit() {
    let fits = packed(1.0, 0.0, 4.0, 1.0);
    assert_eq!(binpack([fits, packed(2.0, 3.0, 4.0, 1.0)], 1.0), 0.0);
    assert_eq!(binpack([fits, packed(2.0, 2.0, 4.0, 1.0)], 1.0), 62.5);
    assert_eq!(binpack([fits, packed(9.0, 0.0, 4.0, 0.0)], 1.0), 25.0);
}

#[test]
fn binpack_lets_a_missing_resource_lower_the_mean() {
    let cpu = packed(2.0, 0.0, 4.0, 1.0);
    assert_eq!(binpack([cpu], 1.0), 50.0);
    assert_eq!(binpack([cpu, packed(1.0, 0.0, 0.0, 1.0)], 1.0), 25.0);
}

#[test]
fn binpack_without_weights_scores_nothing() {
    assert_eq!(binpack([], 1.0), 0.0);
    assert_eq!(binpack([packed(1.0, 0.0, 4.0, 0.0)], 1.0), 0.0);
}

#[test]
fn binpack_takes_a_negative_plugin_weight() {
    assert_eq!(binpack([packed(2.0, 0.0, 4.0, 1.0)], -2.0), -100.0);
}

/// As kube-scheduler computes it, in integers.
fn integer_mean(req: [i64; 2], alloc: [i64; 2], weight: i64, one: impl Fn(i64, i64) -> i64) -> i64 {
    let (mut sum, mut weights) = (0, 0);
    for (req, alloc) in req.into_iter().zip(alloc) {
        if alloc != 0 {
            sum += one(req, alloc) * weight;
            weights += weight;
        }
    }
    if weights == 0 { 0 } else { sum / weights }
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 1_i64..100, 1_i64..1_000_000, 1_i64..(1 << 46)]
}

proptest! {
    #[test]
    fn least_allocated_equals_integer_arithmetic(
        req in [amount(), amount()],
        alloc in [amount(), amount()],
    ) {
        let expected = integer_mean(req, alloc, 50, |req, alloc| {
            if req > alloc { 0 } else { (alloc - req) * 100 / alloc }
        });
        let actual = least_allocated(req.map(|a| a as f64), alloc.map(|a| a as f64));
        prop_assert_eq!(actual, expected as f64);
    }

    #[test]
    fn most_allocated_equals_integer_arithmetic(
        req in [amount(), amount()],
        alloc in [amount(), amount()],
    ) {
        let expected =
            integer_mean(req, alloc, 1, |req, alloc| req.min(alloc) * 100 / alloc);
        let actual = most_allocated(req.map(|a| a as f64), alloc.map(|a| a as f64));
        prop_assert_eq!(actual, expected as f64);
    }

    #[test]
    fn balanced_allocation_stays_in_range_and_favours_equal_shares(
        pairs in proptest::collection::vec((amount(), amount()), 0..=3),
        share in 0_i64..=100,
    ) {
        let floats: Vec<(f64, f64)> = pairs.iter().map(|&(r, a)| (r as f64, a as f64)).collect();
        let score = balanced(&floats);
        prop_assert!((50.0..=100.0).contains(&score));
        prop_assert_eq!(score, score.floor());
        let equal: Vec<(f64, f64)> =
            pairs.iter().map(|&(_, a)| ((share * a) as f64, (100 * a) as f64)).collect();
        prop_assert!(balanced(&equal) >= 99.0);
    }

    #[test]
    fn binpack_stays_between_zero_and_its_weight(
        resources in proptest::collection::vec((1_i64..1000, 0_i64..1000, 0_i64..3000, 0_i64..9), 0..5),
        weight in 0_i64..20,
    ) {
        let packed = resources.iter().map(|&(request, used, alloc, w)| {
            packed(request as f64, used as f64, alloc as f64, w as f64)
        });
        let score = binpack(packed, weight as f64);
        prop_assert!(score >= 0.0 && score <= 100.0 * weight as f64 * (1.0 + 1e-12));
    }
}
