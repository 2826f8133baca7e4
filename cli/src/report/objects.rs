//! A plan's nodes, queues, gangs and pods as the events that tell the core about them.

use std::sync::Arc;

use tephra_api::keys;
use tephra_core::event::{
    Event, NodeObject, NodeSelectorTerm, ObjectKey, Operator, PodGroupObject, PodGroupStatus,
    PodObject, PodPhase, PodSpec, QueueObject, QueueState, Requirement,
};
use tephra_core::workload::amounts;

use super::plan::{NodeShape, Plan, PodShape, Team};

const NAMESPACE: &str = "simulated";
const MODEL: &str = "accelerator";
/// Most pods of a node.
const PODS_OF_NODE: i64 = 256;
/// 2026-01-01T00:00:00Z, where runs start: the core reads 0 as "no time".
pub const START_MS: i64 = 1_767_225_600_000;

/// The pool and the queues.
pub fn world(plan: &Plan) -> Vec<Event> {
    let mut events = vec![queue(&Team { name: "root".to_owned(), weight: 1 })];
    events.extend(plan.teams.iter().map(queue));
    events.extend(plan.nodes.iter().enumerate().map(|(at, shape)| node(at, shape)));
    events
}

fn queue(team: &Team) -> Event {
    Event::Queue(QueueObject {
        name: team.name.clone(),
        uid: format!("queue-{}", team.name),
        created_ms: START_MS,
        weight: team.weight,
        reclaimable: true,
        state: QueueState::Open,
        ..QueueObject::default()
    })
}

fn node(at: usize, shape: &NodeShape) -> Event {
    let name = format!("node-{at:05}");
    let mut labels = vec![(keys::HOSTNAME.to_owned(), name.clone())];
    if !shape.model.is_empty() {
        labels.insert(0, (MODEL.to_owned(), shape.model.clone()));
    }
    let allocatable = amounts(shape.cpu_milli, shape.memory, shape.gpus, PODS_OF_NODE);
    Event::Node(NodeObject { name, labels, allocatable, ..NodeObject::default() })
}

/// The template that all pods of a shape share.
pub fn template(shape: &PodShape) -> Arc<PodSpec> {
    let mut spec = PodSpec {
        namespace: NAMESPACE.to_owned(),
        requests: amounts(shape.cpu_milli, shape.memory, shape.gpus, 1),
        nonzero: [shape.cpu_milli, shape.memory],
        ..PodSpec::default()
    };
    if !shape.models.is_empty() {
        spec.required_node_terms = vec![NodeSelectorTerm {
            expressions: vec![Requirement {
                key: MODEL.to_owned(),
                operator: Operator::In,
                values: shape.models.clone(),
            }],
            fields: Vec::new(),
        }];
    }
    Arc::new(spec)
}

/// Names of one life of a job: each restart is a new gang with the old place in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gang {
    /// Index of the job.
    pub job: usize,
    /// Number of restarts before.
    pub life: u32,
}

impl Gang {
    /// Reads the name of a PodGroup or pod, or the uid of a pod.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("job-")?.split('-');
        Some(Self { job: parts.next()?.parse().ok()?, life: parts.next()?.parse().ok()? })
    }

    fn name(self) -> String {
        format!("job-{:07}-{}", self.job, self.life)
    }

    fn key(self) -> ObjectKey {
        ObjectKey::new(NAMESPACE, self.name())
    }

    /// Its PodGroup.
    pub fn group(self, plan: &Plan, status: PodGroupStatus) -> Event {
        let job = &plan.jobs[self.job];
        let shape = &plan.shapes[job.shape];
        let pods = i64::from(job.pods);
        let estimate = job
            .estimate_ms
            .map(|ms| (keys::EXPECTED_RUNTIME.to_owned(), format!("{}ms", ms.max(1))));
        Event::PodGroup(PodGroupObject {
            key: self.key(),
            uid: self.name(),
            created_ms: START_MS + job.arrival_ms,
            queue: plan.teams[job.team].name.clone(),
            min_member: i32::try_from(job.pods).unwrap_or(i32::MAX),
            min_resources: Some(amounts(
                shape.cpu_milli.saturating_mul(pods),
                shape.memory.saturating_mul(pods),
                shape.gpus.saturating_mul(pods),
                pods,
            )),
            annotations: estimate.into_iter().collect(),
            status,
            ..PodGroupObject::default()
        })
    }

    /// One of its pods, waiting or running on a node since a time.
    pub fn pod(
        self,
        plan: &Plan,
        spec: &Arc<PodSpec>,
        number: u32,
        runs: Option<(&str, i64)>,
    ) -> Event {
        let name = self.name();
        let uid = self.pod_uid(number);
        Event::Pod(PodObject {
            key: ObjectKey::new(NAMESPACE, uid.clone()),
            uid,
            created_ms: START_MS + plan.jobs[self.job].arrival_ms,
            ours: true,
            group: Some(name),
            priority: 1,
            preemptable: true,
            phase: if runs.is_some() { PodPhase::Running } else { PodPhase::Pending },
            node: runs.map(|(node, _)| node.to_owned()),
            started_ms: runs.map(|(_, since_ms)| START_MS + since_ms),
            spec: Arc::clone(spec),
            ..PodObject::default()
        })
    }

    fn pod_uid(self, number: u32) -> String {
        format!("{}-{number}", self.name())
    }

    /// Number of the pod of this uid.
    pub fn number_of(uid: &str) -> Option<u32> {
        uid.rsplit('-').next()?.parse().ok()
    }

    /// Takes back its pods.
    pub fn pods_deleted(self, pods: u32) -> impl Iterator<Item = Event> {
        (0..pods).map(move |number| Event::PodDeleted(self.pod_uid(number)))
    }

    /// Takes back its PodGroup.
    pub fn group_deleted(self) -> Event {
        Event::PodGroupDeleted(self.key())
    }
}
