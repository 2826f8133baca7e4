//! Keeps the core's picture of the cluster up to date: lists a kind, then watches it, for as long as the
//! scheduler runs. One reader serves all kinds; it works on raw bytes, so that pods and nodes are decoded
//! borrowed, and it is the only place that knows resource versions.
//!
//! What a reader promises: an object is told when it matters and changed; never older than what was told
//! before; gone when a list does not name it any more, whether or not a watch said so.

pub(crate) mod kind;
mod lines;
mod list;
mod store;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use tephra_api::clock::Clock;
use tephra_core::event::Event;
use tephra_core::planted::{Bug, planted};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backoff;
use crate::decode::DecodeError;
use crate::metrics::{Metrics, Stage};
use kind::{Kind, Need, Object};
use lines::Change;
use store::{Store, Verdict};

/// What readers tell the session loop.
#[derive(Debug)]
pub(crate) enum Feed {
    /// Changes, in order.
    Events(Vec<Event>),
    /// The kind has been listed completely.
    Synced(&'static str),
    /// The kind must be listed again before its objects can be trusted.
    Unsynced(&'static str),
    /// An object could not be read.
    Rejected(DecodeError),
}

/// What all readers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) client: kube::Client,
    pub(crate) feed: mpsc::Sender<Feed>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    /// How often the picture is compared with a fresh list, against events that were lost silently.
    pub(crate) audit_period: Duration,
    /// Seed of all jitter.
    pub(crate) seed: u64,
}

/// The session loop has ended.
#[derive(Debug)]
struct Closed;

/// Why a watch ended.
enum End {
    /// The version watched from is too old: the picture may have holes.
    Expired,
    /// Time to compare with a fresh list.
    Audit,
    /// The session loop has ended.
    Closed,
}

struct Reader<K> {
    kind: K,
    shared: Shared,
    store: Store,
    /// Highest version seen in a list, an event or a bookmark.
    passed: u64,
    /// Version to watch from.
    resume: String,
    /// The server does not know the kind (yet).
    unknown: bool,
    /// The server lets us list the kind.
    readable: bool,
    seed: u64,
    /// Next comparison with a fresh list.
    audit_at: Instant,
}

/// How long a reader waits before it asks again for a kind that the server does not have.
const UNKNOWN_KIND: Duration = Duration::from_secs(60);

/// Reads one kind until the session loop ends.
pub(crate) async fn run<K: Kind>(kind: K, shared: Shared) {
    let seed = shared.seed ^ backoff::seed(kind.path());
    let audit_at = Instant::now() + shared.audit_period;
    let mut reader = Reader {
        kind,
        shared,
        store: Store::default(),
        passed: 0,
        resume: String::new(),
        unknown: false,
        readable: true,
        seed,
        audit_at,
    };
    // The only way out is the end of the session loop.
    let _ = reader.read().await;
}

impl<K: Kind> Reader<K> {
    async fn read(&mut self) -> Result<(), Closed> {
        let name = self.kind.name();
        loop {
            self.list().await?;
            self.tell(Feed::Synced(name)).await?;
            if self.unknown {
                tokio::select! {
                    () = self.shared.feed.closed() => return Err(Closed),
                    () = tokio::time::sleep(self.jittered(UNKNOWN_KIND)) => continue,
                }
            }
            self.audit_at = Instant::now() + self.jittered(self.shared.audit_period);
            match self.watch().await {
                End::Expired => {
                    tracing::info!(kind = name, "watch expired; listing again");
                    if self.kind.need() != Need::WhereAllowed {
                        self.tell(Feed::Unsynced(name)).await?;
                    }
                }
                End::Audit => {}
                End::Closed => return Err(Closed),
            }
        }
    }

    async fn tell(&self, feed: Feed) -> Result<(), Closed> {
        self.shared.feed.send(feed).await.map_err(|_| Closed)
    }

    /// Up to a tenth more, so that kinds do not all list at one time.
    fn jittered(&self, duration: Duration) -> Duration {
        duration + duration.mul_f64((self.seed % 1000) as f64 / 10_000.0)
    }

    /// Takes in one object; what it means for the core goes to `batch`.
    fn apply(&mut self, change: Change, bytes: &[u8], listing: bool, batch: &mut Batch) {
        let object = match self.kind.read(bytes) {
            Ok(object) => object,
            Err(error) => return self.unreadable(change, error, batch),
        };
        let Object { id, version, fingerprint, event } = object;
        let drifted = listing
            && event.is_some()
            && self.store.drifted(&id, version, fingerprint, self.passed);
        if drifted {
            if planted(Bug::LostWatchEvent) {
                return self.store.keep(&id);
            }
            batch.drift += 1;
        }
        if !listing {
            self.advance(version);
        }
        match (change, event) {
            (Change::Set, Some(event)) => {
                if let Event::Pod(pod) = &event
                    && (pod.ours && pod.node.is_none() && !listing && !self.store.has(&id))
                {
                    let now_ms = self.shared.clock.now_ms();
                    self.shared.metrics.reached(Stage::Watched, pod.created_ms, now_ms);
                }
                if self.store.set(&id, version, fingerprint) == Verdict::Tell {
                    batch.events.push(event);
                }
            }
            (Change::Set | Change::Deleted, _) => {
                if self.store.remove(&id, version) == Verdict::Tell {
                    batch.events.push(self.kind.gone(&id));
                }
            }
            (Change::Bookmark | Change::Error, _) => {}
        }
    }

    /// What was known of the object stays, unless it is gone.
    fn unreadable(&mut self, change: Change, error: DecodeError, batch: &mut Batch) {
        self.shared.metrics.rejected(self.kind.name());
        let id = self.kind.unread(&error);
        if change != Change::Deleted {
            self.store.keep(&id);
            batch.rejected.push(error);
        } else if self.store.remove(&id, 0) == Verdict::Tell {
            batch.events.push(self.kind.gone(&id));
        }
    }

    fn advance(&mut self, version: u64) {
        if version > self.passed {
            self.passed = version;
            self.resume = version.to_string();
        }
    }

    async fn deliver(&self, batch: Batch) -> Result<(), Closed> {
        if batch.drift > 0 {
            let (kind, changes) = (self.kind.name(), batch.drift);
            tracing::warn!(kind, changes, "a list showed changes that no watch event had told");
            self.shared.metrics.drift(kind, changes);
        }
        for error in batch.rejected {
            self.tell(Feed::Rejected(error)).await?;
        }
        if !batch.events.is_empty() {
            self.tell(Feed::Events(batch.events)).await?;
        }
        Ok(())
    }
}

/// What came out of one page or chunk.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    rejected: Vec<DecodeError>,
    drift: u64,
}

#[cfg(test)]
mod tests;
