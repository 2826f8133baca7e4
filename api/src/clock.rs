//! Time as a dependency: whoever needs a time of day takes a [`Clock`], so that simulations and tests decide what
//! time it is. Sleeping is not part of it; that goes through the async runtime.

use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the wall-clock time.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let millis =
            |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        }
    }
}

impl<T: Clock + ?Sized> Clock for std::sync::Arc<T> {
    fn now_ms(&self) -> i64 {
        (**self).now_ms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_counts_milliseconds_since_1970() {
        let year_2020 = 1_577_836_800_000;
        let year_2200 = 7_258_118_400_000;
        assert!((year_2020..year_2200).contains(&SystemClock.now_ms()));
    }
}
