//! Simulated kubelets: pods that were bound start, run for as long as they say, end as they say, and go when deleted.
//!
//! One task plays the kubelets of all nodes, with one ordered set of timers, over the same API a real kubelet
//! uses; it only ever writes `/status` of pods and completes graceful deletions. A pod's annotations decide its life:
//!
//! | annotation | meaning |
//! | --- | --- |
//! | `tephra.sh/run-for`, `rig/run-for` | run time, a Go duration (`1m30s`) or seconds; without it [`KubeletOptions::default_run_ms`] |
//! | `tephra.sh/end-phase`, `rig/end-phase` | `Succeeded` (default) or `Failed` |
//! | `tephra.sh/exit-code`, `rig/exit-code` | exit code of the containers; another than 0 makes the end phase `Failed` |
//!
//! All waiting goes through tokio's clock and timers fire in the order (time, namespace, name), so a run in paused time
//! repeats itself exactly. `lifecycle.rs` decides what happens to a pod and when, `status.rs` builds what is written.

mod lifecycle;
mod status;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, Stream, StreamExt, future,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event},
    },
};
use tephra_api::clock::{Clock, SystemClock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::{
    lifecycle::{Step, next_step},
    view::{Key, PodView},
};

/// Annotation of nodes that kwok, and therefore this simulation, may play.
pub const SIMULATED_NODE: &str = "kwok.x-k8s.io/node";

/// How the simulated kubelets behave.
#[derive(Clone)]
pub struct KubeletOptions {
    /// Milliseconds from seeing a pod bound until it runs.
    pub start_delay_ms: i64,
    /// Milliseconds a pod without a run time runs; none = until it is deleted.
    pub default_run_ms: Option<i64>,
    /// Milliseconds a deleted pod needs to end; none = its whole grace period. Never longer than that.
    pub termination_ms: Option<i64>,
    /// Play only nodes with the annotation [`SIMULATED_NODE`]; otherwise all.
    pub only_simulated_nodes: bool,
    /// Requests in the air at the same time.
    pub in_flight: usize,
    /// Wall time for what is written into pods.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for KubeletOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeletOptions")
            .field("start_delay_ms", &self.start_delay_ms)
            .field("default_run_ms", &self.default_run_ms)
            .finish_non_exhaustive()
    }
}

impl Default for KubeletOptions {
    fn default() -> Self {
        KubeletOptions {
            start_delay_ms: 100,
            default_run_ms: None,
            termination_ms: None,
            only_simulated_nodes: false,
            in_flight: 32,
            clock: Arc::new(SystemClock),
        }
    }
}

/// Plays the kubelets until `shutdown`. Trouble with the API server is retried for ever.
pub async fn run(client: Client, options: KubeletOptions, shutdown: CancellationToken) {
    let bound = watcher::Config::default().fields("spec.nodeName!=");
    let pods = watch::<Pod>(Api::all(client.clone()), bound).map(Input::Pod).boxed();
    let nodes = if options.only_simulated_nodes {
        let nodes = Api::<PartialObjectMeta<Node>>::all(client.clone());
        watch(nodes, watcher::Config::default()).map(Input::Node).boxed()
    } else {
        stream::pending().boxed()
    };
    let mut source = stream::select(nodes, pods);
    let mut kubelets = Kubelets::new(client, options);
    let mut in_the_air: FuturesUnordered<BoxFuture<'static, Answer>> = FuturesUnordered::new();
    loop {
        while in_the_air.len() < kubelets.options.in_flight.max(1)
            && let Some(request) = kubelets.next_request()
        {
            in_the_air.push(request);
        }
        let free = in_the_air.len() < kubelets.options.in_flight.max(1);
        let timer = kubelets.next_timer().filter(|_| free);
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(answer) = in_the_air.next(), if !in_the_air.is_empty() => kubelets.answered(answer),
            Some(input) = source.next() => kubelets.observe(input),
            () = sleep_until(timer) => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => future::pending().await,
    }
}

#[expect(clippy::large_enum_variant, reason = "lives only between the watch and `observe`")]
enum Input {
    Pod(Event<Pod>),
    Node(Event<PartialObjectMeta<Node>>),
}

