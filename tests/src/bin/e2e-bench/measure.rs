//! One measurement each: the raw rate and the scheduler's. Both are timed by the API server's own audit log, from the
//! first request to bind that it received to the last that it answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::json;
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::component::Component;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::nodes::node_name;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::program::SchedulerFlags;
use tephra_tests::rig::workload;

use crate::stage::{NAME, Stage};

/// Without a write for this long the scheduler has said all it had to say.
const QUIET: Duration = Duration::from_secs(3);

/// A run of binds.
#[derive(Clone, Debug)]
pub(crate) struct Binds {
    pub(crate) pods: usize,
    pub(crate) seconds: f64,
    /// CPU seconds of kube-apiserver and etcd meanwhile.
    pub(crate) server_cpu: f64,
}

impl Binds {
    pub(crate) fn per_second(&self) -> f64 {
        self.pods as f64 / self.seconds
    }
}

/// What the scheduler did and used.
#[derive(Clone, Debug)]
pub(crate) struct Tephra {
    pub(crate) binds: Binds,
    /// From the start of the process, which lists everything first, to the last bind.
    pub(crate) start_to_last: f64,
    /// Accepted and refused writes by `verb resource`.
    pub(crate) writes: BTreeMap<String, usize>,
    pub(crate) cpu: f64,
    pub(crate) peak_mib: u64,
}

/// Posts bindings in turn over the nodes, as fast as the server takes them.
pub(crate) async fn raw(stage: &Stage<'_>) -> anyhow::Result<Binds> {
    let gangs = stage.gangs();
    workload::create_gangs(&stage.client, NAME, &gangs).await.context("pods")?;
    let api: Api<Pod> = Api::namespaced(stage.client.clone(), NAME);
    let mut targets = Vec::new();
    for (index, pod) in api.list_metadata(&ListParams::default()).await?.into_iter().enumerate() {
        let name = pod.metadata.name.context("a stored pod has a name")?;
        let node = node_name(NAME, u32::try_from(index)? % stage.nodes);
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"namespace": NAME, "name": name, "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        targets.push((name, serde_json::to_vec(&body)?));
    }
    let mut audit = stage.rig.audit_log();
    audit.skip()?;
    let before = server_cpu(stage)?;
    let client = stage.rig.client(Identity::RIVAL).await?;
    stream::iter(targets)
        .map(|(name, body)| {
            let client = client.clone();
            async move {
                let path = format!("/api/v1/namespaces/{NAME}/pods/{name}/binding");
                let request = http::Request::post(path).header("content-type", "application/json");
                client.request_text(request.body(body)?).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(usize::from(stage.in_flight))
        .try_collect::<()>()
        .await?;
    let server_cpu = server_cpu(stage)? - before;
    let binds = binds(&audit.read()?, Identity::RIVAL, server_cpu)?;
    stage.clear().await?;
    Ok(binds)
}

/// Starts the scheduler on pods that wait already and stops it when all are bound and all is told.
pub(crate) async fn tephra(stage: &Stage<'_>) -> anyhow::Result<Tephra> {
    let gangs = stage.gangs();
    workload::create_gangs(&stage.client, NAME, &gangs).await.context("pods")?;
    let expected = gangs.iter().map(|gang| gang.members as usize).sum::<usize>();
    let mut audit = stage.rig.audit_log();
    audit.skip()?;
    let mut records: Vec<Record> = Vec::new();
    let before = server_cpu(stage)?;
    let started = jiff::Timestamp::now();
    let flags = SchedulerFlags {
        more: vec![format!("--bind-concurrency={}", stage.in_flight), "-v=0".to_owned()],
        ..SchedulerFlags::new(NAME)
    };
    let scheduler = stage.rig.scheduler(stage.binaries, &flags)?;
    let all_bound = wait_for("all pods bound", PATIENCE, async || {
        records.extend(audit.read()?);
        let bound = bindings(&records, Identity::SCHEDULER).count();
        Ok(if bound >= expected { Ok(()) } else { Err(format!("{bound} of {expected}")) })
    });
    all_bound.await.with_context(|| scheduler.log_tail(20))?;
    let server_cpu = server_cpu(stage)? - before;
    let mut last = Instant::now();
    while last.elapsed() < QUIET {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let more = audit.read()?;
        if more.iter().any(|record| record.user() == Identity::SCHEDULER.user) {
            last = Instant::now();
        }
        records.extend(more);
    }
    let (cpu, peak_mib) = (scheduler.cpu_seconds()?, scheduler.peak_mib()?);
    drop(scheduler);
    let binds = binds(&records, Identity::SCHEDULER, server_cpu)?;
    ensure!(binds.pods == expected, "{} binds for {expected} pods", binds.pods);
    let end = bindings(&records, Identity::SCHEDULER).map(|record| record.answered).max();
    let start_to_last = seconds(started, end.context("no binds")?);
    let mut writes = BTreeMap::new();
    for record in records.iter().filter(|record| record.user() == Identity::SCHEDULER.user) {
        *writes.entry(format!("{} {}", record.verb, record.resource())).or_default() += 1;
    }
    stage.clear().await?;
    Ok(Tephra { binds, start_to_last, writes, cpu, peak_mib })
}

fn bindings(records: &[Record], by: Identity) -> impl Iterator<Item = &Record> {
    let bound = move |record: &&Record| {
        record.user() == by.user && record.accepted() && record.binding().is_some()
    };
    records.iter().filter(bound)
}

fn binds(records: &[Record], by: Identity, server_cpu: f64) -> anyhow::Result<Binds> {
    let first = bindings(records, by).map(|record| record.received).min().context("no binds")?;
    let last = bindings(records, by).map(|record| record.answered).max().context("no binds")?;
    Ok(Binds { pods: bindings(records, by).count(), seconds: seconds(first, last), server_cpu })
}

fn seconds(from: jiff::Timestamp, to: jiff::Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn server_cpu(stage: &Stage<'_>) -> anyhow::Result<f64> {
    Ok(stage.rig.cpu_seconds(Component::ApiServer)? + stage.rig.cpu_seconds(Component::Etcd)?)
}
