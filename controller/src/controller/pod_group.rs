//! The PodGroup controller: plain pods of our scheduler get a PodGroup.
//!
//! What a user sees: a pod, Deployment, StatefulSet, DaemonSet or Job whose pods name our scheduler is scheduled as a gang
//! without anybody writing a PodGroup. All pods of one controller share `podgroup-<its uid>`, a pod on its own gets
//! `podgroup-<pod uid>`; the pods then carry the annotation `scheduling.k8s.io/group-name`. Pods that carry it already
//! (Volcano jobs, Kubeflow, ...) are never touched. PodGroups end with their owners, by Kubernetes' own collection.
//!
//! Differences from Volcano: an owner is looked up by its API group too and a failing look-up is tried again instead of
//! ignored; a StatefulSet's pods are looked for in its namespace (C3); a rollout updates minimum and resources of an
//! existing group, and never its queue (C4); pods that ended or are being deleted get no group; a refused PodGroup is
//! told as an event on the pod (C54).
//!
//! Work is done per PodGroup, so a thousand pods of one Job cost one creation and one patch each.

mod desired;
mod ensure;
mod ownership;
mod usage;
mod workload;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, StatefulSet},
    core::v1::{ObjectReference, Pod},
};
use kube::{
    Api, ResourceExt,
    runtime::watcher::{self, Event},
};
use tephra_api::keys;
use tokio::time::Instant;

use self::{ensure::Ensure, workload::Workload};
use crate::{
    context::Context,
    event_log::{Severity, record},
    mirror::{Change, Key, Mirror},
    reconcile::{self, Reconciler},
    refusal::ReconcileError,
    watch::{watch, watch_pods},
    work_queue::WorkQueue,
};

/// Name in `--controllers`.
pub(crate) const NAME: &str = "pg-controller";
/// Reason of the event on a pod whose PodGroup was refused.
const REFUSED: &str = "FailedCreatePodGroup";

/// Runs the controller until shutdown.
pub(crate) async fn run(context: Context) {
    let (client, options) = (context.client.clone(), context.options.clone());
    let relist = options.relist_period;
    let pods = watch_pods(&Api::all(client.clone()), &options.scheduler_names, relist);
    let pods = pods.into_iter().map(|pods| pods.map(|(which, pod)| Input::Pod(which, pod)).boxed());
    let mut sources: Vec<_> = pods.collect();
    if options.workload_support {
        let every = watcher::Config::default();
        let replica_sets = watch(Api::all(client.clone()), every.clone(), relist);
        let stateful_sets = watch(Api::all(client), every, relist);
        sources.push(replica_sets.map(Input::ReplicaSet).boxed());
        sources.push(stateful_sets.map(Input::StatefulSet).boxed());
    }
    let (workers, shutdown) = (context.options.pod_group_workers, context.shutdown.clone());
    let metrics = context.metrics.clone();
    let groups = PodGroups::new(context);
    reconcile::run(NAME, groups, stream::select_all(sources), workers, &metrics, shutdown).await;
}

enum Input {
    /// From the watch of the scheduler name with this index.
    Pod(usize, Event<Pod>),
    ReplicaSet(Event<ReplicaSet>),
    StatefulSet(Event<StatefulSet>),
}

/// A pod that waits for its group.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    group: Key,
    pod: Arc<Pod>,
}

struct PodGroups {
    context: Context,
    /// One mirror for each scheduler name.
    pods: Vec<Mirror<Waiting>>,
    replica_sets: Mirror<Workload>,
    stateful_sets: Mirror<Workload>,
    /// Pods to annotate, by group.
    waiting: BTreeMap<Key, BTreeMap<Key, Arc<Pod>>>,
    /// Workloads that changed since their group was looked at, by group.
    changed: BTreeMap<Key, Workload>,
    /// What is being looked at now: comes back into `changed` if that fails.
    in_hand: BTreeMap<Key, Workload>,
    /// What was said last about a group that was refused.
    told: BTreeMap<Key, String>,
}

