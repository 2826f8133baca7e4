//! Evictions on small random clusters, judged without the search behind them: every victim may be asked to leave (I5), gangs
//! are left whole or gone, the gang that gained can start, and no smaller set of victims would have made room for it (by
//! trying them all).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject,
    PodPhase, PodSpec, PriorityClassObject, QueueObject, QueueState,
};
use tephra_core::{Core, Options};

use crate::objects::amounts;

const GPU: &str = "nvidia.com/gpu";
const CLASSES: [(&str, i32); 3] = [("low", 10), ("middle", 50), ("high", 100)];

/// A gang that runs: its pods with their nodes.
#[derive(Clone, Debug)]
struct Resident {
    queue: bool,
    class: usize,
    min: usize,
    /// Shape, node, preemptable.
    pods: Vec<(u8, usize, bool)>,
}

/// A cluster and one gang that waits.
#[derive(Clone, Debug)]
struct Seed {
    action: usize,
    /// Cpus and GPUs.
    nodes: Vec<(i64, i64)>,
    residents: Vec<Resident>,
    class: usize,
    pods: Vec<u8>,
    min: usize,
}

/// What a pod asks for: cpus and GPUs.
fn request(shape: u8) -> [i64; 2] {
    [[1, 0], [2, 0], [1, 1], [3, 1]][usize::from(shape % 4)]
}

fn seeds() -> impl Strategy<Value = Seed> {
    let pod = (0..4_u8, 0..4_usize, prop::bool::weighted(0.9));
    let resident =
        (any::<bool>(), 0..3_usize, 0..3_usize, prop::collection::vec(pod, 1..5)).prop_map(
            |(queue, class, min, pods)| Resident { queue, class, min: min.min(pods.len()), pods },
        );
    let waiting = prop_oneof![
        3 => (0..4_u8, 1..4_usize).prop_map(|(shape, count)| vec![shape; count]),
        1 => prop::collection::vec(0..4_u8, 1..4),
    ];
    (
        0..4_usize,
        prop::collection::vec((2..6_i64, 0..3_i64), 1..5),
        prop::collection::vec(resident, 3..9),
        prop_oneof![1 => Just(1_usize), 3 => Just(2_usize)],
        waiting,
        1..4_usize,
    )
        .prop_map(|(action, nodes, residents, class, pods, min)| Seed {
            action,
            nodes,
            residents,
            class,
            min: min.min(pods.len()),
            pods,
        })
}

/// A pod that runs, as the judge sees it.
#[derive(Clone, Debug)]
struct Running {
    uid: String,
    gang: usize,
    node: usize,
    request: [i64; 2],
    preemptable: bool,
}

impl Seed {
    const ACTIONS: [&'static str; 4] = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];

    fn reclaims(&self) -> bool {
        Self::ACTIONS[self.action].ends_with("reclaim")
    }

    fn conf(&self) -> SchedulerConf {
        // Reclaim needs a plugin that knows shares; the others are judged without quotas.
        let quota = if self.reclaims() { "proportion" } else { "nodeorder" };
        let text = format!(
            "actions: allocate, {}\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]\n- plugins: [{{name: predicates}}, {{name: {quota}}}]\n",
            Self::ACTIONS[self.action],
        );
        SchedulerConf::parse(&text, tephra_core::registry::action_names()).expect("valid")
    }

    /// Residents that fit on their nodes, first come first.
    fn running(&self) -> Vec<Running> {
        let mut free: Vec<[i64; 2]> = self.nodes.iter().map(|&(cpu, gpu)| [cpu, gpu]).collect();
        let mut running = Vec::new();
        for (gang, resident) in self.residents.iter().enumerate() {
            for (number, &(shape, node, preemptable)) in resident.pods.iter().enumerate() {
                let (node, request) = (node % free.len(), request(shape));
                if take(&mut free[node], request) {
                    let uid = format!("r{gang}-{number}");
                    running.push(Running { uid, gang, node, request, preemptable });
                }
            }
        }
        running
    }

    fn queue_of(&self, gang: usize) -> &'static str {
        // The waiting gang is in q0.
        if self.residents[gang].queue { "q0" } else { "q1" }
    }

