//! Kubeflow's training kinds, version 1: the operator deletes pods *and* the PodGroup, and starts the job's clock anew on resume.

use serde_json::Value;

use super::{Switch, condition_is_true};

const fn row(kind: &'static str, plural: &'static str) -> Switch {
    Switch {
        group: "kubeflow.org",
        kind,
        plural,
        path: &["spec", "runPolicy", "suspend"],
        loses_group: true,
        finished,
    }
}

fn finished(job: &Value) -> bool {
    condition_is_true(job, "Succeeded") || condition_is_true(job, "Failed")
}

pub(super) const SWITCHES: &[Switch] = &[
    row("PyTorchJob", "pytorchjobs"),
    row("TFJob", "tfjobs"),
    row("MPIJob", "mpijobs"),
    row("XGBoostJob", "xgboostjobs"),
    row("PaddleJob", "paddlejobs"),
    row("JAXJob", "jaxjobs"),
];
