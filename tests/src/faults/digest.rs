//! A number that stands for a whole history: equal for equal runs.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use tephra_simulator::WriteRecord;

/// Hash over all that was written, by whom, when and with what outcome.
#[must_use]
pub fn digest(history: &[WriteRecord]) -> u64 {
    let mut hasher = FxHasher::default();
    for record in history {
        (record.seq, record.rv, record.time_ms, record.outcome, record.answered).hash(&mut hasher);
        (&*record.identity, record.verb, &record.group, &record.resource).hash(&mut hasher);
        (&record.namespace, &record.name, &record.uid, &record.subresource).hash(&mut hasher);
        record.body.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
