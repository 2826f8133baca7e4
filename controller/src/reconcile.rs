//! The loop every controller runs in: watch events in, keys to reconcile out, a bounded number of them in the air.
//!
//! A controller is an actor. Its memory is owned by this loop, so it needs no locks: [`Reconciler::observe`] takes in
//! what the watches say and asks for keys, [`Reconciler::begin`] copies what one reconciliation needs and returns it as
//! a future that does the API calls. One task per controller, ordered collections and `biased` selection throughout:
//! on a current-thread runtime the same history gives the same requests in the same order.

use std::{fmt, time::Duration};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{metrics::Metrics, refusal::ReconcileError, work_queue::WorkQueue};

/// How long calls that are in the air at shutdown may still take.
const DRAIN: Duration = Duration::from_secs(5);

/// One controller, seen from its loop.
pub(crate) trait Reconciler {
    /// What is reconciled.
    type Key: Ord + Clone + fmt::Display + Send + 'static;
    /// What the watches deliver.
    type Input;
    /// What a reconciliation found out.
    type Outcome: Send;

    /// Takes in a watch event and asks for the keys it concerns.
    fn observe(&mut self, input: Self::Input, queue: &mut WorkQueue<Self::Key>);

    /// Starts the reconciliation of `key` with the present knowledge.
    fn begin(&mut self, key: &Self::Key) -> BoxFuture<'static, Self::Outcome>;

    /// Takes in what a reconciliation found out. An error brings the key back after a delay.
    fn finish(&mut self, key: &Self::Key, outcome: Self::Outcome) -> Result<(), ReconcileError>;

    /// When a key that was finished well is to be looked at again although nothing changes: a deadline, say.
    fn revisit(&mut self, _key: &Self::Key) -> Option<Instant> {
        None
    }

    /// `key` failed for the `failures`-th time in a row: what to tell the user, if anything. Runs beside the loop.
    fn complain(
        &mut self,
        key: &Self::Key,
        error: &ReconcileError,
        failures: u32,
    ) -> Option<BoxFuture<'static, ()>>;
}

/// Runs `reconciler` on `source` until `shutdown`, at most `workers` reconciliations at a time.
pub(crate) async fn run<R: Reconciler>(
    name: &'static str,
    mut reconciler: R,
    source: impl Stream<Item = R::Input>,
    workers: usize,
    metrics: &Metrics,
    shutdown: CancellationToken,
) {
    let mut source = std::pin::pin!(source);
    let mut queue = WorkQueue::new();
    let mut running = FuturesUnordered::new();
    let mut complaints = FuturesUnordered::new();
    loop {
        while running.len() < workers.max(1)
            && let Some(key) = queue.pop(Instant::now())
        {
            debug!(controller = name, %key, "reconciling");
            let work = reconciler.begin(&key);
            running.push(work.map(|outcome| (key, outcome)));
        }
        let next_due = (running.len() < workers.max(1)).then(|| queue.next_due()).flatten();
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some((key, outcome)) = running.next(), if !running.is_empty() => {
                let Err(error) = reconciler.finish(&key, outcome) else {
                    metrics.reconciled(name, "ok");
                    if let Some(due) = reconciler.revisit(&key) {
                        queue.add(key.clone(), due);
                    }
                    queue.done(&key);
                    continue;
                };
                let failures = queue.failed(&key, Instant::now());
                metrics.reconciled(name, if error.is_conflict() { "conflict" } else { "error" });
                if error.is_conflict() {
                    debug!(controller = name, %key, %error, "changed meanwhile, trying again");
                } else {
                    warn!(controller = name, %key, %error, failures, "trying again");
                }
                complaints.extend(reconciler.complain(&key, &error, failures));
            },
            Some(()) = complaints.next(), if !complaints.is_empty() => {}
            input = source.next() => match input {
                Some(input) => reconciler.observe(input, &mut queue),
                None => break,
            },
            () = due(next_due) => {}
        }
    }
    let drained = tokio::time::timeout(DRAIN, running.collect::<Vec<_>>()).await;
    if drained.is_err() {
        warn!(controller = name, "calls in the air were dropped at shutdown");
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
