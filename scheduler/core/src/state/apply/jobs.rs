//! PodGroups come, change and go, and tasks join and leave their jobs. A job exists as soon as a PodGroup or a pod names it.

use std::sync::Arc;

use tephra_api::keys;

use crate::event::{Labels, ObjectKey, PodGroupObject, SubGroupPolicy};
use crate::state::job_budget::JobBudget;
use crate::state::jobs::{Group, Job, JobId};
use crate::state::nodes::NO_NODE;
use crate::state::status::Status;
use crate::state::sub_jobs::{NO_SUB_JOB, SubJobs};
use crate::state::tasks::{NO_JOB, TaskId};
use crate::state::{State, add, subtract, waiting};

impl State {
    /// Row of a job, made when missing.
    pub(super) fn job_row(&mut self, key: &ObjectKey) -> JobId {
        if let Some(job) = self.job(key) {
            return job;
        }
        let row = Job { key: key.clone(), live: true, ..Job::default() };
        let job = match self.free_jobs.pop() {
            Some(job) => {
                let Job { active, dirty, turned, .. } = self.jobs[job as usize];
                self.jobs[job as usize] = Job { active, dirty, turned, ..row };
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

    pub(in crate::state) fn join_job(&mut self, task: TaskId, job: JobId) {
        let row = &mut self.jobs[job as usize];
        let at = row.tasks.len() as u32;
        row.tasks.push(task);
        row.futile.clear();
        row.ours += u32::from(self.tasks[task].ours);
        row.parked = None;
        self.tasks[task].job = job;
        self.tasks[task].at = at;
        self.assign_sub_job(task);
    }

    /// Finds the sub-group of a task whose numbers are not counted at the moment.
    pub(super) fn assign_sub_job(&mut self, task: TaskId) {
        let row = &mut self.tasks[task];
        let sub_jobs = match row.job {
            NO_JOB => None,
            job => self.jobs[job as usize].sub_jobs.as_mut(),
        };
        row.sub_job = sub_jobs.map_or(NO_SUB_JOB, |sub_jobs| sub_jobs.assign(&row.labels));
    }

    /// Takes over the sub-group policies of a PodGroup.
    fn set_sub_groups(&mut self, job: JobId, policies: Vec<SubGroupPolicy>) {
        let row = &mut self.jobs[job as usize];
        let known = row.sub_jobs.as_ref().map_or(&[][..], |sub_jobs| &sub_jobs.policies);
        if known == policies {
            return;
        }
        let mut sub_jobs = SubJobs::new(policies);
        let any = !sub_jobs.policies.is_empty();
        for &task in &row.tasks {
            let task = &mut self.tasks[task];
            task.sub_job = if any { sub_jobs.assign(&task.labels) } else { NO_SUB_JOB };
            let best_effort = task.status == Status::Pending
                && self.classes.list[task.class as usize].best_effort
                && !task.gated
                && !task.stuck;
            sub_jobs.count(task.sub_job, task.status, best_effort, 1);
        }
        row.sub_jobs = any.then(|| Box::new(sub_jobs));
        self.gang_changed(job);
    }

    /// What searches for victims ask of a gang, beside its pods.
    fn gang_traits(&self, job: JobId) -> impl PartialEq + use<> {
        let row = &self.jobs[job as usize];
        let roles: Vec<(u32, u32)> = row
            .roles
            .iter()
            .filter(|role| role.min > 0)
            .map(|role| (role.role, role.min))
            .collect();
        let group = row.group.as_ref().map(|group| {
            let times = (
                group.created_ms,
                group.queued_ms,
                group.waiting_ms,
                group.runtime_ms,
                group.restart_ms,
            );
            let minimum = (group.min_member, group.min_task_total);
            (group.uid.clone(), minimum, times, group.preemptable, group.budget, group.home.clone())
        });
        (row.queue, row.priority, roles, row.topology.clone(), group)
    }

    /// What is asked of a gang has changed.
    fn gang_changed(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        row.futile.clear();
        self.prey_epoch += u64::from(row.has_placed());
    }

    /// Takes a task out of its job; its numbers must have been removed before.
    pub(super) fn leave_job(&mut self, task: TaskId) {
        let job = self.tasks[task].job;
        if job == NO_JOB {
            return;
        }
        let at = self.tasks[task].at as usize;
        let row = &mut self.jobs[job as usize];
        row.tasks.swap_remove(at);
        row.futile.clear();
        row.ours -= u32::from(self.tasks[task].ours);
        row.parked = None;
        if let Some(&moved) = row.tasks.get(at) {
            self.tasks[moved].at = at as u32;
        }
        self.tasks[task].job = NO_JOB;
        self.tasks[task].sub_job = NO_SUB_JOB;
        self.touch_job(job);
        self.drop_job_if_empty(job);
    }

    pub(super) fn drop_job_if_empty(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if row.live && row.group.is_none() && row.tasks.is_empty() && row.foreign == 0 {
            row.live = false;
            self.job_by_key.remove(&row.key);
            self.free_jobs.push(job);
        }
    }

    /// Who may be evicted on these nodes has changed.
    pub(super) fn touch_nodes_of(&mut self, job: JobId) {
        for &task in &self.jobs[job as usize].tasks {
            let node = self.tasks[task].node;
            if node != NO_NODE {
                self.nodes.touch(node);
            }
        }
    }

    pub(in crate::state) fn unpark(&mut self, job: JobId) {
        if job != NO_JOB {
            self.jobs[job as usize].parked = None;
        }
    }

    pub(super) fn set_group(&mut self, object: PodGroupObject) {
        let job = self.job_row(&object.key);
        let queue_name =
            if object.queue.is_empty() { self.default_queue.to_string() } else { object.queue };
        let queue = self.queue_row(&queue_name);
        let traits_were = self.gang_traits(job);
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
        let row = &self.jobs[job as usize];
        let min_member = object.min_member.max(0) as u32;
        let same = row.min_member() == min_member && row.priority == priority;
        if row.group.is_none() || !same {
            self.touch_nodes_of(job);
        }
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
        row.topology = object.topology;
        let mut group = Group {
            uid: object.uid.as_str().into(),
            id: format!("{}/{}", object.key.namespace, object.key.name).into(),
            created_ms: object.created_ms,
            queued_ms: object.queued_ms.unwrap_or(object.created_ms),
            min_member,
            min_task_total: roles.iter().map(|&(_, min)| u64::from(min)).sum(),
            min_resources,
            priority_class,
            home: home_of(&object.annotations),
            waiting_ms: waiting::annotated(&object.annotations),
            runtime_ms: waiting::expected_runtime(&object.annotations),
            restart_ms: waiting::restart_cost(&object.annotations),
            predicted_ms: waiting::predicted_start(&object.annotations),
            preemptable: preemptable(&object.annotations, &object.labels),
            budget: JobBudget::annotated(&object.annotations),
            min_quantities: object.min_quantities,
            ..Group::default()
        };
        group.set_status(object.status);
        row.group = Some(group);
        self.set_sub_groups(job, object.sub_groups);
        self.attach(job);
        if self.gang_traits(job) != traits_were {
            self.gang_changed(job);
        }
        self.touch_job(job);
        self.touch_queue(queue);
        self.see_suspension(job, object.suspension);
    }

    pub(super) fn remove_group(&mut self, key: &ObjectKey) {
        let Some(job) = self.job(key) else { return };
        self.forget_suspension(job);
        self.gang_changed(job);
        self.touch_queue(self.jobs[job as usize].queue);
        self.detach(job);
        self.touch_nodes_of(job);
        let row = &mut self.jobs[job as usize];
        row.group = None;
        row.topology = None;
        row.placed_ms = None;
        row.sessions_below = 0;
        row.phase = crate::event::PodGroupPhase::Pending;
        self.set_sub_groups(job, Vec::new());
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

    pub(super) fn resolve_priorities(&mut self) {
        for job in 0..self.jobs.len() {
            if let Some(group) = &self.jobs[job].group {
                let priority = self.priority_of(&group.priority_class);
                if priority != self.jobs[job].priority {
                    self.jobs[job].priority = priority;
                    self.touch_job(job as JobId);
                    self.touch_nodes_of(job as JobId);
                }
            }
        }
    }
}

/// What annotation, then label, say about whether the job's pods may be victims (2.5).
fn preemptable(annotations: &Labels, labels: &Labels) -> Option<bool> {
    let mut pairs = annotations.iter().chain(labels);
    let (_, text) = pairs.find(|(key, _)| key == keys::PREEMPTABLE)?;
    Some(matches!(text.as_str(), "1" | "t" | "T" | "TRUE" | "true" | "True"))
}

/// The hypernode that annotations name.
fn home_of(annotations: &Labels) -> Option<Arc<str>> {
    let named = annotations.iter().find(|(key, _)| key == keys::JOB_ALLOCATED_HYPERNODE);
    named.filter(|(_, name)| !name.is_empty()).map(|(_, name)| name.as_str().into())
}
