//! A random story: a cluster, gangs that arrive, and what happens between sessions. Everything is small numbers, so
//! that a failing story shrinks to a short one.

use proptest::collection::vec;
use proptest::prelude::*;
use tephra_api::conf::SchedulerConf;
use tephra_core::event::{
    NamespaceObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject, PodPhase,
    PriorityClassObject, QueueObject, QueueState,
};

use crate::objects::{
    CONSTRAINTS, NAMESPACE, NodeSeed, OTHER_NAMESPACE, amounts, app, requests, spec,
};

/// A queue.
#[derive(Clone, Debug)]
pub struct QueueSeed {
    pub weight: i32,
    pub priority: i32,
    pub capability: Option<u8>,
    pub guarantee: Option<u8>,
    pub state: QueueState,
    pub fifo: bool,
}

impl QueueSeed {
    /// The object; numbers of amounts are in nodes of 4 cpu.
    pub fn object(&self, number: usize) -> QueueObject {
        let sized = |size: u8| {
            amounts(&[
                ("cpu", i64::from(size) * 4_000),
                ("memory", i64::from(size) * (8 << 30)),
                ("nvidia.com/gpu", i64::from(size) * 1_000),
            ])
        };
        let capability = self.capability.map(|size| match size % 5 {
            0 => amounts(&[("cpu", i64::from(size) * 1_500)]),
            1 => amounts(&[("cpu", 0), ("nvidia.com/gpu", 1_000)]),
            2 => amounts(&[("cpu", 6_000), ("pods", i64::from(size))]),
            3 => amounts(&[("memory", i64::from(size) * (3 << 30) + 1)]),
            _ => sized(size),
        });
        QueueObject {
            name: queue_name(number),
            uid: format!("queue-uid-{number}"),
            created_ms: i64::from(self.weight) * 10,
            weight: self.weight,
            priority: self.priority,
            capability,
            guarantee: self.guarantee.map(sized),
            reclaimable: true,
            state: self.state,
            fifo: self.fifo,
            ..QueueObject::default()
        }
    }
}

/// Name of a queue; the first is the one of gangs that name none.
pub fn queue_name(number: usize) -> String {
    if number == 0 { "default".to_owned() } else { format!("queue-{number}") }
}

/// Pods of one role.
#[derive(Clone, Debug)]
pub struct RoleSeed {
    pub count: u8,
    pub shape: u8,
    pub constraint: u8,
    pub priority: i32,
    /// `minTaskMember` of the role, as part of `count` in quarters.
    pub minimum: u8,
    pub named: bool,
    pub gated: bool,
    /// Node that the status of the first pod names.
    pub nominated: Option<u8>,
}

/// A gang.
#[derive(Clone, Debug)]
pub struct GangSeed {
    pub queue: u8,
    pub roles: Vec<RoleSeed>,
    /// `minMember`, as part of all pods in quarters; 5 is one more than there are.
    pub minimum: u8,
    pub role_minimums: bool,
    pub priority_class: u8,
    pub admitted: bool,
    pub min_resources: u8,
    pub created: u8,
    pub elsewhere: bool,
    /// Its pods never come.
    pub absent: bool,
}

impl GangSeed {
    /// The PodGroup and its pods.
    pub fn objects(&self, number: usize, queues: usize) -> (PodGroupObject, Vec<PodObject>) {
        let namespace = if self.elsewhere { OTHER_NAMESPACE } else { NAMESPACE };
        let key = ObjectKey::new(namespace, format!("gang-{number}"));
        let mut pods = Vec::new();
        let mut totals: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
        let mut min_task_member = Vec::new();
        for (at, role) in self.roles.iter().enumerate() {
            let name = if role.named { format!("role{at}") } else { String::new() };
            if role.named && self.role_minimums {
                min_task_member.push((name.clone(), i32::from(role.count * role.minimum / 4)));
            }
            let spec = spec(namespace, role.shape, role.constraint);
            for (resource, amount) in requests(role.shape) {
                *totals.entry(resource).or_default() += amount * i64::from(role.count);
            }
            for index in 0..role.count {
                pods.push(PodObject {
                    key: ObjectKey::new(namespace, format!("gang-{number}-role{at}-{index}")),
                    uid: format!("pod-{number}-{at}-{index}"),
                    created_ms: i64::from(index % 3),
                    ours: true,
                    group: Some(key.name.clone()),
                    role: name.clone(),
                    priority: role.priority,
                    preemptable: true,
                    gated: role.gated && index == 0,
                    nominated: role
                        .nominated
                        .filter(|_| index == 0)
                        .map(|node| format!("node-{node}")),
                    labels: vec![("app".to_owned(), app(role.constraint))],
                    spec: spec.clone(),
                    ..PodObject::default()
                });
            }
        }
        let members = pods.len() as i32;
        let min_member = match self.minimum {
            5 => members + 1,
            quarters => members * i32::from(quarters) / 4,
        };
        let group = PodGroupObject {
            uid: format!("gang-uid-{number}"),
            created_ms: i64::from(self.created),
            queue: queue_name(self.queue as usize % (queues + 1)),
            min_member,
            min_task_member,
            min_resources: match self.min_resources {
                0 => None,
                part => Some(
                    totals.into_iter().map(|(name, n)| (name, n * i64::from(part) / 4)).collect(),
                ),
            },
            priority_class: ["", "low", "high"][self.priority_class as usize % 3].to_owned(),
            status: PodGroupStatus {
                phase: if self.admitted { PodGroupPhase::Inqueue } else { PodGroupPhase::Pending },
                ..PodGroupStatus::default()
            },
            key,
            ..PodGroupObject::default()
        };
        if self.absent {
            pods.clear();
        }
        (group, pods)
    }
}

