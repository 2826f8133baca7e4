//! One look at a gang: read its objects, decide, write, tell.

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{
    Api, Error,
    api::{
        ApiResource, DeleteParams, DynamicObject, EvictParams, Patch, PatchParams, PostParams,
        Preconditions,
    },
};
use serde_json::Value;
use tephra_api::{scheduling::PodGroup, suspension::Owner};

use super::{
    gang::{Gang, Top, stand_in_name},
    owner,
    steps::{PodSeen, Step, next},
    telling::{Told, telling},
    writes::{On, Write, writes},
};
use crate::{
    context::Context,
    event_log::record,
    mirror::Key,
    refusal::{Doing, ReconcileError, is_not_found},
};

/// Pods of one gang that are read, patched, evicted or created at the same time.
const AT_ONCE: usize = 8;

/// One look at one gang.
pub(super) struct Look {
    pub(super) context: Context,
    pub(super) key: Key,
    pub(super) pods: Vec<PodSeen>,
    /// The owner named by the record that was last seen, in case that record is gone with its PodGroup.
    pub(super) former: Option<Owner>,
    pub(super) refused: bool,
    /// What was told last.
    pub(super) told: Option<Told>,
}

/// When to look again although nothing is seen to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// What was written is read back at once.
    Now,
    /// Pods were written, which the watch will say.
    Soon,
    /// Then.
    At(Timestamp),
    /// A record or intent stands: owners are not watched.
    Rarely,
    /// When something changes.
    Never,
}

/// What a look found out.
pub(super) struct Found {
    pub(super) result: Result<Again, ReconcileError>,
    /// The server understood [`Step::Stop`] and refused it.
    pub(super) refused: bool,
    /// What was told last, if anything was.
    pub(super) told: Option<Told>,
    /// The PodGroup that events are about.
    pub(super) about: Option<ObjectReference>,
}

impl Found {
    /// Nothing was looked at.
    pub(super) fn nothing() -> Found {
        Found { result: Ok(Again::Never), refused: false, told: None, about: None }
    }
}

impl Look {
    pub(super) async fn look(self) -> Found {
        let mut found = Found::nothing();
        found.result = self.carry_out(&mut found).await;
        found
    }

    async fn carry_out(&self, found: &mut Found) -> Result<Again, ReconcileError> {
        let mut gang = self.read().await?;
        found.about = gang.group.as_ref().or_else(|| gang.waiting()).map(reference);
        let step = next(&gang.seen());
        if let Step::Record { .. } = step {
            gang.bodies = self.bodies().await?;
        }
        let on_pods =
            matches!(step, Step::Notify(_) | Step::Hush(_) | Step::Evict { .. } | Step::Create);
        found.refused = self.refused && matches!(step, Step::Evict { .. } | Step::Wait(_));
        let todo = writes(&gang, &step);
        let written = todo.len();
        let mut outcomes = stream::iter(todo)
            .map(|write| self.write(&gang, write))
            .buffered(if on_pods { AT_ONCE } else { 1 });
        while let Some(outcome) = outcomes.next().await {
            if let (Step::Stop, Err(error)) = (&step, &outcome) {
                found.refused = error.refusal().is_some();
            }
            outcome?;
        }
        for told in telling(&gang, &step) {
            self.tell(found, told).await;
        }
        Ok(match step {
            Step::Wait(Some(until)) => Again::At(until),
            Step::Wait(None) if gang.record().is_some() => Again::Rarely,
            Step::Wait(None) => Again::Never,
            _ if on_pods => Again::Soon,
            // Nothing to write although there is a step: an object is odd, and somebody has to change it.
            _ if written == 0 => Again::Rarely,
            _ => Again::Now,
        })
    }

    /// Writes an event unless it is what was said last.
    async fn tell(&self, found: &mut Found, told: Told) {
        if self.told.as_ref() != Some(&told)
            && let Some(about) = found.about.clone()
        {
            let Told { severity, reason, text } = told.clone();
            record(self.context.clone(), about, severity, reason, text).await;
        }
        found.told = Some(told);
    }

    async fn read(&self) -> Result<Gang, ReconcileError> {
        let (group, stand_in) = futures::future::try_join(
            self.group(&self.key.name),
            self.group(&stand_in_name(&self.key.name)),
        )
        .await?;
        let now = Timestamp::from_millisecond(self.context.clock.now_ms()).unwrap_or_default();
        let mut gang = Gang {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            group,
            stand_in,
            owner: Top::Pods,
            pods: self.pods.clone(),
            bodies: Vec::new(),
            refused: self.refused,
            now,
        };
        gang.owner = self.owner(&gang).await?;
        Ok(gang)
    }

