//! What an administrator installs before our programs run: the namespace, the CRDs (the files that users apply,
//! `deploy/crds`), and the chart with its accounts, access rules and deployments (whose pods nobody starts here).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::assets::Assets;
use super::chart::{self, Release};
use super::identity::{RELEASE, RIVAL_RELEASE};
use super::patience::{PATIENCE, wait_until};

/// Namespace of the scheduler's lease, as in Volcano's manifests.
pub const SYSTEM_NAMESPACE: &str = "volcano-system";

fn crd_files() -> anyhow::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    ensure!(!files.is_empty(), "{} has no YAML files", folder.display());
    Ok(files)
}

/// Installs all of it and waits until the new kinds are served.
pub(crate) async fn install(client: &Client, assets: &Assets) -> anyhow::Result<()> {
    create_namespace(client, SYSTEM_NAMESPACE).await?;
    chart::apply(client, &Release::new(assets, RELEASE)?.render()?).await?;
    let rival = Release::new(assets, RIVAL_RELEASE)?.render()?;
    chart::apply(client, &chart::rights(rival)).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for file in crd_files()? {
        let text = std::fs::read_to_string(&file)?;
        let crd: CustomResourceDefinition =
            serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
        create(&crds, &crd).await.with_context(|| file.display().to_string())?;
        let name = crd.metadata.name.unwrap_or_default();
        wait_until(&format!("{name} is established"), PATIENCE, async || {
            let conditions = crds.get(&name).await?.status.and_then(|status| status.conditions);
            let conditions = conditions.unwrap_or_default();
            Ok(conditions.iter().any(|c| c.type_ == "Established" && c.status == "True"))
        })
        .await?;
    }
    Ok(())
}

/// Makes a namespace.
///
/// # Errors
/// When the server refuses it.
pub async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    create(&Api::all(client.clone()), &namespace).await
}

async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
