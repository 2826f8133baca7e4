//! Plugin `resourcequota`: admits a gang only if the ResourceQuotas of its namespace can take its `minResources`. No arguments.
//!
//! Names are compared as written: a quota of `requests.cpu` limits what `minResources` says of `requests.cpu` (P114); the controller
//! writes both spellings. Scopes of quotas are not looked at, as in Volcano.
//!
//! What other gangs were promised counts as used until their pods are there, also in later sessions; a gang's own pods that are
//! there are in the quota's use already and are not asked for a second time (user-pain V2831).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tephra_api::quantity::Quantity;

use super::{Admission, Hooks, Plugin, Vote};
use crate::event::{PodGroupPhase, Quantities, ResourceQuotaObject};
use crate::state::State;
use crate::state::jobs::{Job, JobId};
use crate::state::status::Status;

/// Quantities by name.
type Promises = BTreeMap<String, Quantity>;

/// The plugin.
#[derive(Debug, Default)]
pub struct ResourceQuota {
    /// What admitted gangs will still need, by namespace; of namespaces with quotas only.
    promised: FxHashMap<String, Promises>,
}

impl ResourceQuota {
    fn promise(&mut self, state: &State, job: JobId) {
        let row = &state.jobs[job as usize];
        if state.quotas.of(&row.key.namespace).is_empty() {
            return;
        }
        let promised = self.promised.entry(row.key.namespace.clone()).or_default();
        for (name, amount) in still_needed(row) {
            *promised.entry(name).or_default() += amount;
        }
    }
}

impl Plugin for ResourceQuota {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ENQUEUEABLE | Hooks::JOB_ENQUEUED | Hooks::OPEN
    }

    fn open(&mut self, state: &State) {
        self.promised.clear();
        if state.quotas.is_empty() {
            return;
        }
        for &job in &state.active_jobs {
            let row = &state.jobs[job as usize];
            if row.live && is_promised(row) {
                self.promise(state, job);
            }
        }
    }

    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        let row = &state.jobs[job as usize];
        let requested = still_needed(row);
        let none = Promises::new();
        let promised = self.promised.get(&row.key.namespace).unwrap_or(&none);
        // What it was promised itself is not in its way.
        let own = if is_promised(row) { requested.as_slice() } else { &[] };
        for quota in state.quotas.of(&row.key.namespace) {
            let short = shortages(quota, &requested, promised, own);
            if !short.is_empty() {
                return Admission::limited(message(&short));
            }
        }
        Admission::of(Vote::Permit)
    }

    /// Only an admission that no other plugin refused is a promise (P113).
    fn job_enqueued(&mut self, state: &State, job: JobId) {
        self.promise(state, job);
    }
}

/// A resource that does not fit: name, and how much is requested, used and allowed.
type Shortage<'q> = (&'q str, Quantity, Quantity, Quantity);

fn shortages<'q>(
    quota: &'q ResourceQuotaObject,
    requested: &Quantities,
    promised: &Promises,
    own: &[(String, Quantity)],
) -> Vec<Shortage<'q>> {
    let of = |list: &[(String, Quantity)], name: &str| {
        list.iter().find(|(known, _)| known == name).map(|(_, amount)| *amount)
    };
    let mut short = Vec::new();
    for (name, hard) in &quota.hard {
        let Some(wanted) = of(requested, name) else { continue };
        let others = promised.get(name).copied().unwrap_or_default();
        let others = others - of(own, name).unwrap_or_default();
        let used = of(&quota.used, name).unwrap_or_default() + others;
        if wanted + used > *hard {
            short.push((name.as_str(), wanted, used, *hard));
        }
    }
    short
}

