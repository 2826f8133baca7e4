//! `batch/v1` Job: its controller deletes the active pods with their grace period, keeps finished indexes and counts no failure.

use super::{SUSPEND, Switch, condition_is_true};

pub(super) const SWITCHES: &[Switch] = &[Switch {
    group: "batch",
    kind: "Job",
    plural: "jobs",
    path: SUSPEND,
    loses_group: false,
    finished: |job| {
        let ends = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
        ends.iter().any(|end| condition_is_true(job, end))
    },
}];
