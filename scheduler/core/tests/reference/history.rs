//! The core alone: ledgers survive any history of events, and equal histories give equal decisions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::event::{Event, NodeObject, PodObject, PodPhase};
use tephra_core::{Core, Options};

use crate::objects::NodeSeed;
use crate::story::{GangSeed, QueueSeed, RoleSeed, priority_classes};

/// Numbers that look random (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

/// Makes events without any regard to what makes sense: pods on nodes that do not exist, things deleted twice, the
/// same object over and over, statuses that jump back. So many nodes come and go.
fn event(noise: &mut Noise, nodes: u64) -> Event {
    let number = noise.below(30) as usize;
    let node_number = number % nodes as usize;
    let node = |noise: &mut Noise| NodeSeed {
        shape: noise.byte(),
        zone: noise.byte(),
        pool: noise.byte(),
        taint: noise.byte(),
        cordoned: noise.below(10) == 0,
    };
    match noise.below(100) {
        0..=9 => Event::Node(node(noise).object(node_number)),
        10..=13 => Event::NodeDeleted(format!("node-{node_number}")),
        14..=54 => Event::Pod(pod(noise, number, nodes)),
        55..=64 => Event::PodDeleted(pod(noise, number, nodes).uid),
        65..=74 => Event::PodGroup(gang(noise).objects(number, 4).0),
        75..=78 => Event::PodGroupDeleted(gang(noise).objects(number, 4).0.key),
        79..=82 => Event::Queue(queue(noise).object(number % 5)),
        83 => Event::QueueDeleted(crate::story::queue_name(number % 5)),
        84..=85 => {
            let mut class = priority_classes()[noise.below(2) as usize].clone();
            class.value = noise.below(30) as i32;
            class.global_default = noise.below(2) == 0;
            Event::PriorityClass(class)
        }
        86 => Event::PriorityClassDeleted("low".to_owned()),
        87..=92 => Event::BindOk(pod(noise, number, nodes).uid),
        93..=96 => {
            Event::BindFailed { uid: pod(noise, number, nodes).uid, message: "no".to_owned() }
        }
        97 => Event::EvictOk(pod(noise, number, nodes).uid),
        _ => Event::EvictFailed { uid: pod(noise, number, nodes).uid, message: "no".to_owned() },
    }
}

fn gang(noise: &mut Noise) -> GangSeed {
    GangSeed {
        queue: noise.byte(),
        roles: (0..=noise.below(2))
            .map(|_| RoleSeed {
                count: 1 + noise.byte() % 5,
                shape: noise.byte(),
                constraint: noise.byte(),
                priority: 1,
                minimum: noise.byte() % 5,
                named: noise.below(4) > 0,
                gated: noise.below(9) == 0,
                nominated: (noise.below(9) == 0).then(|| noise.byte() % 4),
            })
            .collect(),
        minimum: noise.byte() % 6,
        role_minimums: noise.below(2) == 0,
        priority_class: noise.byte(),
        admitted: noise.below(2) == 0,
        min_resources: noise.byte() % 5,
        created: noise.byte() % 4,
        elsewhere: noise.below(5) == 0,
        absent: false,
    }
}

fn queue(noise: &mut Noise) -> QueueSeed {
    use tephra_core::event::QueueState::{Closed, Open};
    QueueSeed {
        weight: noise.below(5) as i32,
        priority: noise.below(2) as i32,
        capability: (noise.below(3) == 0).then(|| noise.byte() % 8),
        guarantee: (noise.below(4) == 0).then(|| noise.byte() % 3),
        state: if noise.below(8) == 0 { Closed } else { Open },
        fifo: noise.below(6) == 0,
    }
}

fn pod(noise: &mut Noise, number: usize, nodes: u64) -> PodObject {
    let (_, pods) = gang(noise).objects(number, 4);
    let at = noise.below(pods.len() as u64) as usize;
    let mut pod = pods[at].clone();
    let phases = [
        PodPhase::Pending,
        PodPhase::Pending,
        PodPhase::Pending,
        PodPhase::Running,
        PodPhase::Running,
        PodPhase::Succeeded,
        PodPhase::Failed,
        PodPhase::Unknown,
    ];
    pod.phase = phases[noise.below(8) as usize];
    pod.node = (noise.below(3) == 0).then(|| format!("node-{}", noise.below(nodes + nodes / 6)));
    pod.deleting = noise.below(8) == 0;
    pod.ours = noise.below(12) > 0;
    pod.preemptable = noise.below(6) > 0;
    if noise.below(12) == 0 {
        pod.group = None;
    }
    pod
}

/// How many nodes come and go.
const NODES: u64 = 30;

