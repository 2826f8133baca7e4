//! How an event changes the state. Each kind of object has one function; all of them tolerate events that
//! repeat, arrive late, or speak of things that are not known (a pod before its node, a PodGroup after its
//! pods), because a watch may deliver all of that.

use std::sync::Arc;

use super::classes::ClassId;
use super::jobs::{Group, Job, JobId, LeftPlace};
use super::nodes::{NO_NODE, NodeId, NodeIdentity};
use super::queues::{Queue, QueueId};
use super::status::Status;
use super::tasks::{Held, NO_JOB, NO_NUMBER, NO_TASK, Task, TaskId, Told, trailing_number};
use super::{State, add, subtract};
use crate::decision::PodRef;
use crate::event::{
    Event, Labels, NodeObject, ObjectKey, PodGroupObject, PodObject, PodPhase, QueueObject,
};
use crate::planted::{Bug, planted};

impl State {
    /// Applies one event.
    pub fn apply(&mut self, event: Event) {
        self.changed = true;
        match event {
            Event::Node(node) => self.set_node(node),
            Event::NodeDeleted(name) => self.remove_node(&name),
            Event::Pod(pod) => self.set_pod(pod),
            Event::PodDeleted(uid) => self.remove_pod(&uid),
            Event::PodGroup(group) => self.set_group(group),
            Event::PodGroupDeleted(key) => self.remove_group(&key),
            Event::Queue(queue) => self.set_queue(queue),
            Event::QueueDeleted(name) => self.remove_queue(&name),
            Event::PriorityClass(class) => {
                self.priority_classes
                    .insert(class.name.as_str().into(), (class.value, class.global_default));
                self.resolve_priorities();
            }
            Event::PriorityClassDeleted(name) => {
                self.priority_classes.remove(name.as_str());
                self.resolve_priorities();
            }
            Event::Namespace(namespace) => {
                self.stateful.set_namespace(&namespace.name, &namespace.labels);
                self.released();
            }
            Event::NamespaceDeleted(name) => self.stateful.remove_namespace(&name),
            Event::VolumeClaim(claim) => {
                self.volumes.set_claim(claim);
                self.released();
            }
            Event::VolumeClaimDeleted(key) => self.volumes.remove_claim(&key),
            Event::Volume(volume) => {
                self.volumes.set_volume(volume);
                self.released();
            }
            Event::VolumeDeleted(name) => self.volumes.remove_volume(&name),
            Event::BindOk(uid) => {
                if let Some(task) = self.tasks.get(&uid)
                    && self.tasks[task].status == Status::Binding
                {
                    let node = self.tasks[task].node;
                    self.set_status(task, Status::Bound, node);
                    self.forgive(self.tasks[task].job);
                    self.touch_task_job(task);
                }
            }
            Event::BindFailed { uid, message } => self.bind_failed(&uid, &message),
            Event::EvictOk(_) => {}
            Event::EvictFailed { .. } => {}
        }
    }

    fn bind_failed(&mut self, uid: &str, message: &str) {
        if planted(Bug::DroppedBindFailure) {
            return;
        }
        let Some(task) = self.tasks.get(uid) else { return };
        if self.tasks[task].status != Status::Binding {
            return;
        }
        let node = self.tasks[task].node;
        self.set_status(task, Status::Pending, NO_NODE);
        self.nodes.release_if_empty(node);
        self.tasks[task].bind_error = Some(message.into());
        self.released();
        self.touch_task_job(task);
        let job = self.tasks[task].job;
        if job != NO_JOB {
            self.jobs[job as usize].bind_failures += 1;
        }
    }

    /// A bind went through: earlier refusals no longer slow the job down, once they have all been told.
    fn forgive(&mut self, job: JobId) {
        if job == NO_JOB || self.jobs[job as usize].bind_failures == 0 {
            return;
        }
        let tasks = &self.jobs[job as usize].tasks;
        if tasks.iter().all(|&task| self.tasks[task].bind_error.is_none()) {
            self.jobs[job as usize].bind_failures = 0;
        }
    }

    fn touch_task_job(&mut self, task: TaskId) {
        let job = self.tasks[task].job;
        if job != NO_JOB {
            self.touch_job(job);
            self.touch_queue(self.jobs[job as usize].queue);
        }
    }

