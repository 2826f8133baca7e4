//! JobSet: suspends its child Jobs in order; they must not be touched directly.

use super::{SUSPEND, Switch, condition_is_true};

pub(super) const SWITCHES: &[Switch] = &[Switch {
    group: "jobset.x-k8s.io",
    kind: "JobSet",
    plural: "jobsets",
    path: SUSPEND,
    loses_group: false,
    finished: |set| condition_is_true(set, "Completed") || condition_is_true(set, "Failed"),
}];