/// A pod of somebody else that sits on a node.
#[derive(Clone, Debug)]
pub struct ResidentSeed {
    pub node: u8,
    pub shape: u8,
    pub leaving: bool,
}

impl ResidentSeed {
    /// The object.
    pub fn object(&self, number: usize, nodes: usize) -> PodObject {
        PodObject {
            key: ObjectKey::new(NAMESPACE, format!("resident-{number}")),
            uid: format!("resident-{number}"),
            phase: PodPhase::Running,
            deleting: self.leaving,
            node: Some(format!("node-{}", self.node as usize % nodes)),
            spec: spec(NAMESPACE, self.shape, 0),
            ..PodObject::default()
        }
    }
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Step {
    Session,
    /// The pod is marked for deletion.
    Leave(u16),
    DeletePod(u16),
    Succeed(u16),
    Fail(u16),
    /// The node of the pod does not answer.
    Lose(u16),
    Ungate(u16),
    /// The pod's label `app` changes.
    Relabel(u16, u8),
    /// The gang goes to another queue.
    MoveGang(u8, u8),
    DeleteNode(u8),
    /// The node appears as its seed says, also when it was changed or deleted.
    RestoreNode(u8),
    Cordon(u8),
    ReshapeNode(u8, u8),
    DeleteGang(u8),
    /// The PodGroup as it stands is told again, with another minimum.
    ChangeMinimum(u8, u8),
    ChangeWeight(u8, i32),
    CloseQueue(u8),
    DeleteQueue(u8),
    RestoreQueue(u8),
    ChangePriority(i32),
    /// The pod as it stands is told again.
    Repeat(u16),
    /// The next gang of the story arrives.
    Arrive,
    Resident(ResidentSeed),
}

/// The story.
#[derive(Clone, Debug)]
pub struct Story {
    pub conf: u8,
    pub nodes: Vec<NodeSeed>,
    pub queues: Vec<QueueSeed>,
    pub residents: Vec<ResidentSeed>,
    pub gangs: Vec<GangSeed>,
    /// Gangs that are there from the start; the others arrive later.
    pub present: usize,
    pub steps: Vec<Step>,
    /// How binds end, in turn.
    pub ends: Vec<u8>,
}

/// Configurations: the two that Volcano has without a file and in its chart, then the latter with one part less.
pub fn configuration(number: u8) -> SchedulerConf {
    let left_out = match number % 16 {
        0..=3 => return SchedulerConf::builtin(),
        4..=7 => return SchedulerConf::volcano(),
        8 => "enqueue",
        9 => "backfill",
        10 => "gang",
        11 => "proportion",
        12 => "drf",
        13 => "predicates",
        14 => "nodeorder",
        _ => "priority",
    };
    let mut conf = SchedulerConf::volcano();
    conf.actions.retain(|name| name != left_out);
    for tier in &mut conf.tiers {
        tier.plugins.retain(|plugin| plugin.name != left_out);
    }
    conf
}

/// The namespaces of every story.
pub fn namespaces() -> [NamespaceObject; 2] {
    [(NAMESPACE, "dev"), (OTHER_NAMESPACE, "prod")].map(|(name, env)| NamespaceObject {
        name: name.to_owned(),
        labels: vec![("env".to_owned(), env.to_owned())],
    })
}

/// The priority classes of every story.
pub fn priority_classes() -> [PriorityClassObject; 2] {
    [("low", -5), ("high", 10)].map(|(name, value)| PriorityClassObject {
        name: name.to_owned(),
        value,
        global_default: false,
    })
}

fn node() -> impl Strategy<Value = NodeSeed> {
    let zone = prop_oneof![12 => 0..3_u8, 1 => Just(3_u8)];
    (0..5_u8, zone, 0..2_u8, 0..14_u8, prop::bool::weighted(0.07)).prop_map(
        |(shape, zone, pool, taint, cordoned)| NodeSeed {
            shape,
            zone,
            pool,
            taint: 13 - taint,
            cordoned,
        },
    )
}

fn queue() -> impl Strategy<Value = QueueSeed> {
    let state = prop_oneof![
        12 => Just(QueueState::Open),
        1 => Just(QueueState::Closed),
        1 => Just(QueueState::Unknown),
    ];
    (
        0..5_i32,
        0..2_i32,
        prop::option::weighted(0.3, 0..10_u8),
        prop::option::weighted(0.25, prop_oneof![3 => 0..2_u8, 1 => 2..6_u8]),
        state,
        prop::bool::weighted(0.15),
    )
        .prop_map(|(weight, priority, capability, guarantee, state, fifo)| QueueSeed {
            weight,
            priority,
            capability,
            guarantee,
            state,
            fifo,
        })
}

fn role() -> impl Strategy<Value = RoleSeed> {
    (
        1..7_u8,
        0..9_u8,
        prop_oneof![5 => Just(0_u8), 6 => 0..9_u8, 2 => 9..CONSTRAINTS],
        1..3_i32,
        0..5_u8,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.05),
        prop::option::weighted(0.05, 0..4_u8),
    )
        .prop_map(|(count, shape, constraint, priority, minimum, named, gated, nominated)| {
            RoleSeed { count, shape, constraint, priority, minimum, named, gated, nominated }
        })
}

