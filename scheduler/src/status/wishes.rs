//! The newest wish for each object, and when it may be written. A change that says something new goes out at
//! once; one that only words the same thing differently (a count of nodes in a message) waits until the last
//! write of that object is a few seconds old, since each status write costs the API server as much as two binds.
//! For the same reason a PodGroup whose pods are being bound is written once, when they are.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::{Sent, StatusWrite, Target};

/// Least time between two writes of an object that say the same in other words.
const REWORDED: Duration = Duration::from_secs(5);
/// Least time between two writes of a queue's allocation.
const QUEUE: Duration = Duration::from_secs(1);
/// Longest silence about a PodGroup whose binds do not settle.
const BINDING: Duration = Duration::from_secs(10);
/// Silence after its last bind: the session that draws the conclusion comes within milliseconds.
const SETTLED: Duration = Duration::from_millis(100);
/// Objects whose last write is remembered; beyond that old ones are forgotten.
const REMEMBERED: usize = 8192;

/// A wish that is not being written.
struct Waiting {
    write: StatusWrite,
    /// It is in `held`.
    held: bool,
}

/// The last write of an object.
struct Said {
    at: Instant,
    gist: u64,
}

/// Wishes in the order in which they may be written.
#[derive(Default)]
pub(super) struct Wishes {
    waiting: FxHashMap<Target, Waiting>,
    order: VecDeque<Target>,
    held: BTreeMap<(Instant, u64), Target>,
    /// Being written now; true when nothing of it is to be tried again.
    under_way: FxHashMap<Target, bool>,
    failures: FxHashMap<Target, u32>,
    said: FxHashMap<Target, Said>,
    /// PodGroups about which nothing is said before a time.
    quiet: FxHashMap<Target, Instant>,
    serial: u64,
    closing: bool,
}

impl Wishes {
    /// A new wish; it replaces an older one for its object.
    pub(super) fn add(&mut self, write: StatusWrite, now: Instant) {
        let target = write.target();
        let (write, held) = match self.waiting.remove(&target) {
            Some(older) => (write.instead_of(&older.write), older.held),
            None => (write, false),
        };
        self.waiting.insert(target.clone(), Waiting { write, held });
        if !self.under_way.contains_key(&target) {
            self.schedule(target, now);
        }
    }

    /// Nothing is to be written about this object any more.
    pub(super) fn forget(&mut self, target: &Target) {
        self.waiting.remove(target);
        self.said.remove(target);
        if let Some(cancelled) = self.under_way.get_mut(target) {
            *cancelled = true;
        }
    }

    /// Pods of this PodGroup are being bound (`busy`), or all of them are settled now.
    pub(super) fn binding(&mut self, target: Target, busy: bool, now: Instant) {
        if self.quiet.len() >= REMEMBERED {
            self.quiet.retain(|_, until| *until > now);
        }
        let until = now + if busy { BINDING } else { SETTLED };
        self.quiet.insert(target.clone(), until);
        if let Some(waiting) = self.waiting.get_mut(&target) {
            waiting.held = false;
            self.schedule(target, now);
        }
    }

    /// The next wish to write and how often writing this object has failed.
    pub(super) fn next(&mut self, now: Instant) -> Option<(StatusWrite, u32)> {
        while let Some(first) = self.held.first_entry()
            && (self.closing || first.key().0 <= now)
        {
            let target = first.remove();
            if let Some(waiting) = self.waiting.get_mut(&target) {
                waiting.held = false;
                self.order.push_back(target);
            }
        }
        loop {
            let target = self.order.pop_front()?;
            let Some(waiting) = self.waiting.get(&target) else { continue };
            if self.under_way.contains_key(&target) {
                continue;
            }
            if self.due(&target, &waiting.write) > Some(now) {
                self.schedule(target, now);
                continue;
            }
            let waiting = self.waiting.remove(&target)?;
            let failures = self.failures.get(&target).copied().unwrap_or(0);
            self.under_way.insert(target, false);
            return Some((waiting.write, failures));
        }
    }

    /// When the next held wish becomes due.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    /// An attempt has ended.
    pub(super) fn landed(&mut self, write: StatusWrite, sent: Sent, now: Instant) {
        let target = write.target();
        let cancelled = self.under_way.remove(&target).unwrap_or(false);
        if self.quiet.get(&target).is_some_and(|until| *until <= now) {
            self.quiet.remove(&target);
        }
        match sent {
            Sent::Again if !cancelled => {
                *self.failures.entry(target.clone()).or_insert(0) += 1;
                let (write, held) = match self.waiting.remove(&target) {
                    Some(newer) => (newer.write.instead_of(&write), newer.held),
                    None => (write, false),
                };
                self.waiting.insert(target.clone(), Waiting { write, held });
            }
            Sent::Again | Sent::Done => {
                self.failures.remove(&target);
                if !cancelled {
                    self.remember(target.clone(), Said { at: now, gist: gist(&write) }, now);
                }
            }
        }
        if self.waiting.contains_key(&target) {
            self.schedule(target, now);
        }
    }

