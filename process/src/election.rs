//! The flags of leader election, with the names and defaults of Kubernetes' components, and what they amount to.

use std::time::Duration;

use anyhow::bail;
use clap::{ArgAction, Args};

use crate::flags::go;
use crate::lease::LeaseOptions;
use crate::lease::step::Timings;

/// Flags of leader election. The name of the Lease has another default in each program
/// ([`Dialect::defaults`](crate::flags::Dialect)).
#[derive(Clone, Debug, Args)]
pub struct ElectionFlags {
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
}

impl ElectionFlags {
    /// The lease to hold, under a fresh identity; `None` without leader election.
    ///
    /// # Errors
    /// When the timings contradict each other.
    pub fn lease(&self) -> anyhow::Result<Option<LeaseOptions>> {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::Dialect;
    use crate::flags::unused::Unused;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        election: ElectionFlags,
    }

    fn lease(args: &[&str]) -> anyhow::Result<Option<LeaseOptions>> {
        const DIALECT: Dialect = Dialect {
            defaults: &[("leader_elect_resource_name", "vc-test")],
            unused: Unused { values: &[], switches: &[] },
        };
        let parsed = DIALECT.parse::<Flags>(["test"].iter().chain(args));
        parsed.unwrap().flags.election.lease()
    }

    #[test]
    fn the_defaults_are_those_of_kubernetes_and_the_name_is_the_programs() {
        let options = lease(&[]).unwrap().unwrap();
        assert_eq!(
            (options.namespace.as_str(), options.name.as_str()),
            ("volcano-system", "vc-test")
        );
        assert_eq!(options.timings, Timings::default());
        assert!(lease(&["--leader-elect=false"]).unwrap().is_none());
        let named = lease(&["--leader-elect-resource-name=mine"]).unwrap().unwrap();
        assert_eq!(named.name, "mine");
    }

    #[test]
    fn impossible_timings_are_refused() {
        for args in [
            ["--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=10s"],
            ["--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=2s"],
            ["--leader-elect-lease-duration=500ms", "--leader-elect-renew-deadline=100ms"],
        ] {
            assert!(lease(&args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn the_older_name_of_the_namespace_wins() {
        let args = ["--leader-elect-resource-namespace=new", "--lock-object-namespace=old"];
        assert_eq!(lease(&args).unwrap().unwrap().namespace, "old");
    }

    #[test]
    fn identities_differ() {
        assert_ne!(identity(), identity());
    }
}
