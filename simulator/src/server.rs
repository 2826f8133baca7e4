//! [`ApiServer`]: the whole server as a value, and what tests may do to it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::{Clock, VirtualClock};
use crate::context::Context;
use crate::faults::Faults;
use crate::history::{History, WriteRecord};
use crate::service::ApiService;
use crate::store::Store;

/// How a server is set up.
#[derive(Clone)]
pub struct ServerOptions {
    /// Where `creationTimestamp` and all other times come from.
    pub clock: Arc<dyn Clock>,
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Write records to keep; 0 keeps none.
    pub history_limit: usize,
    /// Events kept per resource for watches and paging; older resourceVersions answer 410.
    pub window: usize,
    /// Pause between bookmarks on watches that asked for them.
    pub bookmark_interval: Duration,
    /// Delete objects all of whose owners do not exist, as the garbage collector of a cluster does.
    pub collect_absent_owners: bool,
}

impl Default for ServerOptions {
    /// A virtual clock from 2026-01-01, seed 0, 100,000 records, 16,384 events, a bookmark a minute.
    fn default() -> Self {
        Self {
            clock: Arc::new(VirtualClock::default()),
            seed: 0,
            history_limit: 100_000,
            window: 16_384,
            bookmark_interval: Duration::from_secs(60),
            collect_absent_owners: true,
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("seed", &self.seed)
            .field("history_limit", &self.history_limit)
            .field("window", &self.window)
            .field("bookmark_interval", &self.bookmark_interval)
            .field("collect_absent_owners", &self.collect_absent_owners)
            .finish_non_exhaustive()
    }
}

/// An in-process Kubernetes API server. Clones share one state.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) state: Mutex<State>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) bookmark_interval: Duration,
    collect_absent_owners: bool,
    faults: Mutex<Option<Box<dyn Faults>>>,
    has_faults: AtomicBool,
    /// Told whenever a client crashes.
    crashed: Notify,
}

/// What one lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) history: History,
    pub(crate) requests: u64,
    pub(crate) watches: u64,
    /// Answer a watch from a forgotten resourceVersion with HTTP 410 instead of an ERROR event.
    pub(crate) gone_as_http: bool,
    clients: BTreeMap<Arc<str>, ClientLife>,
}

/// The life of one client process.
#[derive(Debug, Default)]
struct ClientLife {
    dead: bool,
    /// Grows with each crash; watches of an earlier life stay broken.
    life: u64,
    writes: u64,
    crash_at: Option<u64>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

impl State {
    /// The present life of a client, `None` while it is dead.
    pub(crate) fn life(&self, identity: &str) -> Option<u64> {
        match self.clients.get(identity) {
            None => Some(0),
            Some(client) if client.dead => None,
            Some(client) => Some(client.life),
        }
    }

    /// Counts an applied write; true if the client dies of it.
    pub(crate) fn count_write(&mut self, identity: &Arc<str>) -> bool {
        let client = self.clients.entry(Arc::clone(identity)).or_default();
        client.writes += 1;
        let dies = client.crash_at.is_some_and(|k| client.writes >= k);
        if dies {
            client.crash_at = None;
            client.dead = true;
            client.life += 1;
        }
        dies
    }
}

impl Inner {
    pub(crate) fn has_faults(&self) -> bool {
        self.has_faults.load(Ordering::Relaxed)
    }

    /// Asks the fault hook, if there is one.
    pub(crate) fn with_faults<T>(&self, ask: impl FnOnce(&mut dyn Faults) -> T) -> Option<T> {
        if !self.has_faults() {
            return None;
        }
        let mut faults = self.faults.lock();
        let faults = faults.as_mut()?;
        Some(ask(faults.as_mut()))
    }

    /// The context of a request that is answered now.
    pub(crate) fn context(&self) -> Context {
        Context::at(self.clock.now_ms(), self.collect_absent_owners)
    }

