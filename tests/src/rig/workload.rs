//! Gangs, plain pods and queues as a user's client writes them: plain JSON, so that a mistake in our own types
//! cannot hide itself.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use super::nodes::IN_FLIGHT;

/// The kind PodGroup.
pub fn pod_group_kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
    ApiResource::from_gvk_with_plural(&kind, "podgroups")
}

/// The kind Queue.
pub fn queue_kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "Queue");
    ApiResource::from_gvk_with_plural(&kind, "queues")
}

/// All queues.
pub fn queues(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &queue_kind())
}

/// PodGroups of a namespace.
pub fn pod_groups(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &pod_group_kind())
}

/// Creates a queue of weight 1 without limits.
///
/// # Errors
/// When the server refuses it.
pub async fn create_queue(client: &Client, name: &str) -> anyhow::Result<()> {
    let api = queues(client);
    let queue = object(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": name}, "spec": {"weight": 1},
    }))?;
    api.create(&PostParams::default(), &queue).await.with_context(|| format!("queue {name}"))?;
    Ok(())
}

/// Opens a queue, which is the controller's work where one runs: a queue without a state takes nobody.
///
/// # Errors
/// When the server refuses it.
pub async fn open_queue(client: &Client, name: &str) -> anyhow::Result<()> {
    let open = json!({"status": {"state": "Open"}});
    let patch = Patch::Merge(&open);
    queues(client).patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Pods of one shape.
#[derive(Clone, Debug)]
pub struct PodTemplate {
    /// `spec.schedulerName`.
    pub scheduler: String,
    /// CPU request, e.g. `500m`.
    pub cpu: String,
    /// PodGroup to belong to.
    pub group: Option<String>,
    /// How long it runs, a Go duration; `None`: until it is deleted.
    pub run_for: Option<String>,
}

impl PodTemplate {
    /// The pod `name`.
    fn pod(&self, name: &str) -> Value {
        let mut annotations = json!({});
        if let Some(group) = &self.group {
            annotations["scheduling.k8s.io/group-name"] = json!(group);
        }
        if let Some(run_for) = &self.run_for {
            annotations["tephra.sh/run-for"] = json!(run_for);
        }
        json!({
            "metadata": {"name": name, "annotations": annotations, "labels": {"app": "rig"}},
            "spec": {
                "schedulerName": self.scheduler, "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "main", "image": "registry.example/work:1",
                    "resources": {"requests": {"cpu": self.cpu, "memory": "64Mi"}},
                }],
            },
        })
    }
}

/// Creates one pod for each name.
///
/// # Errors
/// When the server refuses one.
pub async fn create_pods(
    client: &Client,
    namespace: &str,
    pods: impl IntoIterator<Item = (String, PodTemplate)>,
) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods: Vec<Pod> = pods
        .into_iter()
        .map(|(name, template)| serde_json::from_value(template.pod(&name)))
        .collect::<Result<_, _>>()?;
    stream::iter(&pods)
        .map(|pod| async { api.create(&PostParams::default(), pod).await.map(drop) })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    Ok(())
}

/// A PodGroup and its pods `<name>-<index>`.
#[derive(Clone, Debug)]
pub struct Gang {
    /// Name of the PodGroup.
    pub name: String,
    /// Its queue.
    pub queue: String,
    /// Pods.
    pub members: u32,
    /// Least number that may start.
    pub min_member: u32,
    /// `spec.schedulerName` of the pods.
    pub scheduler: String,
    /// CPU request of each pod.
    pub cpu: String,
    /// `spec.priorityClassName` of the PodGroup.
    pub priority_class: Option<String>,
    /// How long each pod runs, a Go duration; `None`: until it is deleted.
    pub run_for: Option<String>,
}

impl Gang {
    /// Names and shapes of the pods.
    pub fn pods(&self) -> impl Iterator<Item = (String, PodTemplate)> + '_ {
        let template = PodTemplate {
            scheduler: self.scheduler.clone(),
            cpu: self.cpu.clone(),
            group: Some(self.name.clone()),
            run_for: self.run_for.clone(),
        };
        (0..self.members).map(move |index| (format!("{}-{index}", self.name), template.clone()))
    }

    fn pod_group(&self) -> anyhow::Result<DynamicObject> {
        let mut spec = json!({"minMember": self.min_member, "queue": self.queue});
        if let Some(class) = &self.priority_class {
            spec["priorityClassName"] = json!(class);
        }
        object(json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": self.name}, "spec": spec,
        }))
    }
}

/// Creates the PodGroups, then all their pods.
///
/// # Errors
/// When the server refuses one.
pub async fn create_gangs(client: &Client, namespace: &str, gangs: &[Gang]) -> anyhow::Result<()> {
    create_pod_groups(client, namespace, gangs).await?;
    create_pods(client, namespace, gangs.iter().flat_map(Gang::pods)).await
}

/// Creates the PodGroups alone.
///
/// # Errors
/// When the server refuses one.
pub async fn create_pod_groups(
    client: &Client,
    namespace: &str,
    gangs: &[Gang],
) -> anyhow::Result<()> {
    let api = pod_groups(client, namespace);
    let groups: Vec<DynamicObject> = gangs.iter().map(Gang::pod_group).collect::<Result<_, _>>()?;
    stream::iter(&groups)
        .map(|group| async { api.create(&PostParams::default(), group).await.map(drop) })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    Ok(())
}

fn object(value: Value) -> anyhow::Result<DynamicObject> {
    Ok(serde_json::from_value(value)?)
}
