//! Formulas against cases small enough to work out by hand.

use super::*;
use crate::report::account::Account;
use crate::report::engine::{Fate, Losses};
use crate::report::plan::{Job, NodeShape, PodShape, Team};
use crate::report::victim::Checkpoints;

/// Two teams with weights 1 and 3 on 4 GPUs for two hours.
fn plan(jobs: Vec<Job>) -> Plan {
    let team = |name: &str, weight| Team { name: name.to_owned(), weight };
    Plan {
        nodes: vec![NodeShape { cpu_milli: 1, memory: 1, gpus: 4, model: String::new() }],
        teams: vec![team("a", 1), team("b", 3)],
        shapes: vec![PodShape { gpus: 1, ..PodShape::default() }],
        jobs,
        horizon_ms: 2 * HOUR_MS,
        lookahead: 1,
        wake_ms: 1,
        checkpoints: Checkpoints::default(),
    }
}

fn job(team: usize, arrival_ms: i64, pods: u32, runtime_ms: i64) -> Job {
    Job { team, arrival_ms, pods, shape: 0, runtime_ms, estimate_ms: None }
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "expected {expected}, got {got}");
}

#[test]
fn jain_is_1_for_equals_and_1_over_n_for_one_who_has_all() {
    close(jain(&[3.0, 3.0, 3.0, 3.0]), 1.0);
    close(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
    // (1 + 2 + 3)^2 / (3 * 14)
    close(jain(&[1.0, 2.0, 3.0]), 36.0 / 42.0);
    close(jain(&[0.0, 0.0]), 1.0);
}

#[test]
fn percentiles_are_nearest_ranks() {
    let values = [1.0, 2.0, 3.0, 4.0];
    close(percentile(&values, 0.5), 2.0);
    close(percentile(&values, 0.51), 3.0);
    close(percentile(&values, 0.95), 4.0);
    close(percentile(&values, 0.0), 1.0);
    close(percentile(&[], 0.5), 0.0);
}

#[test]
fn the_account_gives_service_backlog_share_error_and_lag() {
    let mut account = Account::new(vec![1.0, 3.0], 2 * HOUR_MS);
    // For half an hour both wait and only the first holds 2 GPUs; then the second gets 2 as well and waits no more.
    account.waits(0);
    account.waits(0);
    account.starts(0, 2.0);
    account.waits(1);
    account.advance(HOUR_MS / 2);
    account.starts(1, 2.0);
    account.advance(2 * HOUR_MS);
    let hour = HOUR_MS as f64;
    let [a, b] = account.sums() else { panic!("two teams") };
    close(a.service, 4.0 * hour);
    close(b.service, 3.0 * hour);
    assert_eq!((a.backlogged_ms, b.backlogged_ms), (2 * HOUR_MS, HOUR_MS / 2));
    close(b.backlogged_service, 0.0);
    close(a.backlogged_total, 7.0 * hour);
    // By weight the first had 1 GPU-hour more in the half hour in which both waited.
    close(account.lag(), hour);
    // Shares of the first: 2/3, then 1/2; its target is 1/4.
    let error = hourly_share_error(account.sums(), &[1.0, 3.0]);
    close(error, ((2.0 / 3.0 - 0.25) + (0.5 - 0.25)) / 2.0);
}

#[test]
fn lag_is_the_widest_swing_and_starts_anew_when_a_team_has_nothing_waiting() {
    let mut account = Account::new(vec![1.0, 1.0], HOUR_MS);
    account.waits(0);
    account.waits(1);
    account.waits(0);
    account.waits(1);
    account.starts(0, 1.0);
    account.advance(10);
    account.stops(0, 1.0);
    account.starts(1, 1.0);
    account.advance(40);
    // Ten ahead, then twenty behind: a swing of thirty.
    close(account.lag(), 30.0);
    account.starts(0, 1.0);
    account.advance(1_000);
    close(account.lag(), 30.0);
}

#[test]
fn an_hour_in_which_a_team_was_idle_for_a_moment_is_not_judged() {
    let mut account = Account::new(vec![1.0, 1.0], HOUR_MS);
    account.waits(0);
    account.advance(1);
    account.waits(1);
    account.starts(0, 1.0);
    account.advance(HOUR_MS);
    close(hourly_share_error(account.sums(), &[1.0, 1.0]), 0.0);
}

#[test]
fn figures_of_a_run_add_up() {
    let minute = 60_000;
    let plan =
        plan(vec![job(0, 0, 2, HOUR_MS), job(1, 0, 4, HOUR_MS), job(1, 30 * minute, 1, HOUR_MS)]);
    let mut account = Account::new(vec![1.0, 3.0], plan.horizon_ms);
    account.waits(0);
    account.waits(1);
    account.starts(0, 2.0);
    account.advance(30 * minute);
    account.waits(1);
    account.advance(HOUR_MS);
    account.stops(0, 2.0);
    account.starts(1, 4.0);
    account.advance(2 * HOUR_MS);
    account.stops(1, 4.0);
    let fate =
        |start: Option<i64>, end: Option<i64>| Fate { started_ms: start, ended_ms: end, stops: 0 };
    let hour = HOUR_MS as f64;
    let outcome = Outcome {
        fates: vec![
            fate(Some(0), Some(HOUR_MS)),
            fate(Some(HOUR_MS), Some(2 * HOUR_MS)),
            fate(None, None),
        ],
        account,
        losses: Losses { lost: 0.6 * hour, restoring: 0.2 * hour, ..Losses::default() },
        sessions: 7,
        violations: Vec::new(),
    };
    let figures = figures(&plan, &outcome);
    close(figures.utilisation, 6.0 / 8.0);
    close(figures.goodput, 5.2 / 8.0);
    close(figures.lost_hours, 0.6);
    close(figures.lost_share, 0.1);
    close(figures.restore_hours, 0.2);
    // Service by weight: 2 and 4/3.
    close(figures.jain, (10.0_f64 / 3.0).powi(2) / (2.0 * (4.0 + 16.0 / 9.0)));
    assert_eq!((figures.jobs, figures.finished, figures.waits.unstarted), (3, 2, 1));
    // Waits of 0, 60 and at least 90 minutes.
    close(figures.waits.median, 60.0);
    close(figures.waits.max, 90.0);
    let [a, b] = figures.teams.as_slice() else { panic!("two teams") };
    assert_eq!(a.service_share_ratio, None);
    // While the second waited it had 4 of 6 GPU-hours; it is due 3 of 4.
    close(b.service_share_ratio.expect("it waited"), 4.0 / 6.0 / 0.75);
    assert_eq!(a.hourly_share, [1.0, 0.0]);
    assert_eq!(figures.hourly_utilisation, [0.5, 1.0]);
    // Alone, the first has 1 GPU and takes two hours: rho 1/2. The second has 3: 80 minutes, rho 120/80. The third would
    // have ended after 140 minutes, after the run.
    close(figures.finish_time.median, 0.5);
    close(figures.finish_time.max, 1.5);
    close(figures.finish_time.later, 0.5);
}
