//! A small world for the tests of single rules.

use std::sync::Arc;

use super::naive::facts;
use super::topology::HOSTNAME_KEY;
use super::{PlacedPod, Query, StatefulReason, StatefulState};
use crate::event::{
    LabelSelector, Labels, Operator, PodAffinityTerm, PodSpec, Requirement, SpreadConstraint, Taint,
};
use crate::matching::static_filter::PredicateSwitches;

pub(super) const FOUR: [u32; 4] = [0, 1, 2, 3];

pub(super) fn labels(pairs: &[(&str, &str)]) -> Arc<Labels> {
    Arc::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
}

pub(super) fn is_in(key: &str, value: &str) -> LabelSelector {
    let (key, operator, values) = (key.to_owned(), Operator::In, vec![value.to_owned()]);
    LabelSelector { requirements: vec![Requirement { key, operator, values }] }
}

pub(super) fn near(app: &str, key: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        selector: Some(is_in("app", app)),
        topology_key: key.to_owned(),
        ..PodAffinityTerm::default()
    }
}

pub(super) fn spread(key: &str, max_skew: i32, hard: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew,
        topology_key: key.to_owned(),
        hard,
        selector: is_in("app", "web"),
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    }
}

pub(super) fn affinity(terms: &[PodAffinityTerm]) -> PodSpec {
    PodSpec { pod_affinity: terms.to_vec(), ..PodSpec::default() }
}

pub(super) fn anti_affinity(terms: &[PodAffinityTerm]) -> PodSpec {
    PodSpec { pod_anti_affinity: terms.to_vec(), ..PodSpec::default() }
}

pub(super) fn spreading(constraints: &[SpreadConstraint]) -> PodSpec {
    PodSpec { spread: constraints.to_vec(), ..PodSpec::default() }
}

pub(super) fn preferring(terms: &[(i32, PodAffinityTerm)]) -> PodSpec {
    PodSpec { preferred_pod_affinity: terms.to_vec(), ..PodSpec::default() }
}

/// Four nodes: 0 and 1 in zone a, 2 and 3 in zone b; node 3 lacks the rack that the others have.
pub(super) struct World {
    pub(super) state: StatefulState,
    next: u32,
}

impl World {
    pub(super) fn new() -> Self {
        let mut world = Self { state: StatefulState::default(), next: 0 };
        for slot in FOUR {
            let zone = if slot < 2 { "a" } else { "b" };
            let name = format!("n{slot}");
            let mut pairs = vec![(HOSTNAME_KEY, name.as_str())];
            if slot < 3 {
                pairs.push(("rack", "r"));
            }
            pairs.push(("zone", zone));
            world.node(slot, &pairs, &[]);
        }
        world
    }

    pub(super) fn node(&mut self, slot: u32, pairs: &[(&str, &str)], taints: &[Taint]) {
        let node = facts(&format!("n{slot}"), pairs);
        self.state.set_node(slot, &node.name, &node.labels, &Arc::new(taints.to_vec()));
    }

    pub(super) fn placed(namespace: &str, app: &str, node: u32, spec: PodSpec) -> PlacedPod {
        PlacedPod {
            namespace: namespace.into(),
            labels: labels(&[("app", app)]),
            spec: Arc::new(spec),
            node,
            terminating: false,
        }
    }

    pub(super) fn place(&mut self, app: &str, node: u32, spec: PodSpec) -> u32 {
        self.next += 1;
        self.state.add_pod(self.next, &Self::placed("ns", app, node, spec));
        self.next
    }

    pub(super) fn web(&mut self, node: u32) -> u32 {
        self.place("web", node, PodSpec::default())
    }

    pub(super) fn ask_with(
        &mut self,
        app: &str,
        spec: &PodSpec,
        switches: &PredicateSwitches,
    ) -> [Vec<StatefulReason>; 4] {
        let (namespace, labels) = (Arc::from("ns"), labels(&[("app", app)]));
        let spec = Arc::new(spec.clone());
        let query = Query { namespace: &namespace, labels: &labels, spec: &spec, switches };
        let asked = self.state.ask(&query);
        FOUR.map(|slot| asked.reasons(slot))
    }

    pub(super) fn ask(&mut self, app: &str, spec: &PodSpec) -> [Vec<StatefulReason>; 4] {
        self.ask_with(app, spec, &PredicateSwitches::default())
    }

    /// Nodes that pass.
    pub(super) fn fits(&mut self, app: &str, spec: &PodSpec) -> Vec<u32> {
        let reasons = self.ask(app, spec);
        FOUR.into_iter().filter(|&slot| reasons[slot as usize].is_empty()).collect()
    }

    pub(super) fn scores(
        &mut self,
        app: &str,
        spec: &PodSpec,
        feasible: &[u32],
    ) -> Option<Vec<i64>> {
        let (namespace, labels) = (Arc::from("ns"), labels(&[("app", app)]));
        let (spec, switches) = (Arc::new(spec.clone()), PredicateSwitches::default());
        let query =
            Query { namespace: &namespace, labels: &labels, spec: &spec, switches: &switches };
        self.state.ask(&query).scores(feasible, 1, 1)
    }
}