    fn build(&self, core: &mut Core) {
        for (name, value) in CLASSES {
            let class = PriorityClassObject { name: name.to_owned(), value, global_default: false };
            core.apply(Event::PriorityClass(class));
        }
        for name in ["q0", "q1"] {
            core.apply(Event::Queue(QueueObject {
                name: name.to_owned(),
                weight: 1,
                reclaimable: true,
                state: QueueState::Open,
                ..QueueObject::default()
            }));
        }
        for (number, &(cpu, gpu)) in self.nodes.iter().enumerate() {
            core.apply(Event::Node(NodeObject {
                name: format!("n{number}"),
                allocatable: amounts(&[
                    ("cpu", cpu * 1000),
                    ("memory", 1 << 36),
                    ("pods", 50),
                    (GPU, gpu * 1000),
                ]),
                ..NodeObject::default()
            }));
        }
        let running = self.running();
        for (gang, resident) in self.residents.iter().enumerate() {
            let there = running.iter().filter(|pod| pod.gang == gang);
            let min = resident.min.min(there.clone().count());
            let name = format!("r{gang}");
            core.apply(group(&name, self.queue_of(gang), min, resident.class, true));
            for pod in there {
                core.apply(self::pod(&name, &pod.uid, pod.request, Some(pod)));
            }
        }
        core.apply(group("waiting", "q0", self.min, self.class, false));
        for (number, &shape) in self.pods.iter().enumerate() {
            core.apply(pod("waiting", &format!("w-{number}"), request(shape), None));
        }
    }

    /// Who is asked to leave for whom, and who was promised which node.
    fn judge(&self) -> Result<usize, String> {
        let mut core = Core::new(Options::default(), &self.conf());
        self.build(&mut core);
        let (mut evicted, mut promised) = (BTreeSet::new(), BTreeMap::new());
        for decision in core.session(1_000).decisions {
            match decision {
                Decision::Evict { pod, .. } => {
                    evicted.insert(pod.uid.to_string());
                }
                Decision::PodCondition { pod, nominated: Some(node), .. } => {
                    promised.insert(
                        pod.uid.to_string(),
                        node.trim_start_matches('n').parse().unwrap_or(0),
                    );
                }
                _ => {}
            }
        }
        let findings = core.audit();
        if !findings.is_empty() {
            return Err(format!("{findings:?}"));
        }
        if evicted.is_empty() {
            return Ok(0);
        }
        self.check_victims(&evicted)?;
        self.check_places(&evicted, &promised)?;
        self.check_minimal(&evicted)?;
        Ok(evicted.len())
    }

    fn check_victims(&self, evicted: &BTreeSet<String>) -> Result<(), String> {
        let running = self.running();
        for pod in running.iter().filter(|pod| evicted.contains(&pod.uid)) {
            let own_queue = self.queue_of(pod.gang) == "q0";
            let lower = self.residents[pod.gang].class < self.class;
            let may = if self.reclaims() { !own_queue } else { own_queue && lower };
            if !may || !pod.preemptable {
                return Err(format!("{} may not be asked to leave", pod.uid));
            }
        }
        if self.is_legal(evicted) { Ok(()) } else { Err("a gang was left in pieces".to_owned()) }
    }

    /// Every gang that loses pods keeps its minimum or all of it goes; the plain actions never take a whole gang.
    fn is_legal(&self, evicted: &BTreeSet<String>) -> bool {
        let running = self.running();
        (0..self.residents.len()).all(|gang| {
            let pods = running.iter().filter(|pod| pod.gang == gang);
            let (all, left) =
                (pods.clone().count(), pods.filter(|pod| !evicted.contains(&pod.uid)).count());
            let min = self.residents[gang].min.min(all);
            all == left || left >= min || (left == 0 && self.action >= 2)
        })
    }

    fn free_without(&self, evicted: &BTreeSet<String>) -> Vec<[i64; 2]> {
        let mut free: Vec<[i64; 2]> = self.nodes.iter().map(|&(cpu, gpu)| [cpu, gpu]).collect();
        for pod in self.running().iter().filter(|pod| !evicted.contains(&pod.uid)) {
            take(&mut free[pod.node], pod.request);
        }
        free
    }

    fn check_places(
        &self,
        evicted: &BTreeSet<String>,
        promised: &BTreeMap<String, usize>,
    ) -> Result<(), String> {
        let mut free = self.free_without(evicted);
        for (number, &shape) in self.pods.iter().enumerate() {
            if let Some(&node) = promised.get(&format!("w-{number}"))
                && !take(&mut free[node], request(shape))
            {
                return Err(format!("w-{number} does not fit where it was promised to"));
            }
        }
        if promised.len() < self.min {
            return Err("pods were evicted for a gang that cannot start".to_owned());
        }
        Ok(())
    }

