//! The suspension controller: a gang that has to make room is told, stopped by its owner's switch, and let run again when
//! the scheduler holds room for it. `docs/suspension.md` tells the protocol.
//!
//! What a user sees: pods are asked for a checkpoint, the Job is suspended instead of its pods being killed, and later it
//! runs again by itself, in its old place in the queue. The scheduler only writes its wish on the PodGroup.
//!
//! Everything that counts stands in annotations, so a crash between any two writes loses nothing: `steps.rs` decides the
//! next step from the objects, `writes.rs` says what it writes, `look.rs` carries it out. PodGroups and pods are watched;
//! owners are read when their gang is looked at, so their kinds need not be installed.

mod gang;
mod look;
mod owner;
mod shape;
mod steps;
mod telling;
#[cfg(test)]
mod tests;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event},
};
use tephra_api::{
    keys,
    scheduling::PodGroup,
    suspension::{Owner, Record},
};
use tokio::time::Instant;

use self::{
    gang::{SlimPod, pod_seen},
    look::{Again, Found, Look},
    steps::PodSeen,
    telling::Told,
};
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
pub(crate) const NAME: &str = "suspension-controller";
/// How long changes of a gang's pods are gathered.
const GATHER: Duration = Duration::from_millis(100);
/// Pods were written: their watch will say so, and if it does not, this is how long it takes.
const SOON: Duration = Duration::from_secs(1);
/// Owners are not watched: what a person does there is seen after this time at the latest.
const RARELY: Duration = Duration::from_secs(60);
/// Gangs worked on at the same time.
const WORKERS: usize = 8;

/// Runs the controller until shutdown.
pub(crate) async fn run(context: Context) {
    let (client, options) = (context.client.clone(), context.options.clone());
    let relist = options.relist_period;
    let kind = ApiResource::erase::<Pod>(&());
    let pods = Api::<SlimPod>::all_with(client.clone(), &kind);
    let pods = watch_pods(&pods, &options.scheduler_names, relist);
    let pods = pods.into_iter().map(|pods| pods.map(|(which, pod)| Input::Pod(which, pod)).boxed());
    let kind = ApiResource::erase::<PodGroup>(&());
    let groups = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let groups = watch(groups, watcher::Config::default(), relist);
    let mut sources: Vec<_> = pods.collect();
    sources.push(groups.map(Input::Group).boxed());
    let (metrics, shutdown) = (context.metrics.clone(), context.shutdown.clone());
    let gangs = Gangs::new(context);
    reconcile::run(NAME, gangs, stream::select_all(sources), WORKERS, &metrics, shutdown).await;
}

enum Input {
    Group(Event<DynamicObject>),
    /// From the watch of the scheduler name with this index.
    Pod(usize, Event<SlimPod>),
}

/// A PodGroup that carries something of the protocol.
#[derive(Clone, Debug, PartialEq)]
struct GroupView {
    /// The gang's PodGroup: itself, or the one it stands in for.
    gang: Key,
    /// From its record.
    owner: Option<Owner>,
    /// What it carries.
    texts: [Option<String>; 4],
}

fn group_view(group: &DynamicObject) -> Option<GroupView> {
    let texts = [keys::SUSPEND, keys::SUSPENDED, keys::RESUME, keys::HOLD]
        .map(|key| group.annotations().get(key).cloned());
    let [intent, record, resume, _] = &texts;
    if intent.is_none() && record.is_none() && resume.is_none() {
        return None;
    }
    let record = record.as_ref().and_then(|text| Record::parse(text).ok());
    let mut gang = Key::of(group);
    let mut owner = None;
    if let Some(record) = record {
        if gang.name == gang::stand_in_name(&record.group) {
            gang.name = record.group;
        }
        owner = record.owner;
    }
    Some(GroupView { gang, owner, texts })
}

