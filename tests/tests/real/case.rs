//! The stage on which a case plays.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::Value;
use tephra_tests::rig::assets::{self, Found};
use tephra_tests::rig::audit_log::{self, AuditLog, Record};
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::manifests::SYSTEM_NAMESPACE;
use tephra_tests::rig::nodes::Shape;
use tephra_tests::rig::patience::{PATIENCE, wait_for, wait_until};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::program::{self, SchedulerFlags};
use tephra_tests::rig::workload::{self, Gang};
use tephra_tests::rig::{Rig, RigOptions, manifests, nodes, rights};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The control plane of this process and the folder of our binaries; `Err` says why there is none.
static RIG: OnceCell<Started> = OnceCell::const_new();
/// The same with kube-controller-manager, for cases of Jobs and quotas.
static MANAGED: OnceCell<Started> = OnceCell::const_new();
/// One case at a time: two cores cannot carry more, and each case knows all traffic to be its own.
static TURN: Mutex<Before> = Mutex::const_new(Before { plain: None, managed: None });

/// The last case of each control plane, whose things are swept away when the next one begins there, however it ended:
/// what it left would still have a share of the cluster.
struct Before {
    plain: Option<&'static str>,
    managed: Option<&'static str>,
}

type Started = Result<(Rig, PathBuf), String>;

/// Nodes that only bind 2-CPU pods two at a time and so on: memory never limits a case.
pub(crate) fn cpus(cpu: u32) -> Shape {
    Shape { cpu, memory_gib: 64, gpu: 0 }
}

/// One case: its own namespace, queue, nodes and scheduler name, all called `name`.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rig: &'static Rig,
    pub(crate) client: Client,
    binaries: &'static PathBuf,
    audit: AuditLog,
    records: Vec<Record>,
    /// From the beginning of the case, for its end.
    requests: AuditLog,
    controller: Process,
    _turn: MutexGuard<'static, Before>,
}

impl Case {
    /// Prepares the stage; `None`, said aloud, when there is no server to test against.
    pub(crate) async fn open(name: &'static str, count: u32, shape: Shape) -> Option<Self> {
        Self::open_on(&RIG, false, name, count, shape).await
    }

    /// The same where kube-controller-manager runs.
    pub(crate) async fn open_managed(name: &'static str, count: u32, shape: Shape) -> Option<Self> {
        let case = Self::open_on(&MANAGED, true, name, count, shape).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(case.client.clone(), name);
        wait_until("pods may be created", PATIENCE, async || {
            Ok(accounts.get_opt("default").await?.is_some())
        })
        .await
        .expect("a service account");
        Some(case)
    }

    async fn open_on(
        cell: &'static OnceCell<Started>,
        managed: bool,
        name: &'static str,
        count: u32,
        shape: Shape,
    ) -> Option<Self> {
        let mut turn = TURN.lock().await;
        let shared = cell.get_or_init(async || start(managed).await.expect("the rig starts")).await;
        let (rig, binaries) = match shared {
            Ok((rig, binaries)) => (rig, binaries),
            Err(reason) => {
                say_skipped(name, reason);
                return None;
            }
        };
        let client = rig.client(Identity::ADMIN).await.expect("a client");
        let last = if managed { &mut turn.managed } else { &mut turn.plain };
        if let Some(before) = last.replace(name) {
            sweep(&client, before).await.expect("the case before is swept away");
        }
        let mut audit = rig.audit_log();
        audit.skip().expect("the audit log");
        let requests = audit.clone();
        manifests::create_namespace(&client, name).await.expect("the namespace");
        workload::create_queue(&client, name).await.expect("the queue");
        nodes::create(&client, name, 0..count, shape).await.expect("nodes");
        let controller = rig.controller(binaries, name, false, &[]).expect("the controller starts");
        Some(Self {
            name,
            rig,
            client,
            binaries,
            audit,
            records: Vec::new(),
            requests,
            controller,
            _turn: turn,
        })
    }

    /// Says aloud that the case cannot be played, for a reason found only now.
    pub(crate) fn skip(&self, reason: &str) {
        say_skipped(self.name, reason);
    }

    /// Kills the controller and starts it anew.
    pub(crate) fn restart_controller(&mut self) {
        self.restart_controller_with(&[]);
    }

    /// The same with further flags.
    pub(crate) fn restart_controller_with(&mut self, more: &[&str]) {
        self.controller.kill();
        self.controller = self.start_controller(false, more);
    }

