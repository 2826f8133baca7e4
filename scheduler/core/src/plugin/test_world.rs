//! Small worlds for the tests of plugins that look at queues and jobs. Amounts are written as `"cpu=2 gpu=1"`: cores, GiB of
//! `memory`, numbers of `gpu` and `pods`.

use std::sync::Arc;

use super::{Delta, EvictFor, Evictor, Plugin};
use crate::event::{
    Amounts, Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus,
    PodObject, PodPhase, PodSpec, QueueObject, QueueState,
};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// A state that tests fill.
pub(super) struct World {
    pub state: State,
}

pub(super) fn amounts(text: &str) -> Amounts {
    let mut amounts: Amounts = text
        .split_whitespace()
        .map(|part| {
            let (name, number) = part.split_once('=').unwrap();
            let number: f64 = number.parse().unwrap();
            let unit = match name {
                "memory" => (1_u64 << 30) as f64,
                "pods" => 1.0,
                _ => 1000.0,
            };
            (name.to_owned(), (number * unit) as i64)
        })
        .collect();
    amounts.sort();
    amounts
}

/// An open queue below `parent`.
pub(crate) fn queue(name: &str, parent: &str) -> QueueObject {
    QueueObject {
        name: name.to_owned(),
        parent: parent.to_owned(),
        weight: 1,
        reclaimable: true,
        state: QueueState::Open,
        ..QueueObject::default()
    }
}

impl World {
    /// A cluster of one node.
    pub(super) fn new(node: &str) -> Self {
        let mut world = Self { state: State::new("default") };
        world.node("n1", node);
        world
    }

    pub(super) fn node(&mut self, name: &str, allocatable: &str) {
        self.state.apply(Event::Node(NodeObject {
            name: name.to_owned(),
            allocatable: amounts(&format!("{allocatable} pods=110")),
            ..NodeObject::default()
        }));
    }

    pub(super) fn queue(&mut self, queue: QueueObject) {
        self.state.apply(Event::Queue(queue));
    }

    /// A queue below `parent` with what it deserves; empty texts for none.
    pub(super) fn deserving(&mut self, name: &str, parent: &str, deserved: &str) {
        let deserved = (!deserved.is_empty()).then(|| amounts(deserved));
        self.queue(QueueObject { deserved, ..queue(name, parent) });
    }

    /// A queue below `parent` with its capability.
    pub(super) fn capped(&mut self, name: &str, parent: &str, capability: &str) {
        self.queue(QueueObject { capability: Some(amounts(capability)), ..queue(name, parent) });
    }

    /// A PodGroup in a queue, in phase Pending.
    pub(super) fn group(&mut self, name: &str, queue: &str, min_resources: &str) -> JobId {
        let key = ObjectKey::new("ns", name);
        self.state.apply(Event::PodGroup(PodGroupObject {
            key: key.clone(),
            queue: queue.to_owned(),
            min_member: 1,
            min_resources: (!min_resources.is_empty()).then(|| amounts(min_resources)),
            ..PodGroupObject::default()
        }));
        self.state.job(&key).unwrap()
    }

    /// A PodGroup of one running pod; gives the pod.
    pub(super) fn running(&mut self, group: &str, queue: &str, requests: &str) -> TaskId {
        let key = ObjectKey::new("ns", group);
        self.state.apply(Event::PodGroup(PodGroupObject {
            key,
            queue: queue.to_owned(),
            min_member: 1,
            status: PodGroupStatus {
                phase: PodGroupPhase::Running,
                running: 1,
                ..PodGroupStatus::default()
            },
            ..PodGroupObject::default()
        }));
        self.pod(group, requests, Some("n1"))
    }

    /// A PodGroup of one waiting pod; gives the pod.
    pub(super) fn waiting(&mut self, group: &str, queue: &str, requests: &str) -> TaskId {
        self.group(group, queue, "");
        self.pod(group, requests, None)
    }

    /// A further pod of a group.
    pub(super) fn pod(&mut self, group: &str, requests: &str, node: Option<&str>) -> TaskId {
        let uid = format!("{group}-{}", self.state.tasks.len());
        self.state.apply(Event::Pod(PodObject {
            key: ObjectKey::new("ns", &*uid),
            uid: uid.clone(),
            ours: true,
            group: Some(group.to_owned()),
            preemptable: true,
            phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
            node: node.map(str::to_owned),
            spec: Arc::new(PodSpec {
                namespace: "ns".to_owned(),
                requests: amounts(&format!("{requests} pods=1")),
                ..PodSpec::default()
            }),
            ..PodObject::default()
        }));
        self.state.tasks.get(&uid).unwrap()
    }

    /// Opens a session for a plugin.
    pub(super) fn open(&mut self, plugin: &mut impl Plugin) {
        for job in std::mem::take(&mut self.state.dirty_jobs) {
            self.state.refresh_job(job);
        }
        self.state.refresh_queue_tree();
        plugin.open(&self.state);
    }

    pub(super) fn id(&self, queue: &str) -> QueueId {
        self.state.queue(queue).unwrap()
    }

    /// Places a waiting pod on the first node, as a session does.
    pub(super) fn place(&mut self, plugin: &mut impl Plugin, task: TaskId) {
        self.state.place(task, 0, Status::Allocated);
        self.account(plugin, task, 1);
    }

    /// Evicts a pod, as a session does.
    pub(super) fn evict(&mut self, plugin: &mut impl Plugin, task: TaskId) {
        self.state.evict(task);
        self.account(plugin, task, -1);
    }

    fn account(&mut self, plugin: &mut impl Plugin, task: TaskId, count: i64) {
        let row = &self.state.tasks[task];
        let queue = self.state.jobs[row.job as usize].queue;
        let delta = Delta { class: row.class, job: row.job, queue, count };
        plugin.account(&self.state, &delta);
    }

    /// The candidates that may be victims for a pod; `None` when the plugin does not care.
    pub(super) fn victims(
        &self,
        plugin: &impl Plugin,
        why: EvictFor,
        task: TaskId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        let evictor = Evictor { why, job: self.state.tasks[task].job, task };
        let mut keep = candidates.to_vec();
        let vote = plugin.victims(&self.state, &evictor, &mut keep);
        (vote != super::Vote::Abstain).then_some(keep)
    }

    /// Names of queues in the order of a plugin.
    pub(super) fn in_order(&self, plugin: &impl Plugin, queues: &[&str]) -> Vec<String> {
        let mut names: Vec<&str> = queues.to_vec();
        names.sort_by_cached_key(|name| {
            let mut key = super::OrderKey::default();
            plugin.queue_order(&self.state, self.id(name), &mut key);
            key
        });
        names.into_iter().map(str::to_owned).collect()
    }
}
