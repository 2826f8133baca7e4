//! Installing the custom resource definitions, for the demo, tests and first steps. (A production cluster gets them
//! from the chart; the processes never create definitions by themselves.)

use std::{fmt::Debug, time::Duration};

use anyhow::{Context as _, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::conditions,
    runtime::wait::Condition,
};
use tephra_api::queue_policy::QueuePolicy;
use tephra_api::scheduling::{PodGroup, Queue};
use tokio::time::{Instant, sleep};

use crate::refusal::is_not_found;

/// How long the server may take to serve a new kind.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// Applies all definitions and waits until the server serves them. May be called again at any
/// time.
///
/// # Errors
/// When the server refuses a definition or does not serve it within 30 s.
pub async fn install_crds(client: Client) -> anyhow::Result<()> {
    for definition in tephra_api::scheduling::crds() {
        apply(client.clone(), &definition).await?;
    }
    served::<PodGroup>(client.clone()).await?;
    served::<Queue>(client.clone()).await?;
    served::<QueuePolicy>(client).await
}

async fn apply(client: Client, definition: &CustomResourceDefinition) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let name = definition.name_any();
    let force = PatchParams::apply("tephra-controller").force();
    definitions
        .patch(&name, &force, &Patch::Apply(definition))
        .await
        .with_context(|| format!("applying the definition {name}"))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stored = definitions.get_opt(&name).await.with_context(|| format!("reading {name}"))?;
        if conditions::is_crd_established().matches_object(stored.as_ref()) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("the server did not establish {name} within {PATIENCE:?}");
        }
        sleep(PAUSE).await;
    }
}

/// An established kind may still answer 404 for a moment.
async fn served<K>(client: Client) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug,
{
    let objects: Api<PartialObjectMeta<K>> = Api::all(client);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match objects.list(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(error) if is_not_found(&error) && Instant::now() < deadline => sleep(PAUSE).await,
            Err(error) => {
                return Err(error).with_context(|| format!("listing {}", K::plural(&())));
            }
        }
    }
}