    /// The end is near: nothing is held back any more.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    fn schedule(&mut self, target: Target, now: Instant) {
        let Some(waiting) = self.waiting.get(&target) else { return };
        match self.due(&target, &waiting.write).filter(|due| *due > now) {
            None => self.order.push_back(target),
            Some(_) if waiting.held => {}
            Some(due) => {
                self.serial += 1;
                self.held.insert((due, self.serial), target.clone());
                if let Some(waiting) = self.waiting.get_mut(&target) {
                    waiting.held = true;
                }
            }
        }
    }

    /// When a wish may be written; `None`: at once.
    fn due(&self, target: &Target, write: &StatusWrite) -> Option<Instant> {
        if self.closing {
            return None;
        }
        let reworded = self.said.get(target).and_then(|said| match write {
            StatusWrite::Queue { .. } | StatusWrite::QueueFairness { .. } => Some(said.at + QUEUE),
            _ => (said.gist == gist(write)).then(|| said.at + REWORDED),
        });
        reworded.max(self.quiet.get(target).copied())
    }

    fn remember(&mut self, target: Target, said: Said, now: Instant) {
        if self.said.len() >= REMEMBERED {
            self.said.retain(|_, said| said.at + REWORDED > now);
        }
        self.said.insert(target, said);
    }
}

/// What a write says, wording aside.
fn gist(write: &StatusWrite) -> u64 {
    let mut hasher = DefaultHasher::new();
    match write {
        StatusWrite::PodGroup { status, .. } => {
            (status.phase, status.running, status.succeeded, status.failed).hash(&mut hasher);
            for condition in &status.conditions {
                (&condition.kind, condition.status, &condition.reason).hash(&mut hasher);
            }
        }
        StatusWrite::Annotation { text, .. } => text.hash(&mut hasher),
        StatusWrite::Queue { .. } | StatusWrite::QueueFairness { .. } => {}
        StatusWrite::Pod { reason, nominated, .. } => (reason, nominated).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use tephra_core::decision::PodRef;

    use super::*;

    fn condition(reason: &'static str, message: &str) -> StatusWrite {
        StatusWrite::Pod {
            pod: PodRef::new("ns", "a", "u"),
            reason,
            message: message.to_owned(),
            nominated: None,
            since: None,
        }
    }

    fn message(write: Option<(StatusWrite, u32)>) -> Option<String> {
        match write {
            Some((StatusWrite::Pod { message, .. }, _)) => Some(message),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn other_words_for_the_same_wait_and_the_last_ones_are_written() {
        let mut wishes = Wishes::default();
        let start = Instant::now();
        let mut said = Vec::new();
        for tick in 0..120_u64 {
            let now = start + Duration::from_millis(100 * tick);
            wishes.add(condition("Unschedulable", &format!("0/{tick} nodes")), now);
            if let Some((write, _)) = wishes.next(now) {
                said.push((tick, message(Some((write.clone(), 0))).unwrap()));
                wishes.landed(write, Sent::Done, now);
            }
        }
        let expected = [0, 50, 100].map(|tick: u64| (tick, format!("0/{tick} nodes"))).to_vec();
        assert_eq!(said, expected);
        assert!(wishes.held.len() <= 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_reason_is_written_at_once_although_a_rewording_was_held() {
        let mut wishes = Wishes::default();
        let now = Instant::now();
        wishes.add(condition("Unschedulable", "one"), now);
        let (first, _) = wishes.next(now).unwrap();
        wishes.landed(first, Sent::Done, now);
        wishes.add(condition("Unschedulable", "two"), now);
        assert_eq!(message(wishes.next(now)), None);
        assert_eq!(wishes.wake(), Some(now + REWORDED));
        wishes.add(condition("QueueLimited", "three"), now);
        assert_eq!(message(wishes.next(now)), Some("three".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_group_whose_pods_are_being_bound_is_written_once_when_they_are() {
        use tephra_core::event::{ObjectKey, PodGroupPhase, PodGroupStatus};
        let group = ObjectKey::new("ns", "g");
        let wish = |phase| StatusWrite::PodGroup {
            group: group.clone(),
            uid: "u".to_owned(),
            status: PodGroupStatus { phase, ..PodGroupStatus::default() },
        };
        let mut wishes = Wishes::default();
        let start = Instant::now();
        wishes.binding(Target::PodGroup(group.clone()), true, start);
        wishes.add(wish(PodGroupPhase::Inqueue), start);
        assert_eq!(wishes.next(start), None);
        let settled = start + Duration::from_secs(1);
        wishes.binding(Target::PodGroup(group.clone()), false, settled);
        wishes.add(wish(PodGroupPhase::Running), settled + Duration::from_millis(20));
        assert_eq!(wishes.wake(), Some(settled + SETTLED));
        let written = wishes.next(settled + SETTLED);
        assert_eq!(written, Some((wish(PodGroupPhase::Running), 0)));
        assert_eq!(wishes.next(start + BINDING), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_object_is_not_tried_again_and_at_the_end_nothing_is_held() {
        let mut wishes = Wishes::default();
        let now = Instant::now();
        wishes.add(condition("Unschedulable", "one"), now);
        let (first, _) = wishes.next(now).unwrap();
        wishes.forget(&Target::Pod("u".to_owned()));
        wishes.landed(first.clone(), Sent::Again, now);
        assert_eq!(message(wishes.next(now)), None);
        wishes.add(first, now);
        let (first, _) = wishes.next(now).unwrap();
        wishes.landed(first, Sent::Done, now);
        wishes.add(condition("Unschedulable", "two"), now);
        wishes.close();
        assert_eq!(message(wishes.next(now)), Some("two".to_owned()));
    }
}
