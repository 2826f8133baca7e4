//! Volcano's flags that have no effect in Tephra: they are accepted, so that a deployment's command line works
//! unchanged, and named once in a warning that says why.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{given, go};

/// Flags that take a value, with the reason why it has no effect.
const VALUES: &[(&str, &str)] = &[
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
    ("log-backtrace-at", "logs are structured"),
    ("log-dir", "logs go to standard error"),
    ("log-file", "logs go to standard error"),
    ("log-file-max-size", "logs go to standard error"),
    ("log-flush-frequency", "logs are not buffered"),
    ("stderrthreshold", "logs go to standard error"),
    ("vmodule", "set RUST_LOG for levels by module"),
];

/// Switches, with the reason why they have no effect.
const SWITCHES: &[(&str, &str)] = &[
    ("csi-storage", "storage capacity is not considered yet"),
    ("enable-pprof", "profiling is not built yet"),
    ("cache-dumper", "dumps are not built yet"),
    ("logtostderr", "logs go to standard error"),
    ("alsologtostderr", "logs go to standard error"),
    ("add-dir-header", "logs are structured"),
    ("one-output", "logs go to standard error"),
    ("skip-headers", "logs are structured"),
    ("skip-log-headers", "logs are structured"),
];

/// Adds the flags to a command.
pub(super) fn accept(command: Command) -> Command {
    let heading = "Accepted for compatibility, without effect";
    let flag = |name: &'static str, why: &'static str| {
        Arg::new(name).long(name).help(why).help_heading(heading).hide_short_help(true)
    };
    let values = VALUES.iter().map(|(name, why)| {
        flag(name, why).num_args(1).allow_hyphen_values(true).action(ArgAction::Append)
    });
    let switches = SWITCHES.iter().map(|(name, why)| {
        flag(name, why)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(go::boolean)
            .action(ArgAction::Append)
    });
    command.args(values).args(switches)
}

/// The flags among them that were given, each as `--name: why`.
pub(super) fn without_effect(matches: &ArgMatches) -> Vec<String> {
    let all = VALUES.iter().chain(SWITCHES);
    all.filter(|(name, _)| given(matches, name))
        .map(|(name, why)| format!("--{name}: {why}"))
        .collect()
}
