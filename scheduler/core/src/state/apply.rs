//! How an event changes the state. Each kind of object has one function; all of them tolerate events that
//! repeat, arrive late, or speak of things that are not known (a pod before its node, a PodGroup after its
//! pods), because a watch may deliver all of that.

mod jobs;
mod names;
mod nodes;
mod pods;
mod queues;

use crate::event::Event;
use crate::planted::{Bug, planted};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::nodes::NO_NODE;
use crate::state::queues::QueueId;
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId};

/// The event is about neither pods, PodGroups, queues nor nodes, whose functions know what has changed.
fn is_about_others(event: &Event) -> bool {
    !matches!(
        event,
        Event::Node(_)
            | Event::NodeDeleted(_)
            | Event::Pod(_)
            | Event::PodDeleted(_)
            | Event::PodGroup(_)
            | Event::PodGroupDeleted(_)
            | Event::Queue(_)
            | Event::QueueDeleted(_)
            | Event::BindOk(_)
            | Event::BindFailed { .. }
            | Event::EvictOk(_)
            | Event::EvictFailed { .. }
    )
}

impl State {
    /// Applies one event.
    pub fn apply(&mut self, event: Event) {
        self.changed = true;
        if is_about_others(&event) {
            self.prey_epoch += 1;
        }
        match event {
            Event::Node(node) => self.set_node(node),
            Event::NodeDeleted(name) => self.remove_node(&name),
            Event::Pod(pod) => self.set_pod(pod),
            Event::PodDeleted(uid) => self.remove_pod(&uid),
            Event::PodGroup(group) => self.set_group(group),
            Event::PodGroupDeleted(key) => self.remove_group(&key),
            Event::Queue(queue) => self.set_queue(queue),
            Event::QueueDeleted(name) => self.remove_queue(&name),
            Event::QueuePolicy(policy) => self.set_queue_policy(policy),
            Event::QueuePolicyDeleted(name) => self.remove_queue_policy(&name),
            Event::HyperNode(object) => {
                self.hyper_nodes.set(object, &self.nodes);
                self.released();
            }
            Event::HyperNodeDeleted(name) => {
                self.hyper_nodes.remove(&name);
                self.released();
            }
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
            Event::DisruptionBudget(budget) => self.budgets.set(budget),
            Event::DisruptionBudgetDeleted(key) => self.budgets.remove(&key),
            Event::DisruptionBudgetsReadable(readable) => self.budgets.unreadable = !readable,
            Event::ResourceQuota(quota) => self.quotas.set(quota),
            Event::ResourceQuotaDeleted(key) => self.quotas.remove(&key),
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
            Event::EvictFailed { uid, .. } => self.evict_failed(&uid),
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

    /// The victim stays: its room is its own again, and whoever was promised it has to look elsewhere.
    fn evict_failed(&mut self, uid: &str) {
        if let Some(task) = self.tasks.get(uid) {
            self.stays(task);
        }
    }

    /// A pod that was leaving stays on its node.
    pub(super) fn stays(&mut self, task: TaskId) {
        self.victim_settled(task);
        let Some(status) = self.tasks[task].spared.take() else { return };
        if self.tasks[task].status == Status::Releasing {
            self.spare(task, status);
            self.touch_task_job(task);
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
}
