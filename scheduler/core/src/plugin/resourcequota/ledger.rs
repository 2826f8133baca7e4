//! What admitted gangs were promised: the room for pods that do not exist yet, or that a quota does not count yet. It counts
//! as used for everybody else, in this session and in later ones.
//!
//! The API server raises a quota's use before it stores a pod, but quotas and pods reach us through different watches. So
//! a pod that is there keeps its promise until the quota's use has risen, since the admission, by what the gang asked for; the part
//! of pods still to come stands whatever others add to the use. A promise ends when the gang is gone or no longer `Inqueue`,
//! and [`PATIENCE_MS`] after its pods last came or went: a controller that died must not hold a namespace's quota.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tephra_api::quantity::Quantity;

use super::scopes;
use crate::event::{PodGroupPhase, Quantities, ResourceQuotaObject};
use crate::state::State;
use crate::state::jobs::{Job, JobId};
use crate::state::status::Status;

/// Quantities by name.
pub(super) type Sum = BTreeMap<String, Quantity>;

/// How long a promise stands while nothing comes of it.
const PATIENCE_MS: i64 = 30_000;

/// What one gang was promised.
#[derive(Debug)]
struct Promise {
    /// Uid of its PodGroup: the row of a job may be reused.
    uid: Arc<str>,
    /// When its pods last came or went, or it was admitted.
    since_ms: i64,
    /// Members that did not exist when it was admitted.
    asked: u32,
    /// Members that did not exist when it was last looked at.
    missing: u32,
    /// What quotas counted as used when it was admitted, by their names; empty if that was before this process began.
    used: Vec<(String, Quantities)>,
}

/// All promises.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    promises: BTreeMap<JobId, Promise>,
    /// Sums by namespace and quota.
    sums: FxHashMap<String, BTreeMap<String, Sum>>,
}

impl Ledger {
    /// Brings the promises up to date when a session opens.
    pub(super) fn refresh(&mut self, state: &State) {
        self.sums.clear();
        if state.quotas.is_empty() {
            self.promises.clear();
            return;
        }
        self.promises.retain(|&job, promise| {
            let row = state.jobs.get(job as usize).filter(|row| is_admitted(row));
            row.and_then(|row| row.group.as_ref()).is_some_and(|group| group.uid == promise.uid)
        });
        for &job in &state.active_jobs {
            let row = &state.jobs[job as usize];
            if is_admitted(row) && !self.promises.contains_key(&job) {
                self.enter(state, job, Vec::new());
            }
        }
        for (&job, promise) in &mut self.promises {
            let (missing, _) = missing(&state.jobs[job as usize]);
            if std::mem::replace(&mut promise.missing, missing) != missing {
                promise.since_ms = state.now_ms;
            }
        }
        let jobs: Vec<JobId> = self.promises.keys().copied().collect();
        jobs.into_iter().for_each(|job| self.sum_up(state, job));
    }

    /// A gang is admitted now.
    pub(super) fn promise(&mut self, state: &State, job: JobId) {
        let quotas = state.quotas.of(&state.jobs[job as usize].key.namespace);
        if !quotas.is_empty() {
            let used = quotas.iter().map(|quota| (quota.key.name.clone(), quota.used.clone()));
            self.enter(state, job, used.collect());
            self.sum_up(state, job);
        }
    }

    /// What all gangs together are promised of a quota.
    pub(super) fn promised(&self, quota: &ResourceQuotaObject, name: &str) -> Quantity {
        let of_quota = self.sums.get(&quota.key.namespace).and_then(|all| all.get(&quota.key.name));
        of_quota.and_then(|sum| sum.get(name)).copied().unwrap_or_default()
    }

    /// What one gang is promised of a quota.
    pub(super) fn promised_to(
        &self,
        state: &State,
        job: JobId,
        quota: &ResourceQuotaObject,
    ) -> Sum {
        let row = &state.jobs[job as usize];
        let (Some(promise), Some(group)) = (self.promises.get(&job), &row.group) else {
            return Sum::new();
        };
        let lapsed = state.now_ms - promise.since_ms >= PATIENCE_MS;
        if lapsed || !scopes::count(quota, state, row) {
            return Sum::new();
        }
        let (missing, all) = missing(row);
        let before = promise.used.iter().find(|(name, _)| *name == quota.key.name);
        let amount = |name: &str, whole: Quantity| {
            let to_come = whole.portion(missing, all);
            let uncounted = before.map_or_else(Quantity::default, |(_, used)| {
                let rise = amount_of(&quota.used, name) - amount_of(used, name);
                whole.portion(promise.asked.min(all), all) - rise.max(Quantity::default())
            });
            to_come.max(uncounted)
        };
        let amounts = group.min_quantities.iter();
        amounts.map(|(name, whole)| (name.clone(), amount(name, *whole))).collect()
    }

    fn enter(&mut self, state: &State, job: JobId, used: Vec<(String, Quantities)>) {
        let row = &state.jobs[job as usize];
        let Some(group) = &row.group else { return };
        let (missing, _) = missing(row);
        let (uid, since_ms) = (group.uid.clone(), state.now_ms);
        self.promises.insert(job, Promise { uid, since_ms, asked: missing, missing, used });
    }

    fn sum_up(&mut self, state: &State, job: JobId) {
        let namespace = &state.jobs[job as usize].key.namespace;
        for quota in state.quotas.of(namespace) {
            let promised = self.promised_to(state, job, quota);
            let of_namespace = self.sums.entry(namespace.clone()).or_default();
            let sum = of_namespace.entry(quota.key.name.clone()).or_default();
            for (name, amount) in promised {
                *sum.entry(name).or_default() += amount;
            }
        }
    }
}

/// Members that do not exist, and all that count; members count alike. Pods that are being deleted exist: they are used until
/// they are gone.
pub(super) fn missing(job: &Job) -> (u32, u32) {
    let ended = job.counts.of(Status::Succeeded) + job.counts.of(Status::Failed);
    let there = job.counts.total() - ended;
    match job.min_member() {
        0 => (u32::from(there == 0), 1),
        min => (min.saturating_sub(there), min),
    }
}

/// An amount by its name, 0 when absent.
pub(super) fn amount_of(list: &[(String, Quantity)], name: &str) -> Quantity {
    list.iter().find(|(known, _)| known == name).map(|(_, amount)| *amount).unwrap_or_default()
}

fn is_admitted(job: &Job) -> bool {
    job.live && job.phase == PodGroupPhase::Inqueue
}