fn gang() -> impl Strategy<Value = GangSeed> {
    (
        0..7_u8,
        vec(role(), 1..4),
        prop_oneof![6 => Just(4_u8), 4 => 0..5_u8, 1 => Just(5_u8)],
        prop::bool::weighted(0.5),
        0..3_u8,
        any::<bool>(),
        prop_oneof![3 => Just(0_u8), 3 => Just(4_u8), 1 => 1..4_u8],
        0..3_u8,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(
                queue,
                roles,
                minimum,
                role_minimums,
                priority_class,
                admitted,
                min_resources,
                created,
                elsewhere,
                absent,
            )| {
                GangSeed {
                    queue,
                    roles,
                    minimum,
                    role_minimums,
                    priority_class,
                    admitted,
                    min_resources,
                    created,
                    elsewhere,
                    absent,
                }
            },
        )
}

fn resident() -> impl Strategy<Value = ResidentSeed> {
    (any::<u8>(), 0..9_u8, prop::bool::weighted(0.35))
        .prop_map(|(node, shape, leaving)| ResidentSeed { node, shape, leaving })
}

fn step() -> impl Strategy<Value = Step> {
    let pod = any::<u16>();
    let small = any::<u8>();
    prop_oneof![
        8 => Just(Step::Session),
        3 => pod.prop_map(Step::Leave),
        3 => pod.prop_map(Step::DeletePod),
        1 => pod.prop_map(Step::Succeed),
        1 => pod.prop_map(Step::Fail),
        1 => pod.prop_map(Step::Lose),
        1 => pod.prop_map(Step::Ungate),
        1 => (any::<u16>(), 0..CONSTRAINTS).prop_map(|(pod, app)| Step::Relabel(pod, app)),
        1 => (small, any::<u8>()).prop_map(|(gang, queue)| Step::MoveGang(gang, queue)),
        1 => small.prop_map(Step::DeleteNode),
        2 => small.prop_map(Step::RestoreNode),
        1 => small.prop_map(Step::Cordon),
        1 => (small, 0..5_u8).prop_map(|(node, shape)| Step::ReshapeNode(node, shape)),
        1 => small.prop_map(Step::DeleteGang),
        1 => (small, 0..6_u8).prop_map(|(gang, minimum)| Step::ChangeMinimum(gang, minimum)),
        1 => (small, 1..9_i32).prop_map(|(queue, weight)| Step::ChangeWeight(queue, weight)),
        1 => small.prop_map(Step::CloseQueue),
        1 => small.prop_map(Step::DeleteQueue),
        1 => small.prop_map(Step::RestoreQueue),
        1 => (-9..20_i32).prop_map(Step::ChangePriority),
        1 => pod.prop_map(Step::Repeat),
        4 => Just(Step::Arrive),
        1 => resident().prop_map(Step::Resident),
    ]
}

/// Random stories with up to so many nodes.
pub fn stories(most_nodes: usize) -> impl Strategy<Value = Story> {
    (
        0..16_u8,
        vec(node(), 2..=most_nodes),
        vec(queue(), 1..6),
        vec(resident(), 0..8),
        vec(gang(), 1..9),
        1..6_usize,
        vec(step(), 0..14),
        vec(0..16_u8, 1..6),
    )
        .prop_map(|(conf, nodes, queues, residents, gangs, present, steps, ends)| Story {
            conf,
            nodes,
            queues,
            residents,
            gangs,
            present,
            steps,
            ends,
        })
}