/// Without evictions, and on few nodes with every action that evicts.
fn configurations() -> [(SchedulerConf, u64); 2] {
    let mut evicting = SchedulerConf::volcano();
    let evictors = ["preempt", "reclaim", "gangpreempt", "gangreclaim"];
    evicting.actions.splice(2..2, evictors.map(ToOwned::to_owned));
    [(SchedulerConf::volcano(), NODES), (evicting, 5)]
}

/// Ten thousand events with a session now and then; every bind that is decided, in order.
fn lived(
    (conf, nodes): &(SchedulerConf, u64),
    seed: u64,
    events: u64,
    mut check: impl FnMut(&Core, u64),
) -> Vec<Vec<Decision>> {
    let mut noise = Noise(seed);
    let mut core = Core::new(Options::default(), conf);
    let mut decided = Vec::new();
    let mut last = None;
    for at in 0..events {
        let event = match last.take() {
            // Every now and then the same event comes twice in a row.
            Some(event) if noise.below(12) == 0 => event,
            _ => event(&mut noise, *nodes),
        };
        last = Some(event.clone());
        core.apply(event);
        if noise.below(20) == 0 {
            decided.push(core.session(at as i64).decisions);
            check(&core, at);
        }
    }
    check(&core, events);
    decided
}

#[test]
fn ledgers_equal_a_recomputation_after_ten_thousand_events() {
    let count = |decided: &[Vec<Decision>], wanted: fn(&Decision) -> bool| {
        decided.iter().flatten().filter(|decision| wanted(decision)).count()
    };
    let (mut promised, mut evicted) = (0, 0);
    for (number, conf) in configurations().iter().enumerate() {
        for seed in 0..8 {
            let decided = lived(conf, seed, 10_000, |core, at| {
                assert_eq!(core.audit(), [], "configuration {number}, seed {seed}, event {at}");
                promised += core.placements().len();
            });
            let bound = count(&decided, |decision| matches!(decision, Decision::Bind(_)));
            assert!(bound > 20, "seed {seed}: only {bound} gangs were bound: too dull");
            evicted += count(&decided, |decision| matches!(decision, Decision::Evict { .. }));
        }
    }
    assert!(promised > 0, "nothing was ever promised and taken back");
    assert!(evicted > 15, "only {evicted} pods were evicted: too dull");
}

#[test]
fn equal_histories_give_equal_decisions() {
    for conf in &configurations() {
        assert_eq!(lived(conf, 99, 6_000, |_, _| ()), lived(conf, 99, 6_000, |_, _| ()));
    }
}

#[test]
fn nobody_is_bound_to_a_node_that_is_gone_and_no_pod_twice() {
    let mut noise = Noise(5);
    let mut core = Core::new(Options::default(), &SchedulerConf::volcano());
    let mut nodes: BTreeSet<String> = BTreeSet::new();
    let mut binding: BTreeSet<String> = BTreeSet::new();
    for at in 0..20_000 {
        let event = event(&mut noise, NODES);
        match &event {
            Event::Node(NodeObject { name, .. }) => {
                nodes.insert(name.clone());
            }
            Event::NodeDeleted(name) => {
                nodes.remove(name);
            }
            // Whatever is told of a pod may end its bind.
            Event::Pod(PodObject { uid, .. })
            | Event::PodDeleted(uid)
            | Event::BindOk(uid)
            | Event::BindFailed { uid, .. } => {
                binding.remove(uid);
            }
            _ => {}
        }
        core.apply(event);
        if noise.below(20) > 0 {
            continue;
        }
        for decision in core.session(at).decisions {
            let Decision::Bind(gang) = decision else { continue };
            for (pod, node) in gang.binds {
                assert!(nodes.contains(&*node), "{node} is gone");
                assert!(binding.insert(pod.uid.to_string()), "{pod:?} is being bound already");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// A session that commits nothing leaves no trace: running it again decides the same, and the ledgers hold.
    #[test]
    fn what_a_session_takes_back_leaves_no_trace(seed in any::<u64>()) {
        let mut noise = Noise(seed);
        let mut core = Core::new(Options::default(), &SchedulerConf::volcano());
        for _ in 0..400 {
            core.apply(event(&mut noise, NODES));
        }
        // An hour between sessions outlasts every back-off; two sessions without binds mean that none will come.
        let hour = 3_600_000;
        let (mut sessions, mut quiet) = (0, 0);
        while quiet < 2 {
            sessions += 1;
            prop_assert!(sessions < 100, "binding does not end");
            quiet = if core.session(sessions * hour).bound == 0 { quiet + 1 } else { 0 };
        }
        let promised = core.placements();
        prop_assert_eq!(core.audit(), []);
        let again = core.session((sessions + 1) * hour);
        prop_assert_eq!(again.bound, 0);
        prop_assert_eq!(core.placements(), promised);
        prop_assert_eq!(core.audit(), []);
    }
}
