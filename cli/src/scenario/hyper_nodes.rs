//! Hypernodes of recorded scenarios. Most recordings have HyperNode objects; where a test set the membership of nodes
//! directly instead, or differently, objects that say the same are made from what it set.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::schema::HyperNodeView;

/// The objects that make the view true; `None` when the given ones do already.
pub fn objects(view: &HyperNodeView, given: &[Value]) -> Option<Vec<Value>> {
    let given: Vec<&Value> = given.iter().filter(|object| object["kind"] == "HyperNode").collect();
    let named = |name: &str| given.iter().find(|object| object["metadata"]["name"] == name);
    let mut tiers: Vec<(i64, &String)> = Vec::new();
    for (tier, names) in &view.tiers {
        tiers.extend(names.iter().map(|name| (tier.parse().unwrap_or(0), name)));
    }
    tiers.sort();
    let agrees = |&(tier, name): &(i64, &String)| {
        named(name).is_some_and(|object| object["spec"]["tier"] == tier)
    };
    if tiers.len() == given.len() && tiers.iter().all(agrees) {
        return None;
    }
    let nodes = |name: &String| -> BTreeSet<&String> {
        view.members.get(name).into_iter().flatten().collect()
    };
    let object = |at: usize| {
        let (tier, name) = tiers[at];
        let mut left = nodes(name);
        let mut members = Vec::new();
        // The largest lower ones first: what they hold need not be named again.
        for &(below, child) in tiers[..at].iter().rev() {
            let held = nodes(child);
            if below < tier && !held.is_empty() && held.is_subset(&left) {
                left.retain(|node| !held.contains(node));
                members.push(member("HyperNode", child));
            }
        }
        members.extend(left.into_iter().map(|node| member("Node", node)));
        let tier_name =
            named(name).map_or(Value::Null, |object| object["spec"]["tierName"].clone());
        json!({
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": name},
            "spec": {"tier": tier, "tierName": tier_name, "members": members},
        })
    };
    Some((0..tiers.len()).map(object).collect())
}

fn member(kind: &str, name: &str) -> Value {
    json!({"type": kind, "selector": {"exactMatch": {"name": name}}})
}
