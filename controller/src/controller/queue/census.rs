//! How many PodGroups name each queue, by phase: kept up to date from watch events, never recounted.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::metrics::PodGroupCounts;

/// PodGroups of one queue by phase, as in `status` of a Queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) unknown: i32,
    pub(super) pending: i32,
    pub(super) running: i32,
    pub(super) inqueue: i32,
    pub(super) completed: i32,
}

impl Counts {
    fn add(&mut self, phase: &str, difference: i32) {
        let count = match phase {
            "Pending" => &mut self.pending,
            "Running" => &mut self.running,
            "Unknown" => &mut self.unknown,
            "Inqueue" => &mut self.inqueue,
            "Completed" => &mut self.completed,
            _ => return, // not decided yet
        };
        *count = count.saturating_add(difference);
    }

    /// The same, for metrics.
    pub(super) fn for_metrics(self) -> PodGroupCounts {
        let Counts { unknown, pending, running, inqueue, completed } = self;
        PodGroupCounts { inqueue, pending, running, unknown, completed }
    }

    /// Fields for a merge patch of the status.
    pub(super) fn fields(self) -> Map<String, Value> {
        let Counts { unknown, pending, running, inqueue, completed } = self;
        [
            ("unknown", unknown),
            ("pending", pending),
            ("running", running),
            ("inqueue", inqueue),
            ("completed", completed),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect()
    }
}

/// What counts about a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The queue it names; `default` when it names none.
    pub(super) queue: String,
    /// `status.phase`, possibly empty.
    pub(super) phase: String,
}

/// Counts of all queues.
#[derive(Debug, Default)]
pub(super) struct Census {
    queues: BTreeMap<String, (usize, Counts)>,
}

impl Census {
    /// A PodGroup appeared.
    pub(super) fn enter(&mut self, member: &Member) {
        let (total, counts) = self.queues.entry(member.queue.clone()).or_default();
        *total += 1;
        counts.add(&member.phase, 1);
    }

    /// A PodGroup that had entered is gone.
    pub(super) fn leave(&mut self, member: &Member) {
        let Some((total, counts)) = self.queues.get_mut(&member.queue) else { return };
        *total = total.saturating_sub(1);
        counts.add(&member.phase, -1);
        if *total == 0 {
            self.queues.remove(&member.queue);
        }
    }

    /// Number of PodGroups that name `queue`, whatever their phase, and how many are in which phase.
    pub(super) fn of(&self, queue: &str) -> (usize, Counts) {
        self.queues.get(queue).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(queue: &str, phase: &str) -> Member {
        Member { queue: queue.into(), phase: phase.into() }
    }

    #[test]
    fn groups_are_counted_under_their_queue_and_phase() {
        let mut census = Census::default();
        for phase in ["Pending", "Pending", "Running", "Inqueue", "Completed", "Unknown", ""] {
            census.enter(&member("q", phase));
        }
        let counts = Counts { unknown: 1, pending: 2, running: 1, inqueue: 1, completed: 1 };
        assert_eq!(census.of("q"), (7, counts));
        assert_eq!(census.of("other"), (0, Counts::default()));
    }

    #[test]
    fn a_group_that_changes_queue_and_phase_moves() {
        let mut census = Census::default();
        census.enter(&member("a", "Pending"));
        census.leave(&member("a", "Pending"));
        census.enter(&member("b", "Running"));
        assert_eq!(census.of("a"), (0, Counts::default()));
        assert_eq!(census.of("b"), (1, Counts { running: 1, ..Counts::default() }));
    }
}
