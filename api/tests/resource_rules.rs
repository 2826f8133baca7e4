//! Rules of the resource vector that the recorded calls do not show.

#![expect(clippy::unwrap_used, reason = "test code: a panic is the failure report")]

use tephra_api::quantity::Quantity;
use tephra_api::resource::DimensionDefault::{Infinity, Zero};
use tephra_api::resource::{Resource, from_stored, share, stored_amount};

fn vector(cpu: f64, memory: f64, scalars: &[(&str, f64)]) -> Resource {
    let mut resource = Resource { milli_cpu: cpu, memory, ..Resource::default() };
    scalars.iter().for_each(|(name, amount)| resource.add_scalar(name, *amount));
    resource
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn amounts_that_overflow_saturate_and_queue_status_is_written_as_volcano_writes_it() {
    assert_eq!(stored_amount("ephemeral-storage", &quantity("100P")), Some(i64::MAX));
    assert_eq!(stored_amount("memory", &quantity("100E")), Some(i64::MAX));
    assert_eq!(from_stored("cpu", 1500).to_string(), "1500m");
    assert_eq!(from_stored("memory", 1500).to_string(), "1500");
    assert_eq!(from_stored("pods", 110).to_string(), "110");
}

#[test]
fn a_list_counts_pods_twice_and_leaves_out_what_does_not_count() {
    let list = [("pods", "110"), ("cpu", "2"), ("count/pods", "4"), ("gpu", "1")];
    let resource = Resource::from_list(list.map(|(name, text)| (name, quantity(text))));
    assert_eq!(resource.max_tasks, 110);
    assert_eq!(resource, Resource { max_tasks: 110, ..vector(2000.0, 0.0, &[("pods", 110.0)]) });
}

#[test]
fn a_zero_request_does_not_fit_a_node_whose_memory_is_overdrawn() {
    let request = vector(100.0, 0.0, &[]);
    assert!(!request.less_equal(&vector(1000.0, -0.1, &[]), Zero));
    assert!(request.less_equal(&vector(1000.0, -0.09, &[]), Zero));
}

#[test]
fn pods_take_part_in_fitting() {
    let request = vector(0.0, 0.0, &[("pods", 1.0)]);
    assert!(!request.less_equal(&vector(1000.0, 1000.0, &[]), Zero));
    assert!(request.less_equal(&vector(1000.0, 1000.0, &[("pods", 1.0)]), Zero));
}

#[test]
fn comparisons_treat_scalars_of_one_side_each_in_their_own_way() {
    let left = vector(1.0, 1.0, &[("l", 5.0)]);
    let right = vector(2.0, 2.0, &[("r", 0.0)]);
    // l is above an absent right, and unlimited right is above l; r makes an unlimited left fail.
    assert!(!left.less_equal(&right, Zero));
    assert!(!left.less_equal(&right, Infinity));
    assert!(left.less_equal(&vector(2.0, 2.0, &[]), Infinity));
    assert!(!vector(1.0, 1.0, &[]).less_equal(&right, Infinity));
    assert!(vector(1.0, 1.0, &[]).less_equal(&right, Zero));
    assert_eq!(left.less_equal_with_resources_name(&right, Zero), (false, vec!["l".to_owned()]));
    assert_eq!(left.less_equal_with_resources_name(&right, Infinity), (true, vec![]));
    let high = vector(9.0, 9.0, &[("l", 5.0)]);
    assert!(high.less_partly(&right, Zero), "r is absent left and thus below, even below 0");
    assert!(high.less_partly(&right, Infinity), "l is unlimited right");
    assert!(!vector(9.0, 9.0, &[]).less_partly(&right, Infinity));
    assert!(!high.less_partly(&vector(2.0, 2.0, &[]), Zero));
    assert!(high.less_equal_partly(&vector(2.0, 2.0, &[]), Infinity));
}

#[test]
fn strict_comparison_knows_no_epsilon() {
    let base = vector(100.0, 100.0, &[("x", 100.0)]);
    let above = vector(100.01, 100.01, &[("x", 100.01)]);
    assert!(base.less(&above, Zero));
    assert!(!base.less(&base, Zero));
    assert!(above.less_equal(&base, Zero));
    assert!(base.equal(&above));
    assert!(!base.equal(&vector(100.0, 100.2, &[("x", 100.0)])));
}

#[test]
fn within_the_dimensions_of_a_request_comparison_is_exact_and_pods_do_not_count() {
    let request = vector(1.0, 0.0, &[("x", 1.0), ("pods", 1.0)]);
    let left = vector(100.05, 999.0, &[("x", 1.0), ("pods", 9.0)]);
    let right = vector(100.0, 0.0, &[("x", 1.0)]);
    let compare = |left: &Resource| {
        left.less_equal_with_dimension_and_resources_name(Some(&right), Some(&request))
    };
    assert_eq!(compare(&left), (false, vec!["cpu".to_owned()]));
    assert_eq!(compare(&vector(100.0, 999.0, &[("x", 1.0), ("pods", 9.0)])), (true, vec![]));
    assert_eq!(compare(&vector(1.0, 0.0, &[("y", 1.0)])), (true, vec![]));
    assert_eq!(
        left.less_equal_with_dimension_and_resources_name(None, Some(&request)).1,
        ["cpu", "memory", "pods", "x"]
    );
    assert!(!left.greater_partly_with_dimension(None, None).0);
}

#[test]
fn subtraction_ignores_scalars_that_a_vector_without_any_cannot_have() {
    let mut plain = vector(10.0, 10.0, &[]);
    plain.subtract(&vector(1.0, 1.0, &[("x", 5.0)]));
    assert_eq!(plain, vector(9.0, 9.0, &[]));
    let mut other = vector(10.0, 10.0, &[("y", 1.0)]);
    other.subtract(&vector(1.0, 11.0, &[("x", 5.0)]));
    assert_eq!(other, vector(9.0, -1.0, &[("x", -5.0), ("y", 1.0)]));
}

#[test]
fn checked_subtraction_names_what_is_missing_and_changes_nothing() {
    let mut left = vector(10.0, 10.0, &[("x", 1.0)]);
    let before = left.clone();
    let missing = left.checked_subtract(&vector(11.0, 1.0, &[("x", 2.0)]));
    assert_eq!(missing, Err(vec!["cpu".to_owned(), "x".to_owned()]));
    assert_eq!(left, before);
    assert_eq!(left.checked_subtract(&vector(1.0, 1.0, &[("x", 1.0)])), Ok(()));
    assert_eq!(left, vector(9.0, 9.0, &[("x", 0.0)]));
}

#[test]
fn difference_marks_an_unlimited_side_with_minus_one() {
    let left = vector(3.0, 1.0, &[("l", 5.0)]);
    let right = vector(1.0, 3.0, &[("r", 7.0)]);
    let (more, less) = left.diff(&right, Infinity);
    assert_eq!(more, vector(2.0, 0.0, &[("r", -1.0)]));
    assert_eq!(less, vector(0.0, 2.0, &[("l", -1.0)]));
}

#[test]
fn emptiness_and_names_begin_at_the_epsilon() {
    let nearly = vector(0.09, 0.0, &[("pods", 1.0), ("x", 0.05)]);
    assert!(nearly.is_empty());
    assert_eq!(nearly.names(), ["pods"]);
    assert!(!vector(0.1, 0.0, &[]).is_empty());
    assert!(vector(0.0, 0.0, &[]).is_zero("absent"));
}

#[test]
fn minimum_maximum_and_excess_follow_their_helpers() {
    let left = vector(1.0, 5.0, &[("a", 4.0), ("b", -3.0)]);
    let right = vector(2.0, 3.0, &[("a", 6.0)]);
    assert_eq!(left.min(&right), vector(1.0, 3.0, &[("a", 4.0), ("b", -3.0)]));
    assert_eq!(left.min(&vector(2.0, 3.0, &[])), vector(1.0, 3.0, &[]));
    assert_eq!(left.max(&right), vector(2.0, 5.0, &[("a", 6.0)]));
    assert_eq!(Resource::exceeded_part(Some(&left), Some(&right)), vector(0.0, 2.0, &[]));
    assert_eq!(Resource::exceeded_part(Some(&left), None), left);
    assert_eq!(Resource::exceeded_part(None, Some(&left)), Resource::default());
    let mut capped = left.clone();
    capped.min_dimension(&vector(9.0, 9.0, &[]), Infinity);
    assert_eq!(capped, left);
    capped.multiply(2.0);
    assert_eq!(capped, vector(2.0, 10.0, &[("a", 8.0), ("b", -6.0)]));
    let mut idle = vector(1.0, 1.0, &[]);
    idle.fit_delta(&vector(2.0, 0.0, &[("a", 1.0)]));
    assert_eq!(idle, vector(-1.1, 1.0, &[("a", -1.1)]));
}

#[test]
fn a_share_of_nothing_is_all_or_none() {
    assert_eq!((share(0.0, 0.0), share(1.0, 0.0), share(1.0, 4.0)), (0.0, 1.0, 0.25));
}
