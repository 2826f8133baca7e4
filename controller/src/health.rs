//! Whether the controllers know the cluster, as the health endpoints show it: ready are a standby and a leader whose
//! running controllers have all seen a full list of what they watch.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tephra_process::serve::Checks;

/// Which parts are ready. Cheap to clone; all clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, bool>>>);

impl Readiness {
    /// Adds a part that is not ready yet.
    pub(crate) fn expect(&self, part: &'static str) {
        self.0.lock().entry(part).or_insert(false);
    }

    /// Marks a part as ready.
    pub(crate) fn mark(&self, part: &'static str) {
        self.0.lock().insert(part, true);
    }
}

impl Checks for Readiness {
    /// There is no state that only a restart repairs: calls that fail are tried again.
    fn live(&self) -> bool {
        true
    }

    /// A standby expects nothing.
    fn ready(&self) -> bool {
        self.0.lock().values().all(|ready| *ready)
    }

    fn verbose(&self) -> String {
        let parts = self.0.lock();
        if parts.is_empty() {
            return "[+]standby ok\n".to_owned();
        }
        let line = |(part, ready): (&&str, &bool)| match ready {
            true => format!("[+]{part} ok\n"),
            false => format!("[-]{part} not synced\n"),
        };
        parts.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_ready_when_every_part_is_and_names_those_that_are_not() {
        let readiness = Readiness::default();
        readiness.expect("pg-controller");
        readiness.expect("queue-controller");
        readiness.mark("queue-controller");
        assert!(!readiness.ready());
        assert_eq!(readiness.verbose(), "[-]pg-controller not synced\n[+]queue-controller ok\n");
        readiness.mark("pg-controller");
        assert!(readiness.ready());
    }

    #[test]
    fn a_standby_is_ready() {
        assert!(Readiness::default().ready());
        assert_eq!(Readiness::default().verbose(), "[+]standby ok\n");
    }
}
