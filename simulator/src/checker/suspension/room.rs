//! Room that is freed for one gang, or held for one that comes back, goes to nobody else.
//!
//! A promise is judged without knowing which nodes the scheduler had in mind: if the gang would have had room until a binding (on what
//! is free and what its victims leave) and has none after it, whoever was bound has slipped in. Where the world has changed since
//! the promise (nodes, members, who leads) nothing is claimed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::seen::{Intent, RESUME, Record, SUSPEND, SUSPENDED, annotation};
use super::{Change, Cluster, Suspensions};
use crate::checker::cluster::Key;
use crate::checker::objects::Pod;
use crate::checker::search::{Found, Space, fits};

/// A binding that was decided before a promise may land so much later.
const UNDER_WAY_MS: i64 = 15_000;

/// Promises that stand.
#[derive(Default)]
pub(super) struct Claims {
    /// By the id of the suspension that makes the room.
    freed: BTreeMap<String, Freed>,
    /// By the gang that comes back.
    held: BTreeMap<Key, Held>,
}

/// Room that a victim leaves.
struct Freed {
    victim: Key,
    by: Key,
    since_ms: i64,
}

/// Room for a gang that comes back.
struct Held {
    members: Vec<Pod>,
    /// With so many it may start; the rest of an elastic gang waits like others.
    min: usize,
    since_ms: i64,
    /// Who promised it: a scheduler that starts knows nothing of it any more.
    scheduler: String,
}

impl Suspensions {
    /// Takes in what a write of a PodGroup promises or ends.
    pub(super) fn note_claims(&mut self, change: &Change<'_>) {
        let (key, now_ms) = (change.key(), change.record.time_ms);
        let intent = change.after.and_then(Intent::of);
        let record = change.after.and_then(Record::of);
        if let Some(intent) = &intent {
            self.claims.freed.entry(intent.id.clone()).or_insert_with(|| Freed {
                victim: key.clone(),
                by: intent.by.clone(),
                since_ms: now_ms,
            });
        }
        let before = change.before.and_then(Intent::of);
        if let Some(before) = before.filter(|_| intent.is_none() && record.is_none()) {
            // Withdrawn, or its gang is gone: the room is free if it was freed at all.
            self.claims.freed.remove(&before.id);
        }
        let (was, is) = change.text(RESUME);
        if let (Some(record), true) = (&record, was != is && is.is_some()) {
            let gang = (key.0.clone(), record.group.clone());
            let held = Held {
                members: record.members.clone(),
                min: change.after.map_or(0, min_member),
                since_ms: now_ms,
                scheduler: change.record.identity.to_string(),
            };
            self.claims.held.insert(gang, held);
        } else if record.is_some() && is.is_none() && was.is_some() {
            self.claims.held.remove(&key);
        }
    }

