//! The order of things: wish, notice, record, stop.

use serde_json::Value;

use super::seen::{ACK, Intent, RESUME, Record, SUSPEND, SUSPENDED, annotation};
use super::{Change, Cluster, Suspensions};
use crate::checker::cluster::Key;

impl Suspensions {
    /// The scheduler writes a PodGroup.
    pub(super) fn judge_wish(
        &self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let (before, after) = change.text(SUSPEND);
        let record = change.text(SUSPENDED);
        if record.0 != record.1 {
            broken.push("the scheduler changed the record".to_owned());
        }
        if before == after {
            return;
        }
        let Some(intent) = change.after.and_then(Intent::of) else {
            if record.0.is_some() && change.after.is_some() {
                broken
                    .push("the intent was withdrawn although the gang is being stopped".to_owned());
            }
            return;
        };
        if record.0.is_some() {
            broken.push(format!("asked to go by {} while it is down", intent.id));
        }
        let groups = (cluster.groups.get(&intent.by), cluster.groups.get(&change.key()));
        if let (Some(by), Some(of)) = groups
            && by.queue == of.queue
            && cluster.priority(&by.priority_class) <= cluster.priority(&of.priority_class)
        {
            broken.push(format!(
                "asked to go for {}/{}, which has no higher priority and the same queue",
                intent.by.0, intent.by.1
            ));
        }
    }

    /// The controller writes a PodGroup.
    pub(super) fn judge_record(
        &self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let id = |object: Option<&Value>| object.and_then(Record::of).map(|record| record.id);
        let Some(record) = change.after.and_then(Record::of) else { return };
        if id(change.before).as_ref() == Some(&record.id) {
            return;
        }
        let gang: Key = (change.record.namespace.clone(), record.group.clone());
        if change.before.is_none() {
            // It stands in for another one, which has or had the record.
            if !self.recorded.contains(&record.id) {
                broken.push(format!("stands in with the record {} of nobody", record.id));
            }
            return;
        }
        let Some(intent) = change.before.and_then(Intent::of).filter(|it| it.id == record.id)
        else {
            broken.push(format!("the record {} stands although no such intent does", record.id));
            return;
        };
        if change.record.time_ms >= intent.deadline_ms || intent.mode == "None" {
            return;
        }
        // Until the deadline the gang may write its checkpoint.
        for pod in cluster.members(&gang) {
            let runs = pod.occupies() && !pod.deleting && cluster.is_known(pod.bound_ms);
            let place = ("pods".to_owned(), pod.namespace.clone(), pod.name.clone());
            let body = self.objects.get(&place);
            let acked = body.is_some_and(|it| annotation(it, ACK) == Some(&intent.id));
            if runs && !(intent.mode == "Ack" && acked) {
                broken.push(format!(
                    "is stopped {} ms before its deadline, and {} has not acknowledged",
                    intent.deadline_ms - change.record.time_ms,
                    pod.title()
                ));
            }
        }
    }

    /// The controller sets the switch of an owner.
    pub(super) fn judge_stop(&mut self, change: &Change<'_>, broken: &mut Vec<String>) {
        let Some(record) = change.after.and_then(Record::of) else {
            broken.push("is suspended without a record on it".to_owned());
            return;
        };
        if !self.recorded.contains(&record.id) {
            broken.push(format!("is suspended before the record {} stands", record.id));
        }
        let uid = change.record.uid.clone();
        if !self.stopped.insert((uid, record.id.clone())) {
            broken.push(format!("is suspended a second time for {}", record.id));
        }
    }

    /// The controller lets an owner run.
    pub(super) fn judge_run(
        &self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let Some(record) = change.before.and_then(Record::of) else {
            broken.push("is let run, and it was not we who suspended it".to_owned());
            return;
        };
        let by = self.switched_by.get(&change.record.uid);
        if by.is_none_or(|by| !self.is_controller(by)) {
            broken.push("is let run, and a person had suspended it".to_owned());
        }
        let gang = (change.record.namespace.clone(), record.group.clone());
        self.judge_not_held(cluster, &gang, change.before, broken);
        // Once nothing waits in its place its pods wait in the queue themselves.
        let waits = self.waiting_for(&gang).filter(|(_, waits)| waits.id == record.id);
        let waits = waits.filter(|(key, _)| self.is_known(cluster, key, SUSPENDED));
        if !self.resumed.contains(&record.id) && waits.is_some() {
            broken.push("is let run although it was given no room".to_owned());
        }
    }

    /// The controller evicts or deletes a pod.
    pub(super) fn judge_eviction(
        &self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let Some(pod) = cluster.pods.get(&change.record.uid).or_else(|| {
            let gone = cluster.gone.last().filter(|(_, pod)| pod.uid == change.record.uid);
            gone.map(|(_, pod)| pod)
        }) else {
            return;
        };
        let gang = (pod.namespace.clone(), pod.group.clone());
        let changed = cluster.group_changed_ms.get(&gang);
        let news = changed.is_some_and(|&at| !cluster.is_known(at))
            || [SUSPENDED, SUSPEND, RESUME].iter().any(|name| !self.is_known(cluster, &gang, name));
        if self.waiting_for(&gang).is_none() && !news {
            broken.push("is evicted by the controller, and no record says so".to_owned());
        }
    }
}
