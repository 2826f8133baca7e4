//! The command line: every flag of Volcano's scheduler with its default, in Go's syntax, each also as an
//! environment variable `TEPHRA_<FLAG>`. A flag that has no effect here is accepted and named once in a warning;
//! an unknown flag is an error.

mod go;
mod unused;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::conf;
use crate::lease::LeaseOptions;
use crate::lease::step::Timings;
use crate::options::SchedulerOptions;

/// Gang scheduler for Kubernetes, compatible with Volcano.
#[derive(Clone, Debug, Parser)]
#[command(name = "tephra-scheduler", disable_version_flag = true, args_override_self = true)]
pub struct Flags {
    /// Address of the API server (overrides the kubeconfig).
    #[arg(long, env = "TEPHRA_MASTER", default_value = "")]
    pub master: String,
    /// Path of a kubeconfig. Without it: $KUBECONFIG, the pod's service account, ~/.kube/config.
    #[arg(long, env = "TEPHRA_KUBECONFIG", default_value = "")]
    pub kubeconfig: String,
    /// Pods with this spec.schedulerName are ours (repeat for several).
    #[arg(long, env = "TEPHRA_SCHEDULER_NAME", default_value = "volcano", value_delimiter = ',')]
    pub scheduler_name: Vec<String>,
    /// Configuration file, or one of the names builtin, volcano, tephra.
    #[arg(long, env = "TEPHRA_SCHEDULER_CONF", default_value = "")]
    pub scheduler_conf: String,
    /// End with an error when the configuration cannot be used at the start, instead of using the built-in one.
    #[arg(long, env = "TEPHRA_DISABLE_DEFAULT_SCHEDULER_CONFIG", num_args = 0..=1,
          require_equals = true, default_missing_value = "true", default_value = "false",
          value_parser = go::boolean, action = ArgAction::Set)]
    pub disable_default_scheduler_config: bool,
    /// A session starts at the latest this long after the last one.
    #[arg(long, env = "TEPHRA_SCHEDULE_PERIOD", default_value = "1s", value_parser = go::duration)]
    pub schedule_period: Duration,
    /// Longest wait for the first lists; 0: no wait. Nodes and pods are always waited for.
    #[arg(long, env = "TEPHRA_RESOURCE_SYNC_TIMEOUT", default_value = "60s", value_parser = go::duration)]
    pub resource_sync_timeout: Duration,
    /// Queue of PodGroups that name none.
    #[arg(long, env = "TEPHRA_DEFAULT_QUEUE", default_value = "default")]
    pub default_queue: String,
    /// Read PriorityClasses.
    #[arg(long, env = "TEPHRA_PRIORITY_CLASS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub priority_class: bool,
    /// Use only nodes with one of these labels (key:value, comma separated).
    #[arg(long, env = "TEPHRA_NODE_SELECTOR", value_delimiter = ',')]
    pub node_selector: Vec<String>,
    /// Serve /healthz, /livez and /readyz.
    #[arg(long, env = "TEPHRA_ENABLE_HEALTHZ", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub enable_healthz: bool,
    /// Address of the health endpoints (giving it also switches them on).
    #[arg(long, env = "TEPHRA_HEALTHZ_ADDRESS", default_value = ":11251")]
    pub healthz_address: String,
    /// Serve /metrics.
    #[arg(long, env = "TEPHRA_ENABLE_METRICS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub enable_metrics: bool,
    /// Address of /metrics.
    #[arg(long, env = "TEPHRA_LISTEN_ADDRESS", default_value = ":8080")]
    pub listen_address: String,
    /// Run only while holding a lease.
    #[arg(long, env = "TEPHRA_LEADER_ELECT", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub leader_elect: bool,
    /// How long others wait after the last observed renewal before they take over.
    #[arg(long, env = "TEPHRA_LEADER_ELECT_LEASE_DURATION", default_value = "15s",
          value_parser = go::duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long after the start of its last renewal the leader may write.
    #[arg(long, env = "TEPHRA_LEADER_ELECT_RENEW_DEADLINE", default_value = "10s",
          value_parser = go::duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Pause between attempts to renew or acquire.
    #[arg(long, env = "TEPHRA_LEADER_ELECT_RETRY_PERIOD", default_value = "2s",
          value_parser = go::duration)]
    pub leader_elect_retry_period: Duration,
    /// Name of the Lease.
    #[arg(long, env = "TEPHRA_LEADER_ELECT_RESOURCE_NAME", default_value = "volcano")]
    pub leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, env = "TEPHRA_LEADER_ELECT_RESOURCE_NAMESPACE", default_value = "volcano-system")]
    pub leader_elect_resource_namespace: String,
    /// Older name of --leader-elect-resource-namespace; wins when set.
    #[arg(long, env = "TEPHRA_LOCK_OBJECT_NAMESPACE", default_value = "")]
    pub lock_object_namespace: String,
    /// Tell "Scheduled" for each pod instead of once per PodGroup transition.
    #[arg(long, env = "TEPHRA_EVENT_PER_POD", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub event_per_pod: bool,
    /// Binds in flight at one time.
    #[arg(long, env = "TEPHRA_BIND_CONCURRENCY", default_value = "32",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub bind_concurrency: u16,
    /// Least time between two sessions.
    #[arg(long, env = "TEPHRA_MIN_GAP", default_value = "5ms", value_parser = go::duration)]
    pub min_gap: Duration,
    /// Log level: 0-2 info, 3-4 debug, 5 and more trace.
    #[arg(short = 'v', long = "v", env = "TEPHRA_V", default_value = "0")]
    pub v: i32,
    /// Print the version and end.
    #[arg(long, env = "TEPHRA_VERSION", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub version: bool,
    /// Flags that were given and have no effect.
    #[arg(skip)]
    pub without_effect: Vec<String>,
    /// `--healthz-address` was given.
    #[arg(skip)]
    healthz_address_given: bool,
}

