//! Who goes first (3.8 and the order hooks of priority, gang, drf and proportion). Plain comparisons, made with
//! the figures of the moment.

use std::cmp::Ordering;

use tephra_core::event::ObjectKey;

use super::session::{Session, Task};
use super::vector::share;

impl Session {
    /// The best of these queues.
    pub fn best_queue<'q>(&self, queues: impl Iterator<Item = &'q String>) -> Option<String> {
        queues.min_by(|a, b| self.compare_queues(a, b)).cloned()
    }

    fn compare_queues(&self, a: &str, b: &str) -> Ordering {
        let (one, two) = (&self.queues[a], &self.queues[b]);
        let mut order = Ordering::Equal;
        if self.has("proportion") {
            order = two.priority.cmp(&one.priority);
            order = order.then_with(|| compare(self.proportion.share(a), self.proportion.share(b)));
        }
        order.then(one.created_ms.cmp(&two.created_ms)).then(one.name.cmp(&two.name))
    }

    /// The best of these jobs.
    pub fn best_job(&self, jobs: &[usize]) -> Option<usize> {
        jobs.iter().copied().min_by(|&a, &b| self.compare_jobs(a, b))
    }

    fn compare_jobs(&self, a: usize, b: usize) -> Ordering {
        let (one, two) = (&self.jobs[a], &self.jobs[b]);
        let broken = |job: usize| self.jobs[job].bind_failures == 0 && self.is_broken(job);
        let mut order = broken(b).cmp(&broken(a)).then(one.bind_failures.cmp(&two.bind_failures));
        if self.has("priority") {
            order = order.then(two.priority.cmp(&one.priority));
        }
        if self.has("gang") {
            order = order.then_with(|| self.is_ready(a).cmp(&self.is_ready(b)));
        }
        if self.has("drf") {
            order = order.then_with(|| compare(self.dominant_share(a), self.dominant_share(b)));
        }
        let (one, two) = (&one.group, &two.group);
        let id = |key: &ObjectKey| format!("{}/{}", key.namespace, key.name);
        order
            .then(one.created_ms.cmp(&two.created_ms))
            .then_with(|| id(&one.key).cmp(&id(&two.key)))
    }

    /// Largest part of the cluster that the job has in any resource.
    fn dominant_share(&self, job: usize) -> f64 {
        let allocated = &self.jobs[job].allocated;
        let parts = self.total.names();
        let parts = parts.iter().map(|name| share(allocated.get(name), self.total.get(name)));
        parts.fold(0.0, f64::max)
    }

    /// Sorts tasks of a job by TaskOrder.
    pub fn sort_tasks(&self, tasks: &mut [usize]) {
        tasks.sort_by(|&a, &b| self.compare_tasks(&self.tasks[a], &self.tasks[b]));
    }

    fn compare_tasks(&self, a: &Task, b: &Task) -> Ordering {
        let mut order = Ordering::Equal;
        if self.has("priority") {
            order = b.priority.cmp(&a.priority);
        }
        order
            .then_with(|| match (number(&a.name), number(&b.name)) {
                (Some(one), Some(two)) => one.cmp(&two),
                _ => Ordering::Equal,
            })
            .then(a.created_ms.cmp(&b.created_ms))
            .then_with(|| a.uid.cmp(&b.uid))
    }
}

/// The number after the last `-` of a name with at least three parts.
fn number(name: &str) -> Option<i64> {
    let parts: Vec<&str> = name.split('-').collect();
    if parts.len() < 3 { None } else { parts.last()?.parse().ok() }
}

fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}
