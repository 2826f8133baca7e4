//! Stories for two cores at once, of which one repeats every search: gangs come, run, end and are suspended, pods fail to leave, queues
//! and nodes change, time passes. After each act both run a session and must decide the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tephra_api::conf::SchedulerConf;
use tephra_api::suspension::Intent;

use crate::decision::Decision;
use crate::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupStatus, PodObject, PodPhase, PodSpec,
    PriorityClassObject, QueueObject, QueuePolicyObject, Suspension, SuspensionRecord,
};
use crate::plugin::test_world::queue;
use crate::workload::amounts;
use crate::{Core, Options};

const NODES: usize = 3;
const QUEUES: [&str; 3] = ["q0", "q1", "q2"];
const CLASSES: [(&str, i32); 3] = [("low", 10), ("middle", 50), ("high", 100)];

/// `tephra` as shipped; flat queues with `proportion`; and gang actions with a tree of queues, whose figures move.
pub(super) const CONFIGURATIONS: [&str; 3] = [
    "",
    "actions: enqueue, allocate, preempt, reclaim
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: sla, arguments: {sla-waiting-time: 70s}}]
- plugins: [{name: drf, enablePreemptable: false}, {name: cdp}, {name: pdb}, {name: predicates}, {name: proportion}]
",
    "actions: allocate, gangpreempt, gangreclaim
tiers:
- plugins: [{name: wfq, arguments: {wfq.reclaim-lead: 20s}}, {name: priority}, {name: gang, enableReclaimable: false}, {name: suspend, arguments: {suspend.pairCooldown: 40s}}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true, arguments: {deservedByWeight: true}}]
",
];

/// Something that happens before a session.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Submit { queue: usize, class: usize, min: usize, surplus: usize, cpus: i64 },
    Wait { seconds: i64 },
    End { gang: usize },
    Relabel { gang: usize },
    FailEviction,
    IgnoreIntents,
    Reweigh { queue: usize, weight: i32 },
    Cordon { node: usize },
    Cool { gang: usize, seconds: i64 },
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let queue = || 0..QUEUES.len();
    let submit = (queue(), 0..CLASSES.len(), 1..5_usize, 0..3_usize, 1..5_i64);
    prop_oneof![
        8 => submit.prop_map(|(queue, class, min, surplus, cpus)| Act::Submit { queue, class, min, surplus, cpus }),
        12 => (1..40_i64).prop_map(|seconds| Act::Wait { seconds }),
        4 => (0..12_usize).prop_map(|gang| Act::End { gang }),
        1 => (0..12_usize).prop_map(|gang| Act::Relabel { gang }),
        1 => Just(Act::FailEviction),
        1 => Just(Act::IgnoreIntents),
        1 => (queue(), 1..4_i32).prop_map(|(queue, weight)| Act::Reweigh { queue, weight }),
        1 => (0..NODES).prop_map(|node| Act::Cordon { node }),
        1 => (0..12_usize, 1..60_i64).prop_map(|(gang, seconds)| Act::Cool { gang, seconds }),
    ]
}

/// A gang as the API server has it.
#[derive(Clone, Debug)]
struct Gang {
    queue: usize,
    class: usize,
    min: usize,
    cpus: i64,
    created_ms: i64,
    status: PodGroupStatus,
    suspension: Option<Suspension>,
    /// Pods by uid.
    pods: BTreeMap<String, PodObject>,
    size: usize,
    lives: usize,
}

/// The world of both cores.
pub(super) struct World {
    /// The one that remembers, and the one that does not.
    cores: [Core; 2],
    gangs: BTreeMap<usize, Gang>,
    cordoned: [bool; NODES],
    now_ms: i64,
    fails_evictions: bool,
    ignores_intents: bool,
    pub(super) searches: [u32; 2],
    pub(super) made_to_go: usize,
}

fn node(number: usize, unschedulable: bool) -> Event {
    Event::Node(NodeObject {
        name: format!("n{number}"),
        allocatable: amounts(6_000, 1 << 36, 0, 50),
        unschedulable,
        ..NodeObject::default()
    })
}

fn team(at: usize, weight: i32) -> Event {
    let deserved = (at == 2).then(|| amounts(4_000, 1 << 32, 0, 50));
    Event::Queue(QueueObject { weight, deserved, ..queue(QUEUES[at], "") })
}