    pub(crate) fn announce_crash(&self) {
        self.state.lock().store.wake_all();
        self.crashed.notify_waiters();
    }
}

impl ApiServer {
    /// A server with the objects of a fresh cluster: four namespaces and the two system priority classes.
    #[must_use]
    pub fn new(options: ServerOptions) -> Self {
        let state = State {
            store: Store::new(options.seed, options.window),
            history: History::new(options.history_limit),
            requests: 0,
            watches: 0,
            gone_as_http: false,
            clients: BTreeMap::new(),
        };
        let server = Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                clock: options.clock,
                bookmark_interval: options.bookmark_interval,
                collect_absent_owners: options.collect_absent_owners,
                faults: Mutex::new(None),
                has_faults: AtomicBool::new(false),
                crashed: Notify::new(),
            }),
        };
        server.install_first_objects();
        server
    }

    /// A client without sockets. Must be called inside a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client_as("client")
    }

    /// A client whose requests carry `identity` in the history and to the fault hook.
    #[must_use]
    pub fn client_as(&self, identity: &str) -> kube::Client {
        kube::Client::new(self.service_as(identity), "default")
    }

    /// The server as a `tower::Service`, for clients with layers of their own.
    #[must_use]
    pub fn service_as(&self, identity: &str) -> ApiService {
        ApiService::new(self.clone(), Arc::from(identity))
    }

    /// The clock the server was given.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.clock)
    }

    /// The resourceVersion of the newest write.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.inner.state.lock().store.rv
    }

    /// Requests answered so far (for resources; discovery does not count).
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.inner.state.lock().requests
    }

    /// All kept write records, oldest first.
    #[must_use]
    pub fn history(&self) -> Vec<WriteRecord> {
        self.history_since(0)
    }

    /// Write records from number `seq` on.
    #[must_use]
    pub fn history_since(&self, seq: u64) -> Vec<WriteRecord> {
        self.inner.state.lock().history.since(seq)
    }

    /// Installs a fault hook; it replaces the one before.
    pub fn set_faults(&self, faults: Box<dyn Faults>) {
        *self.inner.faults.lock() = Some(faults);
        self.inner.has_faults.store(true, Ordering::Relaxed);
    }

    /// Removes the fault hook: from now on everything arrives.
    pub fn clear_faults(&self) {
        self.inner.has_faults.store(false, Ordering::Relaxed);
        *self.inner.faults.lock() = None;
    }

    /// Keeps `window` events per resource from now on.
    pub fn set_window(&self, window: usize) {
        self.inner.state.lock().store.set_window(window);
    }

    /// Forgets all events, as an etcd compaction does: watches and pages from before get 410.
    pub fn compact(&self) {
        self.inner.state.lock().store.compact();
    }

    /// Whether a watch from a forgotten resourceVersion is answered with HTTP 410 (true) or, as kube-apiserver does,
    /// with an ERROR event (false, the default).
    pub fn answer_gone_as_http(&self, yes: bool) {
        self.inner.state.lock().gone_as_http = yes;
    }

    /// The process `identity` crashes right after its `k`-th applied write from now (k of at least 1): the write
    /// counts, its answer is lost, open watches break, and all requests fail until [`ApiServer::revive`].
    pub fn crash_after_write(&self, identity: &str, k: u64) {
        let mut state = self.inner.state.lock();
        let client = state.clients.entry(Arc::from(identity)).or_default();
        client.crash_at = Some(client.writes + k.max(1));
    }

    /// Crashes a process now.
    pub fn kill(&self, identity: &str) {
        {
            let mut state = self.inner.state.lock();
            let client = state.clients.entry(Arc::from(identity)).or_default();
            if client.dead {
                return;
            }
            client.dead = true;
            client.life += 1;
        }
        self.inner.announce_crash();
    }

    /// The process `identity` is back: new requests are answered again. Watches of its earlier life stay broken.
    pub fn revive(&self, identity: &str) {
        if let Some(client) = self.inner.state.lock().clients.get_mut(identity) {
            client.dead = false;
            client.crash_at = None;
        }
    }

    /// Whether `identity` has crashed and not been revived.
    #[must_use]
    pub fn is_dead(&self, identity: &str) -> bool {
        self.inner.state.lock().life(identity).is_none()
    }

    /// Waits until `identity` has crashed.
    pub async fn crashed(&self, identity: &str) {
        loop {
            let crash = self.inner.crashed.notified();
            tokio::pin!(crash);
            crash.as_mut().enable();
            if self.is_dead(identity) {
                return;
            }
            crash.await;
        }
    }

    /// Applied writes of `identity` since the server started.
    #[must_use]
    pub fn writes_of(&self, identity: &str) -> u64 {
        self.inner.state.lock().clients.get(identity).map_or(0, |c| c.writes)
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(ServerOptions::default())
    }
}
