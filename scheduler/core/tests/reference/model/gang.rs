//! The formulas of a gang (2.5) and plugin `gang`, counted anew over the tasks at every call.

use super::session::{Job, Session, Task, is_allocated};
use super::world::Status;

/// A pending task that needs no room counts as ready, but not behind a scheduling gate (B20) or without a node.
fn waits_for_nothing(task: &Task) -> bool {
    task.status == Status::Pending && task.best_effort() && !task.gated && !task.stuck
}

fn is_ready(task: &Task) -> bool {
    is_allocated(task.status) || task.status == Status::Succeeded
}

impl Session {
    fn count(&self, job: usize, counts: impl Fn(&Task) -> bool) -> i64 {
        self.jobs[job].tasks.iter().filter(|&&task| counts(&self.tasks[task])).count() as i64
    }

    /// Minimum members.
    pub fn min_member(&self, job: usize) -> i64 {
        i64::from(self.jobs[job].group.min_member.max(0))
    }

    fn role_minimums_apply(&self, job: usize) -> bool {
        self.min_member(job) >= role_total(&self.jobs[job])
    }

    fn roles_reach(&self, job: usize, counts: impl Fn(&Task) -> bool) -> bool {
        !self.role_minimums_apply(job)
            || self.jobs[job].group.min_task_member.iter().all(|(role, min)| {
                self.count(job, |task| task.role == *role && counts(task)) >= i64::from(*min)
            })
    }

    /// How many of a role are missing at its minimum.
    pub fn lacks_of_role(&self, job: usize, role: &str) -> i64 {
        let minimums = &self.jobs[job].group.min_task_member;
        let minimum = minimums.iter().find(|(name, _)| name == role);
        let there = |task: &Task| task.role == role && (is_ready(task) || waits_for_nothing(task));
        match minimum {
            Some((_, min)) if self.role_minimums_apply(job) => {
                (i64::from(*min) - self.count(job, there)).max(0)
            }
            _ => 0,
        }
    }

    /// Volcano `ReadyTaskNum`.
    pub fn ready_tasks(&self, job: usize) -> i64 {
        self.count(job, is_ready)
    }

    /// Members that count as ready while they wait.
    pub fn count_best_effort(&self, job: usize) -> i64 {
        self.count(job, waits_for_nothing)
    }

    /// Members that are ready, count as ready, or are promised a place.
    pub fn members_there(&self, job: usize) -> i64 {
        self.count(job, |task| {
            is_ready(task) || waits_for_nothing(task) || task.status == Status::Pipelined
        })
    }

    /// Not admitted yet.
    pub fn is_pending(&self, job: usize) -> bool {
        self.jobs[job].phase == tephra_core::event::PodGroupPhase::Pending
    }

    /// Volcano `IsReady`, which orders jobs.
    pub fn is_ready(&self, job: usize) -> bool {
        self.count(job, |task| is_ready(task) || waits_for_nothing(task)) >= self.min_member(job)
    }

    /// Some members are ready, but fewer than the minimum.
    pub fn is_broken(&self, job: usize) -> bool {
        if !self.has("gang") {
            return false;
        }
        let ready = self.ready_tasks(job);
        ready > 0 && ready < self.min_member(job)
    }

    /// JobValid of plugin gang.
    pub fn job_valid(&self, job: usize) -> bool {
        if !self.has("gang") {
            return true;
        }
        let valid = |task: &Task| {
            is_ready(task) || matches!(task.status, Status::Pipelined | Status::Pending)
        };
        self.roles_reach(job, valid) && self.count(job, valid) >= self.min_member(job)
    }

    /// JobReady of plugin gang.
    pub fn job_ready(&self, job: usize) -> bool {
        if !self.has("gang") {
            return true;
        }
        self.is_ready(job)
            && self.roles_reach(job, |task| is_ready(task) || waits_for_nothing(task))
    }

    /// JobPipelined of plugin gang.
    pub fn job_pipelined(&self, job: usize) -> bool {
        if !self.has("gang") {
            return true;
        }
        let counts = |task: &Task| {
            is_ready(task) || waits_for_nothing(task) || task.status == Status::Pipelined
        };
        self.count(job, counts) >= self.min_member(job) && self.roles_reach(job, counts)
    }

    /// May placement go on after a task found no node (`NeedContinueAllocating`)?
    pub fn may_continue(&self, job: usize) -> bool {
        let row = &self.jobs[job];
        let min = self.min_member(job);
        if min >= row.tasks.len() as i64 {
            return false;
        }
        if !self.role_minimums_apply(job) {
            let others = self.count(job, |task| {
                task.status == Status::Pending && !row.failed_roles.contains(&task.role)
            });
            return self.ready_tasks(job) + others >= min;
        }
        row.group.min_task_member.iter().all(|(role, min)| {
            !row.failed_roles.contains(role)
                || self.count(job, |task| {
                    task.role == *role && (is_ready(task) || waits_for_nothing(task))
                }) >= i64::from(*min)
        })
    }
}

fn role_total(job: &Job) -> i64 {
    job.group.min_task_member.iter().map(|(_, min)| i64::from((*min).max(0))).sum()
}
