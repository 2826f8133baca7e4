//! A cluster as commands see it that ask or change one: which API server, which namespace, and the PodGroups of a job by any
//! of the names that a user knows it by.

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tephra_api::scheduling::PodGroup;
use tephra_process::connection::ConnectionFlags;

/// Which cluster, which namespace and which job.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// Name of a PodGroup, or of the object that it belongs to (`train`, `job/train`).
    job: String,
    /// Namespace; without it that of the kubeconfig's context.
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// A job in a cluster.
#[derive(Debug)]
pub struct Gang {
    /// What the user calls it.
    pub name: String,
    /// Its PodGroup; while the gang is down perhaps the one that stands in for it, too.
    pub groups: Vec<PodGroup>,
}

impl JobArgs {
    /// Reads the PodGroups of the job; with the API by which they are changed.
    ///
    /// # Errors
    /// When there is no cluster, or the job is not found or not the only one of this name.
    pub async fn find(&self) -> anyhow::Result<(Gang, Api<PodGroup>)> {
        let config = self.connection.config("tephra").await?;
        let client = Client::try_from(config).context("connecting to the API server")?;
        let namespace = self.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
        let api: Api<PodGroup> = Api::namespaced(client.clone(), namespace);
        let all = api.list(&ListParams::default()).await.context("reading PodGroups")?;
        let groups = select(all.items, &self.job)
            .with_context(|| format!("in namespace {namespace} of {}", self.job))?;
        Ok((Gang { name: format!("{namespace}/{}", self.job), groups }, api))
    }
}

/// PodGroups of one job: that of the name, or those of one owner of the name.
fn select(mut all: Vec<PodGroup>, job: &str) -> anyhow::Result<Vec<PodGroup>> {
    let (kind, name) = job.rsplit_once('/').map_or((None, job), |(kind, name)| (Some(kind), name));
    let owner = |group: &PodGroup| {
        let owners = group.owner_references().iter();
        let mut owners = owners.filter(|owner| {
            owner.name == name && kind.is_none_or(|kind| owner.kind.eq_ignore_ascii_case(kind))
        });
        owners.next().map(|owner| (owner.kind.clone(), owner.uid.clone()))
    };
    let named = |group: &PodGroup| {
        let itself = kind.is_none_or(|kind| kind.eq_ignore_ascii_case("podgroup"));
        itself && group.name_any() == name
    };
    all.retain(|group| named(group) || owner(group).is_some());
    let mut owners: Vec<_> = all.iter().filter_map(owner).collect();
    owners.sort();
    owners.dedup();
    if owners.len() > 1 {
        let kinds: Vec<&str> = owners.iter().map(|(kind, _)| kind.as_str()).collect();
        bail!("there are several jobs of this name ({}): say kind/name", kinds.join(", "));
    }
    ensure!(!all.is_empty(), "there is no PodGroup of this name, or of an owner of this name");
    Ok(all)
}

impl Gang {
    /// An annotation of one of its PodGroups.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.groups.iter().find_map(|group| Some(group.annotations().get(key)?.as_str()))
    }

    /// Changes annotations of all its PodGroups, unless somebody else has changed one meanwhile.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn annotate(&self, api: &Api<PodGroup>, annotations: &Value) -> anyhow::Result<()> {
        for group in &self.groups {
            let version = &group.metadata.resource_version;
            let patch = serde_json::json!({
                "metadata": {"resourceVersion": version, "annotations": annotations},
            });
            let name = group.name_any();
            let done = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            done.with_context(|| format!("changing PodGroup {name}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(name: &str, owners: &[(&str, &str)]) -> PodGroup {
        let owners: Vec<Value> = owners
            .iter()
            .map(
                |(kind, name)| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": kind}),
            )
            .collect();
        let value = json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": {}});
        serde_json::from_value(value).expect("a PodGroup")
    }

    fn found(job: &str) -> Result<Vec<String>, String> {
        let all = vec![
            group("train", &[]),
            group("podgroup-1", &[("Job", "eval")]),
            group("eval-suspended", &[("Job", "eval")]),
            group("a", &[("Job", "twice")]),
            group("b", &[("PyTorchJob", "twice")]),
        ];
        let names = |groups: Vec<PodGroup>| groups.iter().map(ResourceExt::name_any).collect();
        select(all, job).map(names).map_err(|error| error.to_string())
    }

    #[test]
    fn a_job_goes_by_the_name_of_its_pod_group_or_of_its_owner() {
        assert_eq!(found("train"), Ok(vec!["train".to_owned()]));
        assert_eq!(found("podgroup/train"), Ok(vec!["train".to_owned()]));
        assert_eq!(found("eval"), Ok(vec!["podgroup-1".to_owned(), "eval-suspended".to_owned()]));
        assert_eq!(found("pytorchjob/twice"), Ok(vec!["b".to_owned()]));
    }

    #[test]
    fn a_name_that_is_nobodys_or_several_jobs_is_refused() {
        assert!(found("job/train").unwrap_err().contains("no PodGroup"));
        assert!(found("twice").unwrap_err().contains("(Job, PyTorchJob): say kind/name"));
    }
}