impl Flags {
    /// Reads a command line in Go's syntax; the first item is the program's name.
    ///
    /// # Errors
    /// Unknown flags and malformed values, with a message that names them.
    pub fn parse_from_go(
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, clap::Error> {
        let args = args.into_iter().map(Into::into).enumerate();
        let args = args.map(|(at, arg)| if at == 0 { arg } else { go::normalised(arg) });
        let matches = unused::accept(Self::command()).try_get_matches_from(args)?;
        let mut flags = Self::from_arg_matches(&matches)?;
        flags.without_effect = unused::without_effect(&matches);
        flags.healthz_address_given = given(&matches, "healthz_address");
        Ok(flags)
    }

    /// The settings that the flags amount to. Reads the configuration file.
    ///
    /// # Errors
    /// When flags contradict each other, an address is malformed, or the configuration cannot be used although
    /// `--disable-default-scheduler-config` is set.
    pub fn options(&self) -> anyhow::Result<SchedulerOptions> {
        let loaded = conf::load(&self.scheduler_conf);
        if let Some(error) = &loaded.error {
            if self.disable_default_scheduler_config {
                bail!("--scheduler-conf: {error}");
            }
            tracing::warn!(reason = %error, "using the built-in scheduler configuration");
        }
        let health = self.enable_healthz || self.healthz_address_given;
        let address = |on: bool, text: &str, flag: &str| {
            on.then(|| go::address(text).with_context(|| format!("{flag} {text}"))).transpose()
        };
        Ok(SchedulerOptions {
            scheduler_names: self.scheduler_name.clone(),
            conf: loaded.conf,
            conf_path: loaded.path,
            conf_error: loaded.error.filter(|_| !self.scheduler_conf.is_empty()),
            schedule_period: self.schedule_period,
            min_gap: self.min_gap,
            resource_sync_timeout: self.resource_sync_timeout,
            default_queue: self.default_queue.clone(),
            priority_class: self.priority_class,
            node_selector: self.node_selector.iter().filter_map(|text| selector(text)).collect(),
            event_per_pod: self.event_per_pod,
            bind_concurrency: usize::from(self.bind_concurrency),
            lease: self.lease()?,
            health_address: address(health, &self.healthz_address, "--healthz-address")?,
            metrics_address: address(
                self.enable_metrics,
                &self.listen_address,
                "--listen-address",
            )?,
            ..SchedulerOptions::default()
        })
    }

    fn lease(&self) -> anyhow::Result<Option<LeaseOptions>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let timings = Timings {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        if timings.lease_duration < Duration::from_secs(1) {
            bail!("--leader-elect-lease-duration must be at least 1s");
        }
        if timings.lease_duration <= timings.renew_deadline {
            bail!(
                "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline"
            );
        }
        // client-go's rule: retries are stretched by up to a fifth.
        if timings.renew_deadline <= timings.retry_period.mul_f64(1.2)
            || timings.retry_period.is_zero()
        {
            bail!(
                "--leader-elect-renew-deadline must be greater than 1.2 x --leader-elect-retry-period, and that not 0"
            );
        }
        let namespace = if self.lock_object_namespace.is_empty() {
            &self.leader_elect_resource_namespace
        } else {
            &self.lock_object_namespace
        };
        Ok(Some(LeaseOptions {
            namespace: namespace.clone(),
            name: self.leader_elect_resource_name.clone(),
            identity: identity(),
            timings,
        }))
    }
}

fn given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.value_source(id);
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// `key:value`; malformed entries are ignored, as in Volcano, but not silently.
fn selector(text: &str) -> Option<(String, String)> {
    let pair = text.trim().split_once(':');
    if pair.is_none() {
        tracing::warn!(entry = text, "--node-selector: an entry that is not key:value is ignored");
    }
    pair.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
}

/// `<hostname>_<random>`: unique for each process, as client-go's.
fn identity() -> String {
    let host = hostname::get().map(|host| host.to_string_lossy().into_owned());
    let mut random = [0_u8; 16];
    if getrandom::fill(&mut random).is_err() {
        random = u128::from(std::process::id()).to_be_bytes();
    }
    format!(
        "{}_{:032x}",
        host.unwrap_or_else(|_| "unknown".to_owned()),
        u128::from_be_bytes(random)
    )
}

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests;
