//! Pods come, change and go: each is a task with a class, perhaps on a node, perhaps of a job. Pods that are not ours only
//! take room.

use std::sync::Arc;

use crate::decision::PodRef;
use crate::event::{ObjectKey, PodObject, PodPhase};
use crate::state::classes::ClassId;
use crate::state::jobs::{JobId, LeftPlace};
use crate::state::nodes::{NO_NODE, NodeId};
use crate::state::status::Status;
use crate::state::sub_jobs::NO_SUB_JOB;
use crate::state::tasks::{Held, NO_JOB, NO_NUMBER, NO_TASK, Task, TaskId, Told, trailing_number};
use crate::state::{Nomination, State};

impl State {
    pub(in crate::state) fn set_pod(&mut self, pod: PodObject) {
        let status = status_of(&pod);
        self.cooling_until_ms = self.cooling_until_ms.max(pod.cooling_until_ms.unwrap_or(0));
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
        let priority_class = self.intern_text(&pod.priority_class);
        let task = self.tasks.insert(Task {
            number: trailing_number(&pod.key.name).unwrap_or(NO_NUMBER),
            pod: PodRef::new(namespace, pod.key.name, pod.uid),
            job: NO_JOB,
            at: 0,
            sub_job: NO_SUB_JOB,
            class,
            node,
            links: [NO_TASK, NO_TASK],
            role,
            priority: pod.priority,
            created_ms: pod.created_ms,
            status,
            gated: pod.gated,
            stuck: false,
            spared: None,
            evicted_for: None,
            preemptable: pod.preemptable,
            never_preempts: pod.never_preempts,
            cooling_until_ms: pod.cooling_until_ms,
            priority_class,
            has_deadline: pod.has_deadline,
            runtime_ms: pod.runtime_ms.unwrap_or(0),
            started_ms: started(pod.started_ms, pod.created_ms, status),
            critical,
            phantom: false,
            last_checkpoint_ms: pod.last_checkpoint_ms.unwrap_or(0),
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
            self.nominated.insert(task, Nomination { node: node.into(), ours: false });
        }
        if let Some(group) = pod.group {
            let job = self.job_row(&ObjectKey { namespace: pod.key.namespace, name: group });
            self.join_job(task, job);
        }
        if pod.evicted && matches!(status, Status::Bound | Status::Running) {
            self.half_evicted.push(task);
        }
        self.enter_node(task);
        self.account(task, 1);
        self.touch_task_job(task);
        self.note_news(task, status != Status::Pending);
        if status == Status::Releasing {
            self.released();
        }
        self.ask_to_leave(task);
    }

    fn update_pod(&mut self, task: TaskId, pod: PodObject, status: Status) {
        let row = &self.tasks[task];
        // Between our bind and the watch event that shows it, the pod still looks unbound: the assumed node
        // stays, everything else is merged (B11).
        // A pod that was bound stays bound: an event from before the bind may arrive after its confirmation.
        let assumed = row.status.is_allocated() && row.node != NO_NODE && pod.node.is_none();
        let status = if assumed && !status.is_completed() { row.status } else { status };
        // An eviction under way counts although the pod does not show it yet.
        if pod.deleting || status.is_completed() {
            self.victim_settled(task);
        }
        let row = &self.tasks[task];
        let leaves = row.spared.is_some() && matches!(status, Status::Bound | Status::Running);
        if row.spared.is_some() && !leaves {
            self.note_eviction(task);
        }
        let row = &self.tasks[task];
        let spared = leaves.then_some(status);
        let status = if leaves { Status::Releasing } else { status };
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
                && self.classes.list[class_was as usize].key == crate::state::classes::NO_KEY;
            self.classes.intern(&pod.spec, resident, &mut self.dims, &mut self.nodes)
        };
        if self.classes.list[class as usize].stateful && !self.stateful_fed {
            self.feed_stateful();
        }
        let role = self.intern_role(&pod.role);
        let labels = self.intern_labels(pod.labels);
        let held = held_of(pod.claims, pod.unsupported);
        if status == Status::Succeeded && was.occupies() {
            self.note_end(task);
        }
        self.merge_nomination(task, pod.nominated, status);
        let traits_were = self.victim_traits(task);
        self.note_news(task, false);
        self.account(task, -1);
        self.leave_node(task);
        if class != class_was {
            self.classes.list[class as usize].tasks += 1;
            self.classes.leave(class_was);
        }
        let row = &mut self.tasks[task];
        row.status = status;
        row.spared = spared;
        row.node = node;
        row.class = class;
        row.role = role;
        row.labels = labels;
        row.priority = pod.priority;
        row.gated = pod.gated;
        row.has_deadline = pod.has_deadline;
        row.preemptable = pod.preemptable;
        row.cooling_until_ms = pod.cooling_until_ms;
        row.runtime_ms = pod.runtime_ms.unwrap_or(0);
        row.last_checkpoint_ms = pod.last_checkpoint_ms.unwrap_or(0);
        row.started_ms = match pod.started_ms {
            // Until its kubelet says more, it has run since it was bound, not since it began to wait.
            None | Some(0) if status.occupies() && row.started_ms > 0 => row.started_ms,
            told_ms => started(told_ms, pod.created_ms, status),
        };
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
        self.assign_sub_job(task);
        self.enter_node(task);
        self.account(task, 1);
        self.touch_task_job(task);
        let stays_placed = was != Status::Pending || status != Status::Pending;
        self.note_news(task, stays_placed && self.victim_traits(task) != traits_were);
        if node_was != NO_NODE && (node != node_was || class != class_was || !status.occupies()) {
            self.nodes.release_if_empty(node_was);
            self.released();
        } else if was != status && status == Status::Releasing {
            self.released();
        } else if was == Status::Pending || status == Status::Pending {
            self.unpark(job);
        }
        self.ask_to_leave(task);
    }

