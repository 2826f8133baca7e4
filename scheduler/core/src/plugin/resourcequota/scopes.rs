//! Which quotas count the pods of a gang: those all of whose scopes match, as the API server's own quota plugin decides
//! pod by pod.
//!
//! A gang with pods is judged by them: members still to come are taken to be like those that are there, and one member that
//! matches is enough, since nobody says which of the roles are missing. Of a gang without pods the PodGroup tells the priority
//! class, and `minResources` whether cpu or memory are requested. It says nothing about deadlines of pods nor about affinity
//! to other namespaces: such a gang counts as `NotTerminating` and without that affinity, because that is what nearly all
//! pods are; the API server still refuses what does not fit.

use crate::event::{Operator, PodAffinityTerm, PodSpec, QuotaScope, ResourceQuotaObject};
use crate::state::State;
use crate::state::jobs::{Group, Job};

/// The facts that scopes look at.
struct Facts<'s> {
    best_effort: bool,
    has_deadline: bool,
    priority_class: &'s str,
    looks_elsewhere: bool,
}

/// The quota counts pods of this job.
pub(super) fn count(quota: &ResourceQuotaObject, state: &State, job: &Job) -> bool {
    if quota.scopes.is_empty() {
        return true;
    }
    let matches = |facts: &Facts<'_>| quota.scopes.iter().all(|scope| facts.match_scope(scope));
    let mut members =
        job.tasks.iter().map(|&task| &state.tasks[task]).filter(|row| !row.status.is_completed());
    let mut any = false;
    let one_matches = members.any(|row| {
        any = true;
        let spec = &state.classes.list[row.class as usize].spec;
        matches(&Facts {
            best_effort: is_best_effort(spec),
            has_deadline: row.has_deadline,
            priority_class: &row.priority_class,
            looks_elsewhere: looks_elsewhere(spec),
        })
    });
    if any {
        return one_matches;
    }
    job.group.as_ref().is_some_and(|group| matches(&Facts::of_group(state, group)))
}

impl<'s> Facts<'s> {
    fn of_group(state: &'s State, group: &'s Group) -> Self {
        let named = &*group.priority_class;
        let default = state.default_priority_class().map_or("", |class| class);
        let sizes = |name: &str| {
            let bare = name.trim_start_matches("requests.").trim_start_matches("limits.");
            matches!(bare, "cpu" | "memory")
        };
        let mut amounts = group.min_quantities.iter();
        Self {
            best_effort: !amounts.any(|(name, amount)| sizes(name) && !amount.is_zero()),
            has_deadline: false,
            priority_class: if named.is_empty() { default } else { named },
            looks_elsewhere: false,
        }
    }

    fn match_scope(&self, scope: &QuotaScope) -> bool {
        match scope {
            QuotaScope::BestEffort(wanted) => self.best_effort == *wanted,
            QuotaScope::Terminating(wanted) => self.has_deadline == *wanted,
            QuotaScope::CrossNamespacePodAffinity => self.looks_elsewhere,
            QuotaScope::NotOfPods => false,
            QuotaScope::PriorityClass(operator, values) => {
                let class = self.priority_class;
                let listed = !class.is_empty() && values.iter().any(|value| value == class);
                match operator {
                    Operator::In => listed,
                    Operator::NotIn => !listed,
                    Operator::Exists => !class.is_empty(),
                    Operator::DoesNotExist => class.is_empty(),
                    Operator::Gt | Operator::Lt | Operator::Invalid => false,
                }
            }
        }
    }
}

/// Quality class: devices do not matter, and limits without requests have become requests at creation.
fn is_best_effort(spec: &PodSpec) -> bool {
    let mut requests = spec.requests.iter();
    !requests.any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && *amount > 0)
}

fn looks_elsewhere(spec: &PodSpec) -> bool {
    let elsewhere =
        |term: &PodAffinityTerm| !term.namespaces.is_empty() || term.namespace_selector.is_some();
    let preferred = spec.preferred_pod_affinity.iter().map(|(_, term)| term);
    spec.pod_affinity.iter().chain(&spec.pod_anti_affinity).chain(preferred).any(elsewhere)
}
