//! The command line of `tephra-controller`: Volcano's controller-manager flags with their defaults.
//!
//! A flag that has no effect here is accepted, so that an unmodified manifest starts, and named once in a warning
//! ([`Flags::without_effect`]). An unknown flag is an error. Every flag can also be given as `TEPHRA_<NAME>`.

use std::{collections::BTreeMap, ffi::OsString};

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, parser::ValueSource};

use crate::{go_flags, options::ControllerOptions, registry::Selection};

/// Flags that do something.
#[derive(Clone, Debug, Parser)]
#[command(name = "tephra-controller", version, about, disable_version_flag = true)]
pub struct Flags {
    /// Address of the API server; overrides the kubeconfig's.
    #[arg(long, env = "TEPHRA_MASTER")]
    pub master: Option<String>,
    /// Kubeconfig file. Without it: $KUBECONFIG, the pod's service account, ~/.kube/config, in this order.
    #[arg(long, env = "TEPHRA_KUBECONFIG")]
    pub kubeconfig: Option<String>,
    /// Pods with one of these scheduler names get PodGroups (repeatable).
    #[arg(long, env = "TEPHRA_SCHEDULER_NAME", value_delimiter = ',', default_value = "volcano")]
    pub scheduler_name: Vec<String>,
    /// Controllers to run: `*`, `name`, `+name`, `-name`, comma separated.
    #[arg(
        long,
        env = "TEPHRA_CONTROLLERS",
        default_value = "*,-sharding-controller",
        allow_hyphen_values = true
    )]
    pub controllers: Selection,
    /// Whether PodGroups take annotations and the minimum over from the owners of their pods.
    #[arg(long, env = "TEPHRA_INHERIT_OWNER_ANNOTATIONS", default_value_t = true,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub inherit_owner_annotations: bool,
    /// PodGroups worked on at the same time.
    #[arg(long, env = "TEPHRA_WORKER_THREADS_FOR_PODGROUP", default_value_t = 5)]
    pub worker_threads_for_podgroup: u16,
    /// Queues worked on at the same time.
    #[arg(long, env = "TEPHRA_WORKER_THREADS_FOR_QUEUE", default_value_t = 5)]
    pub worker_threads_for_queue: u16,
    /// Failures in a row after which a warning event is written; negative = never.
    #[arg(
        long,
        env = "TEPHRA_MAX_REQUEUE_NUM",
        default_value_t = 15,
        allow_negative_numbers = true
    )]
    pub max_requeue_num: i32,
    /// Serve /healthz, /livez and /readyz.
    #[arg(long, env = "TEPHRA_ENABLE_HEALTHZ", default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_healthz: bool,
    /// Address of the health endpoints.
    #[arg(long, env = "TEPHRA_HEALTHZ_ADDRESS", default_value = ":11251")]
    pub healthz_address: String,
    /// `Name=true|false,...`; WorkLoadSupport (default true) turns the watch of ReplicaSets and StatefulSets on.
    #[arg(long, env = "TEPHRA_FEATURE_GATES", value_delimiter = ',', value_parser = feature_gate)]
    pub feature_gates: Vec<(String, bool)>,
    /// Log level: 0-2 info, 3-4 debug, 5 and more trace.
    #[arg(
        short = 'v',
        long = "v",
        env = "TEPHRA_V",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub verbosity: i32,
    /// Print the version and exit.
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
    #[command(flatten)]
    accepted: Accepted,
    /// Accepted flags without effect that were given.
    #[arg(skip)]
    given: Vec<String>,
}