    /// What searches for victims ask of a pod, beside where it stands.
    fn victim_traits(&self, task: TaskId) -> impl PartialEq + use<> {
        let row = &self.tasks[task];
        let volumes = row.held.as_ref().map(|held| held.claims.clone());
        let shields = (row.preemptable, row.cooling_until_ms, row.labels.clone(), volumes);
        (row.role, row.priority, row.sub_job, shields)
    }

    /// A pod has news: searches for its own job start anew, and all others where it counts among the victims or for their gang.
    fn note_news(&mut self, task: TaskId, counts: bool) {
        let row = &self.tasks[task];
        let mut counts = counts;
        if row.job != NO_JOB {
            let waits = row.status == Status::Pending;
            let best_effort = self.classes.list[row.class as usize].best_effort;
            let job = &mut self.jobs[row.job as usize];
            job.futile.clear();
            counts |= waits && (best_effort || job.has_placed());
        }
        self.prey_epoch += u64::from(counts);
    }

    /// Whatever becomes of an eviction from now on, the job that it was for need not wait for news of it.
    pub(super) fn victim_settled(&mut self, task: TaskId) {
        let Some(job) = self.tasks[task].evicted_for.take() else { return };
        // The row may have been reused: then the count is that of another job and stays above 0 at most for a while.
        let row = &mut self.jobs[job as usize];
        row.victims_under_way = row.victims_under_way.saturating_sub(1);
        if row.live {
            self.touch_job(job);
        }
    }

    fn merge_nomination(&mut self, task: TaskId, told: Option<String>, status: Status) {
        let ours = self.nominated.get(&task).is_some_and(|nomination| nomination.ours);
        match told {
            _ if status != Status::Pending => {
                self.nominated.remove(&task);
            }
            _ if ours => {}
            Some(node) => {
                self.nominated.insert(task, Nomination { node: node.into(), ours: false });
            }
            None => {
                self.nominated.remove(&task);
            }
        }
    }

    pub(in crate::state) fn remove_pod(&mut self, uid: &str) {
        self.forget_foreign(uid);
        let Some(task) = self.tasks.get(uid) else { return };
        self.note_news(task, true);
        if self.tasks[task].spared.is_some() {
            self.note_eviction(task);
        }
        self.touch_task_job(task);
        self.victim_settled(task);
        self.account(task, -1);
        self.leave_node(task);
        let Task { node, class, job, status, phantom, .. } = self.tasks[task];
        if !phantom {
            self.note_left_place(job, class, node, status);
        }
        self.leave_job(task);
        self.nominated.remove(&task);
        self.tasks.remove(task);
        self.classes.leave(class);
        if node != NO_NODE {
            self.nodes.release_if_empty(node);
        }
        self.released();
    }

    /// A pod that we evict shows it. Its budgets will show it only later.
    fn note_eviction(&mut self, task: TaskId) {
        self.evicting.remove(&task);
        let row = &self.tasks[task];
        self.budgets.note_eviction(&row.pod.namespace, &row.pod.name, &row.labels, self.now_ms);
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
}

/// When a pod began to run; one whose kubelet does not say so began when it was created.
fn started(told_ms: Option<i64>, created_ms: i64, status: Status) -> i64 {
    told_ms.unwrap_or(if status == Status::Running { created_ms } else { 0 })
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
