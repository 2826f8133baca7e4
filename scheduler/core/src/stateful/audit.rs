//! Recounts everything from the pods, nodes and namespaces at hand and compares it with the live counters
//! (invariant I7). For tests, fault simulation and support; it costs a pass over everything per question.

use std::collections::BTreeMap;

use super::StatefulState;
use super::topology::{DomainCounts, KeyId};

impl StatefulState {
    /// Differences between the live counters and a recount, in words; empty when all is well.
    pub fn audit(&self) -> Vec<String> {
        let live = self.content();
        let recount = self.recount().content();
        let mut findings = Vec::new();
        for (what, expected) in &recount {
            let counted = live.get(what).map_or("nothing", String::as_str);
            if counted != expected {
                findings.push(format!("{what}: counted {counted}, expected {expected}"));
            }
        }
        for (what, counted) in live.iter().filter(|(what, _)| !recount.contains_key(*what)) {
            findings.push(format!("{what}: counted {counted}, expected nothing"));
        }
        findings
    }

    fn recount(&self) -> Self {
        let mut fresh = Self::default();
        for (name, labels) in self.namespaces.iter() {
            fresh.set_namespace(name, labels);
        }
        for (slot, node) in self.topology.nodes() {
            fresh.set_node(slot, &node.name, &node.labels, &node.taints);
        }
        for (task, pod) in self.pods.iter() {
            fresh.add_pod(task, pod);
        }
        for standing in self.standings.iter() {
            fresh.resolve(standing.asker.clone());
        }
        fresh
    }

    /// Every count that is not 0, under a name that does not depend on the order of events.
    pub(super) fn content(&self) -> BTreeMap<String, String> {
        let mut content = BTreeMap::new();
        for slot in self.ports.nodes() {
            content.insert(format!("ports of slot {slot}"), format!("{:?}", self.ports.on(slot)));
        }
        for (_, owned) in self.owned.iter().filter(|(_, owned)| owned.owners() > 0) {
            let key = self.topology.key_name(owned.key());
            let counts = self.texts(owned.key(), owned.counts());
            content.insert(
                format!("owners of {:?} {:?} by {key}", owned.kind(), owned.term()),
                format!("{} {counts:?}", owned.owners()),
            );
        }
        for (_, tally) in self.tallies.iter() {
            let spec = tally.spec();
            for &key in &spec.keys {
                let counts = tally.counts(key).map(|counts| self.texts(key, counts));
                content.insert(
                    format!("pods of {:?} by {}", spec.terms, self.topology.key_name(key)),
                    format!("{counts:?}"),
                );
            }
            if spec.spread {
                let by_node: BTreeMap<u32, i64> = tally.nodes().collect();
                content.insert(format!("pods of {:?} by slot", spec.terms), format!("{by_node:?}"));
            } else {
                let mut keys: Vec<&str> =
                    spec.keys.iter().map(|&key| self.topology.key_name(key)).collect();
                keys.sort_unstable();
                content.insert(
                    format!("pods of {:?} in any of {keys:?}", spec.terms),
                    tally.anywhere().to_string(),
                );
            }
        }
        for (_, group) in self.groups.iter() {
            for at in 0..group.spec().constraints().len() {
                let count = group.count_of(at);
                content.insert(
                    format!("spread {at} of {:?}", group.spec()),
                    format!(
                        "{:?}, {} domains, minimum {:?}",
                        self.texts(count.key, count.pods),
                        count.domains,
                        count.minimum
                    ),
                );
            }
        }
        content
    }

    fn texts(&self, key: KeyId, counts: &DomainCounts) -> BTreeMap<&str, i64> {
        counts.nonzero().map(|(value, count)| (self.topology.text(key, value), count)).collect()
    }
}
