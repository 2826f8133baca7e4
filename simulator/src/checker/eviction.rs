//! I5: whom the scheduler evicts may be evicted, and somebody gains by it.
//!
//! A delete of a pod is an eviction when it comes from somebody who binds pods. At that moment a gang must wait, or have
//! waited a moment ago, that may ask for the victim's room: of a higher priority in the same queue, or of another queue.
//! At rest no gang that lost members to evictions, and to nothing else, is left with some of its minimum.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::{Cluster, Key};
use super::objects::Pod;
use super::{Invariant, Violation};
use crate::history::WriteRecord;

/// Who evicts, and who was evicted.
#[derive(Default)]
pub(super) struct Evictions {
    schedulers: BTreeSet<String>,
    evicted: BTreeMap<Key, BTreeSet<String>>,
}

impl Evictions {
    /// Judges one write; `cluster` has taken it in, `before` is the pod as it was until then.
    pub(super) fn judge(
        &mut self,
        cluster: &Cluster<'_>,
        before: Option<&Pod>,
        record: &WriteRecord,
        found: &mut Vec<Violation>,
    ) {
        if record.resource != "pods" || !record.applied() {
            return;
        }
        if record.subresource == "binding" {
            self.schedulers.insert(record.identity.to_string());
        }
        let evicts = record.verb == "delete" && self.schedulers.contains(&*record.identity);
        let Some(victim) = before.filter(|pod| evicts && !pod.deleting) else { return };
        let key = (victim.namespace.clone(), victim.group.clone());
        self.evicted.entry(key).or_default().insert(record.uid.clone());
        let mut broken = |why: &str| {
            let what = format!("{} was evicted, but {why}", victim.title());
            found.push(Violation { invariant: Invariant::I5, time_ms: record.time_ms, what });
        };
        if !victim.preemptable {
            broken("it says that it may not be");
        }
        if !cluster.is_ours(victim) || victim.group.is_empty() {
            broken("it is not ours");
        }
        let news = cluster.gone.iter().filter(|(at, _)| !cluster.is_known(*at));
        let waits = |pod: &&Pod| {
            cluster.is_ours(pod) && (pod.waits() || (pod.node.is_empty() && pod.deleting))
        };
        let mut waiting = cluster.pods.values().chain(news.map(|(_, pod)| pod)).filter(waits);
        if !waiting.any(|pod| may_ask(cluster, pod, victim)) {
            broken("nobody waits who may ask for its room");
        }
    }

    /// Judges all gangs at rest.
    pub(super) fn judge_rest(&self, cluster: &Cluster<'_>, found: &mut Vec<Violation>) {
        for (key, evicted) in &self.evicted {
            let Some(group) = cluster.groups.get(key).filter(|group| !group.exotic) else {
                continue;
            };
            let lost = |uid: &&str| !evicted.contains(*uid);
            let gone = cluster
                .gone
                .iter()
                .filter(|(_, pod)| (&pod.namespace, &pod.group) == (&key.0, &key.1));
            let otherwise = gone.map(|(_, pod)| pod.uid.as_str()).filter(lost).count() > 0
                || cluster.members(key).any(|pod| pod.phase == "Failed" || pod.deleting)
                || cluster.group_changed_ms.contains_key(key);
            let bound = cluster.members(key).filter(|pod| !pod.node.is_empty()).count();
            let runs = cluster.members(key).any(Pod::occupies);
            if otherwise || !runs || bound >= group.min_member {
                continue;
            }
            let (namespace, name) = key;
            found.push(Violation {
                invariant: Invariant::I5,
                time_ms: cluster.now_ms,
                what: format!(
                    "gang {namespace}/{name} lost {} pods to evictions and is left with {bound} of {}",
                    evicted.len(),
                    group.min_member
                ),
            });
        }
    }
}

/// The queues and priorities allow a waiting pod to ask for a victim's room.
fn may_ask(cluster: &Cluster<'_>, pod: &Pod, victim: &Pod) -> bool {
    let group_of = |pod: &Pod| cluster.groups.get(&(pod.namespace.clone(), pod.group.clone()));
    match (group_of(pod), group_of(victim)) {
        (Some(by), Some(of)) if by.queue == of.queue => {
            cluster.priority(&by.priority_class) > cluster.priority(&of.priority_class)
        }
        // What is no longer there cannot be judged.
        _ => true,
    }
}