/// Flags of Volcano that have no effect here (yet), so that its manifests start.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Accepted without effect")]
struct Accepted {
    /// Elect a leader before running (later work; run one replica meanwhile).
    #[arg(long, default_value_t = true,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: bool,
    /// Duration of the lease.
    #[arg(long, default_value = "15s")]
    leader_elect_lease_duration: String,
    /// Deadline of its renewal.
    #[arg(long, default_value = "10s")]
    leader_elect_renew_deadline: String,
    /// Pause between two tries.
    #[arg(long, default_value = "2s")]
    leader_elect_retry_period: String,
    /// Kind of the lock object.
    #[arg(long, default_value = "leases")]
    leader_elect_resource_lock: String,
    /// Namespace of the lease.
    #[arg(long, default_value = "volcano-system")]
    leader_elect_resource_namespace: String,
    /// Name of the lease.
    #[arg(long, default_value = "vc-controller-manager")]
    leader_elect_resource_name: String,
    /// Old name of --leader-elect-resource-namespace.
    #[arg(long)]
    lock_object_namespace: Option<String>,
    /// Requests per second to the API server.
    #[arg(long, default_value_t = 50.0)]
    kube_api_qps: f32,
    /// Burst of requests to the API server.
    #[arg(long, default_value_t = 100)]
    kube_api_burst: i32,
    /// CA of the health endpoints' clients.
    #[arg(long)]
    ca_cert_file: Option<String>,
    /// Certificate of the health endpoints.
    #[arg(long)]
    tls_cert_file: Option<String>,
    /// Key of that certificate.
    #[arg(long)]
    tls_private_key_file: Option<String>,
    /// Workers of the Job controller.
    #[arg(long, default_value_t = 3)]
    worker_threads: u16,
    /// Workers of the CronJob controller.
    #[arg(long, default_value_t = 3)]
    worker_threads_for_cronjob: u16,
    /// Workers of the garbage collector.
    #[arg(long, default_value_t = 1)]
    worker_threads_for_gc: u16,
    /// Serve metrics.
    #[arg(long, default_value_t = false,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_metrics: bool,
    /// Address of the metrics.
    #[arg(long, default_value = ":8081")]
    listen_address: String,
    /// Shards (deprecated).
    #[arg(long)]
    scheduler_configs: Vec<String>,
    /// Period of the sharding controller.
    #[arg(long, default_value = "60s")]
    shard_sync_period: String,
    /// Whether node events start the sharding controller.
    #[arg(long, default_value_t = true,
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_node_event_trigger: bool,
    /// ConfigMap of the sharding controller.
    #[arg(long, default_value = "volcano-sharding-configmap")]
    sharding_configmap: String,
    /// Namespace of that ConfigMap.
    #[arg(long, default_value = "volcano-system")]
    sharding_configmap_namespace: String,
    /// klog: how often logs are flushed.
    #[arg(long, default_value = "5s")]
    log_flush_frequency: String,
    #[command(flatten)]
    klog: Klog,
}

/// klog's flags: this process logs to standard error, one line per event.
#[derive(Clone, Debug, clap::Args)]
struct Klog {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    logtostderr: Option<bool>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    alsologtostderr: Option<bool>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    add_dir_header: Option<bool>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_output: Option<bool>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_headers: Option<bool>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_log_headers: Option<bool>,
    #[arg(long, hide = true)]
    log_backtrace_at: Option<String>,
    #[arg(long, hide = true)]
    log_dir: Option<String>,
    #[arg(long, hide = true)]
    log_file: Option<String>,
    #[arg(long, hide = true)]
    log_file_max_size: Option<u64>,
    #[arg(long, hide = true)]
    stderrthreshold: Option<String>,
    #[arg(long, hide = true)]
    vmodule: Option<String>,
}

fn feature_gate(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text.split_once('=').ok_or("expected Name=true or Name=false")?;
    let value = value.trim().parse().map_err(|_| format!("`{value}` is not true or false"))?;
    Ok((name.trim().to_owned(), value))
}