/// What came back from the server for a step of a pod.
struct Answer {
    key: Key,
    uid: String,
    result: Result<Option<Box<Pod>>, Box<kube::Error>>,
}

/// One bound pod.
struct Tracked {
    view: PodView,
    /// Wall time at which it was first seen bound.
    seen_ms: i64,
    /// Wall time at which its containers were started by us; more exact than what its status can say.
    started_ms: Option<i64>,
    step: Option<(Instant, Step)>,
    /// A request about it is in the air.
    busy: bool,
    failures: u32,
}

struct Kubelets {
    client: Client,
    options: KubeletOptions,
    pods: BTreeMap<Key, Tracked>,
    timers: BTreeSet<(Instant, Key)>,
    simulated_nodes: BTreeSet<String>,
    listed_pods: Option<BTreeSet<Key>>,
    listed_nodes: Option<BTreeSet<String>>,
    started: u32,
}

impl Kubelets {
    fn new(client: Client, options: KubeletOptions) -> Self {
        Kubelets {
            client,
            options,
            pods: BTreeMap::new(),
            timers: BTreeSet::new(),
            simulated_nodes: BTreeSet::new(),
            listed_pods: None,
            listed_nodes: None,
            started: 0,
        }
    }

    fn observe(&mut self, input: Input) {
        match input {
            Input::Pod(Event::Init) => self.listed_pods = Some(BTreeSet::new()),
            Input::Pod(Event::InitApply(pod)) => {
                if let Some(listed) = &mut self.listed_pods {
                    listed.insert(Key::of(&pod));
                }
                self.observe_pod(pod);
            }
            Input::Pod(Event::Apply(pod)) => self.observe_pod(pod),
            Input::Pod(Event::Delete(pod)) => self.forget(&Key::of(&pod)),
            Input::Pod(Event::InitDone) => {
                let listed = self.listed_pods.take().unwrap_or_default();
                let vanished: Vec<Key> =
                    self.pods.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                vanished.iter().for_each(|key| self.forget(key));
            }
            Input::Node(event) => self.observe_node(event),
        }
    }

    fn observe_node(&mut self, event: Event<PartialObjectMeta<Node>>) {
        match event {
            Event::Init => self.listed_nodes = Some(BTreeSet::new()),
            Event::InitApply(node) | Event::Apply(node) => {
                let name = node.name_any();
                if let Some(listed) = &mut self.listed_nodes {
                    listed.insert(name.clone());
                }
                if !node.annotations().contains_key(SIMULATED_NODE) {
                    self.simulated_nodes.remove(&name);
                } else if self.simulated_nodes.insert(name.clone()) {
                    let keys: Vec<Key> = self
                        .pods
                        .iter()
                        .filter(|(_, pod)| pod.view.node == name)
                        .map(|(key, _)| key.clone())
                        .collect();
                    keys.iter().for_each(|key| self.plan(key));
                }
            }
            Event::Delete(node) => {
                self.simulated_nodes.remove(&node.name_any());
            }
            Event::InitDone => {
                let listed = self.listed_nodes.take().unwrap_or_default();
                self.simulated_nodes.retain(|name| listed.contains(name));
            }
        }
    }

    fn observe_pod(&mut self, pod: Pod) {
        let key = Key::of(&pod);
        let Some(view) = PodView::of(pod) else { return self.forget(&key) };
        match self.pods.get_mut(&key) {
            Some(tracked) if tracked.view.uid == view.uid => {
                if view.version < tracked.view.version {
                    return; // we know better from the answer to our own write
                }
                tracked.view = view;
            }
            _ => {
                self.forget(&key); // another pod of the same name
                let tracked = Tracked {
                    view,
                    seen_ms: self.options.clock.now_ms(),
                    started_ms: None,
                    step: None,
                    busy: false,
                    failures: 0,
                };
                self.pods.insert(key.clone(), tracked);
            }
        }
        self.plan(&key);
    }

    fn forget(&mut self, key: &Key) {
        if let Some(Tracked { step: Some((at, _)), .. }) = self.pods.remove(key) {
            self.timers.remove(&(at, key.clone()));
        }
    }

