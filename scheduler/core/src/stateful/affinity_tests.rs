//! The rules of InterPodAffinity (7.5, section 8) one by one, each on the smallest world that shows it.

use super::test_world::{FOUR, World, affinity, anti_affinity, is_in, labels, near, preferring};
use super::topology::HOSTNAME_KEY;
use super::{PlacedPod, StatefulReason};
use crate::event::{PodAffinityTerm, PodSpec};

#[test]
fn required_affinity_keeps_to_domains_with_a_matching_pod() {
    let mut world = World::new();
    let spec = affinity(&[near("db", "zone")]);
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
    world.place("db", 0, PodSpec::default());
    assert_eq!(world.fits("web", &spec), [0, 1]);
    assert_eq!(world.ask("web", &spec)[2], [StatefulReason::Affinity]);
}

#[test]
fn required_affinity_needs_the_topology_key_on_the_node() {
    let mut world = World::new();
    world.place("db", 0, PodSpec::default());
    assert_eq!(world.fits("web", &affinity(&[near("db", "rack")])), [0, 1, 2]);
}

#[test]
fn one_pod_must_match_all_affinity_terms() {
    let mut world = World::new();
    let tier = PodAffinityTerm { selector: Some(is_in("tier", "1")), ..near("db", "zone") };
    let spec = affinity(&[near("db", "zone"), tier]);
    world.place("db", 0, PodSpec::default());
    world.state.add_pod(
        90,
        &PlacedPod {
            labels: labels(&[("tier", "1")]),
            ..World::placed("ns", "", 0, PodSpec::default())
        },
    );
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
    world.state.add_pod(
        91,
        &PlacedPod {
            labels: labels(&[("app", "db"), ("tier", "1")]),
            ..World::placed("ns", "", 2, PodSpec::default())
        },
    );
    assert_eq!(world.fits("web", &spec), [2, 3]);
}

#[test]
fn the_first_pod_of_a_group_that_wants_to_be_together_may_go_anywhere_with_the_key() {
    let mut world = World::new();
    let spec = affinity(&[near("web", "rack")]);
    assert_eq!(world.fits("web", &spec), [0, 1, 2]);
    assert_eq!(world.fits("other", &spec), Vec::<u32>::new());
    world.place("web", 3, spec.clone()); // its node has no rack, so there is still no domain
    assert_eq!(world.fits("web", &spec), [0, 1, 2]);
    let zone = affinity(&[near("web", "zone")]);
    assert_eq!(world.fits("web", &zone), [2, 3]);
}

#[test]
fn own_anti_affinity_avoids_domains_with_a_matching_pod() {
    let mut world = World::new();
    let spec = anti_affinity(&[near("db", "zone")]);
    world.place("db", 3, PodSpec::default());
    assert_eq!(world.ask("web", &spec)[2], [StatefulReason::AntiAffinity]);
    assert_eq!(world.fits("web", &spec), [0, 1]);
}

#[test]
fn a_node_without_the_key_is_no_domain_to_avoid() {
    let mut world = World::new();
    world.place("db", 0, PodSpec::default());
    assert_eq!(world.fits("web", &anti_affinity(&[near("db", "rack")])), [3]);
}

#[test]
fn placed_pods_keep_matching_pods_away() {
    let mut world = World::new();
    world.place("db", 0, anti_affinity(&[near("web", "zone")]));
    assert_eq!(world.ask("web", &PodSpec::default())[1], [StatefulReason::ExistingAntiAffinity]);
    assert_eq!(world.fits("web", &PodSpec::default()), [2, 3]);
    assert_eq!(world.fits("other", &PodSpec::default()), FOUR);
}

#[test]
fn a_pod_placed_a_moment_ago_counts_in_a_question_that_stands() {
    let mut world = World::new();
    let lonely = anti_affinity(&[near("web", HOSTNAME_KEY)]);
    assert_eq!(world.fits("web", &lonely), FOUR);
    assert_eq!(world.fits("web", &PodSpec::default()), FOUR);
    let first = world.place("web", 2, lonely.clone());
    assert_eq!(world.fits("web", &lonely), [0, 1, 3]);
    assert_eq!(world.fits("web", &PodSpec::default()), [0, 1, 3]);
    world.state.remove_pod(first);
    assert_eq!(world.fits("web", &lonely), FOUR);
    assert_eq!(world.fits("web", &PodSpec::default()), FOUR);
}

