//! A session: nodes, jobs and tasks as they stand, recomputed from the world, and the moves that actions make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tephra_api::resource::Resource;
use tephra_core::event::{ObjectKey, PodGroupObject, PodGroupPhase, PodSpec, QueueObject};

use super::node::Node;
use super::overcommit::Overcommit;
use super::proportion::Proportion;
use super::vector::vector;
use super::world::{Broken, Status, World};

/// Queue of gangs that name none.
const DEFAULT_QUEUE: &str = "default";

/// One pod.
#[derive(Clone, Debug)]
pub struct Task {
    pub uid: String,
    pub name: String,
    pub namespace: String,
    pub labels: Vec<(String, String)>,
    pub role: String,
    pub priority: i32,
    pub created_ms: i64,
    pub gated: bool,
    /// Asks for nothing but a place, and no node could give one.
    pub stuck: bool,
    pub status: Status,
    /// Slot.
    pub node: Option<usize>,
    /// Node that its status names.
    pub nominated: Option<String>,
    /// Job number, `None` for pods that only use a node.
    pub job: Option<usize>,
    pub request: Resource,
    pub spec: Arc<PodSpec>,
}

impl Task {
    /// A task that stands for a member which is gone: its room, nothing else.
    pub fn standing_for(spec: &PodSpec) -> Self {
        let spec = PodSpec { host_ports: Vec::new(), ..spec.clone() };
        let mut request = vector(&spec.requests);
        request.scalars.get_or_insert_default().entry("pods".to_owned()).or_insert(1.0);
        Self {
            uid: String::new(),
            name: String::new(),
            namespace: String::new(),
            labels: Vec::new(),
            role: String::new(),
            priority: 0,
            created_ms: 0,
            gated: false,
            stuck: false,
            status: Status::Pipelined,
            node: None,
            nominated: None,
            job: None,
            request,
            spec: Arc::new(spec),
        }
    }

    /// Asks for nothing but a place.
    pub fn best_effort(&self) -> bool {
        self.request.is_empty()
    }
}

/// One gang.
#[derive(Clone, Debug)]
pub struct Job {
    pub group: PodGroupObject,
    pub queue: String,
    pub priority: i32,
    pub phase: PodGroupPhase,
    pub tasks: Vec<usize>,
    pub min_resources: Option<Resource>,
    /// Requests of tasks that hold a node or are promised one.
    pub allocated: Resource,
    /// Requests of pending gated tasks.
    pub gated: Resource,
    /// Its pods have not come for a minute.
    pub lapsed: bool,
    /// What is known of it as a gang that lost members.
    pub broken: Broken,
    /// Binds of its pods that were refused.
    pub bind_failures: u32,
    /// After repeated refusals it is not tried yet.
    pub backs_off: bool,
    /// Roles of tasks for which no node was found in this turn.
    pub failed_roles: BTreeSet<String>,
}

/// Everything that a session looks at.
#[derive(Debug)]
pub struct Session {
    /// By slot.
    pub nodes: Vec<Option<Node>>,
    pub tasks: Vec<Task>,
    pub jobs: Vec<Job>,
    pub queues: BTreeMap<String, QueueObject>,
    pub namespaces: BTreeMap<String, Vec<(String, String)>>,
    pub total: Resource,
    /// Some pod has terms about other pods.
    pub affinity_in_use: bool,
    pub plugins: Vec<String>,
    pub enqueue_runs: bool,
    pub now_ms: i64,
    pub proportion: Proportion,
    pub overcommit: Overcommit,
    /// Commits so far.
    pub binds: Vec<(ObjectKey, Vec<(String, String)>)>,
    pub admitted: Vec<ObjectKey>,
    pub refused: Vec<ObjectKey>,
    /// Gangs for whose nominated tasks places are kept.
    pub reserved: Vec<usize>,
    /// Pods whose nomination ended.
    pub given_up: Vec<String>,
    /// Gangs that wait for members that cannot be tried yet.
    pub incomplete: usize,
}

impl Session {
    /// Opens a session on the world.
    pub fn open(world: &World, plugins: &[String], actions: &[String], now_ms: i64) -> Self {
        let mut session = Self {
            nodes: world
                .slots
                .iter()
                .map(|slot| slot.as_ref().and_then(|slot| slot.node.clone()).map(Node::new))
                .collect(),
            tasks: Vec::new(),
            jobs: jobs(world, now_ms),
            queues: world.queues.clone(),
            namespaces: world
                .namespaces
                .iter()
                .map(|(name, namespace)| (name.clone(), namespace.labels.clone()))
                .collect(),
            total: Resource::default(),
            affinity_in_use: world.pods.values().any(|pod| {
                let spec = &pod.object.spec;
                !(spec.pod_affinity.is_empty()
                    && spec.pod_anti_affinity.is_empty()
                    && spec.preferred_pod_affinity.is_empty())
            }),
            plugins: plugins.to_vec(),
            enqueue_runs: actions.iter().any(|action| action == "enqueue"),
            now_ms,
            proportion: Proportion::default(),
            overcommit: Overcommit::default(),
            binds: Vec::new(),
            admitted: Vec::new(),
            refused: Vec::new(),
            reserved: Vec::new(),
            given_up: Vec::new(),
            incomplete: 0,
        };
        session.add_tasks(world);
        for node in session.nodes.iter().flatten().filter(|node| !node.object.unschedulable) {
            session.total.add(&node.allocatable);
        }
        session.overcommit = Overcommit::open(&session);
        session.proportion = Proportion::open(&session);
        session
    }

