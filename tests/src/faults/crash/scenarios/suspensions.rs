//! A gang has to make room for another of a higher priority, and comes back when that one has ended: owned by a Job, by a
//! PyTorchJob whose operator deletes its PodGroup, by nobody.

use serde_json::json;

use super::{Step, node};
use crate::faults::objects::{self, priority_class};
use crate::faults::suspension::objects::{Gang, policy, pytorch_definition};

const QUEUE: &str = "team";

fn gang(name: &str, priority: &'static str, runs_s: u64) -> Gang {
    Gang {
        name: name.to_owned(),
        queue: QUEUE.to_owned(),
        priority,
        pods: 4,
        min: 4,
        cpus: 2,
        runs_s: Some(runs_s),
        grace_s: 3,
        ack_s: Some(2),
        recreate: true,
    }
}

/// Two nodes that one gang fills; after ten seconds whoever may ask for them.
fn stage(victim: Vec<serde_json::Value>) -> Vec<(u64, Step)> {
    let mut script = vec![node("n0", "4"), node("n1", "4")];
    let queue = objects::queue(QUEUE, 1, &json!(null));
    let first =
        [priority_class("low", 1), priority_class("high", 10), queue, policy(QUEUE, "Ack", 20, 0)];
    script.extend(first.into_iter().chain(victim).map(|object| (0, Step::Create(object))));
    let high = gang("high", "high", 20);
    let high = std::iter::once(high.group()).chain(high.plain_pods(true));
    script.extend(high.map(|object| (10_000, Step::Create(object))));
    script
}

pub(super) fn job() -> Vec<(u64, Step)> {
    let low = gang("low", "low", 60);
    stage(vec![low.group(), low.job()])
}

pub(super) fn pytorch_job() -> Vec<(u64, Step)> {
    stage(vec![pytorch_definition(), gang("low", "low", 60).pytorch_job()])
}

pub(super) fn plain_pods() -> Vec<(u64, Step)> {
    let low = gang("low", "low", 60);
    stage(std::iter::once(low.group()).chain(low.plain_pods(true)).collect())
}
