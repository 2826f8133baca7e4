//! Waiting for what must come true. Bounds are generous and only end a hang: nothing is asserted about speed.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How long a suite waits for something that takes seconds on a quiet machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until the condition holds.
///
/// # Errors
/// When it does not within `patience`, or a look fails.
pub async fn wait_until(
    what: &str,
    patience: Duration,
    mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let look = async || Ok(holds().await?.then_some(()).ok_or(String::new()));
    wait_for(what, patience, look).await
}

/// Looks until there is a value; a look that finds none says what it saw instead.
///
/// # Errors
/// When none comes within `patience` (with what was seen last), or a look fails.
pub async fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<Result<T, String>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match look().await? {
            Ok(value) => return Ok(value),
            Err(seen) if Instant::now() > deadline => {
                bail!("waited {patience:?} for: {what}; last seen: {seen}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
