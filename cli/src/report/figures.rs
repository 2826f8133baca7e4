//! The figures of one run, as `docs/report.md` defines them.

use serde::Serialize;

use super::account::{HOUR_MS, Sums};
use super::engine::Outcome;
use super::plan::Plan;
use super::private_share::{self, PrivateJob};

/// Everything that is reported about a run. Service is in GPU-hours (core-hours in a pool without GPUs).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Part of the capacity that was held.
    pub utilisation: f64,
    /// Part of the capacity that did work which lasts.
    pub goodput: f64,
    /// Jain's index of service by weight.
    pub jain: f64,
    /// Mean over hours of the largest distance between a team's share and its target.
    pub hourly_share_error: f64,
    /// Largest lag in units of the largest gang's charge.
    pub normalised_lag: f64,
    /// Jobs that arrived.
    pub jobs: usize,
    /// Jobs that ended.
    pub finished: usize,
    /// Waits of all jobs.
    pub waits: Waits,
    /// Finish-time fairness.
    pub finish_time: FinishTime,
    /// Pods evicted.
    pub evicted_pods: u64,
    /// Jobs stopped by deleting their pods.
    pub evictions: u64,
    /// Jobs stopped with notice.
    pub suspensions: u64,
    /// Jobs that ran again.
    pub restarts: u64,
    /// Work that was done again.
    pub lost_hours: f64,
    /// Of the service delivered.
    pub lost_share: f64,
    /// Spent on restarts.
    pub restore_hours: f64,
    /// Sessions of the scheduler.
    pub sessions: u64,
    /// The teams.
    pub teams: Vec<TeamFigures>,
    /// Utilisation by hour.
    pub hourly_utilisation: Vec<f64>,
}

/// Figures of one team.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamFigures {
    /// Name of its queue.
    pub name: String,
    /// Weight.
    pub weight: i32,
    /// Part of all service divided by its part of all weights, over the time in which it had something waiting; absent when
    /// nothing ever waited.
    pub service_share_ratio: Option<f64>,
    /// Service received.
    pub service_hours: f64,
    /// How long it had something waiting.
    pub backlogged_hours: f64,
    /// Jobs that arrived.
    pub jobs: usize,
    /// Jobs that ended.
    pub finished: usize,
    /// Waits of its jobs.
    pub waits: Waits,
    /// Part of the service by hour; 0 in an hour without any.
    pub hourly_share: Vec<f64>,
}

/// Waits from arrival to the first start, in minutes. A job that has not started waited until the end of the run, at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Longest.
    pub max: f64,
    /// Jobs that never started.
    pub unstarted: usize,
}

/// Time from arrival to end, divided by the same in the team's private cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishTime {
    /// Median.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Worst.
    pub max: f64,
    /// Part of the jobs that were later than in the private cluster.
    pub later: f64,
}

/// Derives the figures.
pub fn figures(plan: &Plan, outcome: &Outcome) -> Figures {
    let sums = outcome.account.sums();
    let capacity = plan.capacity();
    let all = capacity * plan.horizon_ms as f64;
    let delivered: f64 = sums.iter().map(|team| team.service).sum();
    let losses = &outcome.losses;
    let weights: Vec<f64> = plan.teams.iter().map(|team| f64::from(team.weight)).collect();
    let busy = |team: &usize| plan.jobs.iter().any(|job| job.team == *team);
    let by_weight: Vec<f64> =
        (0..plan.teams.len()).filter(busy).map(|team| sums[team].service / weights[team]).collect();
    Figures {
        utilisation: ratio(delivered, all),
        goodput: ratio(delivered - losses.lost - losses.restoring, all),
        jain: jain(&by_weight),
        hourly_share_error: hourly_share_error(sums, &weights),
        normalised_lag: ratio(outcome.account.lag(), largest_charge(plan, &weights)),
        jobs: plan.jobs.len(),
        finished: outcome.fates.iter().filter(|fate| fate.ended_ms.is_some()).count(),
        waits: waits(plan, outcome, None),
        finish_time: finish_time(plan, outcome),
        evicted_pods: losses.evicted_pods,
        evictions: losses.evictions,
        suspensions: losses.suspensions,
        restarts: losses.restarts,
        lost_hours: hours(losses.lost),
        lost_share: ratio(losses.lost, delivered),
        restore_hours: hours(losses.restoring),
        sessions: outcome.sessions,
        teams: (0..plan.teams.len()).map(|team| team_figures(plan, outcome, team)).collect(),
        hourly_utilisation: hourly_utilisation(sums, capacity, plan.horizon_ms),
    }
}

fn team_figures(plan: &Plan, outcome: &Outcome, team: usize) -> TeamFigures {
    let sums = outcome.account.sums();
    let own = &sums[team];
    let jobs = || plan.jobs.iter().zip(&outcome.fates).filter(|(job, _)| job.team == team);
    let hourly =
        own.hourly.iter().enumerate().map(|(hour, service)| {
            ratio(*service, sums.iter().map(|sums| sums.hourly[hour]).sum())
        });
    TeamFigures {
        name: plan.teams[team].name.clone(),
        weight: plan.teams[team].weight,
        service_share_ratio: (own.backlogged_total > 0.0)
            .then(|| own.backlogged_service / own.backlogged_total / plan.targets()[team]),
        service_hours: hours(own.service),
        backlogged_hours: hours(own.backlogged_ms as f64),
        jobs: jobs().count(),
        finished: jobs().filter(|(_, fate)| fate.ended_ms.is_some()).count(),
        waits: waits(plan, outcome, Some(team)),
        hourly_share: hourly.collect(),
    }
}