impl Flags {
    /// Parses the arguments of a process (program name first) in Go's flag syntax.
    ///
    /// # Errors
    /// clap's error, which also stands for `--help` and `--version`.
    pub fn parse_go(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Flags, Box<clap::Error>> {
        let matches = Flags::command().try_get_matches_from(go_flags::normalize(arguments))?;
        let mut flags = Flags::from_arg_matches(&matches)?;
        let effective: Vec<String> = EFFECTIVE.iter().map(|id| (*id).to_owned()).collect();
        flags.given = matches
            .ids()
            .map(|id| id.as_str().to_owned())
            .filter(|id| {
                matches.value_source(id) == Some(ValueSource::CommandLine)
                    && !effective.contains(id)
                    && !id.starts_with(char::is_uppercase)
            })
            .map(|id| format!("--{}", id.replace('_', "-")))
            .collect();
        flags.given.sort();
        Ok(flags)
    }

    /// Accepted flags without effect that were given on the command line.
    pub fn without_effect(&self) -> &[String] {
        &self.given
    }

    /// Whether leader election is asked for, which does not exist here yet.
    pub fn leader_elect(&self) -> bool {
        self.accepted.leader_elect
    }

    /// The options for [`run`](crate::run).
    pub fn options(&self) -> ControllerOptions {
        let gates: BTreeMap<&str, bool> =
            self.feature_gates.iter().map(|(name, on)| (name.as_str(), *on)).collect();
        ControllerOptions {
            scheduler_names: self.scheduler_name.clone(),
            controllers: self.controllers.clone(),
            inherit_owner_annotations: self.inherit_owner_annotations,
            workload_support: gates.get("WorkLoadSupport").copied().unwrap_or(true),
            pod_group_workers: self.worker_threads_for_podgroup.into(),
            queue_workers: self.worker_threads_for_queue.into(),
            max_requeues: self.max_requeue_num,
            relist_period: ControllerOptions::default().relist_period,
            healthz_address: self.enable_healthz.then(|| self.healthz_address.clone()),
        }
    }
}

/// Flags that have an effect; every other one that is given is named in a warning.
static EFFECTIVE: &[&str] = &[
    "master",
    "kubeconfig",
    "scheduler_name",
    "controllers",
    "inherit_owner_annotations",
    "worker_threads_for_podgroup",
    "worker_threads_for_queue",
    "max_requeue_num",
    "enable_healthz",
    "healthz_address",
    "feature_gates",
    "verbosity",
    "version",
    // said in a warning of its own
    "leader_elect",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, Box<clap::Error>> {
        Flags::parse_go(std::iter::once("c").chain(arguments.iter().copied()).map(OsString::from))
    }

    #[test]
    fn without_flags_the_options_are_volcanos_defaults() {
        let flags = parse(&[]).unwrap();
        assert_eq!(format!("{:?}", flags.options()), format!("{:?}", ControllerOptions::default()));
        assert!(flags.leader_elect());
        assert_eq!(flags.without_effect(), [""; 0]);
    }

    #[test]
    fn the_flags_of_volcanos_chart_are_understood() {
        let flags = parse(&[
            "-logtostderr",
            "--enable_healthz=true",
            "--enable-metrics=true",
            "--leader-elect=false",
            "--kube-api-qps=50",
            "--worker-threads-for-gc=5",
            "--feature-gates=WorkLoadSupport=false,VolcanoJobSupport=true",
            "-v=4",
        ])
        .unwrap();
        assert_eq!(flags.options().healthz_address.as_deref(), Some(":11251"));
        assert!(!flags.options().workload_support);
        assert!(!flags.leader_elect());
        assert_eq!(flags.verbosity, 4);
        assert_eq!(
            flags.without_effect(),
            ["--enable-metrics", "--kube-api-qps", "--logtostderr", "--worker-threads-for-gc"]
        );
    }

    #[test]
    fn values_follow_an_equals_sign_or_a_space_and_lists_repeat() {
        let flags = parse(&[
            "--scheduler-name",
            "a",
            "--scheduler-name=b",
            "--max-requeue-num",
            "-1",
            "--controllers=-queue-controller,*",
            "--v",
            "2",
        ])
        .unwrap();
        assert_eq!(flags.scheduler_name, ["a", "b"]);
        assert_eq!(flags.max_requeue_num, -1);
        assert!(!flags.controllers.includes("queue-controller"));
        assert_eq!(flags.verbosity, 2);
    }

    #[test]
    fn an_unknown_flag_and_a_bad_value_are_errors_that_name_them() {
        let unknown = parse(&["--worker-treads=3"]).unwrap_err().to_string();
        assert!(unknown.contains("--worker-treads"), "{unknown}");
        let bad = parse(&["--max-requeue-num=many"]).unwrap_err().to_string();
        assert!(bad.contains("many") && bad.contains("--max-requeue-num"), "{bad}");
    }
}
