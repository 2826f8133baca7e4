//! Judges each binding when it lands: I1 (once, by uid), I2 (room on the node), I4 (room in the queue).

use std::collections::BTreeMap;

use super::admits::admits;
use super::cluster::Cluster;
use super::objects::Pod;
use super::{Invariant, Violation};
use crate::history::WriteRecord;

/// Bindings so far.
#[derive(Default)]
pub(super) struct Binds {
    /// Accepted bindings by uid: how many, and who was told of one.
    accepted: BTreeMap<String, (usize, Vec<String>)>,
}

impl Binds {
    /// Judges a binding request; `cluster` has taken it in.
    pub(super) fn judge(
        &mut self,
        cluster: &Cluster<'_>,
        record: &WriteRecord,
        found: &mut Vec<Violation>,
    ) {
        let mut broken = |invariant, what| {
            found.push(Violation { invariant, time_ms: record.time_ms, what });
        };
        let title = format!("pod {}/{}", record.namespace, record.name);
        let uid = record.body["metadata"]["uid"].as_str().unwrap_or("");
        if uid.is_empty() {
            broken(Invariant::I1, format!("{title}: a binding names no uid"));
        }
        let (count, told) = self.accepted.entry(uid.to_owned()).or_default();
        if told.iter().any(|who| *who == *record.identity) {
            let who = &record.identity;
            broken(Invariant::I1, format!("{title}: {who} knew it bound and binds it again"));
        }
        if !record.applied() {
            return;
        }
        *count += 1;
        if *count > 1 {
            broken(Invariant::I1, format!("{title} was bound {count} times"));
        }
        if record.answered {
            told.push(record.identity.to_string());
        }
        let Some(pod) = cluster.pods.get(&record.uid).filter(|pod| cluster.is_ours(pod)) else {
            return;
        };
        if let Err(why) = node_has_room(cluster, pod) {
            let node = &pod.node;
            broken(Invariant::I2, format!("{title} was bound to node {node}, but {why}"));
        }
        if cluster.rules.enforces_capability
            && let Err(why) = queue_has_room(cluster, pod)
        {
            broken(Invariant::I4, format!("{title} was bound, but {why}"));
        }
    }
}

/// The pod, bound already, fits with all others into some version of its node that could be believed in.
fn node_has_room(cluster: &Cluster<'_>, pod: &Pod) -> Result<(), String> {
    let versions = cluster.nodes.get(&pod.node).ok_or("there is no such node")?;
    let used = cluster.used_on(&pod.node);
    let mut trouble = None;
    for node in cluster.believable(versions) {
        let verdict = match node {
            None => Err("it does not exist any more".to_owned()),
            Some(node) => admits(node, pod).and_then(|()| {
                let over =
                    pod.request.names().find(|&name| used.get(name) > node.allocatable.get(name));
                over.map_or(Ok(()), |name| {
                    let (used, all) = (used.get(name), node.allocatable.get(name));
                    Err(format!("{used} of {all} {name} are used with it"))
                })
            }),
        };
        match verdict {
            Ok(()) => return Ok(()),
            Err(why) => trouble = trouble.or(Some(why)),
        }
    }
    trouble.map_or(Ok(()), Err)
}

fn queue_has_room(cluster: &Cluster<'_>, pod: &Pod) -> Result<(), String> {
    let Some(name) = cluster.queue_of(pod) else { return Ok(()) };
    let versions = cluster.believable_queues(name);
    let used = cluster.used_by(name);
    let over = |queue: &super::objects::Queue| {
        pod.request.names().find_map(|resource| {
            let (limit, used) = (queue.limit(resource)?, used.get(resource));
            (used > limit).then(|| {
                format!("queue {name} has {used} {resource} with it, its limit is {limit}")
            })
        })
    };
    let troubles: Option<Vec<String>> = versions.into_iter().map(over).collect();
    match troubles.and_then(|mut troubles| troubles.pop()) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}
