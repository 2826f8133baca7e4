//! Random worlds and random journals: every answer equals a naive recomputation, and every journal undoes.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::naive::{World, facts};
use super::topology::HOSTNAME_KEY;
use super::{PlacedPod, Query, StatefulState};
use crate::event::{
    HostPort, LabelSelector, Labels, Operator, PodAffinityTerm, PodSpec, Requirement,
    SpreadConstraint, Taint, TaintEffect, Toleration,
};
use crate::matching::static_filter::PredicateSwitches;

const SLOTS: u32 = 6;
const TASKS: u32 = 14;
const ON: PredicateSwitches = PredicateSwitches {
    node_affinity: true,
    taint_toleration: true,
    node_ports: true,
    pod_affinity: true,
    topology_spread: true,
};

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

fn topology_key() -> impl Strategy<Value = String> {
    word(&["zone", "rack", HOSTNAME_KEY])
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let operator = prop_oneof![
        4 => Just(Operator::In),
        1 => Just(Operator::NotIn),
        1 => Just(Operator::Exists),
        1 => Just(Operator::DoesNotExist),
    ];
    (word(&["app", "app", "track"]), operator, vec(word(&["a", "b", "c"]), 1..3)).prop_map(
        |(key, operator, values)| {
            let bare = matches!(operator, Operator::Exists | Operator::DoesNotExist);
            Requirement { key, operator, values: if bare { Vec::new() } else { values } }
        },
    )
}

fn selector() -> impl Strategy<Value = LabelSelector> {
    vec(requirement(), 0..3).prop_map(|requirements| LabelSelector { requirements })
}

fn namespace_selector() -> impl Strategy<Value = LabelSelector> {
    let operator = prop_oneof![Just(Operator::In), Just(Operator::DoesNotExist)];
    vec(operator, 0..2).prop_map(|operators| LabelSelector {
        requirements: operators
            .into_iter()
            .map(|operator| Requirement {
                key: "env".to_owned(),
                operator,
                values: if operator == Operator::In { vec!["prod".to_owned()] } else { Vec::new() },
            })
            .collect(),
    })
}

fn term() -> impl Strategy<Value = PodAffinityTerm> {
    (
        option::weighted(0.9, selector()),
        vec(word(&["x", "y"]), 0..2),
        option::weighted(0.3, namespace_selector()),
        topology_key(),
    )
        .prop_map(|(selector, namespaces, namespace_selector, topology_key)| PodAffinityTerm {
            selector,
            namespaces,
            namespace_selector,
            topology_key,
        })
}

fn constraint() -> impl Strategy<Value = SpreadConstraint> {
    (1..3_i32, topology_key(), any::<bool>(), selector(), 1..4_i32, any::<bool>(), any::<bool>())
        .prop_map(|(max_skew, topology_key, hard, selector, min_domains, affinity, taints)| {
            SpreadConstraint {
                max_skew,
                topology_key,
                hard,
                selector,
                min_domains,
                honor_affinity: affinity,
                honor_taints: taints,
            }
        })
}

fn port() -> impl Strategy<Value = HostPort> {
    (80..82_u16, word(&["TCP", "UDP"]), word(&["0.0.0.0", "10.0.0.1", "10.0.0.2"]))
        .prop_map(|(port, protocol, ip)| HostPort { port, protocol, ip })
}

prop_compose! {
    fn spec()(
        host_ports in vec(port(), 0..2),
        pod_affinity in vec(term(), 0..3),
        pod_anti_affinity in vec(term(), 0..2),
        preferred_pod_affinity in vec((-9..10_i32, term()), 0..3),
        spread in vec(constraint(), 0..3),
        zone in option::weighted(0.3, word(&["a", "b"])),
        tolerant in any::<bool>(),
    ) -> Arc<PodSpec> {
        let tolerations = if tolerant {
            vec![Toleration { exists: true, ..Toleration::default() }]
        } else {
            Vec::new()
        };
        Arc::new(PodSpec {
            host_ports,
            pod_affinity,
            pod_anti_affinity,
            preferred_pod_affinity,
            spread,
            node_selector: zone.map(|zone| ("zone".to_owned(), zone)).into_iter().collect(),
            tolerations,
            ..PodSpec::default()
        })
    }
}

prop_compose! {
    fn labels()(
        app in option::weighted(0.9, word(&["a", "b", "c"])),
        track in option::of(word(&["a", "b"])),
    ) -> Arc<Labels> {
        let app = app.map(|app| ("app".to_owned(), app));
        Arc::new(app.into_iter().chain(track.map(|track| ("track".to_owned(), track))).collect())
    }
}

