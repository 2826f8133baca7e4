//! Hypernodes and sub-groups: which nodes a selector holds, what lies above a hypernode, which sub-group a pod is of.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use tephra_core::event::{Event, HyperNodeObject, Labels, NodeObject, PodGroupObject};
use tephra_core::state::State;
use tephra_core::state::hyper_nodes::{Limit, ROOT, selects};
use tephra_core::state::nodes::NodeIdentity;
use tephra_core::state::sub_jobs::{SubJobs, match_policy};
use tephra_scheduler::convert;

use super::{Answer, Counterpart};
use crate::functions::Call;

pub(super) const COUNTERPARTS: &[(&str, Counterpart)] = &[
    ("api.GetMembers", |call| {
        let object = hyper_node(json!({"members": [{
            "type": "Node",
            "selector": call.args["selector"],
        }]}))?;
        let selector = &object.members[0].selector;
        let nodes = call.args["nodes"].as_array().context("nodes")?;
        let held = nodes.iter().filter(|node| selects(selector, &identity(node)));
        answer(held.map(|node| node["metadata"]["name"].clone()).collect())
    }),
    ("api.HyperNodeInfoMap.GetAncestors", |call| {
        let state = tree_of(&call.args["receiver"])?;
        let tree = state.hyper_nodes.tree();
        let id = tree.get(text(call, "name")?);
        let above = id.into_iter().flat_map(|id| tree.ancestors(id)).filter(|&id| id != ROOT);
        answer(above.map(|id| json!(&*tree[id].name)).collect())
    }),
    ("api.HyperNodeInfoMap.GetLCAHyperNode", |call| {
        let state = tree_of(&call.args["receiver"])?;
        let tree = state.hyper_nodes.tree();
        let (a, b) = (text(call, "hypernode")?, text(call, "jobHyperNode")?);
        let common = match (tree.get(a), tree.get(b)) {
            (Some(a), Some(b)) => Some(tree.common(a, b)).filter(|&id| id != ROOT),
            // Volcano compares names that it does not know.
            _ if a == b => return answer(json!(a)),
            _ => None,
        };
        answer(json!(common.map_or("", |id| &*tree[id].name)))
    }),
    ("util.FindHyperNodeForNode", |call| {
        let mut state = State::new("default");
        let tiers = call.args["hyperNodesSetByTier"].as_object().cloned().unwrap_or_default();
        // Only tiers that the list of tiers names are looked at.
        let listed = call.args["hyperNodesTiers"].as_array().cloned().unwrap_or_default();
        let counts = |tier: &str| listed.iter().any(|it| it.as_i64() == tier.parse().ok());
        for (tier, names) in tiers.iter().filter(|(tier, _)| counts(tier)) {
            for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
                let nodes = call.args["hyperNodes"][name].as_array().cloned().unwrap_or_default();
                let members: Vec<Value> = nodes.iter().map(|node| member(&node["Name"])).collect();
                for node in &nodes {
                    state.apply(node_event(node["Name"].as_str().unwrap_or_default()));
                }
                let mut object = hyper_node(json!({"members": members}))?;
                object.name = name.to_owned();
                object.tier = tier.parse()?;
                state.apply(Event::HyperNode(object));
            }
        }
        state.hyper_nodes.refresh(&state.nodes);
        let lowest = state.nodes.get(text(call, "nodeName")?);
        let lowest = lowest.and_then(|node| state.hyper_nodes.tree().lowest(node));
        let name = lowest.map_or("", |id| &*state.hyper_nodes.tree()[id].name);
        answer(json!(name))
    }),
    ("api.getSubJobMatchValues", |call| {
        let group = group(json!({"subGroupPolicy": [call.args["policy"]]}))?;
        let labels = labels(&call.args["pod"]["metadata"]["labels"]);
        let found = match_policy(&group.sub_groups, &labels);
        answer(found.map_or(Value::Null, |(_, values)| json!(values)))
    }),
    ("api.SubJobInfo.IsHardTopologyMode", |call| {
        let topology = &call.args["receiver"]["NetworkTopology"];
        let tier = topology["highestTierAllowed"].as_i64().unwrap_or(0);
        answer(json!([matches!(limit_of(topology)?, Limit::UpTo { soft: false, .. }), tier]))
    }),
    ("api.SubJobInfo.IsSoftTopologyMode", |call| {
        let group = group(json!({"networkTopology": call.args["receiver"]["NetworkTopology"]}))?;
        answer(json!(group.topology.is_some_and(|topology| !topology.hard)))
    }),
    ("api.getSubJobID", |call| {
        let values: Vec<String> = serde_json::from_value(call.args["matchValues"].clone())?;
        let pairs = values.into_iter().enumerate().map(|(at, value)| (format!("key-{at}"), value));
        let labels: Labels = pairs.collect();
        let keys: Vec<&String> = labels.iter().map(|(key, _)| key).collect();
        let policy = json!({"name": call.args["policy"], "matchLabelKeys": keys});
        let mut sub_jobs = SubJobs::new(group(json!({"subGroupPolicy": [policy]}))?.sub_groups);
        let sub_job = sub_jobs.assign(&labels);
        answer(json!(format!("{}/{}", text(call, "job")?, sub_jobs.name(sub_job))))
    }),
];

fn answer(result: Value) -> anyhow::Result<Answer> {
    Ok(Answer { result, ..Answer::default() })
}

fn text<'c>(call: &'c Call, name: &str) -> anyhow::Result<&'c str> {
    call.args[name].as_str().with_context(|| name.to_owned())
}

fn labels(value: &Value) -> Labels {
    let map: BTreeMap<String, String> = serde_json::from_value(value.clone()).unwrap_or_default();
    map.into_iter().collect()
}

fn identity(node: &Value) -> NodeIdentity {
    NodeIdentity {
        name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
        known: true,
        labels: Arc::new(labels(&node["metadata"]["labels"])),
        ..NodeIdentity::default()
    }
}

fn member(name: &Value) -> Value {
    json!({"type": "Node", "selector": {"exactMatch": {"name": name}}})
}

fn node_event(name: &str) -> Event {
    Event::Node(NodeObject { name: name.to_owned(), ..Default::default() })
}

fn hyper_node(spec: Value) -> anyhow::Result<HyperNodeObject> {
    Ok(convert::hyper_node(&json!({"metadata": {"name": "h"}, "spec": spec}))?)
}

fn group(spec: Value) -> anyhow::Result<PodGroupObject> {
    Ok(convert::pod_group(&json!({"metadata": {"name": "g"}, "spec": spec}))?)
}

/// The tree of a recorded map of hypernodes.
fn tree_of(map: &Value) -> anyhow::Result<State> {
    let mut state = State::new("default");
    let rows = map.as_object().context("hypernodes")?;
    for row in rows.values() {
        state.apply(Event::HyperNode(convert::hyper_node(&row["HyperNode"])?));
    }
    state.hyper_nodes.refresh(&state.nodes);
    Ok(state)
}

/// What the topology of a recorded sub-group means among hypernodes of which nothing is known.
fn limit_of(topology: &Value) -> anyhow::Result<Limit> {
    let group = group(json!({"networkTopology": topology}))?;
    let mut state = State::new("default");
    state.hyper_nodes.refresh(&state.nodes);
    Ok(state.hyper_nodes.tree().limit(group.topology.as_ref()))
}
