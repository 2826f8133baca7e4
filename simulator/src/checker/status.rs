//! I7: at rest, what is stored about PodGroups and queues equals a recount of the pods.

use super::amounts::Amounts;
use super::cluster::{Cluster, Key};
use super::objects::{COUNTED, Group, Pod};
use super::{Invariant, Violation};

/// Judges all statuses.
pub(super) fn judge(cluster: &Cluster<'_>, found: &mut Vec<Violation>) {
    let mut broken = |what| {
        found.push(Violation { invariant: Invariant::I7, time_ms: cluster.now_ms, what });
    };
    for (key, group) in &cluster.groups {
        if let Some(what) = group_differs(cluster, key, group) {
            broken(format!("PodGroup {}/{}: {what}", key.0, key.1));
        }
    }
    for (name, queue) in cluster.queues_now() {
        if let Some(what) = allocated_differs(&queue.allocated, &cluster.used_below(name)) {
            broken(format!("queue {name}: {what}"));
        }
        if cluster.has_controller {
            let count = |phase: &str| {
                let in_phase = |group: &&Group| group.queue == name && group.phase == phase;
                cluster.groups.values().filter(in_phase).count() as i64
            };
            let counts = COUNTED.map(count);
            if counts != queue.counts {
                let stored = queue.counts;
                broken(format!("queue {name} counts {stored:?} PodGroups, there are {counts:?}"));
            }
        }
    }
}

fn group_differs(cluster: &Cluster<'_>, key: &Key, group: &Group) -> Option<String> {
    let members: Vec<&Pod> = cluster.members(key).collect();
    let foreign = cluster.pods.values().any(|pod| {
        !cluster.is_ours(pod) && (pod.namespace.as_str(), pod.group.as_str()) == (&key.0, &key.1)
    });
    if foreign || group.exotic || members.iter().any(|pod| pod.deleting) {
        return None;
    }
    let in_phase = |phase: &str| members.iter().filter(|pod| pod.phase == phase).count();
    let bound = members.iter().filter(|pod| pod.occupies()).count();
    let (running, succeeded, failed) =
        (in_phase("Running"), in_phase("Succeeded"), in_phase("Failed"));
    let stored = [group.running, group.succeeded, group.failed];
    let counted = [running, succeeded, failed].map(|count| count as i64);
    if stored != counted {
        return Some(format!(
            "counts {stored:?} running, succeeded, failed; there are {counted:?}"
        ));
    }
    let ended = succeeded + failed;
    let scheduled = bound + ended;
    let phase = group.phase.as_str();
    let fits = if scheduled >= group.min_member && scheduled > 0 {
        if bound == 0 { phase == "Completed" } else { matches!(phase, "Running" | "Unknown") }
    } else if running > 0 {
        matches!(phase, "Unknown" | "Pending" | "Inqueue")
    } else {
        matches!(phase, "" | "Pending" | "Inqueue") || (members.is_empty() && phase == "Completed")
    };
    (!fits).then(|| {
        format!("phase {phase:?} with {bound} bound, {ended} ended, minimum {}", group.min_member)
    })
}

fn allocated_differs(stored: &Amounts, counted: &Amounts) -> Option<String> {
    let names: Vec<&String> = stored.0.keys().chain(counted.0.keys()).collect();
    let differs =
        |name: &&&String| name.as_str() != "pods" && stored.get(name) != counted.get(name);
    names.iter().find(differs).map(|name| {
        let (stored, counted) = (stored.get(name), counted.get(name));
        format!("{stored} {name} stored as allocated, {counted} counted")
    })
}
