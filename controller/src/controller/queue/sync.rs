//! The API calls of one look at one queue.

use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
};
use serde_json::{Value, json};
use tephra_api::{keys, scheduling::Queue};

use super::{
    DEFAULT, QueueView, ROOT,
    census::Counts,
    reference,
    state::{Action, State, follow, next},
};
use crate::{
    context::Context,
    event_log::{Severity, record},
    refusal::{Doing, ReconcileError, already_exists, is_not_found},
};

/// Who owns the fields that we write: Volcano's name.
const MANAGER: &str = "queue-controller";

/// What is known about a queue from its PodGroups.
pub(super) struct Sync {
    pub(super) context: Context,
    pub(super) name: String,
    /// PodGroups that name the queue.
    pub(super) groups: usize,
    /// The same by phase.
    pub(super) counts: Counts,
}

impl Sync {
    /// The queue does not exist: `root` and `default` are created, others are left alone.
    pub(super) async fn missing(&self) -> Result<(), ReconcileError> {
        let reclaimable = match self.name.as_str() {
            ROOT => false,
            DEFAULT => true,
            _ => return Ok(()),
        };
        let parent = (self.name != ROOT).then_some(ROOT);
        let queue: Queue = serde_json::from_value(json!({
            "metadata": {"name": self.name},
            "spec": {"weight": 1, "reclaimable": reclaimable, "parent": parent},
        }))
        .map_err(|error| ReconcileError::Stuck(format!("queue {}: {error}", self.name)))?;
        match self.api().create(&PostParams::default(), &queue).await {
            Err(error) if already_exists(&error) => Ok(()),
            created => created.map(drop).doing(|| format!("create queue {}", self.name)),
        }
    }

    /// The queue exists. `parent`: name and view of the queue it hangs under, none for `root`.
    pub(super) async fn existing(
        &self,
        view: &QueueView,
        parent: Option<(String, Option<QueueView>)>,
    ) -> Result<(), ReconcileError> {
        let state = parse(&self.name, view)?;
        let mut action = Action::Sync;
        let mut orphaned = None;
        match &parent {
            Some((_, Some(parent_view))) => {
                // A parent in a state that is none is its own trouble, not the child's.
                let parent_state = State::parse(&parent_view.state).unwrap_or(State::Unknown);
                action = follow(parent_state, state, view.closed_by_parent);
            }
            Some((parent, None)) => {
                orphaned =
                    Some(format!("parent queue {parent} of queue {} does not exist", self.name));
            }
            None => {}
        }
        if view.parent.is_none() && parent.is_some() {
            // The queue's own version guards the write: its owner may be naming a parent right now.
            self.patch(json!({"spec": {"parent": ROOT}}), Some(view), "put under root").await?;
            return Ok(()); // the watch brings it back
        }
        if action == Action::Close && !view.closed_by_parent {
            // The mark goes first, or a crash in between would leave a queue nobody opens again. It changes the
            // queue, so the rest waits for the watch.
            return self.mark_closed_by_parent(true).await;
        }
        let state_after = next(state, action, self.groups);
        self.write_status(view, state_after).await?;
        if view.closed_by_parent && state_after == State::Open && action != Action::Close {
            self.mark_closed_by_parent(false).await?;
        }
        if action == Action::Close {
            let text = "Close queue succeed".to_owned();
            let object = reference(&self.name, view);
            record(self.context.clone(), object, Severity::Normal, "CloseQueue", text).await;
        }
        orphaned.map_or(Ok(()), |text| Err(ReconcileError::Stuck(text)))
    }

    /// Counts are patched. The state is applied, as Volcano's queue controller applies it and under the same name: a field
    /// that was patched belongs to somebody else for that one, which then could neither close nor open the queue.
    async fn write_status(&self, view: &QueueView, state: State) -> Result<(), ReconcileError> {
        let changed = view.state != state.text();
        let mut version = view.version.clone();
        if view.counts != self.counts || !view.has_allocated {
            let mut status = self.counts.fields();
            if !view.has_allocated {
                status.insert("allocated".into(), json!({})); // merges into whatever is there by now
            }
            let mut body = json!({ "status": status });
            if changed {
                at_version(&mut body, &version);
            }
            let Some(patched) = self.patch_status(&params(), &Patch::Merge(body)).await? else {
                return Ok(());
            };
            version = patched.resource_version().unwrap_or_default();
        }
        if changed {
            let mut body = json!({
                "apiVersion": Queue::api_version(&()), "kind": Queue::kind(&()),
                "metadata": {"name": self.name}, "status": {"state": state.text()},
            });
            at_version(&mut body, &version);
            self.patch_status(&PatchParams::apply(MANAGER).force(), &Patch::Apply(body)).await?;
        }
        Ok(())
    }

    /// None when the queue has gone.
    async fn patch_status(
        &self,
        how: &PatchParams,
        body: &Patch<Value>,
    ) -> Result<Option<PartialObjectMeta<Queue>>, ReconcileError> {
        let api: Api<PartialObjectMeta<Queue>> = Api::all(self.context.client.clone());
        match api.patch_status(&self.name, how, body).await {
            Err(error) if is_not_found(&error) => Ok(None),
            patched => patched.map(Some).doing(|| format!("write status of queue {}", self.name)),
        }
    }

    async fn mark_closed_by_parent(&self, by: bool) -> Result<(), ReconcileError> {
        let annotations = json!({(keys::CLOSED_BY_PARENT): by.to_string()});
        self.patch(json!({"metadata": {"annotations": annotations}}), None, "annotate").await
    }

    async fn patch(
        &self,
        mut body: Value,
        version_of: Option<&QueueView>,
        what: &str,
    ) -> Result<(), ReconcileError> {
        if let Some(view) = version_of {
            at_version(&mut body, &view.version);
        }
        match self.api().patch(&self.name, &params(), &Patch::Merge(body)).await {
            Err(error) if is_not_found(&error) => Ok(()),
            patched => patched.map(drop).doing(|| format!("{what}: queue {}", self.name)),
        }
    }

    fn api(&self) -> Api<Queue> {
        Api::all(self.context.client.clone())
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() }
}

/// Makes a patch fail with 409 unless the object is still the one that was seen.
fn at_version(body: &mut Value, version: &str) {
    body["metadata"]["resourceVersion"] = json!(version);
}

fn parse(name: &str, view: &QueueView) -> Result<State, ReconcileError> {
    State::parse(&view.state).ok_or_else(|| {
        ReconcileError::Stuck(format!(
            "queue {name} has the unknown state `{}`, known are Open, Closed, Closing, Unknown",
            view.state
        ))
    })
}
