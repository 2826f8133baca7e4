//! The queue controller: queues `root` and `default` exist, every queue has a state and counts of its PodGroups.
//!
//! What a user sees: a queue is `Open` soon after it was created; while it is closing it stays `Closing` until its last
//! PodGroup is gone, then `Closed`; closing a queue closes the queues below it, opening it opens those again that were closed
//! because of it (annotation `volcano.sh/closed-by-parent`). A queue without a parent is put under `root`.
//!
//! Differences from Volcano: the counts by phase are written (C2), a PodGroup that changes its queue is counted in the
//! new one (C25), equal requests are done once (C26), `root` and `default` come back when somebody deletes them.
//!
//! Writes: a merge patch of `/status` with only the fields that are ours (the scheduler owns `allocated` and
//! `reservation` in the same status), and only when one of them differs. A change of state carries the resourceVersion
//! it was decided on; counts do not, the newest wins. PodGroup events of one queue are gathered for [`GATHER`].

mod census;
mod state;
mod sync;

use std::{collections::BTreeSet, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event},
};
use serde_json::Value;
use tephra_api::{
    keys,
    scheduling::{PodGroup, Queue},
};
use tokio::time::Instant;

use self::{
    census::{Census, Counts, Member},
    sync::Sync,
};
use crate::{
    context::Context,
    event_log::{Severity, record},
    mirror::{Change, Key, Mirror},
    reconcile::{self, Reconciler},
    refusal::ReconcileError,
    watch::watch,
    work_queue::WorkQueue,
};

/// Name in `--controllers`.
pub(crate) const NAME: &str = "queue-controller";

/// The queue above all others.
const ROOT: &str = "root";
/// The queue of PodGroups that name none.
const DEFAULT: &str = "default";
/// How long changes of a queue's PodGroups are gathered before its counts are written.
const GATHER: Duration = Duration::from_millis(200);
/// After so many failures a queue that only its owner can mend (no such parent) gets its event: about a second.
const STUCK_TRIES: u32 = 8;

/// Runs the controller until shutdown.
pub(crate) async fn run(context: Context) {
    // Not as typed objects: one that does not fit its type must not stop the watch of all others.
    let client = context.client.clone();
    let all = |kind: ApiResource| Api::<DynamicObject>::all_with(client.clone(), &kind);
    let queues = all(ApiResource::erase::<Queue>(&()));
    let groups = all(ApiResource::erase::<PodGroup>(&()));
    let (every, relist) = (watcher::Config::default(), context.options.relist_period);
    let source = stream::select(
        watch(queues, every.clone(), relist).map(Input::Queue),
        watch(groups, every, relist).map(Input::Group),
    );
    let (workers, shutdown) = (context.options.queue_workers, context.shutdown.clone());
    let metrics = context.metrics.clone();
    let queues = Queues {
        context,
        queues: Mirror::default(),
        groups: Mirror::default(),
        census: Census::default(),
    };
    reconcile::run(NAME, queues, source, workers, &metrics, shutdown).await;
}

enum Input {
    Queue(Event<DynamicObject>),
    Group(Event<DynamicObject>),
}

/// What is remembered of a Queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct QueueView {
    uid: String,
    version: String,
    parent: Option<String>,
    state: String,
    counts: Counts,
    closed_by_parent: bool,
    /// The status has its `allocated`, which the schema requires.
    has_allocated: bool,
}

fn queue_view(queue: &DynamicObject) -> QueueView {
    let status = &queue.data["status"];
    let count = |phase: &str| status[phase].as_i64().and_then(|n| i32::try_from(n).ok());
    QueueView {
        uid: queue.uid().unwrap_or_default(),
        version: queue.resource_version().unwrap_or_default(),
        parent: text(&queue.data["spec"]["parent"]),
        state: text(&status["state"]).unwrap_or_default(),
        counts: Counts {
            unknown: count("unknown").unwrap_or(0),
            pending: count("pending").unwrap_or(0),
            running: count("running").unwrap_or(0),
            inqueue: count("inqueue").unwrap_or(0),
            completed: count("completed").unwrap_or(0),
        },
        closed_by_parent: queue
            .annotations()
            .get(keys::CLOSED_BY_PARENT)
            .is_some_and(|by| by == "true"),
        has_allocated: status["allocated"].is_object(),
    }
}

fn member(group: &DynamicObject) -> Member {
    Member {
        queue: text(&group.data["spec"]["queue"]).unwrap_or_else(|| DEFAULT.into()),
        phase: text(&group.data["status"]["phase"]).unwrap_or_default(),
    }
}

/// A text that is there and not empty.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The parent a queue hangs under; none for `root`.
fn parent_of<'a>(name: &str, view: &'a QueueView) -> Option<&'a str> {
    (name != ROOT).then(|| view.parent.as_deref().unwrap_or(ROOT))
}

