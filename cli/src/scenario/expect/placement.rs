//! Expectations about where pods went, which were evicted, and what they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde_json::Value;

use super::Reading;
use crate::scenario::schema::{Expect, HyperNodeView, OneOrMany};
use crate::scenario::store::ObjectId;
use crate::scenario::verdict::Judgement;
use crate::scenario::world::World;

/// Judges the keys of this file.
pub fn judge(expect: &Expect, world: &World, reading: Reading<'_>, judgement: &mut Judgement) {
    if let Some(bind) = &expect.bind {
        if reading.recorded {
            exact_bind(bind, world, judgement);
        } else {
            some_binds(bind, world, judgement);
        }
    }
    for pod in expect.bound.iter().flatten().map(|name| pod_id(name)) {
        let node = world.node_of(&pod);
        judgement.expect(node.is_some(), Pod(&pod), "bound", missing(world, &pod));
    }
    for pod in expect.pending.iter().flatten().map(|name| pod_id(name)) {
        let (node, known) = (world.node_of(&pod), world.knows_pod(&pod));
        let got = node.map_or_else(|| missing(world, &pod), |node| format!("bound to {node}"));
        judgement.expect(node.is_none() && known, Pod(&pod), "never bound", got);
    }
    if let Some(count) = expect.bind_count {
        let binds = world.binds().len();
        judgement.expect(binds == count, "bindCount", count, binds);
    }
    evictions(expect, world, judgement);
    if let Some(pipelined) = &expect.pipelined {
        for (name, nodes) in pipelined {
            if reading.recorded {
                pipelined_group(name, nodes, world, judgement);
            } else {
                pipelined_pod(name, nodes, world, judgement);
            }
        }
    }
    if let Some(pods) = &expect.distinct_nodes {
        distinct_nodes(pods, world, judgement);
    }
    for group in expect.whole_groups.iter().flatten() {
        let bound = group.iter().filter(|name| world.node_of(&pod_id(name)).is_some()).count();
        let whole = bound == 0 || bound == group.len();
        let got = format!("{bound} of {} bound", group.len());
        judgement.expect(whole, format!("wholeGroups [{}]", group.join(", ")), "all or none", got);
    }
    for (group, counts) in expect.task_status_count.iter().flatten() {
        let found = task_statuses(group, world);
        for (status, count) in counts {
            let got = found.get(status.as_str()).copied().unwrap_or(0);
            judgement.expect(got == *count, format!("{status} pods of {group}"), count, got);
        }
    }
    if let Some(counts) = &expect.bind_counts_per_hyper_node {
        match reading.hyper_nodes {
            Some(view) => hyper_node_counts(counts, view, world, judgement),
            None => judgement.skip("bindCountsPerHyperNode without hyperNodeView"),
        }
    }
}

/// `name` in namespace default, or `namespace/name`.
pub fn pod_id(name: &str) -> ObjectId {
    match name.split_once('/') {
        Some((namespace, name)) => ObjectId::new("Pod", Some(namespace), name),
        None => ObjectId::new("Pod", None, name),
    }
}

/// Names a pod in a judgement.
struct Pod<'a>(&'a ObjectId);

impl Display for Pod<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pod {}", self.0.key())
    }
}

fn missing(world: &World, pod: &ObjectId) -> String {
    if world.knows_pod(pod) { "not bound".to_owned() } else { "no such pod".to_owned() }
}

fn some_binds(bind: &BTreeMap<String, OneOrMany>, world: &World, judgement: &mut Judgement) {
    if bind.is_empty() {
        judgement.expect(world.binds().is_empty(), "bind", "nothing bound", list_binds(world));
    }
    for (name, nodes) in bind {
        let pod = pod_id(name);
        let node = world.node_of(&pod);
        let got = node.map_or_else(|| missing(world, &pod), ToOwned::to_owned);
        judgement.expect(node.is_some_and(|node| nodes.allows(node)), Pod(&pod), nodes, got);
    }
}

fn exact_bind(bind: &BTreeMap<String, OneOrMany>, world: &World, judgement: &mut Judgement) {
    let expected: BTreeMap<ObjectId, &OneOrMany> =
        bind.iter().map(|(name, nodes)| (pod_id(name), nodes)).collect();
    let whole = expected.len() == world.binds().len()
        && world
            .binds()
            .iter()
            .all(|(pod, node)| expected.get(pod).is_some_and(|nodes| nodes.allows(node)));
    let wanted: Vec<String> =
        expected.iter().map(|(pod, nodes)| format!("{}: {nodes}", pod.key())).collect();
    let wanted = format!("exactly {{{}}}", wanted.join(", "));
    judgement.expect(whole, "bind", wanted, list_binds(world));
}

fn list_binds(world: &World) -> String {
    let mut binds: Vec<String> =
        world.binds().iter().map(|(pod, node)| format!("{}: {node}", pod.key())).collect();
    binds.sort();
    format!("{{{}}}", binds.join(", "))
}

