//! Metrics as Prometheus' own parser reads them from the running programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpListener;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tephra_tests::promcheck::{Page, Promcheck};
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::workload::{self, Gang};
use tephra_tests::volcano_metrics::{Program, TABLE};

use crate::case::{Case, cpus};
use crate::evict::{create_urgent_class, running, urgent};

/// An address where nobody listens.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

/// Reads a page until it is as wanted.
async fn page_where(
    promcheck: &Promcheck,
    address: &str,
    what: &str,
    wanted: impl Fn(&Page) -> bool,
) -> Page {
    let url = format!("http://{address}/metrics");
    let look = async || {
        Ok(match promcheck.scrape(&url) {
            Ok(page) if wanted(&page) => Ok(page),
            Ok(page) => Err(format!("{} series", page.series.len())),
            Err(error) => Err(error.to_string()),
        })
    };
    wait_for(what, PATIENCE, look).await.expect("as wanted")
}

/// Every family of Volcano that a program serves has its type, and its series have its labels and bounds.
fn assert_as_in_the_table(program: Program, page: &Page) {
    for &(_, name, kind, labels, buckets) in TABLE.iter().filter(|row| row.0 == program) {
        let name = format!("volcano_{name}");
        assert_eq!(page.types.get(&name).map(String::as_str), Some(kind), "{name}");
        let mut labels: BTreeSet<&str> = labels.split_whitespace().collect();
        let Some((first, last, count)) = buckets else {
            let series: Vec<_> = page.find(&name, &[]).collect();
            assert!(!series.is_empty(), "{name} has no series");
            for series in series {
                let found: BTreeSet<&str> = series.labels.keys().map(String::as_str).collect();
                assert_eq!(found, labels, "{name}");
            }
            continue;
        };
        labels.insert("le");
        let mut bounds: BTreeMap<Vec<&String>, Vec<f64>> = BTreeMap::new();
        let buckets = format!("{name}_bucket");
        for series in page.find(&buckets, &[]) {
            let found: BTreeSet<&str> = series.labels.keys().map(String::as_str).collect();
            assert_eq!(found, labels, "{name}");
            let others = series.labels.iter().filter(|(label, _)| *label != "le");
            let bound = series.labels["le"].replace("+Inf", "inf").parse().expect("a bound");
            bounds.entry(others.map(|(_, value)| value).collect()).or_default().push(bound);
        }
        assert!(!bounds.is_empty(), "{name} has no series");
        for bounds in bounds.values() {
            let ends = (bounds[0], bounds[count - 1].round(), bounds[count], bounds.len());
            assert_eq!(ends, (first, last, f64::INFINITY, count + 1), "{name}");
        }
    }
}

/// A configuration in which every family has something to say.
fn configuration(case: &Case) -> std::path::PathBuf {
    let text = "actions: \"enqueue, allocate, preempt, backfill\"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]\n";
    let path =
        std::env::temp_dir().join(format!("tephra-{}-{}.conf", case.name, std::process::id()));
    std::fs::write(&path, text).expect("the configuration is written");
    path
}

async fn remove_gang(case: &Case, name: &str) {
    let now = DeleteParams::default().grace_period(0);
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        let pod = pod.metadata.name.unwrap_or_default();
        if pod.rsplit_once('-').is_some_and(|(gang, _)| gang == name) {
            pods.delete(&pod, &now).await.expect("a pod is deleted");
        }
    }
    workload::pod_groups(&case.client, case.name).delete(name, &now).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_reads_every_family_of_volcano_and_series_go_with_their_objects() {
    let Some(promcheck) = Promcheck::find().expect("promcheck is built") else {
        let line = "\nSKIPPED real/metrics: no Go to build Prometheus' parser with\n";
        std::io::stderr().write_all(line.as_bytes()).expect("standard error");
        return;
    };
    let Some(mut case) = Case::open("metrics", 1, cpus(3)).await else { return };
    let (of_scheduler, of_controller) = (free_address(), free_address());
    case.restart_controller_with(&[
        "--enable-metrics",
        &format!("--listen-address={of_controller}"),
    ]);
    create_urgent_class(&case).await;
    let queues = workload::queues(&case.client);
    let capability = json!({"spec": {"capability": {"cpu": "3", "memory": "8Gi", "pods": "50"}}});
    let patch = Patch::Merge(&capability);
    queues.patch(case.name, &PatchParams::default(), &patch).await.expect("a capability");
    let conf = configuration(&case);
    let _scheduler = case.scheduler(&[
        &format!("--scheduler-conf={}", conf.display()),
        "--enable-metrics",
        &format!("--listen-address={of_scheduler}"),
    ]);

    // A gang that runs, one that takes a place from it, and one that can never run.
    case.create(&[Gang { min_member: 1, ..case.gang("low", 3, "1") }]).await;
    running(&case, "low", 3).await;
    case.create(&[urgent(&case, 1), case.gang("big", 2, "2")]).await;
    running(&case, "urgent", 1).await;
    running(&case, "low", 2).await;

    let big = [("job_id", "big")];
    let page = page_where(&promcheck, &of_scheduler, "a gang that waits", |page| {
        page.value("volcano_unschedule_task_count", &big) == Some(2.0)
    })
    .await;
    assert_as_in_the_table(Program::Scheduler, &page);
    let queue = [("queue_name", case.name)];
    let of_queue = |name: &str| page.value(name, &queue);
    assert_eq!(of_queue("volcano_queue_allocated_milli_cpu"), Some(3000.0));
    assert_eq!(of_queue("volcano_queue_capacity_milli_cpu"), Some(3000.0));
    assert_eq!(of_queue("volcano_queue_deserved_milli_cpu"), Some(3000.0));
    assert_eq!(of_queue("volcano_queue_weight"), Some(1.0));
    assert_eq!(page.value("volcano_unschedule_job_count", &[]), Some(1.0));
    let preempted = [("action", "preempt")];
    assert_eq!(page.value("volcano_eviction_transactions_total", &preempted), Some(1.0));
    assert_eq!(page.value("tephra_evictions_total", &preempted), Some(1.0));
    assert_eq!(page.value("tephra_leading", &[]), Some(1.0));
    let bound = [("stage", "Bound")];
    assert_eq!(page.value("volcano_task_scheduling_latency_milliseconds_count", &bound), Some(4.0));
    let share = page.value("volcano_job_share", &[("job_ns", case.name), ("job_id", "low")]);
    assert!(share.is_some_and(|share| (share - 2.0 / 3.0).abs() < 0.01), "{share:?}");

    let running_two =
        |page: &Page| page.value("volcano_queue_pod_group_running_count", &queue) == Some(2.0);
    let page = page_where(&promcheck, &of_controller, "two gangs run", running_two).await;
    assert_as_in_the_table(Program::Controller, &page);

    // What is gone has no series any more.
    remove_gang(&case, "big").await;
    page_where(&promcheck, &of_scheduler, "the gang is forgotten", |page| {
        page.series.iter().all(|series| series.labels.values().all(|value| value != "big"))
    })
    .await;
    let other = "metrics-other";
    workload::create_queue(&case.client, other).await.expect("another queue");
    let knows = |page: &Page| {
        page.series.iter().any(|it| it.labels.get("queue_name").is_some_and(|name| name == other))
    };
    for address in [&of_scheduler, &of_controller] {
        page_where(&promcheck, address, "the other queue is known", knows).await;
    }
    queues.delete(other, &DeleteParams::default()).await.expect("deleted");
    for address in [&of_scheduler, &of_controller] {
        page_where(&promcheck, address, "the other queue is forgotten", |page| !knows(page)).await;
    }
}