    /// Marks a queue whose status may have to be written.
    pub fn touch_queue(&mut self, queue: QueueId) {
        let row = &mut self.queues[queue as usize];
        if !row.dirty {
            row.dirty = true;
            self.dirty_queues.push(queue);
        }
        self.quota_epoch += 1;
    }

    // ---- nodes ----

    fn set_node(&mut self, node: NodeObject) {
        for (name, _) in &node.allocatable {
            self.dims.intern(name);
        }
        self.nodes.ensure_dimensions(self.dims.len());
        let id = self.nodes.slot(&node.name);
        let before = self.nodes.identity[id as usize].clone();
        let changed = !before.known
            || before.unschedulable != node.unschedulable
            || *before.labels != node.labels
            || *before.taints != node.taints
            || *before.images != node.images;
        if before.is_open() {
            self.count_node(id, -1);
        }
        let mut amounts = vec![0; self.dims.len()];
        for (name, stored) in &node.allocatable {
            if let Some(dim) = self.dims.get(name) {
                amounts[dim as usize] = self.dims.to_core(dim, *stored);
            }
        }
        for (dim, amount) in amounts.into_iter().enumerate() {
            self.nodes.set_allocatable(id, dim as u16, amount);
        }
        if !node.unschedulable {
            self.count_node(id, 1);
        }
        if changed {
            self.nodes.identity[id as usize] = NodeIdentity {
                name: before.name.clone(),
                known: true,
                labels: Arc::new(node.labels),
                taints: Arc::new(node.taints),
                unschedulable: node.unschedulable,
                images: Arc::new(node.images),
            };
            self.classes.node_changed(id, &before.images, &mut self.nodes);
            if self.stateful_fed {
                self.tell_stateful_node(id);
            }
        }
        self.nodes.touch(id);
        self.quota_epoch += 1;
        self.released();
    }

    /// Adds or removes an open node's amounts in the sums over the cluster.
    fn count_node(&mut self, id: NodeId, sign: i64) {
        for dim in 0..self.dims.len() as u16 {
            let used = self.nodes.used(id, dim);
            self.total.add(dim, i128::from(self.nodes.allocatable(id, dim) * sign));
            self.used.add(dim, i128::from(used * sign));
        }
    }

    fn remove_node(&mut self, name: &str) {
        let Some(id) = self.nodes.get(name) else { return };
        let before = self.nodes.identity[id as usize].clone();
        if before.is_open() {
            self.count_node(id, -1);
        }
        self.nodes.identity[id as usize] =
            NodeIdentity { name: before.name.clone(), ..NodeIdentity::default() };
        for dim in 0..self.dims.len() as u16 {
            self.nodes.set_allocatable(id, dim, 0);
        }
        self.classes.node_changed(id, &before.images, &mut self.nodes);
        if self.stateful_fed {
            self.tell_stateful_node(id);
        }
        self.nodes.touch(id);
        self.quota_epoch += 1;
        self.nodes.release_if_empty(id);
        self.released();
    }

    // ---- pods ----

    fn set_pod(&mut self, pod: PodObject) {
        let status = status_of(&pod);
        match self.tasks.get(&pod.uid) {
            Some(task) => self.update_pod(task, pod, status),
            None => self.add_pod(pod, status),
        }
    }

