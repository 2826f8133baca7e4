//! I3: a gang starts only when its minimum has room at one time, and is not left half bound.
//!
//! At the first binding of a PodGroup as many further members as its minimum needs must fit on the nodes as they are
//! then, whichever nodes the scheduler had in mind; the search is exact, and where it would take too long nothing
//! is claimed. At rest a gang has none or at least its minimum bound, unless the world took something away: members or
//! nodes went after the gang had begun, or a foreign pod came. What can be placed then is a matter of I6.

use super::amounts::Amounts;
use super::cluster::{Cluster, Key};
use super::objects::{Node, Pod};
use super::search::{Found, Space, fits};
use super::{Invariant, Violation};
use crate::history::WriteRecord;

/// Judges a binding that may be the first of its gang; `cluster` has taken it in.
pub(super) fn judge_start(cluster: &Cluster<'_>, record: &WriteRecord, found: &mut Vec<Violation>) {
    let Some(pod) = cluster.pods.get(&record.uid).filter(|pod| cluster.is_ours(pod)) else {
        return;
    };
    let key: Key = (pod.namespace.clone(), pod.group.clone());
    let Some(group) = cluster.groups.get(&key).filter(|group| !group.exotic) else { return };
    let changed = cluster.group_changed_ms.get(&key);
    // Members that went a moment ago may still be counted, those that have done their work among them.
    let left = || {
        let news = cluster.gone.iter().filter(|(at, _)| !cluster.is_known(*at));
        news.map(|(_, pod)| pod).filter(|pod| pod.namespace == key.0 && pod.group == key.1)
    };
    let bound = |pod: &&Pod| !pod.node.is_empty() && pod.phase != "Failed";
    let first = cluster.members(&key).filter(|member| !member.node.is_empty()).count() == 1
        && !left().any(|pod| bound(&pod));
    if !first || group.min_member < 2 || changed.is_some_and(|&at| !cluster.is_known(at)) {
        return;
    }
    let mut others: Vec<&Pod> = left().filter(|pod| pod.waits()).collect();
    others.extend(cluster.members(&key).filter(|member| member.waits()));
    let need = group.min_member - 1;
    let nodes: Vec<(&str, Node)> = cluster
        .nodes
        .iter()
        .filter_map(|(name, versions)| {
            Some((name.as_str(), kindest(cluster.believable(versions))?))
        })
        .collect();
    let spaces: Vec<Space<'_>> = nodes
        .iter()
        .map(|(name, node)| {
            let mut free = node.allocatable.clone();
            free.add(&cluster.used_on(name), -1);
            Space { node, free }
        })
        .collect();
    if fits(&others, need, &spaces) == Found::No {
        let (namespace, name) = &key;
        found.push(Violation {
            invariant: Invariant::I3,
            time_ms: record.time_ms,
            what: format!(
                "gang {namespace}/{name} was begun, but {need} more of its {} waiting pods do not fit",
                others.len()
            ),
        });
    }
}

/// The best that could be believed of a node.
fn kindest<'a>(versions: impl Iterator<Item = Option<&'a Node>>) -> Option<Node> {
    let versions: Vec<&Node> = versions.flatten().collect();
    let taints = |node: &Node| node.taints.as_array().map_or(0, Vec::len);
    let kindest = *versions.iter().min_by_key(|node| (node.unschedulable, taints(node)))?;
    let most = versions.iter().fold(Amounts::default(), |most, it| most.or_more(&it.allocatable));
    Some(Node { allocatable: most, ..kindest.clone() })
}

/// Judges all gangs at rest.
pub(super) fn judge_rest(cluster: &Cluster<'_>, found: &mut Vec<Violation>) {
    for (key, group) in cluster.groups.iter().filter(|(_, group)| group.min_member > 1) {
        let bound: Vec<&Pod> = cluster
            .members(key)
            .filter(|pod| !pod.node.is_empty() && pod.phase != "Failed")
            .collect();
        let waiting = cluster.members(key).filter(|pod| pod.waits()).count();
        let min = group.min_member;
        if bound.is_empty() || bound.len() >= min || bound.len() + waiting < min {
            continue;
        }
        let was_whole = cluster.most_bound.get(key).is_some_and(|&most| most >= min);
        let begun_ms = bound.iter().map(|pod| pod.bound_ms).min().unwrap_or(0);
        if was_whole || disturbed(cluster, key, begun_ms) {
            continue;
        }
        let (namespace, name) = key;
        found.push(Violation {
            invariant: Invariant::I3,
            time_ms: cluster.now_ms,
            what: format!(
                "gang {namespace}/{name} is left with {} of {min} pods bound, {waiting} waiting",
                bound.len()
            ),
        });
    }
}

/// Whether the world took something from a gang that began at `begun_ms`.
fn disturbed(cluster: &Cluster<'_>, key: &Key, begun_ms: i64) -> bool {
    let since = begun_ms - cluster.rules.staleness_ms;
    // The first version of a node is a gain.
    let mut later = cluster.nodes.values().flat_map(|versions| versions.iter().skip(1));
    let nodes = later.any(|version| version.since_ms >= since);
    let members = cluster.gone.iter().any(|(at, pod)| {
        *at >= since && (pod.namespace.as_str(), pod.group.as_str()) == (&key.0, &key.1)
    });
    let foreign = cluster.pods.values().any(|pod| !cluster.is_ours(pod) && pod.bound_ms >= since);
    let group = cluster.group_changed_ms.get(key).is_some_and(|&at| at >= since);
    nodes || members || foreign || group
}