fn evictions(expect: &Expect, world: &World, judgement: &mut Judgement) {
    let mut evicted: Vec<String> = world.evictions().iter().map(ObjectId::key).collect();
    evicted.sort();
    let got = || format!("[{}]", evicted.join(", "));
    if let Some(pods) = &expect.evict {
        let mut wanted: Vec<String> = pods.iter().map(|name| pod_id(name).key()).collect();
        wanted.sort();
        let expected = format!("[{}]", wanted.join(", "));
        judgement.expect(evicted == wanted, "evict", expected, got());
    }
    if let Some(count) = expect.evict_count {
        judgement.expect(evicted.len() == count, "evictCount", count, got());
    }
    if let Some(pods) = &expect.evict_within {
        let allowed: BTreeSet<String> = pods.iter().map(|name| pod_id(name).key()).collect();
        let within = evicted.iter().all(|pod| allowed.contains(pod));
        judgement.expect(within, "evictWithin", format!("only of [{}]", pods.join(", ")), got());
    }
}

fn pipelined_pod(name: &str, nodes: &OneOrMany, world: &World, judgement: &mut Judgement) {
    let pod = pod_id(name);
    let placements = world.placements();
    let placed = placements.get(&pod).filter(|placed| placed.pipelined);
    let got = placed.map_or("nowhere", |placed| &placed.node);
    let what = format!("pipelined {}", pod.key());
    judgement.expect(placed.is_some_and(|placed| nodes.allows(&placed.node)), what, nodes, got);
}

fn pipelined_group(name: &str, nodes: &OneOrMany, world: &World, judgement: &mut Judgement) {
    let members: BTreeSet<ObjectId> = members(name, world).into_iter().collect();
    let placements = world.placements();
    let found: Vec<&str> = placements
        .iter()
        .filter(|(pod, placed)| placed.pipelined && members.contains(pod))
        .map(|(_, placed)| &*placed.node)
        .collect();
    let holds = !found.is_empty() && found.iter().all(|node| nodes.allows(node));
    let what = format!("pipelined pods of {name}");
    judgement.expect(holds, what, format!("on {nodes}"), format!("on [{}]", found.join(", ")));
}

fn members(group: &str, world: &World) -> Vec<ObjectId> {
    let id = pod_id(group);
    let of_group = |(pod, object): &(&ObjectId, &Value)| {
        pod.namespace == id.namespace
            && object
                .pointer("/metadata/annotations")
                .and_then(|annotations| annotations.get(tephra_api::keys::GROUP_NAME))
                .and_then(Value::as_str)
                .is_some_and(|name| name == id.name)
    };
    world.store().of_kind("Pod").filter(of_group).map(|(pod, _)| pod.clone()).collect()
}

fn distinct_nodes(pods: &[String], world: &World, judgement: &mut Judgement) {
    let nodes: Vec<Option<&str>> = pods.iter().map(|name| world.node_of(&pod_id(name))).collect();
    let distinct: BTreeSet<&str> = nodes.iter().copied().flatten().collect();
    let got: Vec<&str> = nodes.iter().map(|node| node.unwrap_or("not bound")).collect();
    let what = format!("distinctNodes [{}]", pods.join(", "));
    let holds = distinct.len() == pods.len();
    judgement.expect(holds, what, "all bound, on different nodes", got.join(", "));
}

/// Counts the pods of a group by the status that a session sees.
fn task_statuses(group: &str, world: &World) -> BTreeMap<&'static str, usize> {
    let placements = world.placements();
    let mut counts = BTreeMap::new();
    for pod in members(group, world) {
        let Some(object) = world.store().get(&pod) else { continue };
        let has_node = object.pointer("/spec/nodeName").is_some_and(Value::is_string);
        let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
        let status = if world.just_bound().contains(&pod) {
            "Binding"
        } else if let Some(placed) = placements.get(&pod) {
            if placed.pipelined { "Pipelined" } else { "Allocated" }
        } else if object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
            "Releasing"
        } else {
            match (phase, has_node) {
                ("Succeeded", _) => "Succeeded",
                ("Failed", _) => "Failed",
                ("Running", _) => "Running",
                ("Pending", true) => "Bound",
                ("Pending", false) => "Pending",
                _ => "Unknown",
            }
        };
        *counts.entry(status).or_insert(0) += 1;
    }
    counts
}

fn hyper_node_counts(
    counts: &[usize],
    view: &HyperNodeView,
    world: &World,
    judgement: &mut Judgement,
) {
    let lowest = view.tiers.iter().min_by_key(|(tier, _)| tier.parse::<i64>().unwrap_or(i64::MAX));
    let names = lowest.map_or(&[][..], |(_, names)| names.as_slice());
    let mut found: Vec<usize> = names
        .iter()
        .filter_map(|name| view.members.get(name))
        .map(|nodes| world.binds().iter().filter(|(_, node)| nodes.contains(node)).count())
        .filter(|count| *count > 0)
        .collect();
    found.sort_unstable();
    let text = |counts: &[usize]| format!("{counts:?}");
    judgement.expect(found == counts, "bindCountsPerHyperNode", text(counts), text(&found));
}
