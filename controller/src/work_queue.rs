//! The queue of keys that a controller still has to look at.
//!
//! Rules of a client-go work queue: a key waits at most once; a key that is asked for while it is being worked on is
//! handed out again afterwards, never twice at the same time; a failed key comes back after a growing delay. Pure: time
//! is handed in, keys come out in the order of (due time, arrival), so the same events give the same writes. Used by
//! `reconcile.rs` only; controllers add keys to it.

use std::{collections::BTreeMap, collections::BTreeSet, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// First delay after a failure (Volcano's default rate limiter).
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// Longest delay between two tries. Volcano grows to 1000 s; a pod should not wait a quarter of an hour for a server
/// that came back long ago.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// De-duplicating queue of keys with delays.
#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    /// Waiting keys in the order they will be handed out.
    order: BTreeSet<(Instant, u64, K)>,
    /// Where a waiting key stands in `order`.
    waiting: BTreeMap<K, (Instant, u64)>,
    /// Keys handed out and not finished; the value is when to hand it out again, if asked for meanwhile.
    active: BTreeMap<K, Option<Instant>>,
    failures: BTreeMap<K, Failures>,
    arrivals: u64,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    delays: ExponentialBackoff,
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        WorkQueue {
            order: BTreeSet::new(),
            waiting: BTreeMap::new(),
            active: BTreeMap::new(),
            failures: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Asks for `key` at `due`. The earlier of two requests for one key counts.
    pub(crate) fn add(&mut self, key: K, due: Instant) {
        if let Some(again) = self.active.get_mut(&key) {
            *again = Some(again.map_or(due, |at| at.min(due)));
            return;
        }
        if let Some((at, arrival)) = self.waiting.get(&key).copied() {
            if at <= due {
                return;
            }
            self.order.remove(&(at, arrival, key.clone()));
        }
        self.arrivals += 1;
        self.waiting.insert(key.clone(), (due, self.arrivals));
        self.order.insert((due, self.arrivals, key));
    }

    /// Takes the first key that is due. The caller owes a [`Self::done`] or [`Self::failed`] for it.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        if self.next_due()? > now {
            return None;
        }
        let (_, _, key) = self.order.pop_first()?;
        self.waiting.remove(&key);
        self.active.insert(key.clone(), None);
        Some(key)
    }

    /// When the next key is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.order.first().map(|(due, _, _)| *due)
    }

    /// The work on `key` succeeded: its failures are forgotten.
    pub(crate) fn done(&mut self, key: &K) {
        self.failures.remove(key);
        if let Some(Some(due)) = self.active.remove(key) {
            self.add(key.clone(), due);
        }
    }

    /// The work on `key` failed: it comes back after a delay. Returns how often it failed in a row.
    pub(crate) fn failed(&mut self, key: &K, now: Instant) -> u32 {
        self.active.remove(key);
        let failures = self.failures.entry(key.clone()).or_insert_with(|| Failures {
            count: 0,
            delays: ExponentialBuilder::new()
                .with_min_delay(FIRST_DELAY)
                .with_max_delay(LONGEST_DELAY)
                .without_max_times()
                .build(),
        });
        failures.count = failures.count.saturating_add(1);
        let count = failures.count;
        let delay = failures.delays.next().unwrap_or(LONGEST_DELAY);
        // Whatever was asked for meanwhile waits too, or a hot object would turn the delay off.
        self.add(key.clone(), now + delay);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut WorkQueue<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop(now)).collect()
    }

    #[test]
    fn a_key_waits_once_and_keeps_its_place() {
        let (mut queue, now) = (WorkQueue::new(), Instant::now());
        for key in ["b", "a", "b", "b"] {
            queue.add(key, now);
        }
        assert_eq!(drain(&mut queue, now), ["b", "a"]);
    }

    #[test]
    fn the_earlier_due_time_wins() {
        let (mut queue, now) = (WorkQueue::new(), Instant::now());
        let later = now + Duration::from_secs(1);
        queue.add("slow", later);
        queue.add("hurried", later);
        queue.add("hurried", now);
        queue.add("hurried", later);
        assert_eq!(drain(&mut queue, now), ["hurried"]);
        assert_eq!(queue.next_due(), Some(later));
        queue.done(&"hurried");
        assert_eq!(drain(&mut queue, later), ["slow"]);
    }

    #[test]
    fn a_key_asked_for_during_work_comes_again_after_it_never_beside_it() {
        let (mut queue, now) = (WorkQueue::new(), Instant::now());
        queue.add("a", now);
        assert_eq!(queue.pop(now), Some("a"));
        queue.add("a", now);
        assert_eq!(queue.pop(now), None);
        queue.done(&"a");
        assert_eq!(queue.pop(now), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.pop(now), None);
    }

    #[test]
    fn failures_double_the_delay_up_to_the_longest_and_success_forgets_them() {
        let (mut queue, mut now) = (WorkQueue::new(), Instant::now());
        queue.add("a", now);
        let mut delays = Vec::new();
        for expected in 1..=15 {
            assert_eq!(queue.pop(now), Some("a"));
            assert_eq!(queue.failed(&"a", now), expected);
            let due = queue.next_due().unwrap();
            delays.push(((due - now).as_secs_f64() * 1000.0).round());
            now = due;
        }
        assert_eq!(delays[..4], [5.0, 10.0, 20.0, 40.0]);
        assert_eq!(delays[13..], [30_000.0, 30_000.0]);
        queue.pop(now);
        queue.done(&"a");
        queue.add("a", now);
        queue.pop(now);
        assert_eq!(queue.failed(&"a", now), 1);
    }

    #[test]
    fn a_request_during_failing_work_does_not_skip_the_delay() {
        let (mut queue, now) = (WorkQueue::new(), Instant::now());
        queue.add("a", now);
        queue.pop(now);
        queue.add("a", now);
        queue.failed(&"a", now);
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.pop(now + FIRST_DELAY), Some("a"));
    }
}