    /// No legal set of fewer victims makes room for the gang's minimum.
    fn check_minimal(&self, evicted: &BTreeSet<String>) -> Result<(), String> {
        let all: Vec<&String> = evicted.iter().collect();
        for bits in 0..(1_u32 << all.len()) - 1 {
            let fewer: BTreeSet<String> =
                (0..all.len()).filter(|at| bits >> at & 1 == 1).map(|at| all[at].clone()).collect();
            if self.is_legal(&fewer) && self.places(&fewer) {
                return Err(format!("{fewer:?} would do instead of {evicted:?}"));
            }
        }
        Ok(())
    }

    /// The first pods of the gang, in task order, fit when these have left. (All are of one shape, or else the gang is
    /// judged by the pods that it was given.)
    fn places(&self, evicted: &BTreeSet<String>) -> bool {
        let wanted: Vec<[i64; 2]> =
            self.pods[..self.min].iter().map(|&shape| request(shape)).collect();
        let unlike = self.pods.iter().any(|&shape| shape != self.pods[0]);
        // A gang of unlike pods is placed one by one: which of them fit elsewhere is not searched for.
        !unlike && pack(&mut self.free_without(evicted), &wanted)
    }
}

fn take(free: &mut [i64; 2], request: [i64; 2]) -> bool {
    let fits = free[0] >= request[0] && free[1] >= request[1];
    if fits {
        free[0] -= request[0];
        free[1] -= request[1];
    }
    fits
}

/// Every way to place the pods is tried.
fn pack(free: &mut Vec<[i64; 2]>, wanted: &[[i64; 2]]) -> bool {
    let Some((&first, rest)) = wanted.split_first() else { return true };
    (0..free.len()).any(|node| {
        let before = free[node];
        let fits = take(&mut free[node], first) && pack(free, rest);
        free[node] = before;
        fits
    })
}

fn group(name: &str, queue: &str, min: usize, class: usize, running: bool) -> Event {
    let phase = if running { PodGroupPhase::Running } else { PodGroupPhase::Inqueue };
    Event::PodGroup(PodGroupObject {
        key: ObjectKey::new("ns", name),
        uid: name.to_owned(),
        queue: queue.to_owned(),
        min_member: min as i32,
        priority_class: CLASSES[class].0.to_owned(),
        status: PodGroupStatus { phase, ..PodGroupStatus::default() },
        ..PodGroupObject::default()
    })
}

fn pod(group: &str, uid: &str, [cpu, gpu]: [i64; 2], running: Option<&Running>) -> Event {
    let mut requests = vec![("cpu", cpu * 1000), ("memory", 1 << 20), ("pods", 1)];
    if gpu > 0 {
        requests.push((GPU, gpu * 1000));
    }
    Event::Pod(PodObject {
        key: ObjectKey::new("ns", uid),
        uid: uid.to_owned(),
        ours: true,
        group: Some(group.to_owned()),
        priority: 1,
        preemptable: running.is_none_or(|pod| pod.preemptable),
        phase: if running.is_some() { PodPhase::Running } else { PodPhase::Pending },
        node: running.map(|pod| format!("n{}", pod.node)),
        spec: Arc::new(PodSpec { requests: amounts(&requests), ..PodSpec::default() }),
        ..PodObject::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn victims_may_leave_their_gangs_stay_whole_or_go_and_none_of_them_could_be_spared(seed in seeds()) {
        prop_assert_eq!(seed.judge().err(), None);
    }
}

#[test]
fn the_random_clusters_lead_to_evictions_of_every_kind() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut evicted = [0; 4];
    for _ in 0..1_000 {
        let seed = seeds().new_tree(&mut runner).expect("a seed").current();
        evicted[seed.action] += seed.judge().expect("clean");
    }
    assert!(evicted.iter().all(|&count| count >= 10), "{evicted:?}");
}

/// Two pods of the resident gang have to come back. The first that could takes the room that the two others need.
#[test]
fn who_comes_back_of_a_gang_is_chosen_so_that_it_stays_whole() {
    let resident = |queue, min, pods: &[(u8, usize)]| Resident {
        queue,
        class: 0,
        min,
        pods: pods.iter().map(|&(shape, node)| (shape, node, true)).collect(),
    };
    let seed = Seed {
        action: 2,
        nodes: vec![(2, 1), (4, 1), (2, 0)],
        residents: vec![
            resident(true, 2, &[(0, 1), (2, 0), (3, 1), (0, 0)]),
            resident(false, 0, &[(0, 2)]),
        ],
        class: 1,
        pods: vec![1, 1],
        min: 2,
    };
    assert_eq!(seed.judge(), Ok(2));
}
