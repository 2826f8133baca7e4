//! Flags of Volcano's controller manager that have no effect here (yet).

use tephra_process::flags::unused::Unused;

pub(super) const UNUSED: Unused = Unused {
    values: &[
        ("ca-cert-file", "the health endpoint is plain HTTP"),
        ("tls-cert-file", "the health endpoint is plain HTTP"),
        ("tls-private-key-file", "the health endpoint is plain HTTP"),
        ("kube-api-qps", "requests are bounded by the numbers of workers"),
        ("kube-api-burst", "requests are bounded by the numbers of workers"),
        ("leader-elect-resource-lock", "the lock is always a Lease"),
        ("worker-threads", "the job controller is not built yet"),
        ("worker-threads-for-cronjob", "the cron job controller is not built yet"),
        ("worker-threads-for-gc", "the garbage collector is not built yet"),
        ("scheduler-configs", "the sharding controller is not built yet"),
        ("shard-sync-period", "the sharding controller is not built yet"),
        ("sharding-configmap", "the sharding controller is not built yet"),
        ("sharding-configmap-namespace", "the sharding controller is not built yet"),
    ],
    switches: &[("enable-node-event-trigger", "the sharding controller is not built yet")],
};