/// A pod of a gang.
#[derive(Clone, Debug, PartialEq)]
struct PodView {
    gang: Key,
    seen: PodSeen,
}

struct Gangs {
    context: Context,
    groups: Mirror<GroupView>,
    /// One mirror for each scheduler name.
    pods: Vec<Mirror<PodView>>,
    /// Pods by gang: index of the mirror, and key.
    members: BTreeMap<Key, BTreeSet<(Key, usize)>>,
    /// How many PodGroups of a gang carry something of the protocol.
    concerned: BTreeMap<Key, usize>,
    /// Owners of records that have gone, until their gang was looked at.
    former: BTreeMap<Key, Owner>,
    /// Gangs whose owner the server will not have suspended.
    refused: BTreeSet<Key>,
    again: BTreeMap<Key, Instant>,
    /// What was told last about a gang.
    told: BTreeMap<Key, Told>,
    /// PodGroups that events are about.
    about: BTreeMap<Key, ObjectReference>,
}

impl Gangs {
    fn new(context: Context) -> Self {
        let pods = context.options.scheduler_names.iter().map(|_| Mirror::default()).collect();
        Gangs {
            context,
            groups: Mirror::default(),
            pods,
            members: BTreeMap::new(),
            concerned: BTreeMap::new(),
            former: BTreeMap::new(),
            refused: BTreeSet::new(),
            again: BTreeMap::new(),
            told: BTreeMap::new(),
            about: BTreeMap::new(),
        }
    }

    fn complete(&self) -> bool {
        self.groups.synced() && self.pods.iter().all(Mirror::synced)
    }

    /// All lists are there: look at every gang that carries something, or whose pods do.
    fn everything(&self, queue: &mut WorkQueue<Key>) {
        if !self.complete() {
            return;
        }
        self.context.readiness.mark(NAME);
        let asked = self.pods.iter().flat_map(Mirror::iter).filter(|(_, pod)| pod.asked());
        let asked = asked.map(|(_, pod)| &pod.gang);
        for gang in self.concerned.keys().chain(asked) {
            queue.add(gang.clone(), Instant::now());
        }
    }

    fn observe_group(&mut self, event: Event<DynamicObject>, queue: &mut WorkQueue<Key>) {
        for change in self.groups.apply(event, |group| group_view(&group)) {
            let (old, new) = match change {
                Change::Set { key, old } => (old, self.groups.get(&key)),
                Change::Gone { old, .. } => (Some(old), None),
                Change::Synced => {
                    self.everything(queue);
                    continue;
                }
            };
            if let Some(view) = new {
                *self.concerned.entry(view.gang.clone()).or_default() += 1;
                queue.add(view.gang.clone(), Instant::now());
            }
            let Some(old) = old else { continue };
            if let Some(count) = self.concerned.get_mut(&old.gang) {
                *count -= 1;
                if *count == 0 {
                    self.concerned.remove(&old.gang);
                }
            }
            if let Some(owner) = old.owner {
                self.former.insert(old.gang.clone(), owner);
            }
            queue.add(old.gang, Instant::now());
        }
    }

    fn observe_pod(&mut self, which: usize, event: Event<SlimPod>, queue: &mut WorkQueue<Key>) {
        let Some(mirror) = self.pods.get_mut(which) else { return };
        let view = |pod: SlimPod| {
            let (group, seen) = pod_seen(&pod)?;
            Some(PodView { gang: Key::new(pod.namespace().unwrap_or_default(), group), seen })
        };
        let mut synced = false;
        for change in mirror.apply(event, view) {
            let (key, old, new) = match change {
                Change::Set { key, old } => {
                    let new = mirror.get(&key).cloned();
                    (key, old, new)
                }
                Change::Gone { key, old } => (key, Some(old), None),
                Change::Synced => {
                    synced = true;
                    continue;
                }
            };
            if let Some(old) = &old
                && let Some(pods) = self.members.get_mut(&old.gang)
            {
                pods.remove(&(key.clone(), which));
                if pods.is_empty() {
                    self.members.remove(&old.gang);
                }
            }
            if let Some(new) = &new {
                self.members.entry(new.gang.clone()).or_default().insert((key, which));
            }
            for view in old.iter().chain(&new) {
                if view.asked() || self.concerned.contains_key(&view.gang) {
                    queue.add(view.gang.clone(), Instant::now() + GATHER);
                }
            }
        }
        if synced {
            self.everything(queue);
        }
    }

