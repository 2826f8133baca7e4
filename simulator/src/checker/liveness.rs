//! I6: at rest no pod waits that could be placed.
//!
//! A naive scan: for each PodGroup with waiting pods, would as many of them as it needs fit on the nodes as they are? If so
//! the scheduler should have placed them, unless a policy held them back. Three policies are allowed for, each by
//! a bound that is on the scheduler's side: the queue's capability and fair share, and the admission of PodGroups.

use super::amounts::Amounts;
use super::cluster::{Cluster, Key};
use super::objects::{Group, Pod, Queue};
use super::search::{Found, Space, fits};
use super::{Invariant, Violation};

/// Judges all that waits.
pub(super) fn judge(cluster: &Cluster<'_>, found: &mut Vec<Violation>) {
    let scan = Scan::new(cluster);
    let mut broken = |what| {
        found.push(Violation { invariant: Invariant::I6, time_ms: cluster.now_ms, what });
    };
    let waits = |key: &Key| cluster.members(key).any(Pod::waits) || cluster.is_down(key);
    let waiting = cluster.groups.keys().filter(|key| waits(key)).count();
    for (key, group) in cluster.groups.iter().filter(|(_, group)| !group.exotic) {
        if cluster.rules.keeps_room && waiting > 1 {
            continue;
        }
        if let Some(what) = scan.placeable(key, group) {
            broken(what);
        }
    }
    if cluster.has_controller {
        let orphans = cluster.pods.values().filter(|pod| cluster.is_ours(pod) && pod.waits());
        for pod in orphans.filter(|pod| pod.group.is_empty()) {
            broken(format!("{} waits and has no PodGroup", pod.title()));
        }
    }
}

struct Scan<'a> {
    cluster: &'a Cluster<'a>,
    spaces: Vec<Space<'a>>,
    /// Allocatable of the nodes that take pods.
    total: Amounts,
    /// What pods hold on them.
    used: Amounts,
}

impl<'a> Scan<'a> {
    fn new(cluster: &'a Cluster<'a>) -> Self {
        let (mut spaces, mut total, mut all_used) =
            (Vec::new(), Amounts::default(), Amounts::default());
        for name in cluster.nodes.keys() {
            let Some(node) = cluster.node_now(name) else { continue };
            let used = cluster.used_on(name);
            let mut free = node.allocatable.clone();
            free.add(&used, -1);
            if !node.unschedulable {
                total.add(&node.allocatable, 1);
            }
            all_used.add(&used, 1);
            spaces.push(Space { node, free });
        }
        Self { cluster, spaces, total, used: all_used }
    }

    /// Why pods of this PodGroup should have been placed, if they should.
    fn placeable(&self, key: &Key, group: &Group) -> Option<String> {
        let members: Vec<&Pod> = self.cluster.members(key).collect();
        let down = group.down.as_ref().filter(|down| !down.held).map(|down| &down.members);
        let waiting: Vec<&Pod> = members
            .iter()
            .copied()
            .chain(down.into_iter().flatten())
            .filter(|pod| pod.waits() && !pod.exotic)
            .collect();
        let bound = members
            .iter()
            .filter(|pod| !pod.node.is_empty() && pod.phase != "Failed" && !pod.deleting)
            .count();
        let need = group.min_member.saturating_sub(bound).max(1);
        if fits(&waiting, need, &self.spaces) != Found::Yes {
            return None;
        }
        let queue = self.cluster.queue_now(&group.queue).filter(|queue| queue.open)?;
        let mut more = Amounts::default();
        let largest = waiting.iter().fold(Amounts::default(), |most, it| most.or_more(&it.request));
        more.add(&largest, i128::try_from(need).ok()?);
        if !self.queue_permits(queue, &group.queue, &more) || !self.admission_permits(group) {
            return None;
        }
        let (namespace, name) = key;
        Some(format!(
            "PodGroup {namespace}/{name} ({}, queue {}) has {bound} of {} bound; {need} more of {} waiting \
             pods would fit",
            group.phase,
            group.queue,
            group.min_member,
            waiting.len()
        ))
    }

    /// Whether the queue may surely have that much more: within its capability, and within what water filling gives it at
    /// the least, which is its part by weight, or all that the others do not ask for.
    fn queue_permits(&self, queue: &Queue, name: &str, more: &Amounts) -> bool {
        if !self.cluster.rules.enforces_capability {
            return true;
        }
        if self.cluster.queues_now().any(|(_, queue)| !queue.guarantee.0.is_empty()) {
            return false;
        }
        let used = self.cluster.used_by(name);
        let asked = self.asked(|queue| queue != name);
        let weights: i128 = self
            .cluster
            .queues_now()
            .filter(|(name, _)| self.cluster.groups.values().any(|group| group.queue == *name))
            .map(|(_, queue)| queue.weight)
            .sum();
        more.names().all(|resource| {
            let wanted = used.get(resource) + more.get(resource);
            let total = self.total.get(resource);
            let part = total * queue.weight / weights.max(1);
            let share = part.max(total - asked.get(resource));
            wanted <= queue.limit(resource).unwrap_or(i128::MAX)
                && (resource == "pods" || wanted <= share)
        })
    }

    /// What the pods of some queues ask for, bound or not.
    fn asked(&self, of: impl Fn(&str) -> bool) -> Amounts {
        let mut asked = Amounts::default();
        for pod in self.cluster.pods.values() {
            let counts = self.cluster.is_ours(pod) && !pod.ended();
            if counts && self.cluster.queue_of(pod).is_some_and(&of) {
                asked.add(&pod.request, 1);
            }
        }
        asked
    }

    /// Whether a PodGroup is surely admitted: it is already, asks for nothing, or all that is admitted and waits, and
    /// itself, stay within 1.2 times the nodes, and within its queue.
    fn admission_permits(&self, group: &Group) -> bool {
        let Some(own) = group.min_resources.as_ref() else { return true };
        if !matches!(group.phase.as_str(), "" | "Pending") {
            return true;
        }
        let mut waiting = Amounts::default();
        for other in self.cluster.groups.values().filter(|other| other.phase == "Inqueue") {
            other.min_resources.iter().for_each(|min| waiting.add(min, 1));
        }
        let limit = self.cluster.queue_now(&group.queue);
        own.names().filter(|name| *name != "pods").all(|name| {
            let claimed = self.used.get(name) + waiting.get(name) + own.get(name);
            let cap = limit.and_then(|queue| queue.limit(name)).unwrap_or(i128::MAX);
            claimed * 10 <= self.total.get(name) * 12 && claimed <= cap.min(self.total.get(name))
        })
    }
}
