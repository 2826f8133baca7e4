//! Times the parts of a session for Volcano's histograms. The core says when a part has ended; the clock is read here.

use std::time::{Duration, Instant};

use tephra_core::laps::{Lap, Laps};

use super::Metrics;

/// Runs during one session.
pub(crate) struct Stopwatch<'m> {
    metrics: &'m Metrics,
    started: Instant,
    last: Instant,
}

impl<'m> Stopwatch<'m> {
    pub(crate) fn start(metrics: &'m Metrics) -> Self {
        let now = Instant::now();
        Self { metrics, started: now, last: now }
    }

    /// The session, its decisions not yet handed out, has ended.
    pub(crate) fn stop(self) {
        self.metrics.session_latency.observe(millis(self.started.elapsed()));
    }
}

impl Laps for Stopwatch<'_> {
    fn lap(&mut self, lap: Lap) {
        let now = Instant::now();
        let took = millis(now - self.last);
        self.last = now;
        let metrics = self.metrics;
        let plugin = |name, when| metrics.plugin_latency.with_label_values(&[name, when]);
        match lap {
            Lap::Prepared | Lap::Told => {}
            Lap::PluginOpen(name) => plugin(name, "OnSessionOpen").observe(took),
            Lap::PluginClose(name) => plugin(name, "OnSessionClose").observe(took),
            Lap::Open => metrics.open_duration.observe(millis(now - self.started)),
            Lap::Action(name) => metrics.action_latency.with_label_values(&[name]).observe(took),
        }
    }
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