fn hours(ms: f64) -> f64 {
    ms / HOUR_MS as f64
}

/// A quotient, 0 when there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Jain's fairness index: 1 when all are equal, 1/n when one has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// The value below or at which a part of the sorted values lies (nearest rank); 0 without values.
pub fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

/// Mean over whole hours of the largest distance between share and target, among teams that were active all the hour; hours
/// with fewer than two such teams do not count.
pub fn hourly_share_error(sums: &[Sums], weights: &[f64]) -> f64 {
    let hours = sums.first().map_or(0, |team| team.hourly.len());
    let mut errors = Vec::new();
    for hour in 0..hours {
        let active: Vec<usize> =
            (0..sums.len()).filter(|&team| sums[team].active_ms[hour] == HOUR_MS).collect();
        let service: f64 = active.iter().map(|&team| sums[team].hourly[hour]).sum();
        let weight: f64 = active.iter().map(|&team| weights[team]).sum();
        if active.len() < 2 || service <= 0.0 {
            continue;
        }
        let error =
            |team: &usize| (sums[*team].hourly[hour] / service - weights[*team] / weight).abs();
        errors.push(active.iter().map(error).fold(0.0, f64::max));
    }
    ratio(errors.iter().sum(), errors.len() as f64)
}

fn hourly_utilisation(sums: &[Sums], capacity: f64, horizon_ms: i64) -> Vec<f64> {
    let hours = sums.first().map_or(0, |team| team.hourly.len());
    (0..hours)
        .map(|hour| {
            let length_ms = (horizon_ms - hour as i64 * HOUR_MS).min(HOUR_MS);
            let service: f64 = sums.iter().map(|team| team.hourly[hour]).sum();
            ratio(service, capacity * length_ms as f64)
        })
        .collect()
}

/// The largest gang's charge by weight: what a job holds times how long it runs.
fn largest_charge(plan: &Plan, weights: &[f64]) -> f64 {
    let charge =
        |job: &super::plan::Job| plan.charge(job) * job.runtime_ms as f64 / weights[job.team];
    plan.jobs.iter().map(charge).fold(0.0, f64::max)
}

fn waits(plan: &Plan, outcome: &Outcome, team: Option<usize>) -> Waits {
    let mut unstarted = 0;
    let mut minutes: Vec<f64> = Vec::new();
    for (job, fate) in plan.jobs.iter().zip(&outcome.fates) {
        if team.is_some_and(|team| team != job.team) {
            continue;
        }
        unstarted += usize::from(fate.started_ms.is_none());
        let until_ms = fate.started_ms.unwrap_or(plan.horizon_ms);
        minutes.push((until_ms - job.arrival_ms) as f64 / 60_000.0);
    }
    minutes.sort_by(f64::total_cmp);
    Waits {
        median: percentile(&minutes, 0.5),
        p95: percentile(&minutes, 0.95),
        max: minutes.last().copied().unwrap_or(0.0),
        unstarted,
    }
}

/// A job that has not ended counts with the time until the end of the run when that is later than its private end already,
/// and not at all otherwise.
fn finish_time(plan: &Plan, outcome: &Outcome) -> FinishTime {
    let mut rhos: Vec<f64> = Vec::new();
    for (team, target) in plan.targets().into_iter().enumerate() {
        let own: Vec<usize> =
            (0..plan.jobs.len()).filter(|&job| plan.jobs[job].team == team).collect();
        let private: Vec<PrivateJob> = own
            .iter()
            .map(|&job| PrivateJob {
                arrival_ms: plan.jobs[job].arrival_ms,
                charge: plan.charge(&plan.jobs[job]),
                runtime_ms: plan.jobs[job].runtime_ms,
            })
            .collect();
        let ends = private_share::ends(&private, plan.capacity() * target);
        for (at, &job) in own.iter().enumerate() {
            let arrival_ms = plan.jobs[job].arrival_ms;
            let alone_ms = (ends[at] - arrival_ms).max(1) as f64;
            match outcome.fates[job].ended_ms {
                Some(end_ms) => rhos.push((end_ms - arrival_ms) as f64 / alone_ms),
                None if ends[at] < plan.horizon_ms => {
                    rhos.push((plan.horizon_ms - arrival_ms) as f64 / alone_ms);
                }
                None => {}
            }
        }
    }
    rhos.sort_by(f64::total_cmp);
    // What is later by a session's length is not late.
    let later = rhos.iter().filter(|&&rho| rho > 1.001).count();
    FinishTime {
        median: percentile(&rhos, 0.5),
        p99: percentile(&rhos, 0.99),
        max: rhos.last().copied().unwrap_or(0.0),
        later: ratio(later as f64, rhos.len() as f64),
    }
}

#[cfg(test)]
mod tests;
