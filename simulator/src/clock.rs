//! Virtual time: the wall clock of a simulated cluster, derived from tokio's clock.
//!
//! Under a paused tokio runtime the time of the whole simulation moves only when every task sleeps, so a run of
//! hours takes milliseconds and is the same each time. Everything that needs a time of day in a simulation takes this
//! clock; nothing here reads the machine's.

use std::sync::atomic::{AtomicI64, Ordering};

pub use tephra_api::clock::Clock;
use tokio::time::Instant;

/// A fixed start for simulations: 2026-01-01T00:00:00Z in Unix milliseconds.
pub const SIMULATION_START_MS: i64 = 1_767_225_600_000;

/// Wall time that starts at a given moment and then follows [`tokio::time::Instant`].
#[derive(Debug)]
pub struct VirtualClock {
    base_ms: i64,
    start: Instant,
    offset_ms: AtomicI64,
}

impl VirtualClock {
    /// A clock that shows `base_ms` (Unix milliseconds) now.
    #[must_use]
    pub fn starting_at(base_ms: i64) -> Self {
        Self { base_ms, start: Instant::now(), offset_ms: AtomicI64::new(0) }
    }

    /// Moves the wall clock by `ms` (either direction) without waking any timer: a clock jump, as fault F15 needs it.
    pub fn jump(&self, ms: i64) {
        self.offset_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::starting_at(SIMULATION_START_MS)
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> i64 {
        let elapsed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.base_ms.saturating_add(elapsed).saturating_add(self.offset_ms.load(Ordering::Relaxed))
    }
}

/// Formats Unix milliseconds as Kubernetes writes `metav1.Time`: RFC 3339, whole seconds, UTC.
#[must_use]
pub fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_second(ms.div_euclid(1000))
        .map_or_else(|_| "1970-01-01T00:00:00Z".to_owned(), |t| t.to_string())
}

/// Reads a Kubernetes timestamp (`metav1.Time` or `MicroTime`) as Unix milliseconds.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|t| t.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_follows_paused_tokio_time() {
        let clock = VirtualClock::starting_at(1_000);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now_ms(), 3_601_000);
        clock.jump(-600_000);
        assert_eq!(clock.now_ms(), 3_001_000);
    }

    #[test]
    fn timestamps_are_whole_utc_seconds() {
        assert_eq!(timestamp(SIMULATION_START_MS + 999), "2026-01-01T00:00:00Z");
        assert_eq!(parse_timestamp("2026-01-01T00:00:00.500000Z"), Some(SIMULATION_START_MS + 500));
    }
}
