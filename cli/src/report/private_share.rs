//! When a job would have ended in a private cluster: the yardstick of finish-time fairness. The private cluster of a team is
//! its part of the pool by weight, counted in whole units without nodes; it runs the team's jobs one after the other in the
//! order of arrival, as many at once as fit, and none overtakes. A gang that is larger than it has it to itself and takes
//! longer by as much as it is larger.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job in its team's private cluster.
#[derive(Clone, Copy, Debug)]
pub struct PrivateJob {
    /// When it arrives.
    pub arrival_ms: i64,
    /// What it holds while it runs.
    pub charge: f64,
    /// How long it runs.
    pub runtime_ms: i64,
}

/// When each job ends, for jobs by arrival and a private cluster of so much capacity.
pub fn ends(jobs: &[PrivateJob], capacity: f64) -> Vec<i64> {
    // What runs: when it ends and its index.
    let mut running: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut ends = Vec::with_capacity(jobs.len());
    let (mut free, mut now_ms) = (capacity, 0);
    for (index, job) in jobs.iter().enumerate() {
        let charge = job.charge.min(capacity);
        let slower = if charge > 0.0 { job.charge / charge } else { 1.0 };
        now_ms = now_ms.max(job.arrival_ms);
        while let Some(&Reverse((end_ms, other))) = running.peek() {
            // Rounding must not keep out what fits exactly.
            if end_ms > now_ms && charge <= free + 1e-6 {
                break;
            }
            running.pop();
            now_ms = now_ms.max(end_ms);
            free += jobs[other].charge.min(capacity);
        }
        free -= charge;
        let end_ms = now_ms + (job.runtime_ms as f64 * slower) as i64;
        running.push(Reverse((end_ms, index)));
        ends.push(end_ms);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(arrival_ms: i64, charge: f64, runtime_ms: i64) -> PrivateJob {
        PrivateJob { arrival_ms, charge, runtime_ms }
    }

    #[test]
    fn jobs_share_the_private_cluster_in_their_order() {
        // Two fit at once; the third waits for the first to end although the fourth would fit before.
        let jobs = [job(0, 2.0, 10), job(0, 2.0, 30), job(1, 4.0, 5), job(2, 1.0, 1)];
        assert_eq!(ends(&jobs, 4.0), [10, 30, 35, 36]);
    }

    #[test]
    fn a_gang_larger_than_the_private_cluster_takes_longer() {
        assert_eq!(ends(&[job(5, 6.0, 10), job(6, 1.0, 1)], 4.0), [20, 21]);
    }
}
