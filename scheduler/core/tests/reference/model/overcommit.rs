//! Plugin `overcommit` (11): admits gangs until what is admitted exceeds the cluster by a factor of 1.2.

use tephra_api::resource::Resource;

use super::session::{Job, Session};
use super::vector::{exceeds, plus};

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
        let mut used = Resource::default();
        for node in session.nodes.iter().flatten().filter(|node| !node.object.unschedulable) {
            used.add(&node.used);
        }
        idle.subtract(&used);
        let mut inqueue = Resource::default();
        for job in 0..session.jobs.len() {
            inqueue.add(&session.claim(job));
        }
        Self { active: session.has("overcommit"), idle, inqueue }
    }

    /// JobEnqueueable.
    pub fn enqueueable(&self, job: &Job) -> bool {
        let Some(min) = &job.min_resources else { return true };
        !self.active || !exceeds(&plus(&self.inqueue, min), &self.idle, min)
    }

    /// JobEnqueued.
    pub fn enqueued(&mut self, remaining: &Resource) {
        self.inqueue.add(remaining);
    }
}
