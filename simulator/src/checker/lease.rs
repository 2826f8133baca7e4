//! I9: whoever held a lease writes only while it holds it.
//!
//! A process is known to take part in an election once it writes a Lease that names it as the holder. From then on each
//! of its writes must come while the Lease names it; and no binding may come from somebody else.

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Violation};
use crate::history::WriteRecord;

/// Leases and their holders.
#[derive(Default)]
pub(super) struct Leases {
    holders: BTreeMap<(String, String), String>,
    candidates: BTreeSet<String>,
}

impl Leases {
    /// Judges one write.
    pub(super) fn judge(&mut self, record: &WriteRecord, found: &mut Vec<Violation>) {
        if record.resource == "leases" {
            self.observe(record);
            return;
        }
        let who = &*record.identity;
        let elected = self.candidates.contains(who);
        let binds = record.subresource == "binding" && !self.candidates.is_empty();
        if !elected && !binds || self.holders.values().any(|holder| holder == who) {
            return;
        }
        let holders: Vec<&str> = self.holders.values().map(String::as_str).collect();
        found.push(Violation {
            invariant: Invariant::I9,
            time_ms: record.time_ms,
            what: format!(
                "{who} wrote ({} {} {}/{} {}) while the lease was held by {:?}",
                record.verb,
                record.resource,
                record.namespace,
                record.name,
                record.subresource,
                holders.join(", ")
            ),
        });
    }

    fn observe(&mut self, record: &WriteRecord) {
        let Some(after) = record.after.as_ref().filter(|_| record.applied()) else { return };
        let key = (record.namespace.clone(), record.name.clone());
        if !record.exists {
            self.holders.remove(&key);
            return;
        }
        let holder = after["spec"]["holderIdentity"].as_str().unwrap_or("");
        if holder == &*record.identity {
            self.candidates.insert(holder.to_owned());
        }
        self.holders.insert(key, holder.to_owned());
    }
}