#[test]
fn only_pods_that_a_placed_term_is_about_are_affected() {
    let mut world = World::new();
    let (web, other) = (labels(&[("app", "web")]), labels(&[("app", "other")]));
    assert!(!world.state.is_affected("ns", &web));
    let db = world.place("db", 0, anti_affinity(&[near("web", "zone")]));
    assert!(world.state.is_affected("ns", &web));
    assert!(!world.state.is_affected("ns", &other));
    assert!(!world.state.is_affected("elsewhere", &web));
    world.state.remove_pod(db);
    assert!(!world.state.is_affected("ns", &web));
    world.place("db", 0, preferring(&[(5, near("web", "zone"))]));
    assert!(world.state.is_affected("ns", &web));
}

#[test]
fn terms_are_about_the_owners_namespace_unless_they_say_otherwise() {
    let mut world = World::new();
    world.state.add_pod(50, &World::placed("elsewhere", "db", 0, PodSpec::default()));
    assert_eq!(world.fits("web", &affinity(&[near("db", "zone")])), Vec::<u32>::new());
    let named = PodAffinityTerm { namespaces: vec!["elsewhere".to_owned()], ..near("db", "zone") };
    assert_eq!(world.fits("web", &affinity(&[named])), [0, 1]);
    let prod =
        PodAffinityTerm { namespace_selector: Some(is_in("env", "prod")), ..near("db", "zone") };
    let spec = affinity(&[prod]);
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
    world.state.set_namespace("elsewhere", &labels(&[("env", "prod")]));
    assert_eq!(world.fits("web", &spec), [0, 1]);
    world.state.set_namespace("elsewhere", &labels(&[("env", "test")]));
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
}

#[test]
fn relabelling_a_namespace_reaches_the_terms_of_placed_pods() {
    let mut world = World::new();
    let prod =
        PodAffinityTerm { namespace_selector: Some(is_in("env", "prod")), ..near("web", "zone") };
    world.place("db", 0, anti_affinity(&[prod]));
    assert_eq!(world.fits("web", &PodSpec::default()), FOUR);
    world.state.set_namespace("ns", &labels(&[("env", "prod")]));
    assert_eq!(world.fits("web", &PodSpec::default()), [2, 3]);
    world.state.remove_namespace("ns");
    assert_eq!(world.fits("web", &PodSpec::default()), FOUR);
}

#[test]
fn relabelling_a_node_moves_its_pods_to_the_new_domain() {
    let mut world = World::new();
    let spec = affinity(&[near("db", "zone")]);
    world.place("db", 0, PodSpec::default());
    assert_eq!(world.fits("web", &spec), [0, 1]);
    world.node(0, &[("zone", "b")], &[]);
    assert_eq!(world.fits("web", &spec), [0, 2, 3]);
    world.state.remove_node(0);
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
}

#[test]
fn terminating_pods_still_count_for_affinity() {
    let mut world = World::new();
    let mut pod = World::placed("ns", "db", 0, PodSpec::default());
    pod.terminating = true;
    world.state.add_pod(70, &pod);
    assert_eq!(world.fits("web", &affinity(&[near("db", "zone")])), [0, 1]);
}

#[test]
fn preferences_of_the_pod_and_of_placed_pods_add_up_by_domain() {
    let mut world = World::new();
    let spec = preferring(&[(10, near("db", "zone")), (-4, near("cache", HOSTNAME_KEY))]);
    world.place("db", 0, PodSpec::default());
    world.place("cache", 0, PodSpec::default());
    // Zone a: +10; node 0: -4 for its cache.
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![60, 100, 0, 0]));
    world.place("db", 3, preferring(&[(2, near("web", HOSTNAME_KEY))]));
    // Zone b has a db too now, and the db on node 3 likes web pods.
    assert_eq!(world.scores("web", &spec, &FOUR), Some(vec![0, 66, 66, 100]));
}

#[test]
fn placed_pods_draw_pods_without_preferences_of_their_own() {
    let mut world = World::new();
    assert_eq!(world.scores("web", &PodSpec::default(), &FOUR), None);
    world.place("db", 2, preferring(&[(-7, near("web", "zone"))]));
    assert_eq!(world.scores("web", &PodSpec::default(), &FOUR), Some(vec![100, 100, 0, 0]));
}

#[test]
fn required_affinity_of_placed_pods_adds_no_score() {
    let mut world = World::new();
    world.place("db", 2, affinity(&[near("web", "zone")]));
    assert_eq!(world.scores("web", &PodSpec::default(), &FOUR), None);
}
