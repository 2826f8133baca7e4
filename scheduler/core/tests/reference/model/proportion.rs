//! Plugin `proportion` (5): what each queue deserves, by water filling, and the checks that follow from it.

use std::collections::BTreeMap;

use tephra_api::resource::{DimensionDefault, Resource};
use tephra_core::event::{QueueObject, QueueState};

use super::session::{Job, Session, is_allocated, is_charged};
use super::vector::{cap, cap_or_zero, exceeds, plus, positive_difference, settle, share, vector};
use super::world::Status;

/// Figures of a queue.
#[derive(Clone, Debug, Default)]
struct Attributes {
    open: bool,
    limits_pods: bool,
    weight: f64,
    guarantee: Resource,
    real_capability: Resource,
    allocated: Resource,
    request: Resource,
    inqueue: Resource,
    elastic: Resource,
    deserved: Resource,
    share: f64,
}

impl Attributes {
    fn refresh_share(&mut self) {
        let names = self.deserved.names();
        let parts =
            names.iter().map(|name| share(self.allocated.get(name), self.deserved.get(name)));
        self.share = parts.fold(0.0, f64::max);
    }
}

/// Figures of all queues that have jobs.
#[derive(Debug, Default)]
pub struct Proportion(BTreeMap<String, Attributes>);

impl Proportion {
    /// Steps 1-7 of 5.1.
    pub fn open(session: &Session) -> Self {
        if !session.has("proportion") {
            return Self::default();
        }
        let mut guaranteed = Resource::default();
        for queue in session.queues.values() {
            guaranteed.add(&queue.guarantee.as_ref().map(vector).unwrap_or_default());
        }
        let mut queues: BTreeMap<String, Attributes> = BTreeMap::new();
        for (at, job) in session.jobs.iter().enumerate() {
            let attributes = queues.entry(job.queue.clone()).or_insert_with(|| {
                let queue = &session.queues[&job.queue];
                let guarantee = queue.guarantee.as_ref().map(vector).unwrap_or_default();
                let mut real = plus(&positive_difference(&session.total, &guaranteed), &guarantee);
                if let Some(capability) = queue.capability.as_ref().filter(|c| !c.is_empty()) {
                    let mut capability = vector(capability);
                    for amount in [&mut capability.milli_cpu, &mut capability.memory] {
                        if *amount <= 0.0 {
                            *amount = f64::MAX;
                        }
                    }
                    cap(&mut real, &capability);
                }
                Attributes {
                    open: queue.state == QueueState::Open,
                    limits_pods: queue.capability.as_ref().is_some_and(|capability| {
                        capability.iter().any(|(name, _)| name == "pods")
                    }),
                    weight: f64::from(queue.weight.max(1)),
                    guarantee,
                    real_capability: real,
                    ..Attributes::default()
                }
            });
            attributes.allocated.add(&job.allocated);
            for &task in &job.tasks {
                let task = &session.tasks[task];
                if is_charged(task.status) || task.status == Status::Pending {
                    attributes.request.add(&task.request);
                }
            }
            attributes.inqueue.add(&session.claim(at));
            let none = Resource::default();
            let min = job.min_resources.as_ref().unwrap_or(&none);
            attributes.elastic.add(&positive_difference(&job.allocated, min));
        }
        fill(&mut queues, &session.total);
        for queue in queues.values_mut() {
            settle(&mut queue.deserved);
            queue.refresh_share();
        }
        Self(queues)
    }

    /// Share of a queue, 0 without jobs.
    pub fn share(&self, queue: &str) -> f64 {
        self.0.get(queue).map_or(0.0, |attributes| attributes.share)
    }

    /// What the queue deserves.
    pub fn deserved(&self, queue: &str) -> Option<&Resource> {
        self.0.get(queue).map(|attributes| &attributes.deserved)
    }

    /// The queue has all it deserves.
    pub fn overused(&self, queue: &str) -> bool {
        self.0.get(queue).is_some_and(|attributes| {
            attributes.deserved.less_equal(&attributes.allocated, DimensionDefault::Zero)
        })
    }

