//! Plugin `resourcequota`: a gang waits in its queue until the ResourceQuotas of its namespace can take its `minResources`,
//! instead of failing when its pods are created. No arguments.
//!
//! Names are compared as written: a quota of `requests.cpu` limits what `minResources` says of `requests.cpu` (P114); the controller
//! writes both spellings. Only quotas count whose scopes match the gang (`scopes`).
//!
//! What other gangs were promised counts as used (`ledger`); a gang's own pods that are there are in the quota's use already and
//! are not asked for a second time (user-pain V2831).

mod ledger;
mod scopes;

use std::collections::BTreeMap;
use std::sync::Arc;

use tephra_api::quantity::Quantity;

use self::ledger::{Ledger, amount_of, missing};
use super::{Admission, Hooks, Plugin, Vote};
use crate::event::{Quantities, ResourceQuotaObject};
use crate::state::State;
use crate::state::jobs::{Job, JobId};

/// The plugin.
#[derive(Debug, Default)]
pub struct ResourceQuota {
    ledger: Ledger,
    /// What gangs that wait were told.
    told: BTreeMap<JobId, Told>,
}

/// Why a gang waits. Use and promises move with every pod of the namespace: as long as the rest stands, what was told stands,
/// so that an event is written once and not each second.
#[derive(Debug)]
struct Told {
    uid: Arc<str>,
    quota: String,
    /// Name, requested amount and limit of what does not fit.
    short: Vec<(String, Quantity, Quantity)>,
    message: String,
}

impl Plugin for ResourceQuota {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ENQUEUEABLE | Hooks::JOB_ENQUEUED | Hooks::OPEN
    }

    fn open(&mut self, state: &State) {
        self.ledger.refresh(state);
        self.told.retain(|&job, told| {
            let row = state.jobs.get(job as usize).filter(|row| row.live && row.is_pending());
            row.and_then(|row| row.group.as_ref()).is_some_and(|group| group.uid == told.uid)
        });
    }

    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        let row = &state.jobs[job as usize];
        let requested = still_needed(row);
        for quota in state.quotas.of(&row.key.namespace) {
            if !scopes::count(quota, state, row) {
                continue;
            }
            let short = self.shortages(state, job, quota, &requested);
            if !short.is_empty() {
                return Admission::limited(self.tell(row, job, quota, &short));
            }
        }
        Admission::of(Vote::Permit)
    }

    /// Only an admission that no other plugin refused is a promise (P113).
    fn job_enqueued(&mut self, state: &State, job: JobId) {
        self.told.remove(&job);
        self.ledger.promise(state, job);
    }
}

/// A resource that does not fit.
struct Shortage<'q> {
    name: &'q str,
    requested: Quantity,
    used: Quantity,
    promised: Quantity,
    hard: Quantity,
}

impl ResourceQuota {
    fn shortages<'q>(
        &self,
        state: &State,
        job: JobId,
        quota: &'q ResourceQuotaObject,
        requested: &Quantities,
    ) -> Vec<Shortage<'q>> {
        // What it was promised itself is not in its way.
        let own = self.ledger.promised_to(state, job, quota);
        let shortage = |(name, hard): &'q (String, Quantity)| {
            let (_, requested) = requested.iter().find(|(wanted, _)| wanted == name)?;
            let own = own.get(name).copied().unwrap_or_default();
            let promised = self.ledger.promised(quota, name) - own;
            let used = amount_of(&quota.used, name);
            let (requested, hard) = (*requested, *hard);
            let exceeds = used + promised + requested > hard;
            exceeds.then_some(Shortage { name, requested, used, promised, hard })
        };
        quota.hard.iter().filter_map(shortage).collect()
    }

    fn tell(
        &mut self,
        row: &Job,
        job: JobId,
        quota: &ResourceQuotaObject,
        short: &[Shortage<'_>],
    ) -> String {
        let uid = row.group.as_ref().map(|group| group.uid.clone()).unwrap_or_default();
        let quota = &quota.key.name;
        let parts = short.iter().map(|entry| (entry.name.to_owned(), entry.requested, entry.hard));
        let parts: Vec<_> = parts.collect();
        let known = self.told.get(&job);
        if let Some(told) =
            known.filter(|told| told.uid == uid && told.quota == *quota && told.short == parts)
        {
            return told.message.clone();
        }
        let message = message(quota, short);
        let told = Told { uid, quota: quota.clone(), short: parts, message: message.clone() };
        self.told.insert(job, told);
        message
    }
}

/// Volcano's sentence, then what it does not say.
fn message(quota: &str, short: &[Shortage<'_>]) -> String {
    let list = |amount: fn(&Shortage<'_>) -> Quantity| {
        let parts: Vec<String> =
            short.iter().map(|entry| format!("{} {}", entry.name, amount(entry))).collect();
        parts.join(", ")
    };
    let promised = if short.iter().all(|entry| entry.promised.is_zero()) {
        String::new()
    } else {
        format!(", promised to others: {}", list(|entry| entry.promised))
    };
    format!(
        "resource quota insufficient, requested: {}, used: {}, limited: {} (quota {quota}{promised})",
        list(|entry| entry.requested),
        list(|entry| entry.used),
        list(|entry| entry.hard),
    )
}

/// `minResources` of the members that do not exist yet.
fn still_needed(job: &Job) -> Quantities {
    let Some(group) = &job.group else { return Quantities::new() };
    let (missing, all) = missing(job);
    let part = |amount: &Quantity| amount.portion(missing, all);
    let needed = group.min_quantities.iter().map(|(name, amount)| (name.clone(), part(amount)));
    needed.filter(|(_, amount)| !amount.is_zero()).collect()
}

#[cfg(test)]
mod tests;