fn message(short: &[Shortage<'_>]) -> String {
    let list = |amount: fn(&Shortage<'_>) -> Quantity| {
        let parts: Vec<String> =
            short.iter().map(|entry| format!("{} {}", entry.0, amount(entry))).collect();
        parts.join(", ")
    };
    format!(
        "resource quota insufficient, requested: {}, used: {}, limited: {}",
        list(|entry| entry.1),
        list(|entry| entry.2),
        list(|entry| entry.3),
    )
}

/// Admitted, and its pods may still come.
fn is_promised(job: &Job) -> bool {
    job.phase == PodGroupPhase::Inqueue && !job.lapsed
}

/// `minResources` of the members that do not exist yet; members count alike.
fn still_needed(job: &Job) -> Quantities {
    let Some(group) = &job.group else { return Quantities::new() };
    let ended = job.counts.of(Status::Succeeded) + job.counts.of(Status::Failed);
    let there = job.counts.total() - ended;
    let (missing, all) = match group.min_member {
        0 => (u32::from(there == 0), 1),
        min => (min.saturating_sub(there), min),
    };
    let part = |amount: &Quantity| amount.portion(missing, all);
    let needed = group.min_quantities.iter().map(|(name, amount)| (name.clone(), part(amount)));
    needed.filter(|(_, amount)| !amount.is_zero()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, ObjectKey, PodGroupObject};
    use crate::plugin::test_cluster::{group, node, pod, quantities, state};

    fn quota(hard: &[(&str, &str)], used: &[(&str, &str)]) -> Event {
        Event::ResourceQuota(ResourceQuotaObject {
            key: ObjectKey::new("ns", "q"),
            hard: quantities(hard),
            used: quantities(used),
        })
    }

    fn asks(name: &str, min_member: i32, min: &[(&str, &str)]) -> Event {
        Event::PodGroup(PodGroupObject {
            min_member,
            min_quantities: quantities(min),
            ..group(name)
        })
    }

    fn answer(plugin: &mut ResourceQuota, state: &State, name: &str) -> String {
        let job = state.job(&ObjectKey::new("ns", name)).unwrap();
        let admission = plugin.job_enqueueable(state, job);
        if admission.vote == Vote::Permit { "yes".to_owned() } else { admission.message }
    }

    fn asked(state: &State, name: &str) -> String {
        let mut plugin = ResourceQuota::default();
        plugin.open(state);
        answer(&mut plugin, state, name)
    }

    #[test]
    fn a_group_is_admitted_when_all_that_the_quota_names_fits_exactly() {
        let min = [("cpu", "2"), ("memory", "1Gi"), ("nvidia.com/gpu", "8")];
        let fits = [quota(&[("cpu", "3"), ("memory", "1Gi")], &[("cpu", "1")]), asks("g", 1, &min)];
        assert_eq!(asked(&state(fits), "g"), "yes");
        let short =
            [quota(&[("cpu", "3"), ("memory", "1Gi")], &[("cpu", "1001m")]), asks("g", 1, &min)];
        assert_eq!(
            asked(&state(short), "g"),
            "resource quota insufficient, requested: cpu 2, used: cpu 1001m, limited: cpu 3"
        );
    }

    #[test]
    fn without_a_quota_or_minimum_nothing_is_refused() {
        assert_eq!(asked(&state([asks("g", 1, &[("cpu", "2")])]), "g"), "yes");
        assert_eq!(asked(&state([quota(&[("cpu", "0")], &[]), asks("g", 1, &[])]), "g"), "yes");
    }

    #[test]
    fn an_admission_is_a_promise_in_this_session_and_later_ones_until_the_pods_are_there() {
        let min = [("cpu", "2")];
        let mut state =
            state([quota(&[("cpu", "3")], &[]), asks("a", 2, &min), asks("b", 1, &min)]);
        let mut plugin = ResourceQuota::default();
        plugin.open(&state);
        assert_eq!(answer(&mut plugin, &state, "b"), "yes");
        let a = state.job(&ObjectKey::new("ns", "a")).unwrap();
        plugin.job_enqueued(&state, a);
        let refused = "resource quota insufficient, requested: cpu 2, used: cpu 2, limited: cpu 3";
        assert_eq!(answer(&mut plugin, &state, "b"), refused);
        state.jobs[a as usize].phase = PodGroupPhase::Inqueue;
        assert_eq!(asked(&state, "b"), refused);
        assert_eq!(asked(&state, "a"), "yes", "its own promise is not in its way");
        // One of its two pods is there, and the quota counts it.
        state.apply(node("n", &[]));
        state.apply(Event::Pod(pod("a-0", "a", "n")));
        assert_eq!(asked(&state, "b"), "yes");
        state.jobs[a as usize].lapsed = true;
        assert_eq!(asked(&state, "b"), "yes");
    }
}
