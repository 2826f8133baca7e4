//! Plugin `overcommit` (11): admits gangs until what is admitted exceeds the cluster by a factor of 1.2.

use tephra_api::resource::Resource;

use super::session::{Job, Session};
use super::vector::plus;

/// Figures of the plugin.
#[derive(Debug, Default)]
pub struct Overcommit {
    active: bool,
    idle: Resource,
    inqueue: Resource,
}

impl Overcommit {
    /// Figures at the opening of a session.
    pub fn open(session: &Session) -> Self {
        let mut idle = session.total.clone();
        idle.multiply(1.2);
        for node in session.nodes.iter().flatten() {
            idle.subtract(&node.used);
        }
        let mut inqueue = Resource::default();
        for job in 0..session.jobs.len() {
            inqueue.add(&session.claim(job));
        }
        Self { active: session.has("overcommit"), idle, inqueue }
    }

    /// JobEnqueueable.
    pub fn enqueueable(&self, job: &Job) -> bool {
        let Some(min) = &job.min_resources else { return true };
        !self.active || plus(&self.inqueue, min).exceeding(&self.idle, min).is_empty()
    }

    /// JobEnqueued.
    pub fn enqueued(&mut self, remaining: &Resource) {
        self.inqueue.add(remaining);
    }
}
