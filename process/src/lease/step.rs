//! The decision of leader election as a pure function: what was observed, who we are, what time it is on our
//! own monotonic clock, in; what to do next, out. Times written into the Lease by others are never compared
//! with our clock: only *that* the record changed counts, and when we saw it (testing.md F12).

use std::time::Duration;

/// Timings of an election, as in client-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// How long others wait after the last observed renewal before they take over.
    pub lease_duration: Duration,
    /// How long after the start of its last renewal the leader may write. Without another one by then it ends, as
    /// client-go does: what was refused in between is not asked for again.
    pub renew_deadline: Duration,
    /// Pause between attempts.
    pub retry_period: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// The part of a Lease that shows whether its holder is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `spec.holderIdentity`; empty when released.
    pub holder: String,
    /// `spec.renewTime` as text: compared for equality only.
    pub renewed: String,
    /// `spec.leaseTransitions`.
    pub transitions: i32,
    /// `spec.leaseDurationSeconds`.
    pub duration: Duration,
}

/// What is known about the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The record last read; `None` when there is no Lease.
    pub record: Option<Record>,
    /// When the record last changed, on our monotonic clock.
    pub changed_at: Duration,
    /// Until when the previous holder of a Lease that has vanished may believe in its term.
    pub vanished_until: Option<Duration>,
    /// Start of our last successful renewal while we lead.
    pub renewed_at: Option<Duration>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Not leading: write our name into the Lease (or create it).
    Acquire,
    /// Leading: renew.
    Renew,
    /// Do nothing for this long.
    Wait(Duration),
    /// We led and do no longer: stop writing and end the process.
    Lost,
}

impl LeaseState {
    /// Takes in what a read of the Lease returned at `now`.
    pub fn observe(&mut self, record: Option<Record>, me: &str, now: Duration) {
        if self.record == record {
            return;
        }
        if let (Some(old), None) = (&self.record, &record)
            && !old.holder.is_empty()
            && old.holder != me
        {
            self.vanished_until = Some(self.changed_at + old.duration);
        }
        self.record = record;
        self.changed_at = now;
    }
}

/// Decides the next step. `now` is our own monotonic clock.
pub fn step(state: &LeaseState, me: &str, timings: &Timings, now: Duration) -> Step {
    match state.renewed_at {
        Some(renewed) => leading(state, me, timings, renewed, now),
        None => standing_by(state, me, timings, now),
    }
}

fn leading(
    state: &LeaseState,
    me: &str,
    timings: &Timings,
    renewed: Duration,
    now: Duration,
) -> Step {
    let taken = state.record.as_ref().is_some_and(|record| record.holder != me);
    let age = now.saturating_sub(renewed);
    if taken || age >= timings.renew_deadline {
        return Step::Lost;
    }
    match timings.retry_period.checked_sub(age) {
        Some(left) if !left.is_zero() => Step::Wait(left),
        _ => Step::Renew,
    }
}

fn standing_by(state: &LeaseState, me: &str, timings: &Timings, now: Duration) -> Step {
    let free_at = match &state.record {
        None => state.vanished_until,
        Some(record) if record.holder.is_empty() || record.holder == me => None,
        Some(record) => Some(state.changed_at + record.duration.max(timings.lease_duration)),
    };
    match free_at.and_then(|at| at.checked_sub(now)).filter(|left| !left.is_zero()) {
        Some(left) => Step::Wait(left.min(timings.retry_period)),
        None => Step::Acquire,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: &str = "me";

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn held(holder: &str, renewed: &str) -> Option<Record> {
        Some(Record {
            holder: holder.to_owned(),
            renewed: renewed.to_owned(),
            transitions: 1,
            duration: secs(15),
        })
    }

    fn next(state: &LeaseState, now: u64) -> Step {
        step(state, ME, &Timings::default(), secs(now))
    }

    #[test]
    fn a_missing_or_released_lease_is_acquired_at_once() {
        let mut state = LeaseState::default();
        assert_eq!(next(&state, 100), Step::Acquire);
        state.observe(held("", "x"), ME, secs(100));
        assert_eq!(next(&state, 100), Step::Acquire);
    }

    #[test]
    fn a_lease_of_another_is_taken_a_full_duration_after_its_last_observed_change() {
        let mut state = LeaseState::default();
        state.observe(held("other", "t1"), ME, secs(100));
        assert_eq!(next(&state, 100), Step::Wait(secs(2)));
        assert_eq!(next(&state, 114), Step::Wait(secs(1)));
        state.observe(held("other", "t2"), ME, secs(114));
        assert_eq!(next(&state, 128), Step::Wait(secs(1)));
        assert_eq!(next(&state, 129), Step::Acquire);
    }

    #[test]
    fn a_skewed_renew_time_neither_shortens_nor_lengthens_the_wait() {
        for skewed in ["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
            let mut state = LeaseState::default();
            state.observe(held("other", skewed), ME, secs(100));
            assert_eq!(next(&state, 114), Step::Wait(secs(1)));
            assert_eq!(next(&state, 115), Step::Acquire);
        }
    }

    #[test]
    fn a_deleted_lease_is_not_taken_before_its_holder_must_have_stopped() {
        let mut state = LeaseState::default();
        state.observe(held("other", "t1"), ME, secs(100));
        state.observe(None, ME, secs(101));
        assert_eq!(next(&state, 114), Step::Wait(secs(1)));
        assert_eq!(next(&state, 115), Step::Acquire);
    }

    #[test]
    fn a_leader_renews_every_retry_period_also_when_its_lease_was_deleted() {
        let mut state = LeaseState::default();
        state.observe(held(ME, "t1"), ME, secs(100));
        state.renewed_at = Some(secs(100));
        assert_eq!(next(&state, 100), Step::Wait(secs(2)));
        assert_eq!(next(&state, 102), Step::Renew);
        state.observe(None, ME, secs(103));
        assert_eq!(next(&state, 103), Step::Renew);
    }

    #[test]
    fn a_leader_whose_lease_shows_a_stranger_has_lost_at_once() {
        let mut state = LeaseState { renewed_at: Some(secs(100)), ..LeaseState::default() };
        state.observe(held("stranger", "t1"), ME, secs(101));
        assert_eq!(next(&state, 101), Step::Lost);
    }

    #[test]
    fn a_leader_that_could_not_renew_before_the_deadline_has_lost() {
        let mut state = LeaseState::default();
        state.observe(held(ME, "t1"), ME, secs(100));
        state.renewed_at = Some(secs(100));
        assert_eq!(next(&state, 109), Step::Renew);
        assert_eq!(next(&state, 110), Step::Lost);
    }

    #[test]
    fn a_leader_that_was_paused_for_longer_than_its_lease_has_lost_when_it_wakes() {
        let mut state = LeaseState::default();
        state.observe(held(ME, "t1"), ME, secs(100));
        state.renewed_at = Some(secs(100));
        assert_eq!(next(&state, 145), Step::Lost);
    }

    #[test]
    fn a_longer_duration_written_by_the_holder_is_respected() {
        let mut state = LeaseState::default();
        let record = Record { duration: secs(60), ..held("other", "t").unwrap() };
        state.observe(Some(record), ME, secs(0));
        assert_eq!(next(&state, 59), Step::Wait(secs(1)));
        assert_eq!(next(&state, 60), Step::Acquire);
    }
}
