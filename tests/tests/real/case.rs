//! The stage on which a case plays.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use kube::Client;
use serde_json::Value;
use tephra_tests::rig::assets::{self, Found};
use tephra_tests::rig::audit_log::{self, AuditLog, Record};
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::nodes::Shape;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::program::{self, SchedulerFlags};
use tephra_tests::rig::workload::{self, Gang};
use tephra_tests::rig::{Rig, RigOptions, manifests, nodes};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The control plane of this process and the folder of our binaries; `Err` says why there is none.
static RIG: OnceCell<Result<(Rig, PathBuf), String>> = OnceCell::const_new();
/// One case at a time: two cores cannot carry more, and each case knows all traffic to be its own.
static TURN: Mutex<()> = Mutex::const_new(());

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
    _controller: Process,
    _turn: MutexGuard<'static, ()>,
}

impl Case {
    /// Prepares the stage; `None`, said aloud, when there is no server to test against.
    pub(crate) async fn open(name: &'static str, count: u32, shape: Shape) -> Option<Self> {
        let turn = TURN.lock().await;
        let shared = RIG.get_or_init(async || start().await.expect("the rig starts")).await;
        let (rig, binaries) = match shared {
            Ok((rig, binaries)) => (rig, binaries),
            Err(reason) => {
                // Not `println!`: the test runner would swallow what a passing test says.
                let line = format!("SKIPPED real/{name}: {reason}\n");
                std::io::stderr().write_all(line.as_bytes()).expect("standard error");
                return None;
            }
        };
        let client = rig.client(Identity::ADMIN).await.expect("a client");
        let mut audit = rig.audit_log();
        audit.skip().expect("the audit log");
        manifests::create_namespace(&client, name).await.expect("the namespace");
        workload::create_queue(&client, name).await.expect("the queue");
        nodes::create(&client, name, 0..count, shape).await.expect("nodes");
        let controller = rig.controller(binaries, &[name]).expect("the controller starts");
        Some(Self {
            name,
            rig,
            client,
            binaries,
            audit,
            records: Vec::new(),
            _controller: controller,
            _turn: turn,
        })
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

    /// Nodes that each pod of the case was accepted on, as the API server saw it.
    pub(crate) fn bindings(&mut self) -> BTreeMap<String, Vec<String>> {
        let namespace = self.name;
        audit_log::accepted_bindings(self.writes(), namespace)
    }

    /// Waits until so many pods are bound.
    pub(crate) async fn bound(&mut self, count: usize) {
        let look = async || {
            let bound = self.bindings().len();
            Ok(if bound >= count { Ok(()) } else { Err(format!("{bound} bound")) })
        };
        wait_for(&format!("{count} pods bound"), PATIENCE, look).await.expect("bound");
    }

    /// Bound pods by gang, from names `<gang>-<index>`; gangs without any are absent.
    pub(crate) fn bound_by_gang(&mut self) -> BTreeMap<String, usize> {
        let mut count = BTreeMap::new();
        for pod in self.bindings().keys() {
            let gang = pod.rsplit_once('-').expect("<gang>-<index>").0;
            *count.entry(gang.to_owned()).or_default() += 1;
        }
        count
    }

    /// Exactly these many pods were bound, each by one accepted request.
    pub(crate) fn assert_bound_once(&mut self, count: usize) {
        let bindings = self.bindings();
        let several: Vec<_> = bindings.iter().filter(|(_, nodes)| nodes.len() != 1).collect();
        assert!(several.is_empty(), "bound more than once: {several:?}");
        assert_eq!(bindings.len(), count);
    }

    /// No node of the case holds more than `most` pods.
    pub(crate) fn assert_at_most_per_node(&mut self, most: usize) {
        let mut on: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.bindings().into_values().flatten() {
            *on.entry(node).or_default() += 1;
        }
        let over: Vec<_> = on.iter().filter(|(_, pods)| **pods > most).collect();
        assert!(over.is_empty(), "more than {most} pods on {over:?}");
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

/// The condition of a type, `Null` when absent.
pub(crate) fn condition<'a>(group: &'a Value, kind: &str) -> &'a Value {
    let conditions = group["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

async fn start() -> anyhow::Result<Result<(Rig, PathBuf), String>> {
    let assets = match assets::find()? {
        Found::Ready(assets) if assets.has("kwok") => assets,
        Found::Ready(_) => return Ok(Err("KUBEBUILDER_ASSETS has no kwok".to_owned())),
        Found::Missing(reason) => return Ok(Err(reason)),
    };
    let binaries = program::binaries()?;
    let options = RigOptions { controller_manager: false, kwok: true };
    Ok(Ok((Rig::start(&assets, options).await?, binaries)))
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.rig.logs_of_programs(40));
        }
    }
}
