//! Policies of queues: what each says, and what holds for each queue after inheritance (`features.md` 0.1). Events write the first, the
//! opening of a session derives the second along the tree of queues.

use std::collections::BTreeMap;

use super::State;
use super::queues::QueueId;
use crate::event::{CheckpointMode, PreemptionMode, QueuePolicyObject};

/// Policies by queue.
#[derive(Debug, Default)]
pub struct QueuePolicies {
    written: BTreeMap<String, QueuePolicyObject>,
    in_force: Vec<QueuePolicy>,
    epoch: Option<u64>,
}

/// What holds for one queue. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    /// How its jobs make room, where plugin `suspend` is on; else their pods are deleted.
    pub mode: PreemptionMode,
    /// Its jobs run at least this long before they must make room.
    pub min_runtime_ms: i64,
    /// A job suspended so often within a day is no victim of its equals.
    pub max_suspensions_per_day: u32,
    /// What a job is asked before it is stopped.
    pub checkpoint: CheckpointMode,
    /// How long it may take to answer.
    pub grace_ms: i64,
    /// Its weight is the dominant share of what it deserves, where it names that.
    pub weight_from_deserved: bool,
    /// Turn that it may save up while idle.
    pub credit_window_ms: i64,
    /// How far it may be ahead of its siblings; `None`: no limit.
    pub burst_ms: Option<i64>,
    /// Waiting time that equals one step of priority; `None`: priority is strict.
    pub wait_priority_ms: Option<i64>,
}

/// What holds where nothing is written.
const DEFAULT: QueuePolicy = QueuePolicy {
    mode: PreemptionMode::Suspend,
    min_runtime_ms: 0,
    max_suspensions_per_day: u32::MAX,
    checkpoint: CheckpointMode::None,
    grace_ms: 0,
    weight_from_deserved: true,
    credit_window_ms: 0,
    burst_ms: None,
    wait_priority_ms: None,
};

impl QueuePolicy {
    fn overridden_by(&self, written: &QueuePolicyObject) -> Self {
        let suspensions = written.max_suspensions_per_day;
        Self {
            mode: written.mode.unwrap_or(self.mode),
            min_runtime_ms: written.min_runtime_ms.unwrap_or(self.min_runtime_ms),
            max_suspensions_per_day: suspensions.unwrap_or(self.max_suspensions_per_day),
            checkpoint: written.checkpoint.unwrap_or(self.checkpoint),
            grace_ms: written.grace_ms.unwrap_or(self.grace_ms),
            weight_from_deserved: written.weight_from_deserved.unwrap_or(self.weight_from_deserved),
            credit_window_ms: written.credit_window_ms.unwrap_or(self.credit_window_ms),
            burst_ms: written.burst_ms.or(self.burst_ms),
            wait_priority_ms: written.wait_priority_ms.or(self.wait_priority_ms),
        }
    }
}

impl State {
    pub(super) fn set_queue_policy(&mut self, policy: QueuePolicyObject) {
        self.queue_policies.written.insert(policy.name.clone(), policy);
        self.queue_epoch += 1;
        self.quota_epoch += 1;
    }

    pub(super) fn remove_queue_policy(&mut self, name: &str) {
        if self.queue_policies.written.remove(name).is_some() {
            self.queue_epoch += 1;
            self.quota_epoch += 1;
        }
    }

    /// What holds for a queue, as of the session's start.
    pub fn queue_policy(&self, queue: QueueId) -> &QueuePolicy {
        self.queue_policies.in_force.get(queue as usize).unwrap_or(&DEFAULT)
    }

    /// Derives what holds for each queue, if a queue or a policy changed. The tree of queues must be up to date.
    pub fn refresh_queue_policies(&mut self) {
        if self.queue_policies.epoch == Some(self.queue_epoch) {
            return;
        }
        let written = &self.queue_policies.written;
        let own = |queue: QueueId| written.get(self.queues[queue as usize].name.as_ref());
        let mut in_force = vec![DEFAULT; self.queues.len()];
        for queue in self.queue_tree.downwards() {
            if let Some(above) = self.queue_tree.parent(queue) {
                in_force[queue as usize] = in_force[above as usize].clone();
            }
            if let Some(written) = own(queue) {
                in_force[queue as usize] = in_force[queue as usize].overridden_by(written);
            }
        }
        self.queue_policies.in_force = in_force;
        self.queue_policies.epoch = Some(self.queue_epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, QueueObject};

    fn queue(name: &str, parent: &str) -> Event {
        let (name, parent) = (name.to_owned(), parent.to_owned());
        Event::Queue(QueueObject { name, parent, ..QueueObject::default() })
    }

    #[test]
    fn what_a_policy_does_not_say_comes_from_the_nearest_queue_above() {
        let mut state = State::new("default");
        state.apply(queue("root", ""));
        state.apply(queue("team", ""));
        state.apply(queue("nights", "team"));
        state.apply(Event::QueuePolicy(QueuePolicyObject {
            name: "team".to_owned(),
            mode: Some(PreemptionMode::Never),
            grace_ms: Some(90_000),
            ..QueuePolicyObject::default()
        }));
        state.apply(Event::QueuePolicy(QueuePolicyObject {
            name: "nights".to_owned(),
            grace_ms: Some(0),
            burst_ms: Some(1),
            ..QueuePolicyObject::default()
        }));
        let force = |state: &mut State, name: &str| {
            state.refresh_queue_tree();
            state.refresh_queue_policies();
            state.queue_policy(state.queue(name).unwrap()).clone()
        };
        let never = QueuePolicy { mode: PreemptionMode::Never, ..DEFAULT };
        assert_eq!(force(&mut state, "root"), DEFAULT);
        assert_eq!(force(&mut state, "team"), QueuePolicy { grace_ms: 90_000, ..never });
        let nights = QueuePolicy { mode: PreemptionMode::Never, burst_ms: Some(1), ..DEFAULT };
        assert_eq!(force(&mut state, "nights"), nights);

        state.apply(Event::QueuePolicyDeleted("team".to_owned()));
        assert_eq!(force(&mut state, "nights"), QueuePolicy { mode: DEFAULT.mode, ..nights });
    }
}
