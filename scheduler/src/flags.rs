//! The command line: every flag of Volcano's scheduler with its default, in Go's syntax, each also as an
//! environment variable `TEPHRA_<FLAG>`. A flag that has no effect here is accepted and named once in a warning;
//! an unknown flag is an error.

mod unused;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::bail;
use clap::{ArgAction, Parser};
use tephra_process::connection::ConnectionFlags;
use tephra_process::election::ElectionFlags;
use tephra_process::flags::{Addresses, Dialect, EndpointFlags, go};

use crate::conf;
use crate::options::SchedulerOptions;

const DIALECT: Dialect = Dialect {
    defaults: &[("leader_elect_resource_name", "volcano"), ("listen_address", ":8080")],
    unused: unused::UNUSED,
};

/// Gang scheduler for Kubernetes, compatible with Volcano.
#[derive(Clone, Debug, Parser)]
#[command(name = "tephra-scheduler", disable_version_flag = true, args_override_self = true)]
pub struct Flags {
    /// Where the API server is.
    #[command(flatten)]
    pub connection: ConnectionFlags,
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
    /// Where the endpoints are served.
    #[command(flatten)]
    pub endpoints: EndpointFlags,
    /// Leader election.
    #[command(flatten)]
    pub election: ElectionFlags,
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
}

impl Flags {
    /// Reads a command line in Go's syntax; the first item is the program's name.
    ///
    /// # Errors
    /// Unknown flags and malformed values, with a message that names them.
    pub fn parse_from_go(
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, clap::Error> {
        let parsed = DIALECT.parse::<Self>(args)?;
        let mut flags = parsed.flags;
        flags.without_effect = parsed.without_effect;
        flags.endpoints.note_given(&parsed.matches);
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
        let Addresses { health, metrics } = self.endpoints.addresses()?;
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
            lease: self.election.lease()?,
            health_address: health,
            metrics_address: metrics,
            ..SchedulerOptions::default()
        })
    }
}

/// `key:value`; malformed entries are ignored, as in Volcano, but not silently.
fn selector(text: &str) -> Option<(String, String)> {
    let pair = text.trim().split_once(':');
    if pair.is_none() {
        tracing::warn!(entry = text, "--node-selector: an entry that is not key:value is ignored");
    }
    pair.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests;
