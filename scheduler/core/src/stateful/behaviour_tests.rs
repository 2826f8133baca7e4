//! How the stateful filters and scores work together, and what they keep.

use std::sync::Arc;

use super::test_world::{FOUR, World, anti_affinity, labels, near, preferring, spread, spreading};
use super::topology::HOSTNAME_KEY;
use super::{PlacedPod, Query, StatefulReason};
use crate::event::{HostPort, PodSpec};
use crate::matching::static_filter::PredicateSwitches;

#[test]
fn a_host_port_can_be_had_once_per_node() {
    let mut world = World::new();
    let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: "0.0.0.0".to_owned() };
    let spec = PodSpec { host_ports: vec![port], ..PodSpec::default() };
    let first = world.place("web", 1, spec.clone());
    assert_eq!(world.ask("web", &spec)[1], [StatefulReason::Ports]);
    assert_eq!(world.fits("web", &spec), [0, 2, 3]);
    world.state.remove_pod(first);
    assert_eq!(world.fits("web", &spec), FOUR);
}

#[test]
fn reasons_add_up_until_a_final_one() {
    let mut world = World::new();
    let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: "0.0.0.0".to_owned() };
    let mut spec = anti_affinity(&[near("web", "zone")]);
    spec.host_ports = vec![port];
    spec.spread = vec![spread("zone", 1, true)];
    world.place("web", 0, spec.clone());
    use StatefulReason::{Affinity, AntiAffinity, Ports, Spread};
    assert_eq!(world.ask("web", &spec)[0], [Ports, AntiAffinity, Spread]);
    spec.pod_affinity = vec![near("db", "zone")];
    assert_eq!(world.ask("web", &spec)[0], [Ports, Affinity]);
}

#[test]
fn switches_silence_their_filter_and_no_other() {
    let mut world = World::new();
    let port = HostPort { port: 80, protocol: "TCP".to_owned(), ip: "0.0.0.0".to_owned() };
    let mut spec = anti_affinity(&[near("web", "zone")]);
    spec.host_ports = vec![port];
    spec.spread = vec![spread("zone", 1, true)];
    world.place("web", 0, spec.clone());
    use StatefulReason::{AntiAffinity, Ports, Spread};
    let on = PredicateSwitches::default();
    let cases = [
        (PredicateSwitches { node_ports: false, ..on }, vec![AntiAffinity, Spread]),
        (PredicateSwitches { pod_affinity: false, ..on }, vec![Ports, Spread]),
        (PredicateSwitches { topology_spread: false, ..on }, vec![Ports, AntiAffinity]),
    ];
    for (switches, expected) in cases {
        assert_eq!(world.ask_with("web", &spec, &switches)[0], expected);
    }
}

#[test]
fn weights_scale_and_switch_off_the_scores() {
    let mut world = World::new();
    let mut spec = preferring(&[(1, near("db", "zone"))]);
    spec.spread = vec![spread("zone", 1, false)];
    world.place("db", 0, PodSpec::default());
    world.web(0);
    let (namespace, labels) = (Arc::from("ns"), labels(&[("app", "web")]));
    let (spec, switches) = (Arc::new(spec), PredicateSwitches::default());
    let query = Query { namespace: &namespace, labels: &labels, spec: &spec, switches: &switches };
    let asked = world.state.ask(&query);
    assert_eq!(asked.affinity_scores(&FOUR), Some(vec![100, 100, 0, 0]));
    assert_eq!(asked.spread_scores(&FOUR), Some(vec![0, 0, 100, 100]));
    assert_eq!(asked.scores(&FOUR, 2, 3), Some(vec![200, 200, 300, 300]));
    assert_eq!(asked.scores(&FOUR, 2, 0), Some(vec![200, 200, 0, 0]));
    assert_eq!(asked.scores(&FOUR, 0, 0), None);
}

#[test]
fn a_thousand_replicas_of_a_template_share_their_counters() {
    let mut world = World::new();
    let spec = Arc::new(anti_affinity(&[near("web", HOSTNAME_KEY)]));
    for task in 0..1000 {
        let pod = PlacedPod {
            spec: spec.clone(),
            ..World::placed("ns", "web", task % 4, PodSpec::default())
        };
        world.state.add_pod(task, &pod);
    }
    assert_eq!(world.state.owned.iter().count(), 1);
    assert_eq!(world.fits("web", &spec), Vec::<u32>::new());
    for task in 0..1000 {
        world.state.remove_pod(task);
    }
    assert_eq!(world.fits("web", &spec), FOUR);
    assert_eq!(world.state.audit(), Vec::<String>::new());
}

#[test]
fn a_sweep_forgets_what_nobody_asked_for_since_the_last_one() {
    let mut world = World::new();
    let spec = spreading(&[spread("zone", 1, true)]);
    world.web(0);
    assert_eq!(world.fits("web", &spec), [2, 3]);
    assert!(world.state.needs_all_pods());
    world.state.sweep();
    world.state.sweep();
    assert!(!world.state.needs_all_pods());
    assert!(world.state.content().is_empty());
    assert_eq!(world.fits("web", &spec), [2, 3]);
}
