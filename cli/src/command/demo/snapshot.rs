//! The state of the sample teams at one moment, read from the API server.

use std::collections::BTreeMap;

use serde_json::Value;
use tephra_simulator::ApiServer;

use super::samples::{GPU, TEAMS};

/// Figures of one team.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Team {
    pub(super) pods: usize,
    pub(super) bound: usize,
    pub(super) running: usize,
    pub(super) done: usize,
    pub(super) gangs: usize,
    /// Gangs of which at least the minimum is or was bound.
    pub(super) whole: usize,
    /// Percent of the cluster's GPUs that its pods hold.
    pub(super) share: usize,
    /// Why its first waiting gang waits, in the words of the PodGroup's condition.
    pub(super) why: String,
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
            team.done += usize::from(phase == "Succeeded");
            if text(&pod, "/spec/nodeName").is_empty() {
                continue;
            }
            team.bound += 1;
            if !matches!(phase, "Succeeded" | "Failed") {
                *held.entry(namespace.to_owned()).or_default() += 1;
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
            server.list_values("nodes").iter().filter_map(|node| gpus(node)).sum::<usize>().max(1);
        for (name, team) in &mut teams {
            // Every sample pod holds one GPU.
            team.share = held.get(name).copied().unwrap_or(0) * 100 / gpus;
        }
        Self { teams }
    }

    /// Every pod of the samples has succeeded.
    pub(super) fn done(&self) -> bool {
        self.teams.values().all(|team| team.pods > 0 && team.done == team.pods)
    }
}

fn gpus(node: &Value) -> Option<usize> {
    node["status"]["allocatable"][GPU].as_str()?.parse().ok()
}

fn why_it_waits(group: &Value) -> String {
    let conditions = group.pointer("/status/conditions").and_then(Value::as_array);
    let waits = conditions
        .into_iter()
        .flatten()
        .find(|c| text(c, "/type") == "Unschedulable" && text(c, "/status") == "True");
    waits.map(|condition| text(condition, "/message").to_owned()).unwrap_or_default()
}
