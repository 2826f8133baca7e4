//! The session loop: one task owns the scheduling state. It drains what the readers and writers report, runs a
//! session when a change could matter, and hands out the decisions. Nothing here waits for the API server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tephra_api::clock::Clock;
use tephra_api::conf::SchedulerConf;
use tephra_core::Core;
use tephra_core::event::Event;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Dispatcher;
use crate::health::{Health, Stage};
use crate::metrics::{Ask, Metrics, Stopwatch};
use crate::watch::Feed;

/// Messages taken in at most before a due session runs.
const DRAIN: usize = 4096;
/// Kinds without which nothing may be scheduled, however long it takes: room on nodes would be guessed.
const INDISPENSABLE: [&str; 2] = ["Node", "Pod"];

/// When sessions run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) period: Duration,
    pub(crate) min_gap: Duration,
    pub(crate) sync_timeout: Duration,
}

/// What the loop works on.
pub(crate) struct SessionLoop {
    pub(crate) core: Core,
    pub(crate) feed: mpsc::Receiver<Feed>,
    pub(crate) outcomes: mpsc::UnboundedReceiver<Event>,
    pub(crate) conf: watch::Receiver<Option<SchedulerConf>>,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    /// Who wants figures.
    pub(crate) asked: mpsc::Receiver<Ask>,
    pub(crate) pace: Pace,
    /// Kinds that are not listed, at the start or after their watch expired.
    pub(crate) missing: BTreeSet<&'static str>,
    /// Since when kinds are missing.
    pub(crate) missing_since: Instant,
    /// Whether ledgers are recomputed after each session.
    pub(crate) self_check: bool,
}

/// A ledger of the core differs from a recomputation: what it believes is void.
#[derive(Debug, thiserror::Error)]
#[error("ledgers differ from a recomputation: {0}")]
pub(crate) struct LedgersDiffer(String);

impl SessionLoop {
    /// Runs until `stop`. The writers' queues close when this returns.
    ///
    /// # Errors
    /// When the self-check is on and finds a difference.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), LedgersDiffer> {
        let mut ended = Instant::now();
        let mut again = false;
        let mut complained = false;
        loop {
            self.drain();
            let now = Instant::now();
            let time_up = self.missing_since + self.pace.sync_timeout;
            if !self.synced(now >= time_up) {
                self.syncing();
                if now >= time_up && !complained {
                    let kinds = self.missing_names();
                    tracing::error!(%kinds, "not listed in time; still waiting for nodes and pods");
                    complained = true;
                }
                if self.wait(&stop, Some(time_up).filter(|time_up| now < *time_up)).await {
                    return Ok(());
                }
                continue;
            }
            complained = false;
            self.scheduling();
            let wanted = again || self.core.wants_session();
            let due = ended + if wanted { self.pace.min_gap } else { self.pace.period };
            if now < due {
                if self.wait(&stop, Some(due)).await {
                    return Ok(());
                }
                continue;
            }
            if stop.is_cancelled() {
                return Ok(());
            }
            again = self.session();
            self.check()?;
            ended = Instant::now();
            // Readers and writers on the same thread get their turn.
            tokio::task::yield_now().await;
        }
    }

    fn check(&self) -> Result<(), LedgersDiffer> {
        let findings = if self.self_check { self.core.audit() } else { Vec::new() };
        let findings: Vec<String> = findings.into_iter().map(|finding| finding.0).collect();
        if findings.is_empty() { Ok(()) } else { Err(LedgersDiffer(findings.join("; "))) }
    }

    /// Whether sessions may run: all kinds listed, or, when time is up, at least nodes and pods.
    fn synced(&self, late: bool) -> bool {
        match late {
            false => self.missing.is_empty(),
            true => !INDISPENSABLE.iter().any(|kind| self.missing.contains(kind)),
        }
    }

    fn syncing(&self) {
        self.health.waiting_for(Some(self.missing_names()));
        if self.health.stage() == Stage::Scheduling {
            self.health.enter(Stage::Syncing);
        }
    }

    fn scheduling(&self) {
        if self.health.stage() != Stage::Scheduling {
            let kinds = self.missing_names();
            if kinds.is_empty() {
                tracing::info!("caches are synced; scheduling");
                self.health.waiting_for(None);
            } else {
                tracing::error!(%kinds, "not listed in time; scheduling without them");
            }
            self.health.enter(Stage::Scheduling);
        }
    }

    fn missing_names(&self) -> String {
        self.missing.iter().copied().collect::<Vec<_>>().join(", ")
    }

    /// Waits for news or until `until`; true when the loop must end.
    async fn wait(&mut self, stop: &CancellationToken, until: Option<Instant>) -> bool {
        let never = Duration::from_secs(3600);
        let until = until.unwrap_or_else(|| Instant::now() + never);
        tokio::select! {
            biased;
            () = stop.cancelled() => return true,
            Some(event) = self.outcomes.recv() => self.apply(event),
            Some(feed) = self.feed.recv() => self.take(feed),
            Ok(()) = self.conf.changed() => self.reconfigure(),
            Some(ask) = self.asked.recv() => self.answer(ask),
            () = tokio::time::sleep_until(until) => {}
        }
        false
    }

    /// Takes in what has arrived, without waiting. Outcomes first: they free or confirm room.
    fn drain(&mut self) {
        while let Ok(event) = self.outcomes.try_recv() {
            self.apply(event);
        }
        for _ in 0..DRAIN {
            match self.feed.try_recv() {
                Ok(feed) => self.take(feed),
                Err(_) => break,
            }
        }
        if self.conf.has_changed().unwrap_or(false) {
            self.reconfigure();
        }
        if let Ok(ask) = self.asked.try_recv() {
            self.answer(ask);
        }
    }

    /// Whoever asked may have gone meanwhile.
    fn answer(&self, ask: Ask) {
        let _ = ask.send(self.core.overview(self.clock.now_ms()));
    }

    fn take(&mut self, feed: Feed) {
        match feed {
            Feed::Events(mut events) => {
                events.iter_mut().for_each(|event| self.dispatcher.observe(event));
                self.core.apply_all(events);
            }
            Feed::Rejected(error) => self.dispatcher.reject(&error),
            Feed::Synced(kind) => {
                self.missing.remove(kind);
            }
            Feed::Unsynced(kind) => {
                if self.missing.is_empty() {
                    self.missing_since = Instant::now();
                }
                self.missing.insert(kind);
            }
        }
    }

    fn apply(&mut self, mut event: Event) {
        self.dispatcher.observe(&mut event);
        self.core.apply(event);
    }

    fn reconfigure(&mut self) {
        let Some(conf) = self.conf.borrow_and_update().clone() else { return };
        for warning in self.core.configure(&conf) {
            tracing::warn!(%warning, "configuration");
        }
    }

    /// Runs one session; true when another should follow although nothing changes.
    fn session(&mut self) -> bool {
        let started = std::time::Instant::now();
        let mut stopwatch = Stopwatch::start(&self.metrics);
        let mut report = self.core.timed_session(self.clock.now_ms(), &mut stopwatch);
        stopwatch.stop();
        let decisions = report.decisions.len();
        for decision in std::mem::take(&mut report.decisions) {
            self.dispatcher.carry_out(decision);
        }
        self.health.session_ended();
        self.metrics.session(&report, started.elapsed());
        if report.bound > 0 {
            tracing::info!(bound = report.bound, refused = report.refused, decisions, "session");
        } else if decisions > 0 {
            tracing::debug!(refused = report.refused, decisions, "session");
        }
        report.again
    }
}