    /// The pods of a gang, by name.
    fn pods_of(&self, gang: &Key) -> Vec<PodSeen> {
        let members = self.members.get(gang).into_iter().flatten();
        members
            .filter_map(|(key, which)| Some(self.pods.get(*which)?.get(key)?.seen.clone()))
            .collect()
    }
}

impl PodView {
    /// A request for a checkpoint stands on it.
    fn asked(&self) -> bool {
        self.seen.request.is_some() && self.seen.lives()
    }
}

impl Reconciler for Gangs {
    type Key = Key;
    type Input = Input;
    type Outcome = Found;

    fn observe(&mut self, input: Input, queue: &mut WorkQueue<Key>) {
        match input {
            Input::Group(event) => self.observe_group(event, queue),
            Input::Pod(which, event) => self.observe_pod(which, event, queue),
        }
    }

    fn begin(&mut self, gang: &Key) -> BoxFuture<'static, Found> {
        if !self.complete() {
            return futures::future::ready(Found::nothing()).boxed(); // `everything` will come back to it
        }
        let look = Look {
            context: self.context.clone(),
            key: gang.clone(),
            pods: self.pods_of(gang),
            former: self.former.get(gang).cloned(),
            refused: self.refused.contains(gang),
            told: self.told.get(gang).cloned(),
        };
        look.look().boxed()
    }

    fn finish(&mut self, gang: &Key, found: Found) -> Result<(), ReconcileError> {
        if found.refused {
            self.refused.insert(gang.clone());
        } else {
            self.refused.remove(gang);
        }
        if let Some(about) = found.about {
            self.about.insert(gang.clone(), about);
        }
        if let Some(told) = found.told {
            self.told.insert(gang.clone(), told);
        }
        let again = found.result?;
        let now = Instant::now();
        let due = match again {
            Again::Now => Some(now),
            Again::Soon => Some(now + SOON),
            Again::At(then) => Some(now + self.until(then)),
            Again::Rarely => Some(now + RARELY),
            Again::Never => None,
        };
        match due {
            Some(due) => {
                self.again.insert(gang.clone(), due);
            }
            None if !self.concerned.contains_key(gang) => {
                self.told.remove(gang);
                self.about.remove(gang);
                self.former.remove(gang);
            }
            None => {}
        }
        Ok(())
    }

    fn revisit(&mut self, gang: &Key) -> Option<Instant> {
        self.again.remove(gang)
    }

    fn complain(
        &mut self,
        gang: &Key,
        error: &ReconcileError,
        _: u32,
    ) -> Option<BoxFuture<'static, ()>> {
        let text = format!("cannot be suspended or resumed: {}", error.refusal()?);
        let told = Told { severity: Severity::Warning, reason: "SuspendFailed", text };
        if self.told.get(gang) == Some(&told) {
            return None;
        }
        let about = self.about.get(gang)?.clone();
        self.told.insert(gang.clone(), told.clone());
        let Told { severity, reason, text } = told;
        Some(record(self.context.clone(), about, severity, reason, text).boxed())
    }
}

impl Gangs {
    /// From now on, at least a millisecond so that the clock has passed it.
    fn until(&self, then: Timestamp) -> Duration {
        let left = then.as_millisecond().saturating_sub(self.context.clock.now_ms()).max(0);
        Duration::from_millis(u64::try_from(left).unwrap_or(0).saturating_add(1))
    }
}