    fn add_pod(&mut self, pod: PodObject, status: Status) {
        let placed = pod.node.is_some();
        if !pod.ours && !placed {
            self.note_foreign(&pod);
            return;
        }
        self.forget_foreign(&pod.uid);
        // Where a pod could go matters only while it waits: one that already has a node needs no static key.
        let class = self.classes.intern(&pod.spec, placed, &mut self.dims, &mut self.nodes);
        if self.classes.list[class as usize].stateful && !self.stateful_fed {
            self.feed_stateful();
        }
        self.classes.list[class as usize].tasks += 1;
        let node = match &pod.node {
            Some(name) if status.occupies() => self.nodes.slot(name),
            _ => NO_NODE,
        };
        let role = self.intern_role(&pod.role);
        let labels = self.intern_labels(pod.labels);
        let critical = matches!(
            pod.priority_class.as_str(),
            "system-cluster-critical" | "system-node-critical"
        ) || pod.key.namespace == "kube-system";
        let held = held_of(pod.claims, pod.unsupported);
        let nominated = pod.nominated.filter(|_| status == Status::Pending);
        let namespace = self.intern_text(&pod.key.namespace);
        let task = self.tasks.insert(Task {
            number: trailing_number(&pod.key.name).unwrap_or(NO_NUMBER),
            pod: PodRef::new(namespace, pod.key.name, pod.uid),
            job: NO_JOB,
            at: 0,
            class,
            node,
            links: [NO_TASK, NO_TASK],
            role,
            priority: pod.priority,
            created_ms: pod.created_ms,
            status,
            gated: pod.gated,
            stuck: false,
            preemptable: pod.preemptable,
            critical,
            ours: pod.ours,
            live: true,
            labels,
            held,
            told: pod.scheduled_condition.map(|(reason, message)| {
                Arc::new(Told { reason: reason.into(), message: message.into() })
            }),
            bind_error: None,
        });
        if let Some(node) = nominated {
            self.nominated.insert(task, node.into());
        }
        if let Some(group) = pod.group {
            let job = self.job_row(&ObjectKey { namespace: pod.key.namespace, name: group });
            self.join_job(task, job);
        }
        self.enter_node(task);
        self.account(task, 1);
        self.touch_task_job(task);
        if status == Status::Releasing {
            self.released();
        }
    }

    fn update_pod(&mut self, task: TaskId, pod: PodObject, status: Status) {
        let row = &self.tasks[task];
        // Between our bind and the watch event that shows it, the pod still looks unbound: the assumed node
        // stays, everything else is merged (B11).
        // A pod that was bound stays bound: an event from before the bind may arrive after its confirmation.
        let assumed = row.status.is_allocated() && row.node != NO_NODE && pod.node.is_none();
        let status = if assumed && !status.is_completed() { row.status } else { status };
        let (was, node_was, class_was) = (row.status, row.node, row.class);
        let node = if assumed {
            node_was
        } else {
            match &pod.node {
                Some(name) if status.occupies() => self.nodes.slot(name),
                _ => NO_NODE,
            }
        };
        let class = if same_class(&self.classes.list[class_was as usize].spec, &pod.spec) {
            class_was
        } else {
            let resident = pod.node.is_some()
                && self.classes.list[class_was as usize].key == super::classes::NO_KEY;
            self.classes.intern(&pod.spec, resident, &mut self.dims, &mut self.nodes)
        };
        if self.classes.list[class as usize].stateful && !self.stateful_fed {
            self.feed_stateful();
        }
        let role = self.intern_role(&pod.role);
        let labels = self.intern_labels(pod.labels);
        let held = held_of(pod.claims, pod.unsupported);
        match pod.nominated {
            Some(node) if status == Status::Pending => {
                self.nominated.insert(task, node.into());
            }
            _ if self.nominated.is_empty() => {}
            _ => {
                self.nominated.remove(&task);
            }
        }
        self.account(task, -1);
        self.leave_node(task);
        if class != class_was {
            self.classes.list[class as usize].tasks += 1;
            self.classes.leave(class_was);
        }
        let row = &mut self.tasks[task];
        row.status = status;
        row.node = node;
        row.class = class;
        row.role = role;
        row.labels = labels;
        row.priority = pod.priority;
        row.gated = pod.gated;
        row.preemptable = pod.preemptable;
        row.held = held;
        if pod.scheduled_condition.is_none() {
            row.told = None;
        }
        let job_was = row.job;
        if node != node_was || !status.occupies() {
            self.note_left_place(job_was, class_was, node_was, status);
        }
        let job = match pod.group {
            Some(group) => self.job_row(&ObjectKey { namespace: pod.key.namespace, name: group }),
            None => NO_JOB,
        };
        if job != job_was {
            self.leave_job(task);
            if job != NO_JOB {
                self.join_job(task, job);
            }
        }
        self.enter_node(task);
        self.account(task, 1);
        self.touch_task_job(task);
        if node_was != NO_NODE && (node != node_was || class != class_was || !status.occupies()) {
            self.nodes.release_if_empty(node_was);
            self.released();
        } else if was != status && status == Status::Releasing {
            self.released();
        } else if was == Status::Pending || status == Status::Pending {
            self.unpark(job);
        }
    }