impl World {
    pub(super) fn new(configuration: &str) -> Self {
        let conf = match configuration {
            "" => SchedulerConf::tephra(),
            text => SchedulerConf::parse(text, crate::registry::action_names()).expect("valid"),
        };
        let core = || Core::new(Options::default(), &conf);
        let mut world = Self {
            cores: [core(), core().without_memory()],
            gangs: BTreeMap::new(),
            cordoned: [false; NODES],
            now_ms: 1_000_000,
            fails_evictions: false,
            ignores_intents: false,
            searches: [0; 2],
            made_to_go: 0,
        };
        for (name, value) in CLASSES {
            let class = PriorityClassObject { name: name.into(), value, global_default: false };
            world.apply(&Event::PriorityClass(class));
        }
        (0..QUEUES.len()).for_each(|at| world.apply(&team(at, 1)));
        world.apply(&Event::QueuePolicy(QueuePolicyObject {
            name: QUEUES[1].to_owned(),
            min_runtime_ms: Some(45_000),
            max_suspensions_per_day: Some(2),
            ..QueuePolicyObject::default()
        }));
        (0..NODES).for_each(|number| world.apply(&node(number, false)));
        world
    }

    fn apply(&mut self, event: &Event) {
        self.cores.iter_mut().for_each(|core| core.apply(event.clone()));
    }

    /// An act, and a session a second later.
    pub(super) fn play(&mut self, act: &Act) {
        match *act {
            Act::Submit { queue, class, min, surplus, cpus } => {
                let gang = Gang {
                    queue,
                    class,
                    min,
                    cpus,
                    created_ms: self.now_ms,
                    status: PodGroupStatus::default(),
                    suspension: None,
                    pods: BTreeMap::new(),
                    size: min + surplus,
                    lives: 0,
                };
                let number = self.gangs.keys().next_back().map_or(0, |last| last + 1);
                self.gangs.insert(number, gang);
                self.tell_group(number);
                self.create_pods(number);
            }
            Act::Wait { seconds } => self.now_ms += (seconds - 1) * 1_000,
            Act::End { gang } => {
                if let Some(number) = self.gangs.keys().nth(gang).copied() {
                    self.delete_pods(number);
                    self.gangs.remove(&number);
                    self.apply(&Event::PodGroupDeleted(key(number)));
                }
            }
            Act::Relabel { gang } => self.change_pods(gang, |pod| pod.priority += 1),
            Act::Cool { gang, seconds } => {
                let until_ms = self.now_ms + seconds * 1_000;
                self.change_pods(gang, |pod| pod.cooling_until_ms = Some(until_ms));
            }
            Act::FailEviction => self.fails_evictions = true,
            Act::IgnoreIntents => self.ignores_intents = !self.ignores_intents,
            Act::Reweigh { queue, weight } => self.apply(&team(queue, weight)),
            Act::Cordon { node: number } => {
                self.cordoned[number] ^= true;
                self.apply(&node(number, self.cordoned[number]));
            }
        }
        self.now_ms += 1_000;
        self.session();
    }

