//! Queues come, change and go. A queue has a row as soon as a PodGroup names it.

use std::sync::Arc;

use tephra_api::keys;

use crate::event::{Amounts, QueueObject};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::{Queue, QueueId};

impl State {
    /// Row of a queue, made (as one that does not exist) when missing.
    pub(in crate::state) fn queue_row(&mut self, name: &str) -> QueueId {
        if let Some(queue) = self.queue(name) {
            return queue;
        }
        let name: Arc<str> = name.into();
        let queue = self.queues.len() as QueueId;
        self.queues.push(Queue { name: name.clone(), weight: 1, ..Queue::default() });
        self.queue_by_name.insert(name, queue);
        self.queue_epoch += 1;
        queue
    }

    pub(super) fn set_queue(&mut self, object: QueueObject) {
        let id = self.queue_row(&object.name);
        let mut quota = |amounts: Option<Amounts>| {
            let mut amounts = amounts?;
            // Quotas of device classes are no amounts of ordinary resources (P30).
            amounts.retain(|(name, _)| !name.contains("deviceclass/"));
            Some(self.dims.vector(&amounts))
        };
        let capability = quota(object.capability);
        let deserved = quota(object.deserved);
        let guarantee = quota(object.guarantee);
        let annotation = |key: &str| -> Arc<str> {
            object
                .annotations
                .iter()
                .find(|(known, _)| known == key)
                .map_or("", |(_, text)| text)
                .into()
        };
        let mut told = crate::state::state_ledger(&mut self.dims, &object.allocated);
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
        row.hierarchy = annotation(keys::HIERARCHY);
        row.hierarchy_weights = annotation(keys::HIERARCHY_WEIGHTS);
        row.fairness = annotation(keys::FAIRNESS);
        row.capability = capability;
        row.deserved = deserved;
        row.guarantee = guarantee.unwrap_or_default();
        row.reclaimable = object.reclaimable;
        row.fifo = object.fifo;
        row.state = object.state;
        self.queue_epoch += 1;
        self.touch_queue(id);
        if awakes {
            self.touch_jobs_of(id);
        }
        self.released();
    }

    pub(super) fn remove_queue(&mut self, name: &str) {
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
        self.queue_epoch += 1;
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
}