    fn remove_pod(&mut self, uid: &str) {
        self.forget_foreign(uid);
        let Some(task) = self.tasks.get(uid) else { return };
        self.touch_task_job(task);
        self.account(task, -1);
        self.leave_node(task);
        let Task { node, class, job, status, .. } = self.tasks[task];
        self.note_left_place(job, class, node, status);
        self.leave_job(task);
        self.nominated.remove(&task);
        self.tasks.remove(task);
        self.classes.leave(class);
        if node != NO_NODE {
            self.nodes.release_if_empty(node);
        }
        self.released();
    }

    /// A member of a gang is not on its node any more. Whoever ended well will not come back.
    fn note_left_place(&mut self, job: JobId, class: ClassId, node: NodeId, status: Status) {
        if job == NO_JOB || node == NO_NODE || status == Status::Succeeded {
            return;
        }
        let class = &self.classes.list[class as usize];
        let (request, nonzero) = (class.request.clone(), class.spec.nonzero);
        let row = &mut self.jobs[job as usize];
        // No more are ever kept than the gang needs.
        if row.left.len() >= row.min_member() as usize && !row.left.is_empty() {
            row.left.remove(0);
        }
        row.left.push(LeftPlace { node, request, nonzero });
    }

    fn note_foreign(&mut self, pod: &PodObject) {
        // It may have named another group when it was last told of.
        self.forget_foreign(&pod.uid);
        if let Some(group) = &pod.group {
            let job = self.job_row(&ObjectKey::new(pod.key.namespace.clone(), group.clone()));
            self.foreign.insert(pod.uid.as_str().into(), job);
            self.jobs[job as usize].foreign += 1;
        }
    }

    fn forget_foreign(&mut self, uid: &str) {
        if let Some(job) = self.foreign.remove(uid) {
            self.jobs[job as usize].foreign -= 1;
            self.drop_job_if_empty(job);
        }
    }

    // ---- jobs ----

    /// Row of a job, made when missing.
    fn job_row(&mut self, key: &ObjectKey) -> JobId {
        if let Some(job) = self.job(key) {
            return job;
        }
        let row = Job { key: key.clone(), live: true, ..Job::default() };
        let job = match self.free_jobs.pop() {
            Some(job) => {
                let active = self.jobs[job as usize].active;
                let dirty = self.jobs[job as usize].dirty;
                self.jobs[job as usize] = Job { active, dirty, ..row };
                job
            }
            None => {
                self.jobs.push(row);
                self.jobs.len() as JobId - 1
            }
        };
        let default_queue = self.default_queue.clone();
        self.jobs[job as usize].queue = self.queue_row(&default_queue);
        self.job_by_key.insert(key.clone(), job);
        job
    }

    fn join_job(&mut self, task: TaskId, job: JobId) {
        let row = &mut self.jobs[job as usize];
        let at = row.tasks.len() as u32;
        row.tasks.push(task);
        row.ours += u32::from(self.tasks[task].ours);
        row.parked = None;
        self.tasks[task].job = job;
        self.tasks[task].at = at;
    }

    /// Takes a task out of its job; its numbers must have been removed before.
    fn leave_job(&mut self, task: TaskId) {
        let job = self.tasks[task].job;
        if job == NO_JOB {
            return;
        }
        let at = self.tasks[task].at as usize;
        let row = &mut self.jobs[job as usize];
        row.tasks.swap_remove(at);
        row.ours -= u32::from(self.tasks[task].ours);
        row.parked = None;
        if let Some(&moved) = row.tasks.get(at) {
            self.tasks[moved].at = at as u32;
        }
        self.tasks[task].job = NO_JOB;
        self.touch_job(job);
        self.drop_job_if_empty(job);
    }

    fn drop_job_if_empty(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if row.live && row.group.is_none() && row.tasks.is_empty() && row.foreign == 0 {
            row.live = false;
            self.job_by_key.remove(&row.key);
            self.free_jobs.push(job);
        }
    }

