//! The Helm chart (`deploy/chart`) as the real helm renders it: what an administrator installs before our programs run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};

use super::assets::Assets;
use super::manifests::SYSTEM_NAMESPACE;

/// Folder of the chart.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/chart")
}

/// Kinds that are rights, or have some.
const RIGHTS: [&str; 5] =
    ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// A chart, and what it is installed with.
#[derive(Clone, Debug)]
pub struct Release {
    helm: PathBuf,
    chart: PathBuf,
    name: String,
    arguments: Vec<String>,
}

impl Release {
    /// Our chart under a release name, with its default values.
    ///
    /// # Errors
    /// When there is no helm.
    pub fn new(assets: &Assets, name: &str) -> anyhow::Result<Self> {
        Self::of(assets, folder(), name)
    }

    /// Any chart.
    ///
    /// # Errors
    /// When there is no helm.
    pub fn of(assets: &Assets, chart: PathBuf, name: &str) -> anyhow::Result<Self> {
        let helm = assets.program("helm")?;
        Ok(Self { helm, chart, name: name.to_owned(), arguments: Vec::new() })
    }

    /// With further arguments of `helm template`, e.g. `--set` and what follows it.
    #[must_use]
    pub fn with<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// Renders it: all objects but the custom resource definitions.
    ///
    /// # Errors
    /// What helm says, e.g. about values that the schema refuses.
    pub fn render(&self) -> anyhow::Result<Vec<DynamicObject>> {
        let text = helm(&self.helm, |command| {
            command.arg("template").arg(&self.name).arg(&self.chart);
            command.args(["--namespace", SYSTEM_NAMESPACE]).args(&self.arguments);
        })?;
        let objects: Vec<Option<DynamicObject>> =
            serde_saphyr::from_multiple(&text).context("what helm rendered")?;
        Ok(objects.into_iter().flatten().collect())
    }

    /// `helm lint --strict`.
    ///
    /// # Errors
    /// What it complains about.
    pub fn lint(&self) -> anyhow::Result<()> {
        helm(&self.helm, |command| {
            command.args(["lint", "--strict"]).arg(&self.chart).args(&self.arguments);
        })
        .map(drop)
    }
}

fn helm(program: &Path, arguments: impl FnOnce(&mut Command)) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    arguments(&mut command);
    let output = command.stdin(Stdio::null()).output().context("running helm")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    Ok(String::from_utf8(output.stdout)?)
}

/// Kind of an object.
pub fn kind(object: &DynamicObject) -> &str {
    object.types.as_ref().map_or("", |types| &types.kind)
}

/// The rights among rendered objects, with those who have them.
pub fn rights(mut objects: Vec<DynamicObject>) -> Vec<DynamicObject> {
    objects.retain(|object| RIGHTS.contains(&kind(object)));
    objects
}

/// Applies objects as `kubectl apply --server-side` does.
///
/// # Errors
/// When the server refuses one.
pub async fn apply(client: &Client, objects: &[DynamicObject]) -> anyhow::Result<()> {
    let force = PatchParams::apply("administrator").force();
    for object in objects {
        let types = object.types.as_ref().context("an object without a kind")?;
        let name = object.metadata.name.as_deref().context("an object without a name")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = match object.metadata.namespace.as_deref() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        api.patch(name, &force, &Patch::Apply(object))
            .await
            .with_context(|| format!("applying {} {name}", types.kind))?;
    }
    Ok(())
}
