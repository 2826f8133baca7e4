//! The rules of PodTopologySpread (7.5, section 8) one by one, each on the smallest world that shows it.

use super::StatefulReason;
use super::test_world::{FOUR, World, labels, spread, spreading};
use super::topology::HOSTNAME_KEY;
use crate::event::{LabelSelector, PodSpec, Taint, TaintEffect};

#[test]
fn spread_keeps_a_domain_within_max_skew_of_the_emptiest() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 1, true)]);
    assert_eq!(world.fits("web", &spec), FOUR);
    world.web(0);
    assert_eq!(world.ask("web", &spec)[1], [StatefulReason::Spread]);
    assert_eq!(world.fits("web", &spec), [2, 3]);
    world.web(3);
    assert_eq!(world.fits("web", &spec), FOUR);
    world.web(1);
    assert_eq!(world.fits("web", &spreading(&[spread("zone", 2, true)])), FOUR);
}

#[test]
fn spread_counts_the_pod_itself_only_if_its_selector_matches_it() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 1, true)]);
    world.web(0);
    assert_eq!(world.fits("other", &spec), FOUR);
    world.web(0);
    assert_eq!(world.fits("other", &spec), [2, 3]);
}

#[test]
fn spread_rejects_nodes_without_the_key_and_does_not_count_them() {
    let mut world = World::new();
    let spec = spreading(&[spread("rack", 1, true)]);
    assert_eq!(world.ask("web", &spec)[3], [StatefulReason::SpreadMissingLabel]);
    let both = spreading(&[spread("zone", 1, true), spread("rack", 9, true)]);
    world.web(0);
    // Node 3 lacks the rack, so its pods do not count for zone b either.
    world.web(3);
    assert_eq!(world.fits("web", &both), [2]);
}

#[test]
fn with_fewer_domains_than_asked_for_the_minimum_is_zero() {
    let mut world = World::new();
    for node in FOUR {
        world.web(node);
    }
    let mut constraint = spread("zone", 2, true);
    assert_eq!(world.fits("web", &spreading(&[constraint.clone()])), FOUR);
    constraint.min_domains = 2;
    assert_eq!(world.fits("web", &spreading(&[constraint.clone()])), FOUR);
    constraint.min_domains = 3;
    assert_eq!(world.fits("web", &spreading(&[constraint])), Vec::<u32>::new());
}

#[test]
fn terminating_pods_and_other_namespaces_do_not_count_for_spread() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 1, true)]);
    let leaving = world.web(0);
    assert_eq!(world.fits("web", &spec), [2, 3]);
    let mut pod = World::placed("ns", "web", 0, PodSpec::default());
    pod.terminating = true;
    world.state.add_pod(leaving, &pod);
    assert_eq!(world.fits("web", &spec), FOUR);
    world.state.add_pod(70, &World::placed("elsewhere", "web", 0, PodSpec::default()));
    assert_eq!(world.fits("web", &spec), FOUR);
}

#[test]
fn nodes_that_the_pod_may_not_use_are_counted_only_if_the_policy_ignores_affinity() {
    let mut world = World::new();
    world.web(0);
    let mut spec = spreading(&[spread("zone", 1, true)]);
    spec.node_selector = labels(&[("zone", "a")]).to_vec();
    // Zone b cannot be used, so zone a is the emptiest domain itself.
    assert_eq!(world.ask("web", &spec)[1], Vec::<StatefulReason>::new());
    spec.spread[0].honor_affinity = false;
    assert_eq!(world.ask("web", &spec)[1], [StatefulReason::Spread]);
}

#[test]
fn tainted_nodes_are_left_out_only_if_the_policy_honours_taints() {
    let mut world = World::new();
    let taint =
        Taint { key: "gpu".to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
    for slot in [2, 3] {
        world.node(slot, &[("zone", "b")], std::slice::from_ref(&taint));
    }
    world.web(0);
    let mut spec = spreading(&[spread("zone", 1, true)]);
    assert_eq!(world.ask("web", &spec)[1], [StatefulReason::Spread]);
    spec.spread[0].honor_taints = true;
    assert_eq!(world.ask("web", &spec)[1], Vec::<StatefulReason>::new());
}

#[test]
fn an_empty_spread_selector_counts_nobody() {
    let mut world = World::new();
    let mut constraint = spread("zone", 1, true);
    constraint.selector = LabelSelector::default();
    world.web(0);
    world.web(0);
    assert_eq!(world.fits("web", &spreading(&[constraint])), FOUR);
}

#[test]
fn soft_spread_prefers_the_emptier_domain() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 1, false)]);
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![100; 4]));
    world.web(0);
    world.web(1);
    world.web(2);
    // ln(2 + 2) = 1.386: raw 2.77 -> 3 in zone a, 1.39 -> 1 in zone b.
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![33, 33, 100, 100]));
}

#[test]
fn the_weight_of_a_soft_constraint_follows_the_domains_among_the_feasible_nodes() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 5, false)]);
    for _ in 0..10 {
        world.web(0);
    }
    // One zone left: ln(3) * 10 + 4 = 14.99 -> 15 for both; the best is as good as the worst.
    assert_eq!(world.scores("web", &spec, &[0, 1]), Some(vec![100, 100]));
    // Two zones: ln(4) * 10 + 4 = 17.86 -> 18 against 4.
    assert_eq!(world.scores("web", &spec, &[0, 2]), Some(vec![22, 100]));
}

#[test]
fn soft_spread_over_hosts_counts_the_pods_of_the_node() {
    let mut world = World::new();
    let spec = spreading(&[spread(HOSTNAME_KEY, 1, false)]);
    world.web(0);
    world.web(0);
    world.web(1);
    // ln(4 + 2) = 1.79: raw 4, 2, 0, 0.
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![0, 50, 100, 100]));
}

#[test]
fn soft_spread_ignores_nodes_that_lack_a_key() {
    let mut world = World::new();
    let spec = spreading(&[spread("rack", 1, false)]);
    world.web(0);
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![100, 100, 100, 0]));
}