    fn unpark(&mut self, job: JobId) {
        if job != NO_JOB {
            self.jobs[job as usize].parked = None;
        }
    }

    fn set_group(&mut self, object: PodGroupObject) {
        let job = self.job_row(&object.key);
        let queue_name =
            if object.queue.is_empty() { self.default_queue.to_string() } else { object.queue };
        let queue = self.queue_row(&queue_name);
        self.detach(job);
        let min_resources = object.min_resources.map(|amounts| self.dims.vector(&amounts));
        self.nodes.ensure_dimensions(self.dims.len());
        let roles: Vec<(u32, u32)> = object
            .min_task_member
            .iter()
            .map(|(role, min)| (self.intern_role(role), (*min).max(0) as u32))
            .collect();
        let priority_class: Arc<str> = object.priority_class.as_str().into();
        let priority = self.priority_of(&priority_class);
        let row = &mut self.jobs[job as usize];
        for role in &mut row.roles {
            role.min = 0;
        }
        for &(role, min) in &roles {
            row.role_mut(role).min = min;
        }
        if row.queue != queue {
            row.told_rejection = None;
        }
        row.queue = queue;
        row.priority = priority;
        row.phase = object.status.phase;
        row.parked = None;
        row.has_topology = object.has_topology;
        let mut group = Group {
            uid: object.uid.as_str().into(),
            id: format!("{}/{}", object.key.namespace, object.key.name).into(),
            created_ms: object.created_ms,
            min_member: object.min_member.max(0) as u32,
            min_task_total: roles.iter().map(|&(_, min)| u64::from(min)).sum(),
            min_resources,
            priority_class,
            ..Group::default()
        };
        group.set_status(object.status);
        row.group = Some(group);
        self.attach(job);
        self.touch_job(job);
        self.touch_queue(queue);
    }

    fn remove_group(&mut self, key: &ObjectKey) {
        let Some(job) = self.job(key) else { return };
        self.touch_queue(self.jobs[job as usize].queue);
        self.detach(job);
        let row = &mut self.jobs[job as usize];
        row.group = None;
        row.phase = crate::event::PodGroupPhase::Pending;
        self.touch_job(job);
        self.drop_job_if_empty(job);
    }

    /// Takes a job's numbers out of its queue.
    fn detach(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if row.group.is_none() {
            return;
        }
        let queue = &mut self.queues[row.queue as usize];
        queue.jobs -= 1;
        for (dim, amount) in row.allocated.iter() {
            queue.allocated.add(dim, -amount);
            queue.request.add(dim, -amount);
        }
        for (dim, amount) in row.pending.iter() {
            queue.request.add(dim, -amount);
        }
        subtract(&mut queue.inqueue, &std::mem::take(&mut row.claim));
        subtract(&mut queue.elastic, &std::mem::take(&mut row.elastic));
        let queue = row.queue;
        self.touch_queue(queue);
    }

    fn attach(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        let queue = &mut self.queues[row.queue as usize];
        queue.jobs += 1;
        for (dim, amount) in row.allocated.iter() {
            queue.allocated.add(dim, amount);
            queue.request.add(dim, amount);
        }
        for (dim, amount) in row.pending.iter() {
            queue.request.add(dim, amount);
        }
        add(&mut queue.inqueue, &row.claim);
        add(&mut queue.elastic, &row.elastic);
    }

    // ---- queues ----

    /// Row of a queue, made (as one that does not exist) when missing.
    fn queue_row(&mut self, name: &str) -> QueueId {
        if let Some(queue) = self.queue(name) {
            return queue;
        }
        let name: Arc<str> = name.into();
        let queue = self.queues.len() as QueueId;
        self.queues.push(Queue { name: name.clone(), weight: 1, ..Queue::default() });
        self.queue_by_name.insert(name, queue);
        queue
    }

