//! Adding and removing pods leaves no trace, and each rule decides as stated.

use proptest::prelude::*;

use super::*;
use crate::event::{HostPort, LabelSelector, Operator, Requirement, SpreadConstraint};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn select(key: &str, value: &str) -> LabelSelector {
    let requirement =
        Requirement { key: key.into(), operator: Operator::In, values: vec![value.into()] };
    LabelSelector { requirements: vec![requirement] }
}

fn term(key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        selector: Some(select("app", app)),
        topology_key: key.into(),
        ..PodAffinityTerm::default()
    }
}

fn world() -> StatefulState {
    let mut state = StatefulState::default();
    for slot in 0..4_u32 {
        let zone = if slot < 2 { "a" } else { "b" };
        let host = format!("n{slot}");
        state.set_node(slot, &host, &labels(&[("host", &host), ("zone", zone)]), &[]);
    }
    state
}

fn pod(app: &str, node: u32, spec: PodSpec) -> PlacedPod {
    PlacedPod {
        namespace: "ns".into(),
        labels: Arc::new(labels(&[("app", app)])),
        spec: Arc::new(spec),
        node,
        terminating: false,
    }
}

fn allowed(state: &StatefulState, app: &str, spec: &PodSpec) -> Vec<u32> {
    let (labels, switches) = (labels(&[("app", app)]), PredicateSwitches::default());
    let query = Query { namespace: "ns", labels: &labels, spec, switches: &switches };
    let asked = state.ask(&query);
    (0..4).filter(|&node| asked.filter(node).is_ok()).collect()
}

#[test]
fn affinity_follows_a_pod_into_its_domain_and_the_first_of_its_kind_goes_anywhere() {
    let mut state = world();
    let spec = PodSpec { pod_affinity: vec![term("zone", "web")], ..PodSpec::default() };
    assert_eq!(allowed(&state, "web", &spec), [0, 1, 2, 3]);
    assert!(allowed(&state, "other", &spec).is_empty());
    state.add_pod(7, &pod("web", 2, PodSpec::default()));
    assert_eq!(allowed(&state, "other", &spec), [2, 3]);
}

#[test]
fn anti_affinity_holds_in_both_directions() {
    let mut state = world();
    let spec = PodSpec { pod_anti_affinity: vec![term("host", "web")], ..PodSpec::default() };
    state.add_pod(7, &pod("web", 1, spec.clone()));
    assert_eq!(allowed(&state, "web", &spec), [0, 2, 3]);
    assert_eq!(allowed(&state, "web", &PodSpec::default()), [0, 2, 3]);
    assert_eq!(allowed(&state, "other", &PodSpec::default()), [0, 1, 2, 3]);
    assert!(state.is_affected("ns", &labels(&[("app", "web")])));
    assert!(!state.is_affected("ns", &labels(&[("app", "other")])));
}

#[test]
fn a_host_port_is_taken_once_and_every_address_collides_with_all() {
    let mut state = world();
    let wants = |ip: &str| PodSpec {
        host_ports: vec![HostPort { port: 80, protocol: "TCP".into(), ip: ip.into() }],
        ..PodSpec::default()
    };
    state.add_pod(1, &pod("a", 0, wants("0.0.0.0")));
    state.add_pod(2, &pod("a", 1, wants("10.0.0.1")));
    assert_eq!(allowed(&state, "b", &wants("10.0.0.2")), [1, 2, 3]);
    assert_eq!(allowed(&state, "b", &wants("0.0.0.0")), [2, 3]);
}

#[test]
fn a_hard_spread_keeps_the_skew() {
    let mut state = world();
    let constraint = SpreadConstraint {
        max_skew: 1,
        topology_key: "zone".into(),
        hard: true,
        selector: select("app", "web"),
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    };
    let spec = PodSpec { spread: vec![constraint], ..PodSpec::default() };
    state.add_pod(1, &pod("web", 0, PodSpec::default()));
    assert_eq!(allowed(&state, "web", &spec), [2, 3]);
}

proptest! {
    #[test]
    fn adding_and_removing_pods_in_any_order_leaves_no_trace(steps in proptest::collection::vec((0_u32..6, 0_u32..4), 0..40)) {
        let mut state = world();
        let spec = PodSpec { pod_anti_affinity: vec![term("host", "web")], ..PodSpec::default() };
        for (task, node) in &steps {
            state.add_pod(*task, &pod("web", *node, spec.clone()));
        }
        for (task, _) in steps {
            state.remove_pod(task);
        }
        prop_assert_eq!(state, world());
    }
}
