//! What the demo submits: nodes, three teams with weights, and gangs that together want more than the cluster has.

use anyhow::Context as _;
use serde_json::{Value, json};
use tephra_simulator::ApiServer;

/// A team: its namespace and its queue have its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Team {
    pub(super) name: &'static str,
    /// Weight of its queue.
    pub(super) weight: i32,
    /// Gangs that its capability lets run at a time.
    gangs_at_a_time: usize,
}

/// The teams. The last one asks for more than its capability when the others have done.
pub(super) const TEAMS: [Team; 3] = [
    Team { name: "vision", weight: 3, gangs_at_a_time: GANGS },
    Team { name: "speech", weight: 2, gangs_at_a_time: GANGS },
    Team { name: "search", weight: 1, gangs_at_a_time: 2 },
];
/// Resource that is scarce.
pub(super) const GPU: &str = "nvidia.com/gpu";
/// Label of everything in the gangs that the demo submits itself.
pub(super) const LABEL: &str = "tephra.sh/demo";
/// Gangs of each team.
const GANGS: usize = 4;
const GPUS_PER_NODE: usize = 8;

/// Pods of each gang: all gangs together want twice what the cluster has, so that some must wait for others to end.
fn members(nodes: u16) -> usize {
    (usize::from(nodes) * GPUS_PER_NODE * 2 / (TEAMS.len() * GANGS)).max(1)
}

fn create(server: &ApiServer, object: Value) -> anyhow::Result<()> {
    let name =
        object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    server.create_value(object).map(drop).with_context(|| format!("creating {name}"))
}

/// Definitions, namespaces, queues and nodes.
pub(super) fn cluster(server: &ApiServer, nodes: u16) -> anyhow::Result<()> {
    for definition in tephra_api::scheduling::crds() {
        create(server, serde_json::to_value(definition)?)?;
    }
    let namespace =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create(server, namespace("volcano-system"))?;
    for team in TEAMS {
        create(server, namespace(team.name))?;
        create(server, queue(team, nodes))?;
    }
    (0..nodes).try_for_each(|index| {
        create(server, node(index))?;
        create(server, node_lease(index))
    })
}

fn queue(team: Team, nodes: u16) -> Value {
    let capability = (team.gangs_at_a_time < GANGS)
        .then(|| json!({GPU: (members(nodes) * team.gangs_at_a_time).to_string()}));
    let mut queue = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": team.name},
        "spec": {"weight": team.weight, "reclaimable": true},
        "status": {"state": "Open"},
    });
    if let Some(capability) = capability {
        queue["spec"]["capability"] = capability;
    }
    queue
}

fn node_name(index: u16) -> String {
    format!("node-{index:03}")
}

/// The sign of life of a kubelet, which `kubectl describe node` shows.
fn node_lease(index: u16) -> Value {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node_name(index), "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node_name(index), "leaseDurationSeconds": 40, "renewTime": now},
    })
}

fn node(index: u16) -> Value {
    let gpus = GPUS_PER_NODE.to_string();
    let size = json!({"cpu": "32", "memory": "256Gi", "pods": "110", GPU: gpus});
    let name = node_name(index);
    let address = format!("10.1.{}.{}", index / 250, index % 250 + 1);
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {
            "allocatable": size, "capacity": size,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "simulated kubelet is ready",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "simulated",
                "kernelVersion": "simulated", "kubeletVersion": "v1.35.3",
                "kubeProxyVersion": "", "containerRuntimeVersion": "simulated://1",
                "machineID": "", "systemUUID": "", "bootID": "",
            },
        },
    })
}

/// The teams' gangs: pods with one GPU each that run for a second.
pub(super) fn gangs(server: &ApiServer, nodes: u16) -> anyhow::Result<()> {
    let members = members(nodes);
    for gang in 0..GANGS {
        for team in TEAMS {
            let name = format!("train-{gang}");
            create(
                server,
                json!({
                    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
                    "metadata": {"name": name, "namespace": team.name, "labels": {LABEL: "true"}},
                    "spec": {"minMember": members, "queue": team.name},
                }),
            )?;
            (0..members).try_for_each(|member| create(server, pod(team, &name, member)))?;
        }
    }
    Ok(())
}

fn pod(team: Team, gang: &str, member: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{gang}-worker-{member}"),
            "namespace": team.name,
            "labels": {LABEL: "true"},
            "annotations": {"scheduling.k8s.io/group-name": gang, "tephra.sh/run-for": "1s"},
        },
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "registry.example/train:1",
                "resources": {"requests": {"cpu": "2", "memory": "16Gi", GPU: "1"}},
            }],
        },
        "status": {"phase": "Pending"},
    })
}