    /// Starts one more controller.
    pub(crate) fn start_controller(&self, lease: bool, more: &[&str]) -> Process {
        self.rig.controller(self.binaries, self.name, lease, more).expect("the controller starts")
    }

    /// Ends the controller that every case begins with.
    pub(crate) fn stop_controller(&mut self) {
        self.controller.kill();
    }

    /// Starts the case's scheduler, without a lease.
    pub(crate) fn scheduler(&self, more: &[&str]) -> Process {
        let more = more.iter().map(|&flag| flag.to_owned()).collect();
        self.start_scheduler(&SchedulerFlags { more, ..SchedulerFlags::new(self.name) })
    }

    pub(crate) fn start_scheduler(&self, flags: &SchedulerFlags) -> Process {
        self.rig.scheduler(self.binaries, flags).expect("the scheduler starts")
    }

    /// A gang in the case's queue for the case's scheduler whose every member must start.
    pub(crate) fn gang(&self, name: &str, members: u32, cpu: &str) -> Gang {
        Gang {
            name: name.to_owned(),
            queue: self.name.to_owned(),
            members,
            min_member: members,
            scheduler: self.name.to_owned(),
            cpu: cpu.to_owned(),
            priority_class: None,
            run_for: None,
        }
    }

    pub(crate) async fn create(&self, gangs: &[Gang]) {
        workload::create_gangs(&self.client, self.name, gangs).await.expect("gangs");
    }

    /// Every write that the API server saw since the case began.
    pub(crate) fn writes(&mut self) -> &[Record] {
        self.records.extend(self.audit.read().expect("the audit log"));
        &self.records
    }

    /// Pods of the case for which a request to bind was accepted, or left its sender without an answer.
    pub(crate) fn attempted(&mut self) -> BTreeSet<String> {
        let namespace = self.name;
        let pods = self.writes().iter().filter(|record| record.accepted() || record.unknown());
        pods.filter_map(Record::binding)
            .filter(|(of, ..)| *of == namespace)
            .map(|(_, pod, _)| pod.to_owned())
            .collect()
    }

    /// Pods of the case that have a node, as stored.
    pub(crate) async fn stored(&self) -> anyhow::Result<Bound> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), self.name);
        let mut bound = BTreeMap::new();
        for pod in api.list(&ListParams::default()).await? {
            let node = pod.spec.and_then(|spec| spec.node_name);
            if let (Some(name), Some(node)) = (pod.metadata.name, node) {
                bound.insert(name, node);
            }
        }
        Ok(Bound(bound))
    }

    /// Waits until so many pods are bound. Lists pods only when the audit log says that it may be so.
    pub(crate) async fn bound(&mut self, count: usize) {
        let what = format!("{count} pods bound");
        let look = async || {
            let mut bound = self.attempted().len();
            if bound >= count {
                bound = self.stored().await?.0.len();
            }
            Ok(if bound >= count { Ok(()) } else { Err(format!("{bound} bound")) })
        };
        wait_for(&what, PATIENCE, look).await.expect("bound");
    }

    /// Exactly these many pods are bound, each by one accepted request. A request whose sender died before the
    /// answer (504) may have been carried out; then no other one may have been accepted.
    pub(crate) async fn assert_bound_once(&mut self, count: usize) -> Bound {
        let stored = self.stored().await.expect("pods");
        let namespace = self.name;
        let mut accepted = audit_log::accepted_bindings(self.writes(), namespace);
        let unknown = self.attempted();
        for (pod, node) in &stored.0 {
            match accepted.remove(pod).as_deref() {
                None => assert!(unknown.contains(pod), "{pod} on {node} was bound by nobody"),
                Some([one]) => assert_eq!(one, node, "{pod}"),
                Some(several) => panic!("{pod} was bound to {several:?}"),
            }
        }
        assert!(accepted.is_empty(), "bound and lost: {accepted:?}");
        assert_eq!(stored.0.len(), count);
        stored
    }

    /// No pod had two requests to bind accepted. Weaker than [`Case::assert_bound_once`]: an API server that is
    /// killed may have carried out a request that it did not live to log.
    pub(crate) fn assert_none_bound_twice(&mut self) {
        let namespace = self.name;
        let mut accepted = audit_log::accepted_bindings(self.writes(), namespace);
        accepted.retain(|_, nodes| nodes.len() != 1);
        assert!(accepted.is_empty(), "bound more than once: {accepted:?}");
    }

    /// A PodGroup of the case as stored.
    pub(crate) async fn pod_group(&self, name: &str) -> Value {
        let api = workload::pod_groups(&self.client, self.name);
        serde_json::to_value(api.get(name).await.expect("the PodGroup")).expect("JSON")
    }

    /// Waits until the stored PodGroup is as wanted and returns it.
    pub(crate) async fn pod_group_where(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let look = async || {
            let group = self.pod_group(name).await;
            Ok(if wanted(&group) { Ok(group) } else { Err(group["status"].to_string()) })
        };
        let what = format!("PodGroup {name}: {what}");
        wait_for(&what, PATIENCE, look).await.expect("as wanted")
    }
}