impl PodGroups {
    fn new(context: Context) -> Self {
        let pods = context.options.scheduler_names.iter().map(|_| Mirror::default()).collect();
        PodGroups {
            context,
            pods,
            replica_sets: Mirror::default(),
            stateful_sets: Mirror::default(),
            waiting: BTreeMap::new(),
            changed: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn observe_pod(&mut self, which: usize, event: Event<Pod>, queue: &mut WorkQueue<Key>) {
        let names = &self.context.options.scheduler_names;
        let (Some(name), Some(mirror)) = (names.get(which), self.pods.get_mut(which)) else {
            return;
        };
        for change in mirror.apply(event, |pod| waiting(pod, name)) {
            match change {
                Change::Set { key, old } => {
                    if let Some(old) = old {
                        forget(&mut self.waiting, &old.group, &key);
                    }
                    let Some(new) = mirror.get(&key) else { continue };
                    let of_group = self.waiting.entry(new.group.clone()).or_default();
                    of_group.insert(key, new.pod.clone());
                    queue.add(new.group.clone(), Instant::now());
                }
                Change::Gone { key, old } => {
                    forget(&mut self.waiting, &old.group, &key);
                    if !self.waiting.contains_key(&old.group) {
                        self.told.remove(&old.group);
                    }
                }
                Change::Synced => {}
            }
        }
        self.note_readiness();
    }

    fn observe_workload(
        &mut self,
        changes: Vec<Change<Workload>>,
        stateful: bool,
        queue: &mut WorkQueue<Key>,
    ) {
        let mirror = if stateful { &self.stateful_sets } else { &self.replica_sets };
        for change in changes {
            if let Change::Set { key, .. } = change
                && let Some(workload) = mirror.get(&key)
            {
                self.changed.insert(workload.group(), workload.clone());
                queue.add(workload.group(), Instant::now());
            }
        }
        self.note_readiness();
    }

    fn note_readiness(&self) {
        let workloads = !self.context.options.workload_support
            || (self.replica_sets.synced() && self.stateful_sets.synced());
        if workloads && self.pods.iter().all(Mirror::synced) {
            self.context.readiness.mark(NAME);
        }
    }
}

/// A pod of interest: ours, without a group, neither ended nor going.
fn waiting(mut pod: Pod, scheduler_name: &str) -> Option<Waiting> {
    let ours = pod.spec.as_ref()?.scheduler_name.as_deref() == Some(scheduler_name);
    let grouped = pod.annotations().get(keys::GROUP_NAME).is_some_and(|name| !name.is_empty());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let over =
        matches!(phase, Some("Succeeded" | "Failed")) || pod.metadata.deletion_timestamp.is_some();
    if !ours || grouped || over {
        return None;
    }
    pod.metadata.managed_fields = None;
    pod.status = None;
    Some(Waiting { group: ownership::group_of(&pod), pod: Arc::new(pod) })
}

fn forget(waiting: &mut BTreeMap<Key, BTreeMap<Key, Arc<Pod>>>, group: &Key, pod: &Key) {
    if let Some(pods) = waiting.get_mut(group) {
        pods.remove(pod);
        if pods.is_empty() {
            waiting.remove(group);
        }
    }
}

/// What one look at a group found out.
struct Outcome {
    /// Pods that carry the annotation now, with the resourceVersion they had before.
    annotated: BTreeSet<(Key, Option<String>)>,
    result: Result<(), ReconcileError>,
}

impl Reconciler for PodGroups {
    type Key = Key;
    type Input = Input;
    type Outcome = Outcome;

    fn observe(&mut self, input: Input, queue: &mut WorkQueue<Key>) {
        let names = self.context.options.scheduler_names.clone();
        match input {
            Input::Pod(which, event) => self.observe_pod(which, event, queue),
            Input::ReplicaSet(event) => {
                let changes =
                    self.replica_sets.apply(event, |set| Workload::of_replica_set(&set, &names));
                self.observe_workload(changes, false, queue);
            }
            Input::StatefulSet(event) => {
                let changes =
                    self.stateful_sets.apply(event, |set| Workload::of_stateful_set(&set, &names));
                self.observe_workload(changes, true, queue);
            }
        }
    }

    fn begin(&mut self, group: &Key) -> BoxFuture<'static, Outcome> {
        let workload = self.changed.remove(group);
        if let Some(workload) = &workload {
            self.in_hand.insert(group.clone(), workload.clone());
        }
        let pods: Vec<Arc<Pod>> =
            self.waiting.get(group).into_iter().flatten().map(|(_, pod)| pod.clone()).collect();
        let ensure = Ensure { context: self.context.clone(), group: group.clone() };
        async move {
            let mut annotated = BTreeSet::new();
            let result = ensure.look(&pods, workload.as_ref(), &mut annotated).await;
            Outcome { annotated, result }
        }
        .boxed()
    }

    fn finish(&mut self, group: &Key, outcome: Outcome) -> Result<(), ReconcileError> {
        let in_hand = self.in_hand.remove(group);
        if let (Err(_), Some(workload)) = (&outcome.result, in_hand) {
            self.changed.entry(group.clone()).or_insert(workload);
        }
        for (pod, version) in outcome.annotated {
            let unchanged = self
                .waiting
                .get(group)
                .and_then(|pods| pods.get(&pod))
                .is_some_and(|waiting| waiting.resource_version() == version);
            if unchanged {
                forget(&mut self.waiting, group, &pod);
            }
        }
        if outcome.result.is_ok() {
            self.told.remove(group);
        }
        outcome.result
    }

    fn complain(
        &mut self,
        group: &Key,
        error: &ReconcileError,
        _: u32,
    ) -> Option<BoxFuture<'static, ()>> {
        let refusal = error.refusal()?.to_owned();
        let (_, pod) = self.waiting.get(group)?.first_key_value()?;
        if self.told.get(group) == Some(&refusal) {
            return None;
        }
        self.told.insert(group.clone(), refusal.clone());
        let object = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            namespace: pod.namespace(),
            name: pod.metadata.name.clone(),
            uid: pod.uid(),
            ..ObjectReference::default()
        };
        let text = format!("PodGroup {} was refused: {refusal}", group.name);
        Some(record(self.context.clone(), object, Severity::Warning, REFUSED, text).boxed())
    }
}
