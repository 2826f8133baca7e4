//! What can be set about the controllers, apart from how the process is started (`flags.rs`).

use std::time::Duration;

use tephra_process::{flags::Addresses, lease::LeaseOptions};

use crate::registry::Selection;

/// Options of [`run`](crate::run). The defaults are those of Volcano's controller manager, without a lease.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Names in `spec.schedulerName` of the pods that get PodGroups (`--scheduler-name`).
    pub scheduler_names: Vec<String>,
    /// Which controllers run (`--controllers`).
    pub controllers: Selection,
    /// Whether PodGroups take over `volcano.sh/` annotations and the minimum from the pod's owners
    /// (`--inherit-owner-annotations`).
    pub inherit_owner_annotations: bool,
    /// Whether ReplicaSets and StatefulSets are watched (feature gate `WorkLoadSupport`).
    pub workload_support: bool,
    /// PodGroups worked on at the same time (`--worker-threads-for-podgroup`).
    pub pod_group_workers: usize,
    /// Queues worked on at the same time (`--worker-threads-for-queue`).
    pub queue_workers: usize,
    /// Failures in a row after which a warning event is written on the object; negative = never
    /// (`--max-requeue-num`). Unlike in Volcano the work is tried again after that, too.
    pub max_requeues: i32,
    /// How often everything is listed anew, in case an event was lost on the way.
    pub relist_period: Duration,
    /// Where the endpoints are served (`--enable-healthz`, `--healthz-address`, `--enable-metrics`, `--listen-address`).
    pub addresses: Addresses,
    /// Leader election (`--leader-elect` and its kin); `None`: the controllers work from the start.
    pub lease: Option<LeaseOptions>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        ControllerOptions {
            scheduler_names: vec!["volcano".into()],
            controllers: Selection::default(),
            inherit_owner_annotations: true,
            workload_support: true,
            pod_group_workers: 5,
            queue_workers: 5,
            max_requeues: 15,
            relist_period: Duration::from_secs(30 * 60),
            addresses: Addresses::default(),
            lease: None,
        }
    }
}