    /// Sets the timer for what happens to a pod next.
    fn plan(&mut self, key: &Key) {
        let now_ms = self.options.clock.now_ms();
        let Some(tracked) = self.pods.get_mut(key) else { return };
        if let Some((at, _)) = tracked.step.take() {
            self.timers.remove(&(at, key.clone()));
        }
        let played =
            !self.options.only_simulated_nodes || self.simulated_nodes.contains(&tracked.view.node);
        if tracked.busy || !played {
            return;
        }
        let next = next_step(&tracked.view, tracked.seen_ms, tracked.started_ms, &self.options);
        let Some((step, due_ms)) = next else { return };
        let wait_ms = u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0);
        let retry_ms = match tracked.failures {
            0 => 0,
            failures => 50 << (failures - 1).min(7), // up to 6.4 s
        };
        let wait = Duration::from_millis(wait_ms.max(retry_ms));
        let Some(at) = Instant::now().checked_add(wait) else { return };
        tracked.step = Some((at, step));
        self.timers.insert((at, key.clone()));
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The request for the first pod whose timer has run out.
    fn next_request(&mut self) -> Option<BoxFuture<'static, Answer>> {
        if self.next_timer()? > Instant::now() {
            return None;
        }
        let (_, key) = self.timers.pop_first()?;
        let tracked = self.pods.get_mut(&key)?;
        let (_, step) = tracked.step.take()?;
        tracked.busy = true;
        let now_ms = self.options.clock.now_ms();
        debug!(pod = %key, ?step, "step");
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let view = &tracked.view;
        let uid = view.uid.clone();
        let body = match step {
            Step::Start => {
                self.started = self.started.wrapping_add(1);
                tracked.started_ms = Some(now_ms);
                status::running(view, now_ms, self.started)
            }
            Step::End => {
                let started_ms = tracked.started_ms.or(view.started_ms).unwrap_or(now_ms);
                status::ended(view, started_ms, now_ms)
            }
            Step::Remove => {
                let name = key.name.clone();
                let only_this = Preconditions { uid: Some(uid.clone()), resource_version: None };
                let at_once = DeleteParams {
                    grace_period_seconds: Some(0),
                    preconditions: Some(only_this),
                    ..DeleteParams::default()
                };
                let removal = async move { api.delete(&name, &at_once).await };
                return Some(
                    removal
                        .map(|result| Answer {
                            key,
                            uid,
                            result: result
                                .map(|answer| answer.left().map(Box::new))
                                .map_err(Box::new),
                        })
                        .boxed(),
                );
            }
        };
        let name = key.name.clone();
        let write = async move {
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&body)).await
        };
        let answer = move |result: Result<Pod, kube::Error>| Answer {
            key,
            uid,
            result: result.map(|pod| Some(Box::new(pod))).map_err(Box::new),
        };
        Some(write.map(answer).boxed())
    }

    fn answered(&mut self, answer: Answer) {
        let Answer { key, uid, result } = answer;
        let Some(tracked) = self.pods.get_mut(&key).filter(|pod| pod.view.uid == uid) else {
            return; // gone meanwhile
        };
        tracked.busy = false;
        match result {
            Ok(Some(pod)) => {
                tracked.failures = 0;
                self.observe_pod(*pod);
            }
            Ok(None) => self.forget(&key),
            Err(error) => match error.as_ref() {
                kube::Error::Api(status) if status.code == 404 => self.forget(&key),
                _ => {
                    tracked.failures = tracked.failures.saturating_add(1);
                    if !matches!(error.as_ref(), kube::Error::Api(status) if status.code == 409) {
                        warn!(pod = %key, %error, "a step of a simulated kubelet failed, trying again");
                    }
                    self.plan(&key);
                }
            },
        }
    }
}

/// A pause between two tries to watch that is always the same: a simulation must repeat itself.
struct Pause;

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(200))
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {}
}

fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    watcher::watcher(api, config).backoff(Pause).filter_map(|event| {
        future::ready(event.map_err(|error| debug!(%error, "watch of a simulated kubelet")).ok())
    })
}

#[cfg(test)]
mod tests;
