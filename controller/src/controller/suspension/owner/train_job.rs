//! Kubeflow Trainer's TrainJob: hands its switch on to the JobSet that it owns.

use super::{SUSPEND, Switch, condition_is_true};

pub(super) const SWITCHES: &[Switch] = &[Switch {
    group: "trainer.kubeflow.org",
    kind: "TrainJob",
    plural: "trainjobs",
    path: SUSPEND,
    loses_group: false,
    finished: |job| condition_is_true(job, "Complete") || condition_is_true(job, "Failed"),
}];