    async fn group(&self, name: &str) -> Result<Option<Value>, ReconcileError> {
        let reading = || format!("read PodGroup {}/{name}", self.key.namespace);
        let found = self.groups().get_opt(name).await.doing(reading)?;
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| ReconcileError::Stuck(format!("{}: {error}", reading())))
    }

    async fn owner(&self, gang: &Gang) -> Result<Top, ReconcileError> {
        let (client, namespace) = (&self.context.client, &self.key.namespace);
        let known = match gang.record() {
            Some(record) => {
                let Some(owner) = record.owner else { return Ok(Top::Pods) };
                Some(owner)
            }
            None => self.former.clone(),
        };
        if let Some(known) = known {
            let found = owner::read(client, namespace, &known).await?;
            return Ok(found.map_or(Top::Gone, |owner| Top::Switch(Box::new(owner))));
        }
        let mut controllers: Vec<Option<Owner>> = Vec::new();
        for pod in gang.pods.iter().filter(|pod| pod.lives()) {
            if !controllers.contains(&pod.controller) {
                controllers.push(pod.controller.clone());
            }
        }
        let found = owner::above(client, namespace, &controllers).await?;
        Ok(found.map_or(Top::Pods, |owner| Top::Switch(Box::new(owner))))
    }

    /// The living pods in full, in the order of their names.
    async fn bodies(&self) -> Result<Vec<Value>, ReconcileError> {
        let living: Vec<PodSeen> = self.pods.iter().filter(|pod| pod.lives()).cloned().collect();
        let mut bodies = Vec::new();
        let mut reads = stream::iter(living).map(|pod| self.body(pod)).buffered(AT_ONCE);
        while let Some(read) = reads.next().await {
            bodies.extend(read?);
        }
        Ok(bodies)
    }

    async fn body(&self, pod: PodSeen) -> Result<Option<Value>, ReconcileError> {
        let doing = || format!("read pod {}/{}", self.key.namespace, pod.name);
        let found = self.pods().get_opt(&pod.name).await.doing(doing)?;
        let found = found.filter(|found| found.metadata.uid.as_ref() == Some(&pod.uid));
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| ReconcileError::Stuck(format!("{}: {error}", doing())))
    }

    async fn write(&self, gang: &Gang, write: Write) -> Result<(), ReconcileError> {
        let namespace = &self.key.namespace;
        match write {
            Write::Patch { on: On::Owner, name, body } => {
                let Top::Switch(owner) = &gang.owner else { return Ok(()) };
                let kind = owner.reference.kind.clone();
                let api = owner::api(&self.context.client, namespace, &owner.reference);
                let Some(api) = api else { return Ok(()) };
                let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(body)).await;
                gone_is_fine(patched.map(drop)).doing(|| format!("patch {kind} {namespace}/{name}"))
            }
            Write::Patch { on: On::Group, name, body } => {
                let patched =
                    self.groups().patch(&name, &PatchParams::default(), &Patch::Merge(body)).await;
                gone_is_fine(patched.map(drop))
                    .doing(|| format!("patch PodGroup {namespace}/{name}"))
            }
            Write::Patch { on: On::Pod, name, body } => {
                let patch = Patch::Merge(body);
                let patched =
                    self.pods().patch_metadata(&name, &PatchParams::default(), &patch).await;
                gone_is_fine(patched.map(drop)).doing(|| format!("annotate pod {namespace}/{name}"))
            }
            Write::Create { on: On::Pod, body } => {
                let pod: DynamicObject = serde_json::from_value(body)
                    .map_err(|error| ReconcileError::Stuck(format!("a recorded pod: {error}")))?;
                let kind = ApiResource::erase::<Pod>(&());
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.context.client.clone(), namespace, &kind);
                create(&api, &pod).await
            }
            Write::Create { body, .. } => {
                let group: DynamicObject = serde_json::from_value(body)
                    .map_err(|error| ReconcileError::Stuck(format!("a PodGroup: {error}")))?;
                create(&self.groups(), &group).await
            }
            Write::Delete { name, uid } => {
                let options = uid_only(uid.as_str().unwrap_or_default());
                let deleted = self.groups().delete(&name, &options).await;
                gone_is_fine(deleted.map(drop))
                    .doing(|| format!("delete PodGroup {namespace}/{name}"))
            }
            Write::Evict { name, uid, force } => self.evict(&name, &uid, force).await,
        }
    }

    /// A budget that says "not now" (429) is no failure: the pod is asked for again, and deleted at the deadline.
    async fn evict(&self, name: &str, uid: &str, force: bool) -> Result<(), ReconcileError> {
        let options = uid_only(uid);
        let asked = if force {
            self.pods().delete(name, &options).await.map(drop)
        } else {
            let eviction =
                EvictParams { delete_options: Some(options), post_options: PostParams::default() };
            self.pods().evict(name, &eviction).await.map(drop)
        };
        match asked {
            Err(Error::Api(status)) if status.code == 429 && !force => Ok(()),
            asked => {
                gone_is_fine(asked).doing(|| format!("evict pod {}/{name}", self.key.namespace))
            }
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.context.client.clone(), &self.key.namespace)
    }

    /// Not typed: what others have put there stays in the stand-in.
    fn groups(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<PodGroup>(&());
        Api::namespaced_with(self.context.client.clone(), &self.key.namespace, &kind)
    }
}

fn reference(group: &Value) -> ObjectReference {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &group["metadata"];
    ObjectReference {
        api_version: text(&group["apiVersion"]),
        kind: text(&group["kind"]),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        ..ObjectReference::default()
    }
}

fn uid_only(uid: &str) -> DeleteParams {
    let uid = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    DeleteParams { preconditions: Some(uid), ..DeleteParams::default() }
}

fn gone_is_fine(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if is_not_found(&error) => Ok(()),
        outcome => outcome,
    }
}

/// One that is there already is an answer that we lost, or somebody else's: the next look sees which.
async fn create(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<(), ReconcileError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let created = api.create(&PostParams::default(), object).await;
    created.map(drop).doing(|| format!("create {}{name}", api.resource_url()))
}