/// Node of each bound pod.
pub(crate) struct Bound(BTreeMap<String, String>);

impl Bound {
    /// Bound pods.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Bound pods by gang, from names `<gang>-<index>`; gangs without any are absent.
    pub(crate) fn by_gang(&self) -> BTreeMap<String, usize> {
        let mut count = BTreeMap::new();
        for pod in self.0.keys() {
            let gang = pod.rsplit_once('-').expect("<gang>-<index>").0;
            *count.entry(gang.to_owned()).or_default() += 1;
        }
        count
    }

    /// No node holds more than `most` pods.
    pub(crate) fn assert_at_most_per_node(&self, most: usize) {
        let mut on: BTreeMap<&str, usize> = BTreeMap::new();
        for node in self.0.values() {
            *on.entry(node).or_default() += 1;
        }
        on.retain(|_, pods| *pods > most);
        assert!(on.is_empty(), "more than {most} pods: {on:?}");
    }

    /// Every gang that has a bound pod has this many.
    pub(crate) fn assert_whole(&self, members: usize) {
        let mut parts = self.by_gang();
        parts.retain(|_, bound| *bound != members);
        assert!(parts.is_empty(), "gangs in parts: {parts:?}");
    }
}

/// The condition of a type, `Null` when absent.
pub(crate) fn condition<'a>(group: &'a Value, kind: &str) -> &'a Value {
    let conditions = group["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

fn say_skipped(name: &str, reason: &str) {
    // Not `println!`: the test runner would swallow what a passing test says.
    let line = format!("\nSKIPPED real/{name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
}

/// Removes what a case has made, save its namespace, which nobody finalizes here.
async fn sweep(client: &Client, name: &str) -> anyhow::Result<()> {
    let (now, all) = (DeleteParams::default().grace_period(0), ListParams::default());
    // Jobs first: their controller would make new pods.
    let jobs: Api<Job> = Api::namespaced(client.clone(), name);
    jobs.delete_collection(&DeleteParams::background(), &all).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), name);
    pods.delete_collection(&now, &all).await?;
    workload::pod_groups(client, name).delete_collection(&now, &all).await?;
    let pool = all.clone().labels(&format!("{}={name}", nodes::POOL_LABEL));
    Api::<Node>::all(client.clone()).delete_collection(&now, &pool).await?;
    workload::queues(client).delete(name, &now).await?;
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    leases.delete_collection(&now, &all).await?;
    wait_for("no pods are left", PATIENCE, async || {
        let left = pods.list_metadata(&all.clone().limit(1)).await?.items;
        Ok(if left.is_empty() { Ok(()) } else { Err("some are left".to_owned()) })
    })
    .await
}

async fn start(controller_manager: bool) -> anyhow::Result<Started> {
    let assets = match assets::find()? {
        Found::Ready(assets) => assets,
        Found::Missing(reason) => return Ok(Err(reason)),
    };
    for needed in ["kwok", "helm"] {
        if !assets.has(needed) {
            return Ok(Err(format!("KUBEBUILDER_ASSETS has no {needed}")));
        }
    }
    let binaries = program::binaries()?;
    let options = RigOptions { controller_manager, kwok: true };
    Ok(Ok((Rig::start(&assets, options).await?, binaries)))
}

impl Case {
    /// The chart's rights were enough for what our programs did in this case, and what they used is left for `bin/rights`.
    fn judge_rights(&mut self) {
        let requests = self.requests.read_all().expect("the audit log");
        let refused = rights::refused(&requests);
        assert!(refused.is_empty(), "the chart lacks a right: {refused:#?}");
        if let Some(folder) = std::env::var_os(rights::FOLDER) {
            let used = rights::used(&requests);
            rights::save(folder.as_ref(), self.name, &used).expect("the used rights");
        }
    }
}

impl Drop for Case {
    #[expect(clippy::print_stderr, reason = "the test runner shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.rig.logs_of_programs(15));
        } else {
            self.judge_rights();
        }
    }
}