    /// A scheduler binds a pod; `cluster` has taken it in.
    pub(super) fn judge_place(
        &mut self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let Some(pod) = cluster.pods.get(&change.record.uid).filter(|pod| cluster.is_ours(pod))
        else {
            return;
        };
        let gang = (pod.namespace.clone(), pod.group.clone());
        self.judge_down(cluster, &gang, broken);
        let old = |since_ms: i64| cluster.now_ms - since_ms > UNDER_WAY_MS;
        for (id, freed) in &self.claims.freed {
            if freed.by == gang || !old(freed.since_ms) || disturbed(cluster, freed.since_ms) {
                continue;
            }
            let Some(group) = cluster.groups.get(&freed.by) else { continue };
            let members: Vec<&Pod> = cluster.members(&freed.by).collect();
            let fresh = members.iter().any(|pod| pod.waits() && pod.created_ms >= freed.since_ms);
            let bound = members.iter().filter(|pod| pod.occupies() || pod.ended()).count();
            let need = group.min_member.saturating_sub(bound);
            // A gang that is down itself waits with the pods of its record.
            let down = group.down.as_ref().filter(|down| !down.held).map(|down| &down.members);
            let waiting: Vec<&Pod> = members
                .into_iter()
                .filter(|pod| pod.waits())
                .chain(down.into_iter().flatten())
                .collect();
            if fresh || need == 0 || waiting.len() < need {
                continue;
            }
            let leaves = |other: &Pod| {
                other.deleting
                    || (&other.namespace, &other.group) == (&freed.victim.0, &freed.victim.1)
            };
            if takes_room(cluster, pod, &waiting, need, leaves) {
                broken.push(format!(
                    "slips into the room that {} frees for {} ({id}): {need} of its pods had room",
                    freed.victim.1, freed.by.1
                ));
            }
        }
        for (returning, held) in &self.claims.held {
            let lasts = cluster.now_ms - held.since_ms < 300_000;
            if *returning == gang
                || !lasts
                || !old(held.since_ms)
                || disturbed(cluster, held.since_ms)
                || held.scheduler != *change.record.identity
            {
                continue;
            }
            let since = |other: &&Pod| other.bound_ms >= held.since_ms && !other.node.is_empty();
            let back = cluster.members(returning).filter(since).count();
            let gone = cluster.gone.iter().any(|(at, other)| {
                *at >= held.since_ms
                    && (&other.namespace, &other.group) == (&returning.0, &returning.1)
            });
            let need = held.min.min(held.members.len()).saturating_sub(back);
            let waiting: Vec<&Pod> = held.members.iter().collect();
            if gone || need == 0 {
                continue;
            }
            if takes_room(cluster, pod, &waiting, need, |other| other.deleting) {
                broken.push(format!(
                    "slips into the room that is held for {}: {need} pods had room",
                    returning.1
                ));
            }
        }
    }

    /// A gang that is asked to go, or is down, gets no further pods bound.
    fn judge_down(&self, cluster: &Cluster<'_>, gang: &Key, broken: &mut Vec<String>) {
        let known = |key: &Key, name| self.is_known(cluster, key, name);
        if let Some((key, record)) = self.waiting_for(gang) {
            let group = self.group(&key);
            let resumed = group.and_then(|group| annotation(group, RESUME)).is_some();
            if !resumed && known(&key, RESUME) && known(&key, SUSPENDED) {
                broken.push(format!("is bound although its gang is down ({})", record.id));
            }
        } else if let Some(intent) = self.intent(gang).filter(|_| known(gang, SUSPEND)) {
            broken.push(format!("is bound although its gang is asked to go ({})", intent.id));
        }
    }
}

fn min_member(group: &Value) -> usize {
    usize::try_from(group["spec"]["minMember"].as_u64().unwrap_or(0)).unwrap_or(0)
}

/// Nodes changed or foreign pods came since a promise, or shortly before it.
fn disturbed(cluster: &Cluster<'_>, since_ms: i64) -> bool {
    let since_ms = since_ms - cluster.rules.staleness_ms;
    let mut later = cluster.nodes.values().flat_map(|versions| versions.iter().skip(1));
    later.any(|version| version.since_ms >= since_ms)
        || cluster.pods.values().any(|pod| !cluster.is_ours(pod) && pod.bound_ms >= since_ms)
}

/// `need` of `waiting` had room until this pod was bound, and have none any more.
fn takes_room(
    cluster: &Cluster<'_>,
    bound: &Pod,
    waiting: &[&Pod],
    need: usize,
    leaves: impl Fn(&Pod) -> bool,
) -> bool {
    let mut spaces: Vec<Space<'_>> = Vec::new();
    let mut places: Vec<&str> = Vec::new();
    for name in cluster.nodes.keys() {
        let Some(node) = cluster.node_now(name) else { continue };
        let mut free = node.allocatable.clone();
        for pod in cluster.pods.values().filter(|pod| pod.occupies() && pod.node == *name) {
            if !leaves(pod) {
                free.add(&pod.request, -1);
            }
        }
        spaces.push(Space { node, free });
        places.push(name);
    }
    if fits(waiting, need, &spaces) != Found::No {
        return false;
    }
    for (space, name) in spaces.iter_mut().zip(places) {
        if name == bound.node {
            space.free.add(&bound.request, 1);
        }
    }
    fits(waiting, need, &spaces) == Found::Yes
}