    fn session(&mut self) {
        let now_ms = self.now_ms;
        let reports = self.cores.each_mut().map(|core| core.session(now_ms));
        let [one, other] = &reports;
        assert_eq!(format!("{:?}", one.decisions), format!("{:?}", other.decisions));
        for (core, (sum, report)) in self.cores.iter().zip(self.searches.iter_mut().zip(&reports)) {
            *sum += report.searches;
            assert_eq!(core.audit(), []);
        }
        let [report, _] = reports;
        self.suspend_those_who_were_asked();
        report.decisions.into_iter().for_each(|decision| self.carry_out(decision));
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Bind(bind) => {
                for (pod, node) in bind.binds {
                    let node = (node.to_string(), self.now_ms);
                    self.update_pod(&pod.uid, |pod| {
                        (pod.phase, pod.node) = (PodPhase::Running, Some(node.0));
                        pod.started_ms = Some(node.1);
                    });
                }
            }
            Decision::Evict { pod, .. } => {
                self.made_to_go += 1;
                let uid = pod.uid.to_string();
                if std::mem::take(&mut self.fails_evictions) {
                    return self.apply(&Event::EvictFailed { uid, message: "no".to_owned() });
                }
                self.apply(&Event::PodDeleted(uid.clone()));
                // Its controller creates it again.
                if let Some(number) = number_of(&uid).filter(|it| self.gangs.contains_key(it)) {
                    self.gangs.get_mut(&number).map(|gang| gang.pods.remove(&uid));
                    self.create_pods(number);
                }
            }
            Decision::PodGroupStatus { group, status, .. } => {
                let number = self.known(&group);
                if let Some((number, gang)) =
                    number.and_then(|it| Some((it, self.gangs.get_mut(&it)?)))
                {
                    gang.status = status;
                    self.tell_group(number);
                }
            }
            Decision::Suspend { group, intent, .. } => {
                self.made_to_go += 1;
                self.tell_suspension(
                    &group,
                    Some(Suspension { intent: Some(intent), ..Suspension::default() }),
                );
            }
            Decision::Withdraw { group, .. } => self.tell_suspension(&group, None),
            Decision::Resume { group, .. } => {
                self.tell_suspension(&group, None);
                self.known(&group).into_iter().for_each(|number| self.create_pods(number));
            }
            _ => {}
        }
    }

    /// Gangs that were asked to go before this session are stopped, unless nobody does that.
    fn suspend_those_who_were_asked(&mut self) {
        let asked = |gang: &Gang| -> Option<Intent> { gang.suspension.as_ref()?.intent.clone() };
        let asked: Vec<(usize, Intent)> = self
            .gangs
            .iter()
            .filter(|_| !self.ignores_intents)
            .filter_map(|(&number, gang)| Some((number, asked(gang)?)))
            .collect();
        for (number, intent) in asked {
            let gang = &self.gangs[&number];
            let members = vec![(gang.pods.len() as u32, Arc::new(shape(gang)))];
            self.delete_pods(number);
            let record = SuspensionRecord {
                id: intent.id,
                by: intent.by,
                at_ms: self.now_ms,
                group: key(number).name,
                members,
            };
            let told = Suspension { record: Some(record), ..Suspension::default() };
            self.tell_suspension(&key(number), Some(told));
        }
    }

    fn known(&self, group: &ObjectKey) -> Option<usize> {
        number_of(&group.name).filter(|number| self.gangs.contains_key(number))
    }

    fn tell_suspension(&mut self, group: &ObjectKey, suspension: Option<Suspension>) {
        let number = self.known(group);
        if let Some((number, gang)) = number.and_then(|it| Some((it, self.gangs.get_mut(&it)?))) {
            gang.suspension = suspension;
            self.tell_group(number);
        }
    }

    fn tell_group(&mut self, number: usize) {
        let gang = &self.gangs[&number];
        let event = Event::PodGroup(PodGroupObject {
            key: key(number),
            uid: key(number).name,
            created_ms: gang.created_ms,
            queue: QUEUES[gang.queue].to_owned(),
            min_member: gang.min as i32,
            min_resources: Some(amounts(gang.cpus * 1_000 * gang.min as i64, 1 << 30, 0, 1)),
            priority_class: CLASSES[gang.class].0.to_owned(),
            status: gang.status.clone(),
            suspension: gang.suspension.clone().map(Box::new),
            ..PodGroupObject::default()
        });
        self.apply(&event);
    }

    /// Creates the pods that the gang lacks.
    fn create_pods(&mut self, number: usize) {
        let Some(gang) = self.gangs.get_mut(&number) else { return };
        gang.lives += 1;
        let mut created = Vec::new();
        for member in gang.pods.len()..gang.size {
            let uid = format!("g-{number}-{}-{member}", gang.lives);
            let pod = PodObject {
                key: ObjectKey::new("ns", uid.clone()),
                uid: uid.clone(),
                ours: true,
                group: Some(key(number).name),
                phase: PodPhase::Pending,
                ..shape(gang)
            };
            gang.pods.insert(uid, pod.clone());
            created.push(Event::Pod(pod));
        }
        created.iter().for_each(|event| self.apply(event));
    }

    fn delete_pods(&mut self, number: usize) {
        let pods = self.gangs.get_mut(&number).map(|gang| std::mem::take(&mut gang.pods));
        for uid in pods.unwrap_or_default().into_keys() {
            self.apply(&Event::PodDeleted(uid));
        }
    }

    fn update_pod(&mut self, uid: &str, change: impl FnOnce(&mut PodObject)) {
        let gang = number_of(uid).and_then(|number| self.gangs.get_mut(&number));
        let Some(pod) = gang.and_then(|gang| gang.pods.get_mut(uid)) else { return };
        change(pod);
        let event = Event::Pod(pod.clone());
        self.apply(&event);
    }

    fn change_pods(&mut self, gang: usize, change: impl Fn(&mut PodObject)) {
        let Some(gang) = self.gangs.values().nth(gang) else { return };
        for uid in Vec::from_iter(gang.pods.keys().cloned()) {
            self.update_pod(&uid, &change);
        }
    }
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::new("ns", format!("g-{number}"))
}

/// The number of a gang in its name or that of one of its pods.
fn number_of(name: &str) -> Option<usize> {
    name.split('-').nth(1)?.parse().ok()
}

fn shape(gang: &Gang) -> PodObject {
    PodObject {
        spec: Arc::new(PodSpec {
            namespace: "ns".to_owned(),
            requests: amounts(gang.cpus * 1_000, 1 << 30, 0, 1),
            ..PodSpec::default()
        }),
        priority: CLASSES[gang.class].1,
        preemptable: true,
        created_ms: gang.created_ms,
        ..PodObject::default()
    }
}