    /// The queue may take this much more.
    pub fn allocatable(&self, queue: &str, request: &Resource) -> bool {
        self.0.get(queue).is_none_or(|attributes| {
            let wanted = plus(&attributes.allocated, request);
            let pods = !attributes.limits_pods
                || wanted.get("pods") <= attributes.real_capability.get("pods");
            attributes.open && pods && !exceeds(&wanted, &attributes.deserved, request)
        })
    }

    /// So many more would exceed the queue's own capability.
    pub fn capped(
        &self,
        queue: &str,
        object: &QueueObject,
        request: &Resource,
        count: i64,
    ) -> bool {
        let Some(capability) = &object.capability else { return false };
        let allocated = &self.0[queue].allocated;
        capability.iter().any(|(name, _)| {
            let (limit, asked) = (vector(capability).get(name), request.get(name));
            asked > 0.0 && allocated.get(name) + asked * count as f64 > limit
        })
    }

    /// JobEnqueueable; a job that may enter is counted at once.
    pub fn enqueueable(&mut self, job: &Job, remaining: &Resource) -> bool {
        let Some(attributes) = self.0.get_mut(&job.queue) else { return true };
        let Some(min) = &job.min_resources else { return attributes.open };
        let mut wanted = plus(&plus(min, &attributes.allocated), &attributes.inqueue);
        wanted.subtract(&attributes.elastic);
        let fits = attributes.open && !exceeds(&wanted, &attributes.real_capability, min);
        if fits {
            attributes.inqueue.add(remaining);
        }
        fits
    }

    /// Follows a placement.
    pub fn allocate(&mut self, queue: &str, request: &Resource) {
        if let Some(attributes) = self.0.get_mut(queue) {
            attributes.allocated.add(request);
            attributes.refresh_share();
        }
    }

    /// Follows its undoing.
    pub fn deallocate(&mut self, queue: &str, request: &Resource) {
        if let Some(attributes) = self.0.get_mut(queue) {
            attributes.allocated.subtract(request);
            attributes.refresh_share();
        }
    }
}

/// Water filling (step 7), queues in the order of their names.
fn fill(queues: &mut BTreeMap<String, Attributes>, total: &Resource) {
    let mut remaining = total.clone();
    let mut met: Vec<String> = Vec::new();
    loop {
        let weights: f64 =
            queues.iter().filter(|(name, _)| !met.contains(name)).map(|(_, a)| a.weight).sum();
        if weights == 0.0 {
            return;
        }
        let before_round = remaining.clone();
        let mut given = Resource::default();
        let before_met = met.clone();
        for (name, queue) in queues.iter_mut().filter(|(name, _)| !before_met.contains(name)) {
            let before = queue.deserved.clone();
            let mut part = remaining.clone();
            part.multiply(queue.weight / weights);
            queue.deserved.add(&part);
            cap(&mut queue.deserved, &queue.real_capability);
            cap_or_zero(&mut queue.deserved, &queue.request);
            let mut lift = queue.guarantee.clone();
            cap(&mut lift, &queue.real_capability);
            queue.deserved.set_max(&lift);
            queue.refresh_share();
            if queue.request.less_equal(&queue.deserved, DimensionDefault::Zero)
                || queue.deserved == before
            {
                met.push(name.clone());
            }
            given.add(&queue.deserved);
            given.subtract(&before);
        }
        remaining = positive_difference(&remaining, &given);
        if remaining.is_empty() || remaining == before_round {
            return;
        }
    }
}

impl Session {
    /// What an admitted job still claims of its queue (steps 4 and 5).
    pub fn claim(&self, job: usize) -> Resource {
        use tephra_core::event::PodGroupPhase::{Inqueue, Running};
        let allocated =
            self.jobs[job].tasks.iter().filter(|&&task| is_allocated(self.tasks[task].status));
        match self.jobs[job].phase {
            Inqueue if self.jobs[job].lapsed => Resource::default(),
            Inqueue => self.remaining_minimum(job),
            Running if allocated.count() as i64 >= self.min_member(job) => {
                self.remaining_minimum(job)
            }
            _ => Resource::default(),
        }
    }

    /// Part of `minResources` that neither allocated nor gated tasks account for.
    pub fn remaining_minimum(&self, job: usize) -> Resource {
        let job = &self.jobs[job];
        let min = job.min_resources.clone().unwrap_or_default();
        positive_difference(&positive_difference(&min, &job.allocated), &job.gated)
    }
}
