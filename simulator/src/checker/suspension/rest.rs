//! At rest no suspension is left half way.

use super::seen::{REQUEST, RESUME, Record, SUSPEND, annotation, is_held, switch_of};
use super::{Cluster, Suspensions};
use crate::checker::{Invariant, Violation};

impl Suspensions {
    /// Judges all gangs and owners at rest.
    pub(in crate::checker) fn judge_rest(&self, cluster: &Cluster<'_>, found: &mut Vec<Violation>) {
        if self.programs.is_none() {
            return;
        }
        let mut broken = |invariant, what: String| {
            found.push(Violation { invariant, time_ms: cluster.now_ms, what });
        };
        for (key, group) in self.groups() {
            let title = format!("PodGroup {}/{}", key.0, key.1);
            let record = Record::of(group);
            if annotation(group, SUSPEND).is_some() {
                broken(Invariant::I8, format!("{title} is asked to go, and nothing comes of it"));
            }
            if annotation(group, RESUME).is_some() {
                broken(Invariant::I8, format!("{title} may come back, and does not"));
            }
            let Some(record) = record else { continue };
            let gang = (key.0.clone(), record.group.clone());
            let held = is_held(group)
                || self.group(&gang).is_some_and(is_held)
                || self.owner_held(&record);
            if cluster.rules.all_ends && !held {
                broken(Invariant::I8, format!("{title} stays suspended though all has room"));
            }
            if !record.owner.is_empty() && !self.owner_is_suspended(&record) {
                broken(
                    Invariant::I8,
                    format!("{title} is down and its owner is not suspended for it"),
                );
            }
        }
        for ((resource, namespace, name), object) in &self.objects {
            if switch_of(resource).is_some() {
                let Some(record) = Record::of(object) else { continue };
                let waits = self
                    .groups()
                    .any(|(_, group)| Record::of(group).is_some_and(|it| it.id == record.id));
                if !waits && !is_held(object) {
                    broken(
                        Invariant::I8,
                        format!(
                            "{resource} {namespace}/{name} is suspended and nothing waits for it"
                        ),
                    );
                }
            }
            if resource == "pods"
                && let Some(request) = annotation(object, REQUEST)
                && !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
            {
                broken(Invariant::I8, format!("pod {namespace}/{name} is still asked ({request})"));
            }
        }
        if !cluster.rules.all_ends {
            return;
        }
        for pod in cluster.pods.values().filter(|pod| cluster.is_ours(pod) && pod.waits()) {
            let gang = (pod.namespace.clone(), pod.group.clone());
            // A gang that lacks members cannot start.
            let min = cluster.groups.get(&gang).map_or(usize::MAX, |group| group.min_member);
            let there = cluster.members(&gang).filter(|pod| pod.phase != "Failed").count();
            if there >= min {
                broken(Invariant::I6, format!("{} waits though all has room", pod.title()));
            }
        }
    }

    fn owner_held(&self, record: &Record) -> bool {
        self.owner_of(record).is_some_and(is_held)
    }

    fn owner_of(&self, record: &Record) -> Option<&serde_json::Value> {
        self.objects.values().find(|it| it["metadata"]["uid"] == *record.owner).map(|it| &**it)
    }

    fn owner_is_suspended(&self, record: &Record) -> bool {
        let place = self.objects.iter().find(|(_, it)| it["metadata"]["uid"] == *record.owner);
        place.is_some_and(|((resource, ..), owner)| {
            let on = switch_of(resource).and_then(|switch| owner.pointer(switch));
            on == Some(&serde_json::Value::Bool(true))
        })
    }
}
