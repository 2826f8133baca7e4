//! The command line of `tephra-controller`: Volcano's controller-manager flags with their defaults.
//!
//! A flag that has no effect here is accepted, so that an unmodified manifest starts, and named once in a warning
//! ([`Flags::without_effect`]). An unknown flag is an error. Every flag can also be given as `TEPHRA_<NAME>`.

mod unused;

use std::{collections::BTreeMap, ffi::OsString};

use clap::{ArgAction, Parser};
use tephra_process::{
    connection::ConnectionFlags,
    election::ElectionFlags,
    flags::{Dialect, EndpointFlags, go},
};

use crate::{options::ControllerOptions, registry::Selection};

const DIALECT: Dialect = Dialect {
    defaults: &[
        ("leader_elect_resource_name", "vc-controller-manager"),
        ("listen_address", ":8081"),
    ],
    unused: unused::UNUSED,
};

/// Flags that do something.
#[derive(Clone, Debug, Parser)]
#[command(name = "tephra-controller", version, about, disable_version_flag = true)]
pub struct Flags {
    /// Where the API server is.
    #[command(flatten)]
    pub connection: ConnectionFlags,
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
    #[arg(long, env = "TEPHRA_INHERIT_OWNER_ANNOTATIONS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true", value_parser = go::boolean,
          action = ArgAction::Set)]
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
    /// `Name=true|false,...`; WorkLoadSupport (default true) turns the watch of ReplicaSets and StatefulSets on.
    #[arg(long, env = "TEPHRA_FEATURE_GATES", value_delimiter = ',', value_parser = feature_gate)]
    pub feature_gates: Vec<(String, bool)>,
    /// Where the endpoints are served.
    #[command(flatten)]
    pub endpoints: EndpointFlags,
    /// Leader election.
    #[command(flatten)]
    pub election: ElectionFlags,
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
    #[arg(skip)]
    without_effect: Vec<String>,
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
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Flags, clap::Error> {
        let parsed = DIALECT.parse::<Flags>(arguments)?;
        let mut flags = parsed.flags;
        flags.endpoints.note_given(&parsed.matches);
        flags.without_effect = parsed.without_effect;
        Ok(flags)
    }

    /// Flags without effect that were given, each as `--name: why`.
    pub fn without_effect(&self) -> &[String] {
        &self.without_effect
    }

    /// The options for [`run`](crate::run).
    ///
    /// # Errors
    /// When an address is malformed or the timings of the leader election contradict each other.
    pub fn options(&self) -> anyhow::Result<ControllerOptions> {
        let gates: BTreeMap<&str, bool> =
            self.feature_gates.iter().map(|(name, on)| (name.as_str(), *on)).collect();
        Ok(ControllerOptions {
            scheduler_names: self.scheduler_name.clone(),
            controllers: self.controllers.clone(),
            inherit_owner_annotations: self.inherit_owner_annotations,
            workload_support: gates.get("WorkLoadSupport").copied().unwrap_or(true),
            pod_group_workers: self.worker_threads_for_podgroup.into(),
            queue_workers: self.worker_threads_for_queue.into(),
            max_requeues: self.max_requeue_num,
            relist_period: ControllerOptions::default().relist_period,
            addresses: self.endpoints.addresses()?,
            lease: self.election.lease()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use tephra_process::lease::step::Timings;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, clap::Error> {
        Flags::parse_go(std::iter::once("c").chain(arguments.iter().copied()))
    }

    fn options(arguments: &[&str]) -> ControllerOptions {
        parse(arguments).unwrap().options().unwrap()
    }

    #[test]
    fn without_flags_the_options_are_volcanos_defaults() {
        let flags = parse(&[]).unwrap();
        assert_eq!(flags.without_effect(), [""; 0]);
        let mut options = flags.options().unwrap();
        let lease = options.lease.take().unwrap();
        assert_eq!(
            (lease.namespace.as_str(), lease.name.as_str()),
            ("volcano-system", "vc-controller-manager")
        );
        assert_eq!(lease.timings, Timings::default());
        assert_eq!(format!("{options:?}"), format!("{:?}", ControllerOptions::default()));
    }

    #[test]
    fn the_flags_of_volcanos_chart_are_understood() {
        let arguments = [
            "-logtostderr",
            "--enable_healthz=true",
            "--enable-metrics=true",
            "--leader-elect=false",
            "--kube-api-qps=50",
            "--worker-threads-for-gc=5",
            "--feature-gates=WorkLoadSupport=false,VolcanoJobSupport=true",
            "-v=4",
        ];
        let flags = parse(&arguments).unwrap();
        assert_eq!(flags.verbosity, 4);
        let named = flags.without_effect().iter().filter_map(|text| text.split(':').next());
        let named: Vec<&str> = named.collect();
        assert_eq!(named, ["--kube-api-qps", "--worker-threads-for-gc", "--logtostderr"]);
        let options = flags.options().unwrap();
        assert_eq!(options.addresses.health, Some("[::]:11251".parse().unwrap()));
        assert_eq!(options.addresses.metrics, Some("[::]:8081".parse().unwrap()));
        assert!(!options.workload_support && options.lease.is_none());
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
        for (argument, named) in [
            ("--worker-treads=3", "--worker-treads"),
            ("--max-requeue-num=many", "--max-requeue-num"),
        ] {
            let error = parse(&[argument]).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let error = parse(&["--healthz-address=nowhere"]).unwrap().options().unwrap_err();
        assert_eq!(error.to_string(), "--healthz-address nowhere");
    }

    #[test]
    fn a_lease_of_its_own_can_be_asked_for() {
        let lease = options(&["--leader-elect-resource-name=mine", "--lock-object-namespace=old"]);
        let lease = lease.lease.unwrap();
        assert_eq!((lease.namespace.as_str(), lease.name.as_str()), ("old", "mine"));
    }
}
