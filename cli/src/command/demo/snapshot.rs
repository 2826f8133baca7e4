//! The state of the sample teams at one moment, read from the API server.

use std::collections::BTreeMap;

use serde_json::Value;
use tephra_api::quantity::Quantity;
use tephra_simulator::ApiServer;

use super::samples::{GPU, LABEL, TEAMS};

/// Figures of one team: of everything in its namespace, whether the demo submitted it or somebody with kubectl.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Team {
    /// Pods of the demo's own gangs.
    pub(super) samples: usize,
    /// Those of them that have succeeded.
    pub(super) samples_done: usize,
    pub(super) pods: usize,
    pub(super) bound: usize,
    pub(super) running: usize,
    pub(super) done: usize,
    pub(super) gangs: usize,
    /// Gangs of which at least the minimum is or was bound.
    pub(super) whole: usize,
    /// Percent of the cluster's GPUs that its pods hold.
    pub(super) share: usize,
    /// Why its first waiting gang waits, from the PodGroup's condition.
    pub(super) why: String,
}

impl Team {
    /// Pods without a node.
    pub(super) fn waiting(&self) -> usize {
        self.pods - self.bound
    }
}

/// State of the samples at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    pub(super) teams: BTreeMap<String, Team>,
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Snapshot {
    /// Reads the state from the API server.
    pub(super) fn take(server: &ApiServer) -> Self {
        let mut teams: BTreeMap<String, Team> =
            TEAMS.iter().map(|team| (team.name.to_owned(), Team::default())).collect();
        let mut bound_by_gang: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut held: BTreeMap<String, usize> = BTreeMap::new();
        for pod in server.list_values("pods") {
            let namespace = text(&pod, "/metadata/namespace");
            let Some(team) = teams.get_mut(namespace) else { continue };
            team.pods += 1;
            let phase = text(&pod, "/status/phase");
            team.running += usize::from(phase == "Running");
            let succeeded = usize::from(phase == "Succeeded");
            team.done += succeeded;
            if pod["metadata"]["labels"][LABEL].is_string() {
                team.samples += 1;
                team.samples_done += succeeded;
            }
            if text(&pod, "/spec/nodeName").is_empty() {
                continue;
            }
            team.bound += 1;
            if !matches!(phase, "Succeeded" | "Failed") {
                *held.entry(namespace.to_owned()).or_default() += gpus_of_pod(&pod);
            }
            let group = text(&pod, "/metadata/annotations/scheduling.k8s.io~1group-name");
            *bound_by_gang.entry((namespace.to_owned(), group.to_owned())).or_default() += 1;
        }
        for group in server.list_values("podgroups") {
            let namespace = text(&group, "/metadata/namespace").to_owned();
            let Some(team) = teams.get_mut(&namespace) else { continue };
            team.gangs += 1;
            let min = group.pointer("/spec/minMember").and_then(Value::as_u64).unwrap_or(0);
            let name = text(&group, "/metadata/name").to_owned();
            let bound = bound_by_gang.get(&(namespace, name)).copied().unwrap_or(0);
            let whole = u64::try_from(bound).is_ok_and(|bound| bound >= min);
            team.whole += usize::from(whole);
            if !whole && team.why.is_empty() {
                team.why = why_it_waits(&group);
            }
        }
        let gpus =
            server.list_values("nodes").iter().map(|node| gpus_of_node(node)).sum::<usize>().max(1);
        for (name, team) in &mut teams {
            team.share = held.get(name).copied().unwrap_or(0) * 100 / gpus;
        }
        Self { teams }
    }

    /// Every pod of the samples has succeeded.
    pub(super) fn done(&self) -> bool {
        self.teams.values().all(|team| team.samples > 0 && team.samples_done == team.samples)
    }
}

fn gpus_of_node(node: &Value) -> usize {
    amount(&node["status"]["allocatable"][GPU])
}

fn gpus_of_pod(pod: &Value) -> usize {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let request = |container: &Value| amount(&container["resources"]["requests"][GPU]);
    containers.into_iter().flatten().map(request).sum()
}

/// Whole GPUs; what is no amount is none.
fn amount(quantity: &Value) -> usize {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    Quantity::parse(&text).map_or(0, |amount| usize::try_from(amount.value()).unwrap_or(0))
}

/// Why a gang waits. The condition begins with counts of tasks and ends with what is missing for one of them: only that.
fn why_it_waits(group: &Value) -> String {
    let conditions = group.pointer("/status/conditions").and_then(Value::as_array);
    let waits = conditions
        .into_iter()
        .flatten()
        .find(|c| text(c, "/type") == "Unschedulable" && text(c, "/status") == "True");
    let message = waits.map_or("", |condition| text(condition, "/message"));
    let origin = message.split_once("Origin reason is ").and_then(|(_, it)| it.split_once(": "));
    origin.map_or(message, |(_pod, reason)| reason).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, labels: &Value, node: &str, phase: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "vision", "labels": labels,
                         "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {GPU: 3}}}]},
            "status": {"phase": phase}})
    }

    #[test]
    fn the_pods_of_others_are_counted_but_the_samples_alone_decide_the_end() {
        let server = ApiServer::default();
        for definition in tephra_api::scheduling::crds() {
            server.create_value(serde_json::to_value(definition).unwrap()).unwrap();
        }
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                          "status": {"allocatable": {GPU: "6"}}});
        server.create_value(node).unwrap();
        let group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "vision"}, "spec": {"minMember": 3},
            "status": {"conditions": [{"type": "Unschedulable", "status": "True",
                "message": "1/3 tasks in gang unschedulable: pod group is not ready. Origin reason is g-2: 0/1 nodes are unavailable: 1 Insufficient x."}]}});
        server.create_value(group).unwrap();
        let sample = json!({LABEL: "true"});
        server.create_value(pod("a", &sample, "n", "Succeeded")).unwrap();
        server.create_value(pod("b", &json!({}), "n", "Running")).unwrap();
        server.create_value(pod("c", &json!({}), "", "Pending")).unwrap();
        let mut snapshot = Snapshot::take(&server);
        let vision = snapshot.teams["vision"].clone();
        let expected = Team {
            samples: 1,
            samples_done: 1,
            pods: 3,
            bound: 2,
            running: 1,
            done: 1,
            gangs: 1,
            whole: 0,
            share: 50,
            why: "0/1 nodes are unavailable: 1 Insufficient x".to_owned(),
        };
        assert_eq!(vision, expected);
        assert!(!snapshot.done(), "the other teams have no pods yet");
        for team in snapshot.teams.values_mut() {
            *team = vision.clone();
        }
        assert!(snapshot.done());
    }
}