struct Queues {
    context: Context,
    queues: Mirror<QueueView>,
    groups: Mirror<Member>,
    census: Census,
}

impl Queues {
    fn complete(&self) -> bool {
        self.queues.synced() && self.groups.synced()
    }

    fn children(&self, name: &str) -> Vec<Key> {
        self.queues
            .iter()
            .filter(|(key, view)| parent_of(&key.name, view) == Some(name))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn observe_queue(&mut self, event: Event<DynamicObject>, queue: &mut WorkQueue<Key>) {
        let now = Instant::now();
        for change in self.queues.apply(event, |queue| Some(queue_view(&queue))) {
            match change {
                Change::Set { key, old } => {
                    let state = self.queues.get(&key).map(|view| view.state.as_str());
                    if self.complete() && old.is_none_or(|old| Some(old.state.as_str()) != state) {
                        self.children(&key.name).into_iter().for_each(|key| queue.add(key, now));
                    }
                    queue.add(key, now);
                }
                Change::Gone { key, .. } => {
                    self.children(&key.name).into_iter().for_each(|key| queue.add(key, now));
                    queue.add(key, now);
                }
                Change::Synced => self.everything(queue),
            }
        }
    }

    fn observe_group(&mut self, event: Event<DynamicObject>, queue: &mut WorkQueue<Key>) {
        let gathered = Instant::now() + GATHER;
        let mut touched = BTreeSet::new();
        for change in self.groups.apply(event, |group| Some(member(&group))) {
            match change {
                Change::Set { key, old } => {
                    if let Some(old) = old {
                        self.census.leave(&old);
                        touched.insert(old.queue);
                    }
                    if let Some(new) = self.groups.get(&key) {
                        self.census.enter(new);
                        touched.insert(new.queue.clone());
                    }
                }
                Change::Gone { old, .. } => {
                    self.census.leave(&old);
                    touched.insert(old.queue);
                }
                Change::Synced => self.everything(queue),
            }
        }
        for name in touched {
            queue.add(Key::new("", name), gathered);
        }
    }

    /// Both lists are complete: look at every queue, and at those that must exist.
    fn everything(&self, queue: &mut WorkQueue<Key>) {
        if !self.complete() {
            return;
        }
        self.context.readiness.mark(NAME);
        let now = Instant::now();
        for name in [ROOT, DEFAULT] {
            queue.add(Key::new("", name), now);
        }
        for (key, _) in self.queues.iter() {
            queue.add(key.clone(), now);
        }
    }
}

impl Reconciler for Queues {
    type Key = Key;
    type Input = Input;
    type Outcome = Result<(), ReconcileError>;

    fn observe(&mut self, input: Input, queue: &mut WorkQueue<Key>) {
        match input {
            Input::Queue(event) => self.observe_queue(event, queue),
            Input::Group(event) => self.observe_group(event, queue),
        }
    }

    fn begin(&mut self, key: &Key) -> BoxFuture<'static, Self::Outcome> {
        if !self.complete() {
            return futures::future::ready(Ok(())).boxed(); // `everything` will come back to it
        }
        let view = self.queues.get(key).cloned();
        let parent = view
            .as_ref()
            .and_then(|view| parent_of(&key.name, view))
            .map(|parent| (parent.to_owned(), self.queues.get(&Key::new("", parent)).cloned()));
        let (groups, counts) = self.census.of(&key.name);
        match &view {
            Some(_) => self.context.metrics.queue(&key.name, counts.for_metrics()),
            None => self.context.metrics.queue_gone(&key.name),
        }
        let sync = Sync { context: self.context.clone(), name: key.name.clone(), groups, counts };
        async move {
            match view {
                Some(view) => sync.existing(&view, parent).await,
                None => sync.missing().await,
            }
        }
        .boxed()
    }

    fn finish(&mut self, _: &Key, outcome: Self::Outcome) -> Self::Outcome {
        outcome
    }

    fn complain(
        &mut self,
        key: &Key,
        error: &ReconcileError,
        failures: u32,
    ) -> Option<BoxFuture<'static, ()>> {
        let limit = u32::try_from(self.context.options.max_requeues).ok()?.max(1);
        let limit = match error {
            ReconcileError::Stuck(_) => limit.min(STUCK_TRIES),
            ReconcileError::Api { .. } => limit,
        };
        let view = self.queues.get(key)?;
        (failures == limit).then(|| {
            record(
                self.context.clone(),
                reference(&key.name, view),
                Severity::Warning,
                "SyncQueue",
                format!("SyncQueue queue failed for {error}"),
            )
            .boxed()
        })
    }
}

fn reference(name: &str, view: &QueueView) -> ObjectReference {
    ObjectReference {
        api_version: Some(Queue::api_version(&()).into_owned()),
        kind: Some(Queue::kind(&()).into_owned()),
        name: Some(name.into()),
        uid: Some(view.uid.clone()),
        ..ObjectReference::default()
    }
}
