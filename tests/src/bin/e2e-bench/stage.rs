//! What both measurements share: a control plane with nodes, a queue and a namespace that is emptied between them.

use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};
use tephra_tests::rig::Rig;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::nodes::{self, Shape};
use tephra_tests::rig::patience::{PATIENCE, wait_until};
use tephra_tests::rig::workload::{self, Gang};
use tephra_tests::rig::{manifests, workload::pod_groups};

use crate::Arguments;

/// Namespace, queue, node pool and scheduler name.
pub(crate) const NAME: &str = "bench";

pub(crate) struct Stage<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) binaries: &'a Path,
    pub(crate) client: Client,
    pub(crate) nodes: u32,
    pub(crate) pods: u32,
    pub(crate) gang: u32,
    pub(crate) in_flight: u16,
}

impl<'a> Stage<'a> {
    pub(crate) async fn set(
        rig: &'a Rig,
        binaries: &'a Path,
        arguments: &Arguments,
    ) -> anyhow::Result<Self> {
        let client = rig.client(Identity::ADMIN).await?;
        manifests::create_namespace(&client, NAME).await?;
        workload::create_queue(&client, NAME).await?;
        workload::open_queue(&client, NAME).await?;
        let shape = Shape { cpu: 110, memory_gib: 256, gpu: 8 };
        nodes::create(&client, NAME, 0..arguments.nodes, shape).await.context("nodes")?;
        Ok(Self {
            rig,
            binaries,
            client,
            nodes: arguments.nodes,
            pods: arguments.pods,
            gang: arguments.gang,
            in_flight: arguments.in_flight,
        })
    }

    /// Whole gangs; a rest that makes no whole gang is left out.
    pub(crate) fn gangs(&self) -> Vec<Gang> {
        let gang = |index| Gang {
            name: format!("gang{index}"),
            queue: NAME.to_owned(),
            members: self.gang,
            min_member: self.gang,
            scheduler: NAME.to_owned(),
            cpu: "1".to_owned(),
            priority_class: None,
            run_for: None,
        };
        (0..self.pods / self.gang).map(gang).collect()
    }

    /// Removes all pods and PodGroups and waits until they are gone.
    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAME);
        let (now, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        pods.delete_collection(&now, &all).await.context("deleting pods")?;
        pod_groups(&self.client, NAME).delete_collection(&now, &all).await?;
        wait_until("no pods are left", PATIENCE, async || {
            Ok(pods.list_metadata(&all.clone().limit(1)).await?.items.is_empty())
        })
        .await
    }
}