#[derive(Clone, Debug)]
struct Kind {
    namespace: Arc<str>,
    labels: Arc<Labels>,
    spec: Arc<PodSpec>,
}

impl Kind {
    fn query<'k>(&'k self, switches: &'k PredicateSwitches) -> Query<'k> {
        Query { namespace: &self.namespace, labels: &self.labels, spec: &self.spec, switches }
    }

    fn placed(&self, node: u32, terminating: bool) -> PlacedPod {
        PlacedPod {
            namespace: self.namespace.clone(),
            labels: self.labels.clone(),
            spec: self.spec.clone(),
            node,
            terminating,
        }
    }
}

prop_compose! {
    fn kind()(namespace in word(&["x", "y", "z"]), labels in labels(), spec in spec()) -> Kind {
        Kind { namespace: namespace.into(), labels, spec }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Node { slot: u32, zone: Option<String>, rack: Option<String>, tainted: bool },
    NodeGone(u32),
    Namespace(String, bool),
    NamespaceGone(String),
    Place { task: u32, kind: usize, slot: u32, terminating: bool },
    Unplace(u32),
    Ask(usize),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let node = (
        0..SLOTS,
        option::weighted(0.9, word(&["a", "b", "c"])),
        option::of(word(&["r", "s"])),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(slot, zone, rack, tainted)| Step::Node { slot, zone, rack, tainted });
    let place = (0..TASKS, 0..100_usize, 0..SLOTS, prop::bool::weighted(0.2))
        .prop_map(|(task, kind, slot, terminating)| Step::Place { task, kind, slot, terminating });
    prop_oneof![
        2 => node,
        1 => (0..SLOTS).prop_map(Step::NodeGone),
        1 => (word(&["x", "y", "z"]), any::<bool>()).prop_map(|(name, prod)| Step::Namespace(name, prod)),
        1 => word(&["x", "y", "z"]).prop_map(Step::NamespaceGone),
        8 => place,
        3 => (0..TASKS).prop_map(Step::Unplace),
        3 => (0..100_usize).prop_map(Step::Ask),
        1 => Just(Step::Sweep),
    ]
}

fn apply(step: &Step, kinds: &[Kind], state: &mut StatefulState, world: &mut World) {
    match step {
        Step::Node { slot, zone, rack, tainted } => {
            let name = format!("node-{slot}");
            let mut pairs: Vec<(&str, &str)> = vec![(HOSTNAME_KEY, &name)];
            pairs.extend(rack.as_deref().map(|rack| ("rack", rack)));
            pairs.extend(zone.as_deref().map(|zone| ("zone", zone)));
            let mut node = facts(&name, &pairs);
            if *tainted {
                let key = "gpu".to_owned();
                let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
                node.taints = Arc::new(vec![taint]);
            }
            state.set_node(*slot, &node.name, &node.labels, &node.taints);
            world.nodes.insert(*slot, node);
        }
        Step::NodeGone(slot) => {
            state.remove_node(*slot);
            world.nodes.remove(slot);
        }
        Step::Namespace(name, prod) => {
            let env = if *prod { "prod" } else { "test" };
            let labels = vec![("env".to_owned(), env.to_owned())];
            state.set_namespace(name, &labels);
            world.namespaces.insert(name.clone(), labels);
        }
        Step::NamespaceGone(name) => {
            state.remove_namespace(name);
            world.namespaces.remove(name);
        }
        Step::Place { task, kind, slot, terminating } => {
            let pod = kinds[kind % kinds.len()].placed(*slot, *terminating);
            state.add_pod(*task, &pod);
            world.pods.insert(*task, pod);
        }
        Step::Unplace(task) => {
            state.remove_pod(*task);
            world.pods.remove(task);
        }
        Step::Ask(_) => {}
        Step::Sweep => state.sweep(),
    }
}

fn compare(kind: &Kind, state: &mut StatefulState, world: &World) -> Result<(), TestCaseError> {
    let query = kind.query(&ON);
    let everywhere: Vec<u32> = (0..SLOTS).collect();
    let asked = state.ask(&query);
    let mut feasible = Vec::new();
    for slot in 0..SLOTS {
        let expected = world.reasons(&query, slot);
        prop_assert_eq!(asked.reasons(slot), expected.clone(), "slot {}", slot);
        prop_assert_eq!(asked.filter(slot).err(), expected.first().copied());
        prop_assert_eq!(asked.mask(0, 1 << slot) != 0, expected.is_empty());
        prop_assert_eq!(asked.affinity_raw(slot), world.affinity_raw(&query, slot));
        if expected.is_empty() {
            feasible.push(slot);
        }
    }
    prop_assert_eq!(asked.spread_raw(&feasible), world.spread_raw(&query, &feasible));
    prop_assert_eq!(asked.spread_raw(&everywhere), world.spread_raw(&query, &everywhere));
    Ok(())
}

fn set_up(state: &mut StatefulState, world: &mut World) {
    for slot in 0..SLOTS {
        let zone = Some(["a", "b", "c"][slot as usize % 3].to_owned());
        let rack = (slot % 2 == 0).then(|| "r".to_owned());
        apply(&Step::Node { slot, zone, rack, tainted: slot == 5 }, &[], state, world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_equals_a_naive_recomputation_after_any_events(
        kinds in vec(kind(), 1..6),
        steps in vec(step(), 1..60),
    ) {
        let (mut state, mut world) = (StatefulState::default(), World::default());
        set_up(&mut state, &mut world);
        for step in &steps {
            apply(step, &kinds, &mut state, &mut world);
            if let Step::Ask(kind) = step {
                compare(&kinds[kind % kinds.len()], &mut state, &world)?;
            }
        }
        for kind in &kinds {
            compare(kind, &mut state, &world)?;
        }
        prop_assert_eq!(state.audit(), Vec::<String>::new());
    }

    #[test]
    fn taking_a_journal_back_restores_every_counter(
        kinds in vec(kind(), 1..6),
        before in vec(step(), 0..30),
        journal in vec((0..TASKS, 0..100_usize, 0..SLOTS, any::<bool>()), 1..30),
    ) {
        let (mut state, mut world) = (StatefulState::default(), World::default());
        set_up(&mut state, &mut world);
        for step in &before {
            apply(step, &kinds, &mut state, &mut world);
        }
        for kind in &kinds {
            state.ask(&kind.query(&ON));
        }
        let content = state.content();
        let mut undo = Vec::new();
        for (task, kind, slot, terminating) in journal {
            undo.push((task, state.pods.get(task).map(|placed| placed.pod.clone())));
            state.add_pod(task, &kinds[kind % kinds.len()].placed(slot, terminating));
        }
        for (task, pod) in undo.into_iter().rev() {
            match pod {
                Some(pod) => state.add_pod(task, &pod),
                None => state.remove_pod(task),
            }
        }
        prop_assert_eq!(state.content(), content);
        for kind in &kinds {
            compare(kind, &mut state, &world)?;
        }
    }

    #[test]
    fn an_answer_never_changes_without_its_version(
        kinds in vec(kind(), 1..5),
        steps in vec(step(), 1..40),
    ) {
        let (mut state, mut world) = (StatefulState::default(), World::default());
        set_up(&mut state, &mut world);
        let feasible: Vec<u32> = (0..SLOTS).collect();
        let mut known: Vec<Option<(u64, String)>> = vec![None; kinds.len()];
        for step in steps.iter().filter(|step| !matches!(step, Step::Sweep)) {
            apply(step, &kinds, &mut state, &mut world);
            for (kind, known) in kinds.iter().zip(&mut known) {
                let query = kind.query(&ON);
                let asked = state.ask(&query);
                let reasons: Vec<_> = feasible.iter().map(|&slot| asked.reasons(slot)).collect();
                let answer = format!("{reasons:?} {:?}", asked.scores(&feasible, 2, 2));
                if let Some((version, before)) = known.take()
                    && version == asked.version()
                {
                    prop_assert_eq!(&before, &answer);
                }
                *known = Some((asked.version(), answer));
            }
        }
    }

    #[test]
    fn pods_that_are_not_affected_and_want_nothing_fit_everywhere_and_score_nothing(
        kinds in vec(kind(), 1..6),
        steps in vec(step(), 1..40),
    ) {
        let (mut state, mut world) = (StatefulState::default(), World::default());
        for step in &steps {
            apply(step, &kinds, &mut state, &mut world);
        }
        for kind in &kinds {
            let plain = Kind { spec: Arc::default(), ..kind.clone() };
            if state.is_affected(&plain.namespace, &plain.labels) {
                continue;
            }
            let query = plain.query(&ON);
            let asked = state.ask(&query);
            for slot in 0..SLOTS {
                prop_assert_eq!(asked.filter(slot), Ok(()));
                prop_assert_eq!(asked.affinity_raw(slot), 0);
            }
        }
    }
}
