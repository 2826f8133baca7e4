//! What the queues have in use, told where it differs from what their status says (3.3). Where a queue `root` exists,
//! every queue also counts what the queues below it have. And what plugins say about queues.

use tephra_api::reasons;

use super::Session;
use crate::decision::{Decision, Notice, NoticeKind};
use crate::event::ObjectKey;
use crate::laps::Laps;
use crate::plugin::QueueWord;
use crate::state::State;
use crate::state::queue_tree::ROOT;
use crate::state::resource::{CPU, Ledger, MEMORY};

impl Session<'_> {
    pub(super) fn tell_queues(&mut self) {
        let dirty = std::mem::take(&mut self.state.dirty_queues);
        if dirty.is_empty() {
            return;
        }
        for id in dirty {
            self.state.queues[id as usize].dirty = false;
        }
        let sums = sums(self.state);
        for (queue, sum) in self.state.queues.iter_mut().zip(sums) {
            if !queue.exists || sum.same(&queue.told) {
                continue;
            }
            let dims = &self.state.dims;
            let mut allocated: Vec<(String, i64)> = sum
                .iter()
                .filter(|&(dim, amount)| amount != 0 || dim == CPU || dim == MEMORY)
                .map(|(dim, amount)| (dims.name(dim).to_string(), dims.to_stored(dim, amount)))
                .collect();
            allocated.sort();
            queue.told = sum;
            self.decisions
                .push(Decision::QueueAllocated { queue: queue.name.to_string(), allocated });
        }
    }

    /// What plugins have to say about queues.
    pub(super) fn tell_turns(&mut self, laps: &mut dyn Laps) {
        for (queue, word) in self.pipeline.queue_words(self.state, laps) {
            let row = &self.state.queues[queue as usize];
            match word {
                QueueWord::Fairness(text) => {
                    let queue = row.name.to_string();
                    self.decisions.push(Decision::QueueFairness { queue, text });
                }
                QueueWord::Warning(message) => self.notices.push(Notice {
                    kind: NoticeKind::Queue,
                    object: ObjectKey::new("", &*row.name),
                    uid: row.uid.to_string(),
                    warning: true,
                    reason: reasons::INVALID_OBJECT,
                    message,
                }),
            }
        }
    }
}

/// Per queue what it and all queues below it have in use.
fn sums(state: &State) -> Vec<Ledger> {
    let mut sums: Vec<Ledger> = state.queues.iter().map(|queue| queue.allocated.clone()).collect();
    if !state.queue(ROOT).is_some_and(|root| state.queues[root as usize].exists) {
        return sums;
    }
    state.queue_tree.add_up(&mut sums, Ledger::add_all);
    sums
}
