//! Flags of Volcano's scheduler that have no effect in Tephra (yet).

use tephra_process::flags::unused::Unused;

pub(super) const UNUSED: Unused = Unused {
    values: &[
        ("ca-cert-file", "the health endpoint is plain HTTP"),
        ("tls-cert-file", "the health endpoint is plain HTTP"),
        ("tls-private-key-file", "the health endpoint is plain HTTP"),
        ("kube-api-qps", "binds are bounded by --bind-concurrency"),
        ("kube-api-burst", "binds are bounded by --bind-concurrency"),
        ("resync-period", "caches are compared with fresh lists every five minutes"),
        ("minimum-feasible-nodes", "all nodes are considered"),
        ("minimum-percentage-nodes-to-find", "all nodes are considered"),
        ("percentage-nodes-to-find", "all nodes are considered"),
        ("node-worker-threads", "one reader serves all nodes"),
        ("plugins-dir", "plugins are built in"),
        ("ignored-provisioners", "volume limits are not counted yet"),
        ("gate-removal-worker-num", "scheduling gates are not removed yet"),
        ("scheduler-sharding-mode", "sharding is not built yet"),
        ("scheduler-sharding-name", "sharding is not built yet"),
        ("cache-dump-dir", "dumps are not built yet"),
        ("feature-gates", "features follow the configuration"),
        ("leader-elect-resource-lock", "the lock is always a Lease"),
    ],
    switches: &[
        ("csi-storage", "storage capacity is not considered yet"),
        ("enable-pprof", "profiling is not built yet"),
        ("cache-dumper", "dumps are not built yet"),
    ],
};
