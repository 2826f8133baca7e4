//! What really happened in a run, counted from its history: steps of suspensions, and each row of their fault table
//! (`docs/faults.md` has it). A sample in which one of them never happens would prove nothing about it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tephra_simulator::WriteRecord;

use super::operators::group_of;

/// A gang on its way down.
#[derive(Debug, Default)]
struct Way {
    by: String,
    scheduler: String,
    recorded: bool,
    told: BTreeSet<&'static str>,
}

#[derive(Debug, Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    /// By namespace and name of the PodGroup.
    ways: BTreeMap<String, Way>,
    /// When victims of a gang were down, Unix milliseconds.
    down: BTreeMap<String, Vec<i64>>,
    /// Node and group of each pod by uid.
    pods: BTreeMap<String, (String, String)>,
    /// Owners (uid) whose switch is on, and whether it is on for our record.
    suspended: BTreeMap<String, bool>,
    scheduler: String,
    controller: String,
}

/// Counts.
pub(crate) fn tally(history: &[WriteRecord]) -> BTreeMap<&'static str, u64> {
    let mut tally = Tally::default();
    for record in history.iter().filter(|record| record.applied()) {
        tally.take_in(record);
    }
    tally.counts
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    /// Once for each way down.
    fn count_way(&mut self, gang: &str, what: &'static str) {
        if self.ways.get_mut(gang).is_some_and(|way| way.told.insert(what)) {
            self.count(what);
        }
    }

    fn take_in(&mut self, record: &WriteRecord) {
        if record.identity.starts_with("scheduler") {
            self.scheduler = record.identity.to_string();
        } else if record.identity.starts_with("controller") {
            self.controller = record.identity.to_string();
        }
        let Some(after) = record.after.as_deref() else { return };
        match record.resource.as_str() {
            "podgroups" => self.group(record, after),
            "pods" => self.pod(record, after),
            "jobs" | "pytorchjobs" => self.owner(record, after),
            "nodes" if !record.exists => {
                let here = self.pods.values().filter(|(node, _)| *node == record.name);
                let gangs: BTreeSet<String> = here.map(|(_, gang)| gang.clone()).collect();
                for gang in gangs {
                    self.count_way(&gang, "way: a node of the victim was lost");
                }
            }
            "events" if record.verb == "create" => match record.body["reason"].as_str() {
                Some("SuspendFellBack") => self.count("way: owner not suspended, pods deleted"),
                Some("SuspensionIgnored") => self.count("way: nobody stopped it"),
                Some("CheckpointNotAcknowledged") => self.count("way: not acknowledged"),
                _ => {}
            },
            _ => {}
        }
    }

    fn group(&mut self, record: &WriteRecord, after: &Value) {
        let gang = format!("{}/{}", record.namespace, record.name);
        let intent = annotation(after, "tephra.sh/suspend").filter(|_| record.exists);
        let written = annotation(after, "tephra.sh/suspended").is_some() && record.exists;
        if annotation(after, "tephra.sh/hold").is_some() && (written || intent.is_some()) {
            self.count_way(&gang, "way: held by a person");
        }
        match (intent, self.ways.contains_key(&gang)) {
            (Some(text), false) => {
                let intent: Value = serde_json::from_str(text).unwrap_or_default();
                let by = intent["by"].as_str().unwrap_or("").to_owned();
                let scheduler = record.identity.to_string();
                self.ways.insert(gang.clone(), Way { by, scheduler, ..Way::default() });
                // A stand-in takes the wish over from the PodGroup that goes.
                if !record.name.ends_with("-suspended") {
                    self.count("asked to go");
                }
            }
            (Some(_), true) if written => {
                let way = self.ways.entry(gang.clone()).or_default();
                let first = !std::mem::replace(&mut way.recorded, true);
                if first && way.scheduler != self.scheduler {
                    self.count_way(&gang, "way: another scheduler since the notice");
                }
            }
            (None, true) => {
                let way = self.ways.remove(&gang).unwrap_or_default();
                if written {
                    self.count("is down");
                    let down = self.down.entry(way.by).or_default();
                    down.push(record.time_ms);
                    let apart =
                        down.windows(2).any(|pair| (2_000..60_000).contains(&(pair[1] - pair[0])));
                    if apart {
                        down.clear();
                        self.count("way: victims of one gang went at different times");
                    }
                } else if record.exists && !way.recorded {
                    self.count("withdrawn");
                }
            }
            _ => {}
        }
        if !record.exists {
            let asked: Vec<String> = self
                .ways
                .iter()
                .filter(|(_, way)| way.by == gang)
                .map(|(of, _)| of.clone())
                .collect();
            for of in asked {
                self.count_way(&of, "way: whoever asked was deleted");
            }
        }
        let patch = &record.body["metadata"]["annotations"]["tephra.sh/resume"];
        if patch.is_string() && record.identity.starts_with("scheduler") {
            self.count("let come back");
        }
    }

    fn pod(&mut self, record: &WriteRecord, after: &Value) {
        let gang = format!("{}/{}", record.namespace, group_of(after));
        if !record.exists {
            self.pods.remove(&record.uid);
            return;
        }
        if record.verb == "create" && record.subresource.is_empty() {
            let owner = after["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or("");
            if self.suspended.contains_key(owner) {
                self.count("way: pods made for an owner that is suspended");
            }
            if record.identity.starts_with("controller") {
                self.count("pod created again");
            }
        }
        if after["status"]["phase"] == "Succeeded" {
            self.count_way(&gang, "way: a pod of the victim finished");
        }
        let node = after["spec"]["nodeName"].as_str().unwrap_or("").to_owned();
        self.pods.insert(record.uid.clone(), (node, gang));
    }

    fn owner(&mut self, record: &WriteRecord, after: &Value) {
        let on = after["spec"]["suspend"] == true || after["spec"]["runPolicy"]["suspend"] == true;
        let ours = annotation(after, "tephra.sh/suspended").is_some();
        if !on || !record.exists {
            if self.suspended.remove(&record.uid).is_some() && record.exists {
                self.count(if record.identity.starts_with("controller") {
                    "switch set back"
                } else {
                    "way: a person set the switch back"
                });
            }
            return;
        }
        if self.suspended.insert(record.uid.clone(), ours).is_none() && ours {
            self.count("stopped by its switch");
        }
        let edited = |object: &Value| object.to_string().contains("\"edited\":\"yes\"");
        if ours && record.identity.starts_with("fixture") && edited(after) {
            self.count("way: a suspended job was edited");
        }
    }
}
