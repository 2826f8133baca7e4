//! Integrates over time what each team holds and whether it waits. Service is capacity times time: GPU-milliseconds (core
//! milliseconds in a pool without GPUs).

/// Length of the windows of the hourly figures.
pub const HOUR_MS: i64 = 3_600_000;

/// Sums of one team.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Service received.
    pub service: f64,
    /// Service received while it had something waiting.
    pub backlogged_service: f64,
    /// Service that all teams received in that time.
    pub backlogged_total: f64,
    /// How long it had something waiting.
    pub backlogged_ms: i64,
    /// Service by hour.
    pub hourly: Vec<f64>,
    /// How long it was active (something ran or waited) by hour.
    pub active_ms: Vec<i64>,
}

/// How far two teams drifted apart while both had something waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Drift {
    now: f64,
    lowest: f64,
    highest: f64,
}

/// The books of one run.
#[derive(Clone, Debug)]
pub struct Account {
    weights: Vec<f64>,
    holds: Vec<f64>,
    waiting: Vec<u32>,
    sums: Vec<Sums>,
    drifts: Vec<Drift>,
    lag: f64,
    now_ms: i64,
}

impl Account {
    /// Books for teams with these weights over so long a time.
    pub fn new(weights: Vec<f64>, horizon_ms: i64) -> Self {
        let hours = usize::try_from((horizon_ms + HOUR_MS - 1) / HOUR_MS).unwrap_or(0);
        let teams = weights.len();
        let sums = Sums { hourly: vec![0.0; hours], active_ms: vec![0; hours], ..Sums::default() };
        Self {
            weights,
            holds: vec![0.0; teams],
            waiting: vec![0; teams],
            sums: vec![sums; teams],
            drifts: vec![Drift::default(); teams * teams],
            lag: 0.0,
            now_ms: 0,
        }
    }

    /// A job of a team waits from now on.
    pub fn waits(&mut self, team: usize) {
        self.waiting[team] += 1;
    }

    /// A waiting job of a team holds so much from now on.
    pub fn starts(&mut self, team: usize, charge: f64) {
        self.waiting[team] = self.waiting[team].saturating_sub(1);
        self.holds[team] += charge;
    }

    /// A job of a team gives so much back.
    pub fn stops(&mut self, team: usize, charge: f64) {
        self.holds[team] -= charge;
    }

    /// Jobs that wait, over all teams.
    pub fn waiting(&self) -> u32 {
        self.waiting.iter().sum()
    }

    /// Lets time pass.
    pub fn advance(&mut self, to_ms: i64) {
        while self.now_ms < to_ms {
            let hour = self.now_ms / HOUR_MS;
            let end_ms = to_ms.min((hour + 1) * HOUR_MS);
            self.pass(usize::try_from(hour).unwrap_or(0), end_ms - self.now_ms);
            self.now_ms = end_ms;
        }
    }

    fn pass(&mut self, hour: usize, ms: i64) {
        let time = ms as f64;
        let total: f64 = self.holds.iter().sum::<f64>() * time;
        for (team, sums) in self.sums.iter_mut().enumerate() {
            let service = self.holds[team] * time;
            sums.service += service;
            if let Some(sum) = sums.hourly.get_mut(hour) {
                *sum += service;
            }
            if self.waiting[team] > 0 {
                sums.backlogged_service += service;
                sums.backlogged_total += total;
                sums.backlogged_ms += ms;
            }
            if (self.waiting[team] > 0 || self.holds[team] > 0.0)
                && let Some(active) = sums.active_ms.get_mut(hour)
            {
                *active += ms;
            }
        }
        let teams = self.weights.len();
        for i in 0..teams {
            for j in 0..i {
                let drift = &mut self.drifts[i * teams + j];
                if self.waiting[i] == 0 || self.waiting[j] == 0 {
                    *drift = Drift::default();
                    continue;
                }
                let rate = self.holds[i] / self.weights[i] - self.holds[j] / self.weights[j];
                drift.now += rate * time;
                drift.lowest = drift.lowest.min(drift.now);
                drift.highest = drift.highest.max(drift.now);
                self.lag = self.lag.max(drift.highest - drift.lowest);
            }
        }
    }

    /// The teams' sums.
    pub fn sums(&self) -> &[Sums] {
        &self.sums
    }

    /// Largest difference of service by weight between two teams in any interval in which both had something waiting.
    pub fn lag(&self) -> f64 {
        self.lag
    }
}
