//! What the health endpoints show: a small state that the session loop and the configuration reader write and
//! HTTP handlers read.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tephra_process::serve::Checks;
use tokio::time::Instant;

/// How far this process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another process leads.
    Standby = 0,
    /// Leading; the cluster is being listed.
    Syncing = 1,
    /// Leading and scheduling.
    Scheduling = 2,
    /// Ending.
    Ending = 3,
}

/// Periods without a session after which a scheduling process counts as stuck.
const PERIODS: u32 = 10;
/// A process is never called stuck sooner than this.
const LEAST: Duration = Duration::from_secs(30);

/// State behind `/livez` and `/readyz`.
#[derive(Debug)]
pub struct Health {
    origin: Instant,
    stage: AtomicU8,
    last_session_ms: AtomicU64,
    stuck_after: Duration,
    conf_error: ArcSwapOption<String>,
    waiting_for: ArcSwapOption<String>,
}

impl Health {
    /// A process on standby whose sessions come every `period`.
    pub fn new(period: Duration, conf_error: Option<String>) -> Self {
        Self {
            origin: Instant::now(),
            stage: AtomicU8::new(Stage::Standby as u8),
            last_session_ms: AtomicU64::new(0),
            stuck_after: period.saturating_mul(PERIODS).max(LEAST),
            conf_error: ArcSwapOption::from_pointee(conf_error),
            waiting_for: ArcSwapOption::empty(),
        }
    }

    /// Enters a stage.
    pub(crate) fn enter(&self, stage: Stage) {
        self.session_ended();
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// A session has ended just now.
    pub(crate) fn session_ended(&self) {
        let now = Instant::now().saturating_duration_since(self.origin).as_millis() as u64;
        self.last_session_ms.store(now, Ordering::Release);
    }

    /// The last reading of the configuration file failed.
    pub(crate) fn has_conf_error(&self) -> bool {
        self.conf_error.load().is_some()
    }

    /// The configuration file was read: `None` when it was good.
    pub(crate) fn conf(&self, error: Option<String>) {
        self.conf_error.store(error.map(std::sync::Arc::new));
    }

    /// Kinds not listed yet.
    pub(crate) fn waiting_for(&self, kinds: Option<String>) {
        self.waiting_for.store(kinds.map(std::sync::Arc::new));
    }

    /// The stage reached.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Standby,
            1 => Stage::Syncing,
            2 => Stage::Scheduling,
            _ => Stage::Ending,
        }
    }
}

impl Checks for Health {
    /// False when sessions should run but have not for many periods.
    fn live(&self) -> bool {
        let last = Duration::from_millis(self.last_session_ms.load(Ordering::Acquire));
        let now = Instant::now().saturating_duration_since(self.origin);
        self.stage() != Stage::Scheduling || now.saturating_sub(last) < self.stuck_after
    }

    /// True on standby and while scheduling: both are useful states.
    fn ready(&self) -> bool {
        matches!(self.stage(), Stage::Standby | Stage::Scheduling)
    }

    /// One line for each check, as kube components write them.
    fn verbose(&self) -> String {
        let mark = |good: bool| if good { "[+]" } else { "[-]" };
        let mut text = format!("{}session ok\n", mark(self.live()))
            .replace("[-]session ok", "[-]session failed: none has ended for a long time");
        text.push_str(&match self.waiting_for.load().as_deref() {
            Some(kinds) => format!("[-]caches waiting for {kinds}\n"),
            None => format!("{}caches {:?}\n", mark(self.ready()), self.stage()),
        });
        // A bad file does not make the process unready: the last good configuration is in use.
        text.push_str(&match self.conf_error.load().as_deref() {
            Some(error) => format!("[!]configuration last good one in use: {error}\n"),
            None => "[+]configuration ok\n".to_owned(),
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_scheduling_process_without_sessions_is_not_live_and_a_standby_is() {
        let health = Health::new(Duration::from_secs(1), None);
        tokio::time::advance(Duration::from_secs(1_000)).await;
        assert!(health.live() && health.ready());
        health.enter(Stage::Syncing);
        assert!(health.live() && !health.ready());
        health.enter(Stage::Scheduling);
        tokio::time::advance(Duration::from_secs(29)).await;
        assert!(health.live() && health.ready());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!health.live());
        health.session_ended();
        assert!(health.live());
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_configuration_is_shown_and_does_not_make_the_process_unready() {
        let health = Health::new(Duration::from_secs(1), None);
        health.conf(Some("line 3: unknown action \"fly\"".to_owned()));
        assert!(health.ready());
        assert!(health.verbose().contains("last good one in use: line 3: unknown action \"fly\""));
        health.conf(None);
        assert!(health.verbose().contains("[+]configuration ok"));
    }
}