    fn add_tasks(&mut self, world: &World) {
        let slots: BTreeMap<&str, usize> = world
            .slots
            .iter()
            .enumerate()
            .filter_map(|(at, slot)| slot.as_ref().map(|slot| (slot.name.as_str(), at)))
            .collect();
        let jobs: BTreeMap<ObjectKey, usize> =
            self.jobs.iter().enumerate().map(|(at, job)| (job.group.key.clone(), at)).collect();
        for (uid, pod) in &world.pods {
            let job = pod.object.group.as_ref().and_then(|group| {
                jobs.get(&ObjectKey::new(pod.object.key.namespace.clone(), group.clone())).copied()
            });
            let mut request = vector(&pod.object.spec.requests);
            request.scalars.get_or_insert_default().entry("pods".to_owned()).or_insert(1.0);
            let node = pod.node.as_deref().filter(|_| pod.occupies()).and_then(|n| slots.get(n));
            let task = Task {
                uid: uid.clone(),
                name: pod.object.key.name.clone(),
                namespace: pod.object.key.namespace.clone(),
                labels: pod.object.labels.clone(),
                role: pod.object.role.clone(),
                priority: pod.object.priority,
                created_ms: pod.object.created_ms,
                gated: pod.object.gated,
                stuck: pod.stuck,
                status: pod.status,
                node: node.copied(),
                nominated: pod.object.nominated.clone(),
                job,
                request,
                spec: pod.object.spec.clone(),
            };
            if let Some(node) = task.node.and_then(|slot| self.nodes[slot].as_mut()) {
                node.add(&task, task.status);
            }
            if let Some(job) = job {
                let job = &mut self.jobs[job];
                job.tasks.push(self.tasks.len());
                if is_charged(task.status) {
                    job.allocated.add(&task.request);
                }
                if task.gated && task.status == Status::Pending {
                    job.gated.add(&task.request);
                }
            }
            self.tasks.push(task);
        }
    }

    /// True when the plugin is configured.
    pub fn has(&self, plugin: &str) -> bool {
        self.plugins.iter().any(|name| name == plugin)
    }

    /// Gives a task a node; the sums of its job and queue follow.
    pub fn place(&mut self, task: usize, slot: usize, status: Status) {
        let task = &mut self.tasks[task];
        task.status = status;
        task.node = Some(slot);
        if let Some(node) = &mut self.nodes[slot] {
            node.add(task, status);
        }
        if let Some(job) = task.job {
            let job = &mut self.jobs[job];
            job.allocated.add(&task.request);
            self.proportion.allocate(&job.queue, &task.request);
        }
    }

    /// Takes back [`Session::place`].
    pub fn unplace(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        if let Some(node) = task.node.take().and_then(|slot| self.nodes[slot].as_mut()) {
            node.remove(task, task.status);
        }
        task.status = Status::Pending;
        if let Some(job) = task.job {
            let job = &mut self.jobs[job];
            job.allocated.subtract(&task.request);
            self.proportion.deallocate(&job.queue, &task.request);
        }
    }

    /// Binds the allocated ones among these tasks of a job.
    pub fn commit(&mut self, job: usize, tasks: &[usize]) {
        let mut binds = Vec::new();
        for &task in tasks {
            let task = &mut self.tasks[task];
            if task.status == Status::Allocated
                && let Some(node) = task.node.and_then(|slot| self.nodes[slot].as_ref())
            {
                task.status = Status::Binding;
                binds.push((task.uid.clone(), node.object.name.clone()));
            }
        }
        if !binds.is_empty() {
            self.binds.push((self.jobs[job].group.key.clone(), binds));
        }
    }
}

/// The jobs of a session: gangs whose queue exists.
fn jobs(world: &World, now_ms: i64) -> Vec<Job> {
    let global = world.priority_classes.values().filter(|class| class.global_default);
    let default_priority = global.map(|class| class.value).max().unwrap_or(0);
    let mut members: BTreeMap<ObjectKey, Vec<bool>> = BTreeMap::new();
    for pod in world.pods.values() {
        if let Some(group) = pod.group() {
            members.entry(group).or_default().push(pod.object.ours);
        }
    }
    let mut jobs = Vec::new();
    for group in world.groups.values() {
        let queue = if group.queue.is_empty() { DEFAULT_QUEUE } else { &group.queue };
        // A gang of which all pods belong to other schedulers is left alone (B13).
        let foreign = members.get(&group.key).is_some_and(|ours| !ours.contains(&true));
        if foreign || !world.queues.contains_key(queue) {
            continue;
        }
        let refusals = world.refusals.get(&group.key).copied().unwrap_or_default();
        let class = world.priority_classes.get(&group.priority_class);
        jobs.push(Job {
            queue: queue.to_owned(),
            priority: class.map_or(default_priority, |class| class.value),
            phase: group.status.phase,
            tasks: Vec::new(),
            min_resources: group.min_resources.as_ref().map(vector),
            allocated: Resource::default(),
            gated: Resource::default(),
            lapsed: world.idle.get(&group.key).is_some_and(|since| {
                let patience = if members.contains_key(&group.key) { 600_000 } else { 60_000 };
                now_ms - since >= patience
            }),
            broken: world.broken.get(&group.key).cloned().unwrap_or_default(),
            bind_failures: refusals.count,
            backs_off: refusals.count > 1 && now_ms < refusals.retry_at_ms,
            failed_roles: BTreeSet::new(),
            group: group.clone(),
        });
    }
    jobs
}

/// Holds a node, or is promised one.
pub fn is_charged(status: Status) -> bool {
    is_allocated(status) || status == Status::Pipelined
}

/// Volcano's allocated class.
pub fn is_allocated(status: Status) -> bool {
    matches!(status, Status::Allocated | Status::Binding | Status::Bound | Status::Running)
}