    fn set_queue(&mut self, object: QueueObject) {
        let id = self.queue_row(&object.name);
        let capability = object.capability.map(|amounts| self.dims.vector(&amounts));
        let deserved = object.deserved.map(|amounts| self.dims.vector(&amounts));
        let guarantee = object.guarantee.map(|amounts| self.dims.vector(&amounts));
        let mut told = super::state_ledger(&mut self.dims, &object.allocated);
        self.nodes.ensure_dimensions(self.dims.len());
        let row = &mut self.queues[id as usize];
        let awakes = !row.exists || row.state != object.state;
        std::mem::swap(&mut row.told, &mut told);
        row.exists = true;
        row.uid = object.uid.as_str().into();
        row.created_ms = object.created_ms;
        row.weight = object.weight.max(1);
        row.priority = object.priority;
        row.parent = object.parent.as_str().into();
        row.capability = capability;
        row.deserved = deserved;
        row.guarantee = guarantee.unwrap_or_default();
        row.reclaimable = object.reclaimable;
        row.fifo = object.fifo;
        row.state = object.state;
        self.touch_queue(id);
        if awakes {
            self.touch_jobs_of(id);
        }
        self.released();
    }

    fn remove_queue(&mut self, name: &str) {
        let Some(id) = self.queue(name) else { return };
        let row = &mut self.queues[id as usize];
        let kept = Queue {
            name: row.name.clone(),
            weight: 1,
            jobs: row.jobs,
            allocated: row.allocated.clone(),
            request: row.request.clone(),
            inqueue: row.inqueue.clone(),
            elastic: row.elastic.clone(),
            dirty: row.dirty,
            ..Queue::default()
        };
        *row = kept;
        self.touch_queue(id);
        self.touch_jobs_of(id);
    }

    /// Lets every job of a queue be looked at again: the queue came, went, or changed state.
    fn touch_jobs_of(&mut self, queue: QueueId) {
        for job in 0..self.jobs.len() as JobId {
            if self.jobs[job as usize].live && self.jobs[job as usize].queue == queue {
                self.touch_job(job);
            }
        }
    }

    // ---- names ----

    fn priority_of(&self, class: &str) -> i32 {
        if let Some(&(value, _)) = self.priority_classes.get(class) {
            return value;
        }
        self.priority_classes
            .values()
            .filter(|(_, global)| *global)
            .map(|(value, _)| *value)
            .max()
            .unwrap_or(0)
    }

    fn resolve_priorities(&mut self) {
        for job in 0..self.jobs.len() {
            if let Some(group) = &self.jobs[job].group {
                let priority = self.priority_of(&group.priority_class);
                if priority != self.jobs[job].priority {
                    self.jobs[job].priority = priority;
                    self.touch_job(job as JobId);
                }
            }
        }
    }

    fn intern_role(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(&role) = self.roles.get(name) {
            return role;
        }
        let name: Arc<str> = name.into();
        self.role_names.push(name.clone());
        let role = self.role_names.len() as u32;
        self.roles.insert(name, role);
        role
    }

    fn intern_text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    fn intern_labels(&mut self, labels: Labels) -> Arc<Labels> {
        if let Some((known, ())) = self.label_sets.get_key_value(&labels) {
            return known.clone();
        }
        if self.label_sets.len() > 2 * self.tasks.len() + 1024 {
            self.label_sets.retain(|labels, ()| Arc::strong_count(labels) > 1);
        }
        let labels = Arc::new(labels);
        self.label_sets.insert(labels.clone(), ());
        labels
    }
}

fn held_of(claims: Vec<String>, unsupported: Vec<String>) -> Option<Box<Held>> {
    (!claims.is_empty() || !unsupported.is_empty()).then(|| Box::new(Held { claims, unsupported }))
}

fn same_class(a: &Arc<crate::event::PodSpec>, b: &Arc<crate::event::PodSpec>) -> bool {
    Arc::ptr_eq(a, b) || **a == **b
}

/// Status of a task as its pod shows it (2.3).
fn status_of(pod: &PodObject) -> Status {
    match (pod.phase, pod.deleting, pod.node.is_some()) {
        (PodPhase::Running | PodPhase::Pending, true, _) => Status::Releasing,
        (PodPhase::Running, false, _) => Status::Running,
        (PodPhase::Pending, false, false) => Status::Pending,
        (PodPhase::Pending, false, true) => Status::Bound,
        (PodPhase::Succeeded, ..) => Status::Succeeded,
        (PodPhase::Failed, ..) => Status::Failed,
        (PodPhase::Unknown, ..) => Status::Unknown,
    }
}
