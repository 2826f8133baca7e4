//! The fence: the one place that says whether this process may still write. Every write passes
//! [`Fence::may_write`] immediately before it is sent, and in the binary once more at the socket
//! ([`crate::client`]), so that a leader that was paused and deposed writes nothing when it wakes up.
//!
//! The deadline is kept on the monotonic clock, which keeps running while a process is stopped; under tokio's
//! paused clock (simulation) it is virtual time. Only the lease keeper moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tephra_api::planted::{Bug, planted};
use tokio::time::Instant;

/// No leader election: never expires.
const OPEN: u64 = u64::MAX;
/// Not leading.
const CLOSED: u64 = 0;

/// Whether writes are allowed now. Clones share one state.
#[derive(Clone, Debug)]
pub struct Fence {
    origin: Instant,
    /// Milliseconds after `origin` until which writes are allowed.
    deadline: Arc<AtomicU64>,
}

/// A write that was not sent because this process does not hold the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease is not held: nothing may be written")]
pub struct Fenced;

impl Fence {
    /// A fence that lets nothing through until the lease keeper opens it.
    pub fn closed() -> Self {
        Self { origin: Instant::now(), deadline: Arc::new(AtomicU64::new(CLOSED)) }
    }

    /// A fence that is always open: leader election is off.
    pub fn open() -> Self {
        Self { origin: Instant::now(), deadline: Arc::new(AtomicU64::new(OPEN)) }
    }

    /// Checks immediately before a write.
    ///
    /// # Errors
    /// [`Fenced`] when the lease may have expired.
    pub fn may_write(&self) -> Result<(), Fenced> {
        if planted(Bug::NoFencing) {
            return Ok(());
        }
        match self.deadline.load(Ordering::Acquire) {
            OPEN => Ok(()),
            deadline if self.now_ms() < deadline => Ok(()),
            _ => Err(Fenced),
        }
    }

    /// Allows writes for `term` counted from `start`, the moment before the renewal was sent.
    pub(crate) fn extend(&self, start: Instant, term: Duration) {
        let until = start.saturating_duration_since(self.origin) + term;
        self.deadline.store((until.as_millis() as u64).min(OPEN - 1), Ordering::Release);
    }

    /// Forbids writes from now on.
    pub fn close(&self) {
        self.deadline.store(CLOSED, Ordering::Release);
    }

    /// Removes the deadline (leader election is off).
    pub(crate) fn unlock(&self) {
        self.deadline.store(OPEN, Ordering::Release);
    }

    fn now_ms(&self) -> u64 {
        Instant::now().saturating_duration_since(self.origin).as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writes_are_allowed_until_the_deadline_counted_from_the_start_of_the_renewal() {
        let fence = Fence::closed();
        assert_eq!(fence.may_write(), Err(Fenced));
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(3)).await;
        fence.extend(start, Duration::from_secs(10));
        tokio::time::advance(Duration::from_millis(6_999)).await;
        assert_eq!(fence.may_write(), Ok(()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(fence.may_write(), Err(Fenced));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_fence_stays_closed_and_an_open_one_never_expires() {
        let closed = Fence::closed();
        closed.extend(Instant::now(), Duration::from_secs(10));
        closed.close();
        assert_eq!(closed.may_write(), Err(Fenced));
        let open = Fence::open();
        tokio::time::advance(Duration::from_secs(1_000_000)).await;
        assert_eq!(open.may_write(), Ok(()));
    }
}
