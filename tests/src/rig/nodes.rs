//! Nodes without machines.

use std::ops::Range;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// Label by which one case's scheduler uses only that case's nodes (`--node-selector`).
pub const POOL_LABEL: &str = "rig.tephra.sh/pool";
/// Requests in flight while setting up.
pub(crate) const IN_FLIGHT: usize = 16;

/// Allocatable amounts of a node.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Cores.
    pub cpu: u32,
    /// GiB.
    pub memory_gib: u32,
    /// `nvidia.com/gpu`.
    pub gpu: u32,
}

/// Creates the Ready nodes `<pool>-<index>` with the label of the pool.
///
/// # Errors
/// When the server refuses one.
pub async fn create(
    client: &Client,
    pool: &str,
    indexes: Range<u32>,
    shape: Shape,
) -> anyhow::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let nodes: Vec<Node> = indexes
        .map(|index| serde_json::from_value(node(pool, index, shape)))
        .collect::<Result<_, _>>()?;
    stream::iter(&nodes)
        .map(|node| async { api.create(&PostParams::default(), node).await.map(drop) })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    Ok(())
}

/// Ready from the start, so that no status write is needed; the annotation makes kwok play pods there.
fn node(pool: &str, index: u32, shape: Shape) -> Value {
    let name = node_name(pool, index);
    let amounts = json!({
        "cpu": shape.cpu.to_string(), "memory": format!("{}Gi", shape.memory_gib),
        "nvidia.com/gpu": shape.gpu.to_string(), "pods": "110", "ephemeral-storage": "1Ti",
    });
    json!({
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                POOL_LABEL: pool, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": format!("z{}", index % 4),
            },
        },
        "status": {
            "allocatable": amounts, "capacity": amounts,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                "lastHeartbeatTime": jiff::Timestamp::now().to_string(),
                "lastTransitionTime": jiff::Timestamp::now().to_string(),
            }],
        },
    })
}

/// Name of a pool's node.
pub fn node_name(pool: &str, index: u32) -> String {
    format!("{pool}-{index:05}")
}
