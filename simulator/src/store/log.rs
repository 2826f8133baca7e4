//! The event log of one resource: what watches are served from, and how older states are reconstructed.
//!
//! Each event keeps the version before it, so that a selector can tell entering from leaving, and so that a list can
//! be answered as of any resourceVersion inside the kept window (paging, stale reads).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::object::Stored;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It appeared.
    Added,
    /// It was replaced by a newer version.
    Modified,
    /// It is gone; the object carries its last content and the resourceVersion of the removal.
    Deleted,
}

impl Change {
    /// The word used on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct LogEvent {
    pub(crate) rv: u64,
    pub(crate) change: Change,
    pub(crate) key: Arc<str>,
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
}

#[derive(Debug)]
pub(crate) struct Log {
    events: VecDeque<LogEvent>,
    /// Everything up to and including this resourceVersion has been dropped.
    compacted: u64,
    newest: u64,
    window: usize,
}

/// The asked resourceVersion lies before the kept window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) oldest: u64,
}

impl Log {
    /// An empty log that starts at `rv` and keeps `window` events.
    pub(crate) fn starting_at(rv: u64, window: usize) -> Self {
        Self { events: VecDeque::new(), compacted: rv, newest: rv, window: window.max(1) }
    }

    pub(crate) fn push(&mut self, event: LogEvent) {
        self.newest = event.rv;
        self.events.push_back(event);
        while self.events.len() > self.window {
            if let Some(dropped) = self.events.pop_front() {
                self.compacted = dropped.rv;
            }
        }
    }

    pub(crate) fn set_window(&mut self, window: usize) {
        self.window = window.max(1);
        while self.events.len() > self.window {
            if let Some(dropped) = self.events.pop_front() {
                self.compacted = dropped.rv;
            }
        }
    }

    /// Forgets all events up to the current resourceVersion `now`, as an etcd compaction does.
    pub(crate) fn compact(&mut self, now: u64) {
        self.events.clear();
        self.compacted = self.compacted.max(now);
    }

    /// Whether a state at `rv` can still be served.
    pub(crate) fn check(&self, rv: u64) -> Result<(), Compacted> {
        if rv < self.compacted { Err(Compacted { oldest: self.compacted }) } else { Ok(()) }
    }

    /// Events newer than `rv`, oldest first. A reader who has seen the newest event is never behind, even if the log
    /// was compacted since.
    pub(crate) fn after(&self, rv: u64) -> Result<impl Iterator<Item = &LogEvent>, Compacted> {
        if rv < self.newest {
            self.check(rv)?;
        }
        let start = self.events.partition_point(|e| e.rv <= rv);
        Ok(self.events.range(start..))
    }

    /// What has to be laid over the present to see the past: for each key changed after `rv`, its version then.
    pub(crate) fn overlay(
        &self,
        rv: u64,
    ) -> Result<BTreeMap<Arc<str>, Option<Arc<Stored>>>, Compacted> {
        self.check(rv)?;
        let mut overlay = BTreeMap::new();
        let start = self.events.partition_point(|e| e.rv <= rv);
        for event in self.events.range(start..) {
            overlay.entry(Arc::clone(&event.key)).or_insert_with(|| event.previous.clone());
        }
        Ok(overlay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(rv: u64, change: Change, name: &str, previous: Option<Arc<Stored>>) -> LogEvent {
        let object = Arc::new(Stored::new(json!({"metadata": {"name": name}, "rv": rv}), rv));
        LogEvent { rv, change, key: Arc::from(format!("/{name}")), object, previous }
    }

    #[test]
    fn readers_before_the_window_are_told_and_others_get_what_they_missed() {
        let mut log = Log::starting_at(0, 2);
        for rv in 1..=3 {
            log.push(event(rv, Change::Added, &format!("n{rv}"), None));
        }
        assert_eq!(log.after(0).err(), Some(Compacted { oldest: 1 }));
        let seen: Vec<u64> = log.after(1).expect("in the window").map(|e| e.rv).collect();
        assert_eq!(seen, [2, 3]);
        log.compact(9);
        assert_eq!(log.after(3).expect("missed nothing").count(), 0);
        assert_eq!(log.after(2).err(), Some(Compacted { oldest: 9 }));
        assert!(log.check(8).is_err());
    }

    #[test]
    fn overlay_gives_the_version_at_the_asked_time() {
        let mut log = Log::starting_at(0, 10);
        log.push(event(1, Change::Added, "a", None));
        let first = Arc::new(Stored::new(json!(1), 1));
        log.push(event(2, Change::Modified, "a", Some(Arc::clone(&first))));
        log.push(event(3, Change::Deleted, "a", Some(Arc::new(Stored::new(json!(2), 2)))));
        let overlay = log.overlay(1).expect("kept");
        assert_eq!(overlay.get("/a").and_then(Option::as_ref).map(|s| s.rv), Some(1));
        assert_eq!(log.overlay(0).expect("kept").get("/a").map(Option::is_none), Some(true));
    }
}
