//! The history: every write the server was asked for, in order, as an independent checker needs it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

/// Who the server's own writes belong to (garbage collection, namespace deletion).
pub const SERVER_IDENTITY: &str = "garbage-collector";

/// Who objects belong to that tests and scenarios put into the server directly (`ApiServer::create_value`).
pub const FIXTURE_IDENTITY: &str = "fixture";

/// One write request and what came of it.
#[derive(Debug, Clone)]
pub struct WriteRecord {
    /// Number of the record, from 0, without gaps.
    pub seq: u64,
    /// The store's resourceVersion after the write.
    pub rv: u64,
    /// Simulated wall time in Unix milliseconds.
    pub time_ms: i64,
    /// Who wrote.
    pub identity: Arc<str>,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Namespace, empty if cluster-scoped.
    pub namespace: String,
    /// Name of the object (generated ones included).
    pub name: String,
    /// uid of the object, empty when none was found.
    pub uid: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// HTTP code of the outcome; below 300 the write was applied.
    pub outcome: u16,
    /// Whether the answer reached the client (false: injected loss, or the client had crashed).
    pub answered: bool,
    /// The body of the request; null when it had none.
    pub body: Arc<Value>,
    /// The object after the write; for deletes its last version. Absent when refused.
    pub after: Option<Arc<Value>>,
    /// Whether the object is in the store after the write: a delete may only have marked it, an update may have
    /// taken the last finalizer off.
    pub exists: bool,
}

impl WriteRecord {
    /// Whether the write was applied.
    #[must_use]
    pub fn applied(&self) -> bool {
        self.outcome < 300
    }
}

/// The last `limit` records.
#[derive(Debug)]
pub(crate) struct History {
    records: VecDeque<WriteRecord>,
    next: u64,
    limit: usize,
}

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self { records: VecDeque::new(), next: 0, limit }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn push(&mut self, mut record: WriteRecord) {
        if !self.is_on() {
            return;
        }
        record.seq = self.next;
        self.next += 1;
        if self.records.len() == self.limit {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// Records from `seq` on, as far as they are kept.
    pub(crate) fn since(&self, seq: u64) -> Vec<WriteRecord> {
        let first = self.records.front().map_or(self.next, |r| r.seq);
        let skip = usize::try_from(seq.saturating_sub(first)).unwrap_or(usize::MAX);
        self.records.iter().skip(skip).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_history_forgets_the_oldest_and_keeps_numbers() {
        let mut history = History::new(2);
        for _ in 0..3 {
            history.push(WriteRecord {
                seq: 0,
                rv: 1,
                time_ms: 0,
                identity: Arc::from("x"),
                verb: "create",
                group: String::new(),
                resource: "pods".to_owned(),
                namespace: String::new(),
                name: String::new(),
                uid: String::new(),
                subresource: String::new(),
                outcome: 201,
                answered: true,
                body: Arc::new(Value::Null),
                after: None,
                exists: false,
            });
        }
        let seqs = |from| history.since(from).iter().map(|r| r.seq).collect::<Vec<_>>();
        assert_eq!(seqs(0), [1, 2]);
        assert_eq!(seqs(2), [2]);
        assert!(seqs(3).is_empty());
    }
}
