//! What the demo submits: nodes, three teams with weights, and gangs that together want more than the cluster has.

use anyhow::Context as _;
use serde_json::{Value, json};
use tephra_simulator::ApiServer;

/// Teams with the weights of their queues.
pub(super) const TEAMS: [(&str, i32); 3] = [("vision", 3), ("speech", 2), ("search", 1)];
/// Gangs of each team.
const GANGS: usize = 4;

fn create(server: &ApiServer, object: Value) -> anyhow::Result<()> {
    let name =
        object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    server.create_value(object).map(drop).with_context(|| format!("creating {name}"))
}

/// Definitions, namespaces, queues and nodes.
pub(super) fn cluster(server: &ApiServer, nodes: usize) -> anyhow::Result<()> {
    for definition in tephra_api::scheduling::crds() {
        create(server, serde_json::to_value(definition)?)?;
    }
    create(
        server,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}),
    )?;
    for (team, weight) in TEAMS {
        create(
            server,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}),
        )?;
        create(
            server,
            json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": {"name": team},
                "spec": {"weight": weight, "reclaimable": true},
                "status": {"state": "Open"},
            }),
        )?;
    }
    for index in 0..nodes {
        let size = json!({"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"});
        let name = format!("node-{index:03}");
        create(
            server,
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "status": {
                    "allocatable": size, "capacity": size,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }),
        )?;
    }
    Ok(())
}

/// The teams' gangs: pods with one GPU each that run for a second.
pub(super) fn gangs(server: &ApiServer, nodes: usize) -> anyhow::Result<()> {
    // All gangs together want twice what the cluster has, so that some must wait for others to end.
    let members = (nodes * 8 * 2 / (TEAMS.len() * GANGS)).max(1);
    for gang in 0..GANGS {
        for (team, _) in TEAMS {
            let name = format!("train-{gang}");
            create(
                server,
                json!({
                    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
                    "metadata": {"name": name, "namespace": team},
                    "spec": {"minMember": members, "queue": team},
                }),
            )?;
            for member in 0..members {
                create(
                    server,
                    json!({
                        "apiVersion": "v1", "kind": "Pod",
                        "metadata": {
                            "name": format!("{name}-worker-{member}"),
                            "namespace": team,
                            "annotations": {
                                "scheduling.k8s.io/group-name": name,
                                "tephra.sh/run-for": "1s",
                            },
                        },
                        "spec": {
                            "schedulerName": "volcano",
                            "restartPolicy": "Never",
                            "containers": [{
                                "name": "main", "image": "registry.example/train:1",
                                "resources": {"requests": {
                                    "cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1",
                                }},
                            }],
                        },
                        "status": {"phase": "Pending"},
                    }),
                )?;
            }
        }
    }
    Ok(())
}
