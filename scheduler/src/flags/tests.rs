//! Volcano's command lines, as deployments have them.

use tephra_process::lease::step::Timings;

use super::*;

fn parse(args: &[&str]) -> Result<Flags, clap::Error> {
    Flags::parse_from_go(["tephra-scheduler"].iter().chain(args).copied())
}

fn parsed(args: &[&str]) -> Flags {
    parse(args).unwrap()
}

#[test]
fn defaults_are_volcanos() {
    let flags = parsed(&[]);
    assert_eq!(flags.scheduler_name, ["volcano"]);
    assert_eq!(flags.schedule_period, Duration::from_secs(1));
    assert_eq!(flags.default_queue, "default");
    assert_eq!((flags.priority_class, flags.election.leader_elect), (true, true));
    assert_eq!((flags.endpoints.enable_healthz, flags.endpoints.enable_metrics), (false, false));
    assert_eq!(
        (flags.endpoints.healthz_address.as_str(), flags.endpoints.listen_address.as_str()),
        (":11251", ":8080")
    );
    let options = flags.options().unwrap();
    let lease = options.lease.unwrap();
    assert_eq!((lease.namespace.as_str(), lease.name.as_str()), ("volcano-system", "volcano"));
    assert_eq!(lease.timings, Timings::default());
    assert_eq!((options.health_address, options.metrics_address), (None, None));
    assert_eq!(options.bind_concurrency, 32);
}

#[test]
fn the_command_line_of_volcanos_chart_is_taken() {
    let flags = parsed(
        &[
            "--logtostderr",
            "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
            "--enable-healthz=true",
            "--enable-metrics=true",
            "--leader-elect=false",
            "--leader-elect-resource-namespace=volcano-system",
            "--kube-api-qps=2000",
            "--kube-api-burst=2000",
            "--schedule-period=1s",
            "--node-worker-threads=20",
            "-v=3",
            "2>&1",
        ][..11],
    );
    assert_eq!(
        (flags.v, flags.election.leader_elect, flags.endpoints.enable_healthz),
        (3, false, true)
    );
    let named: Vec<&str> =
        flags.without_effect.iter().filter_map(|text| text.split(':').next()).collect();
    assert_eq!(
        named,
        ["--kube-api-qps", "--kube-api-burst", "--node-worker-threads", "--logtostderr"]
    );
}

#[test]
fn gos_syntax_is_understood() {
    let flags = parsed(&[
        "--schedule_period",
        "1m30s",
        "--priority-class=f",
        "--enable-metrics",
        "--scheduler-name=a_b",
        "--scheduler-name",
        "c,d",
        "--min-gap=0",
        "--percentage-nodes-to-find",
        "-1",
        "--v=2",
        "-v",
        "5",
    ]);
    assert_eq!(flags.schedule_period, Duration::from_secs(90));
    assert_eq!((flags.priority_class, flags.endpoints.enable_metrics), (false, true));
    assert_eq!(flags.scheduler_name, ["a_b", "c", "d"]);
    assert_eq!((flags.min_gap, flags.v), (Duration::ZERO, 5));
}

#[test]
fn unknown_flags_and_malformed_values_are_errors_that_name_them() {
    for (args, named) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["--schedule-period=fast"], "--schedule-period"),
        (&["--schedule-period=-1s"], "must not be negative"),
        (&["--leader-elect=maybe"], "--leader-elect"),
        (&["--bind-concurrency=0"], "--bind-concurrency"),
        (&["positional"], "positional"),
    ] {
        let error = parse(args).unwrap_err().to_string();
        assert!(error.contains(named), "{args:?}: {error}");
    }
}

#[test]
fn a_given_address_switches_the_health_endpoints_on() {
    let options = parsed(&["--healthz-address=127.0.0.1:1234"]).options().unwrap();
    assert_eq!(options.health_address, Some("127.0.0.1:1234".parse().unwrap()));
    let options = parsed(&["--enable-healthz", "--enable-metrics"]).options().unwrap();
    assert_eq!(options.health_address, Some("[::]:11251".parse().unwrap()));
    assert_eq!(options.metrics_address, Some("[::]:8080".parse().unwrap()));
    assert!(parsed(&["--healthz-address=nowhere"]).options().is_err());
}

#[test]
fn a_missing_configuration_is_built_in_unless_that_is_disabled() {
    let flags = parsed(&["--scheduler-conf=/nowhere/x.conf"]);
    assert!(flags.options().unwrap().conf_error.unwrap().contains("/nowhere/x.conf"));
    let flags = parsed(&["--scheduler-conf=/nowhere/x.conf", "--disable-default-scheduler-config"]);
    assert!(flags.options().is_err());
    assert!(parsed(&[]).options().unwrap().conf_error.is_none());
}

#[test]
fn node_selectors_are_pairs_and_malformed_ones_are_ignored() {
    let flags = parsed(&["--node-selector=zone:a,odd", "--node-selector=pool: gpu"]);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(flags.options().unwrap().node_selector, [pair("zone", "a"), pair("pool", "gpu")]);
}
