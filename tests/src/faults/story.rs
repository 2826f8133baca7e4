//! The story of a seed: what users, administrators and bad luck do to a small cluster, one act after the other.
//!
//! Acts go straight into the server; only graceful deletions are requests. Some acts have consequences later (pods of
//! a vanished node are collected, the second half of a gang arrives): those wait in `later` for their time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod as CorePod;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tephra_api::conf::SchedulerConf;
use tephra_simulator::ApiServer;

use super::cluster::Cluster;
use super::dice::Dice;
use super::objects::{self, GPU, NAMESPACE, Pod, Request};
use super::process::{Process, Program};
use super::weather::{AUTHOR, Sky};

/// Pods that exist at most at a time.
const CROWD: usize = 90;
const ZONES: [&str; 2] = ["east", "west"];

/// A configuration without shares and admission, under which everything that fits must run.
const PLAIN: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
  - name: binpack
";

#[derive(Clone, Copy, Debug)]
enum Act {
    Wait,
    Gang,
    PlainPod,
    ForeignPod,
    DeletePod,
    RecreatePod,
    TouchPod,
    DeletePodGroup,
    DeleteGang,
    NodeVanishes,
    NodeComes,
    NodeChanges,
    QueueChanges,
    Kill,
    ArmCrash,
    CutOff,
    Compact,
}

const ACTS: [(u32, Act); 17] = [
    (14, Act::Wait),
    (24, Act::Gang),
    (8, Act::PlainPod),
    (3, Act::ForeignPod),
    (6, Act::DeletePod),
    (3, Act::RecreatePod),
    (4, Act::TouchPod),
    (2, Act::DeletePodGroup),
    (6, Act::DeleteGang),
    (2, Act::NodeVanishes),
    (3, Act::NodeComes),
    (5, Act::NodeChanges),
    (2, Act::QueueChanges),
    (2, Act::Kill),
    (4, Act::ArmCrash),
    (3, Act::CutOff),
    (2, Act::Compact),
];

/// A story that is being told.
#[expect(missing_debug_implementations, reason = "a client has no Debug")]
pub struct Story {
    dice: Dice,
    server: ApiServer,
    author: kube::Client,
    sky: Arc<Sky>,
    processes: Vec<Process>,
    queues: Vec<String>,
    /// Acts of this story, by weight: quiet ones leave nodes and processes alone.
    acts: Vec<(u32, Act)>,
    plain_conf: bool,
    named: u64,
    /// Objects to create at their time (Unix milliseconds), in order.
    later: VecDeque<(i64, Later)>,
}

#[derive(Debug)]
enum Later {
    Create(Value),
    CollectPodsOf(String),
}

impl Story {
    /// Sets the stage and starts the processes.
    ///
    /// # Errors
    /// When the server refuses an object of the stage.
    pub fn begin(seed: u64, cluster: &Cluster, sky: Arc<Sky>) -> anyhow::Result<Self> {
        let mut dice = Dice::new(seed, 2);
        let server = cluster.server.clone();
        let plain_conf = dice.chance(0.3);
        let mut acts = ACTS.to_vec();
        // In a third of the stories nothing is ever taken away: there every gang must become whole.
        if dice.chance(0.33) {
            acts.retain(|(_, act)| {
                !matches!(
                    act,
                    Act::NodeVanishes | Act::NodeChanges | Act::ForeignPod | Act::DeletePod
                )
            });
        }
        let mut story = Self {
            author: server.client_as(AUTHOR),
            queues: vec!["default".to_owned()],
            dice,
            server,
            sky,
            processes: Vec::new(),
            acts,
            plain_conf,
            named: 0,
            later: VecDeque::new(),
        };
        story.set_stage()?;
        story.start_processes(seed)?;
        Ok(story)
    }

    fn set_stage(&mut self) -> anyhow::Result<()> {
        for (name, value) in [("low", 10), ("high", 1_000)] {
            self.server.create_value(objects::priority_class(name, value))?;
        }
        for _ in 0..self.dice.within(3, 12) {
            let node = self.new_node();
            self.server.create_value(node)?;
        }
        for at in 0..self.dice.within(1, 2) {
            let name = format!("team-{at}");
            let capability = self.capability();
            let weight = self.dice.within(1, 4);
            self.server.create_value(objects::queue(&name, weight, &capability))?;
            self.queues.push(name);
        }
        Ok(())
    }

    fn start_processes(&mut self, seed: u64) -> anyhow::Result<()> {
        let two = self.dice.chance(0.35);
        let elected = two || self.dice.chance(0.3);
        let mut options = Cluster::scheduler(elected);
        options.conf = match self.dice.within(0, 1) {
            _ if self.plain_conf => {
                SchedulerConf::parse(PLAIN, &["enqueue", "allocate", "backfill"])?
            }
            0 => SchedulerConf::builtin(),
            _ => SchedulerConf::volcano(),
        };
        options.bind_concurrency = *self.dice.pick(&[1, 4, 32]);
        let mut start = |name: &str, part: u64, program: Program| {
            let (dice, sky) = (Dice::new(seed, part), Arc::clone(&self.sky));
            self.processes.push(Process::start(&self.server, name, program, dice, sky));
        };
        start("controller", 10, Program::Controller);
        start("scheduler-a", 11, Program::Scheduler(options.clone()));
        if two {
            start("scheduler-b", 12, Program::Scheduler(options));
        }
        Ok(())
    }

    /// Whether the configuration of this story enforces capabilities.
    #[must_use]
    pub fn enforces_capability(&self) -> bool {
        !self.plain_conf
    }

    /// The next act, and the time until then.
    ///
    /// # Errors
    /// When the server refuses what the story wants.
    pub async fn act(&mut self) -> anyhow::Result<()> {
        let pause = match self.dice.within(0, 9) {
            0..=5 => self.dice.within(0, 400),
            6..=8 => self.dice.within(400, 2_000),
            _ => self.dice.within(2_000, 12_000),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.due()?;
        let pods = self.pods();
        let mut act = self.dice.weighted(&self.acts);
        if pods.len() > CROWD && matches!(act, Act::Gang | Act::PlainPod | Act::ForeignPod) {
            act = Act::DeleteGang;
        }
        match act {
            Act::Wait => {}
            Act::Gang => self.gang()?,
            Act::PlainPod => self.plain_pod()?,
            Act::ForeignPod => self.foreign_pod()?,
            Act::DeletePod => self.delete_pod(&pods).await,
            Act::RecreatePod => self.recreate_pod(&pods)?,
            Act::TouchPod => self.touch_pod(&pods)?,
            Act::DeletePodGroup => {
                if let Some(group) = self.some("podgroups") {
                    self.delete("podgroups", &group);
                }
            }
            Act::DeleteGang => self.delete_gang(&pods),
            Act::NodeVanishes => self.node_vanishes(),
            Act::NodeComes => {
                if self.server.list_values("nodes").len() < 12 {
                    let node = self.new_node();
                    self.server.create_value(node)?;
                }
            }
            Act::NodeChanges => self.node_changes()?,
            Act::QueueChanges => self.queue_changes()?,
            Act::Kill => {
                let identity = self.some_process();
                self.server.kill(&identity);
            }
            Act::ArmCrash => {
                let identity = self.some_process();
                let writes = self.dice.within(1, 12);
                self.server.crash_after_write(&identity, writes);
            }
            Act::CutOff => {
                let identity = self.some_process();
                let leases_only = self.dice.chance(0.6);
                let until = self.now_ms() + self.dice.within(3_000, 25_000) as i64;
                self.sky.cut_off(&identity, leases_only, until);
            }
            Act::Compact => {
                self.server.compact();
                self.sky.deal("compaction");
            }
        }
        Ok(())
    }

    /// The last act: what was to come comes, armed crashes are disarmed, and some of what would run for ever goes.
    ///
    /// # Errors
    /// When the server refuses what the story wants.
    pub async fn calm(&mut self) -> anyhow::Result<()> {
        for process in &self.processes {
            let identity = process.vita.identity();
            if !self.server.is_dead(&identity) {
                // Takes back a crash that was to come.
                self.server.revive(&identity);
            }
        }
        while let Some((at, later)) = self.later.pop_front() {
            let wait = u64::try_from(at - self.now_ms()).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            self.happen(later)?;
        }
        if self.dice.chance(0.5) {
            for group in self.server.list_values("podgroups") {
                if self.dice.chance(0.4) {
                    self.delete_members(name_of(&group));
                    self.delete("podgroups", &group);
                }
            }
        }
        Ok(())
    }

    /// Ends all processes; returns what was strange about them.
    pub async fn end(self) -> Vec<String> {
        let mut strange = Vec::new();
        for process in self.processes {
            let vita = Arc::clone(&process.vita);
            process.stop().await;
            strange.extend(vita.strange_ends());
        }
        strange
    }

    fn now_ms(&self) -> i64 {
        self.server.clock().now_ms()
    }

    fn due(&mut self) -> anyhow::Result<()> {
        let now_ms = self.now_ms();
        while self.later.front().is_some_and(|(at, _)| *at <= now_ms) {
            if let Some((_, later)) = self.later.pop_front() {
                self.happen(later)?;
            }
        }
        Ok(())
    }

    fn happen(&mut self, later: Later) -> anyhow::Result<()> {
        match later {
            Later::Create(object) => {
                self.server.create_value(object)?;
            }
            Later::CollectPodsOf(node) => {
                for pod in self.server.list_values("pods") {
                    if pod["spec"]["nodeName"] == node.as_str() {
                        self.delete("pods", &pod);
                    }
                }
            }
        }
        Ok(())
    }

    fn after(&mut self, ms: u64, later: Later) {
        let at = self.now_ms() + ms as i64;
        let place = self.later.partition_point(|(other, _)| *other <= at);
        self.later.insert(place, (at, later));
    }

    fn name(&mut self, stem: &str) -> String {
        self.named += 1;
        format!("{stem}-{}", self.named)
    }

    fn some_process(&mut self) -> String {
        self.dice.pick(&self.processes).vita.identity()
    }

    /// Our pods.
    fn pods(&self) -> Vec<Arc<Value>> {
        let pods = self.server.list_values("pods").into_iter();
        pods.filter(|pod| pod["metadata"]["namespace"] == NAMESPACE).collect()
    }

    fn some(&mut self, resource: &str) -> Option<Arc<Value>> {
        let all = self.server.list_values(resource);
        (!all.is_empty()).then(|| Arc::clone(self.dice.pick(&all)))
    }

    /// Deletes at once; what is gone already is no trouble.
    fn delete(&self, resource: &str, object: &Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
        let _ = self.server.delete_value(resource, namespace, name_of(object));
    }

    fn gang(&mut self) -> anyhow::Result<()> {
        let name = self.name("gang");
        let size = *self.dice.pick(&[1, 2, 2, 3, 4, 4, 5, 6, 8]);
        let min = if self.dice.chance(0.7) { size } else { self.dice.within(1, size) };
        let created = if self.dice.chance(0.08) { size - 1 } else { size };
        let kinds = [self.request(), self.request()];
        let mixed = self.dice.chance(0.3);
        let priority = *self.dice.pick(&["", "", "low", "high"]);
        let zone = if self.dice.chance(0.15) { *self.dice.pick(&ZONES) } else { "" };
        let runs_s = self.dice.chance(0.8).then(|| self.dice.within(2, 45));
        let (tolerant, fails) = (self.dice.chance(0.2), self.dice.chance(0.05));
        let pods: Vec<Value> = (0..created)
            .map(|at| {
                let request = if mixed && at % 2 == 1 { &kinds[1] } else { &kinds[0] };
                let pod = Pod {
                    name: format!("{name}-{at}"),
                    group: name.clone(),
                    request: request.clone(),
                    runs_s,
                    fails,
                    tolerant,
                    zone: zone.to_owned(),
                    priority: priority.to_owned(),
                    ..Pod::default()
                };
                pod.json()
            })
            .collect();
        let minimum = self.dice.chance(0.6).then(|| minimum(&kinds, mixed, min));
        let queue = self.dice.pick(&self.queues).clone();
        let min_resources = minimum.unwrap_or(Value::Null);
        let group = objects::gang(&name, &queue, min, &min_resources, priority);
        // Now and then the pods come before their PodGroup, or in two parts.
        let (first, second) = match self.dice.within(0, 5) {
            0 => (pods, vec![group]),
            1 => {
                let (first, second) = pods.split_at(pods.len() / 2);
                let first = std::iter::once(group).chain(first.iter().cloned());
                (first.collect(), second.to_vec())
            }
            _ => (std::iter::once(group).chain(pods).collect::<Vec<_>>(), Vec::new()),
        };
        for object in first {
            self.server.create_value(object)?;
        }
        let wait = self.dice.within(10, 6_000);
        second.into_iter().for_each(|object| self.after(wait, Later::Create(object)));
        Ok(())
    }

    fn request(&mut self) -> Request {
        let cpu = *self.dice.pick(&["", "250m", "500m", "1", "1", "2", "3", "333m", "1100.5m"]);
        let memory = *self.dice.pick(&["", "256Mi", "1Gi", "2Gi", "1.5Gi", "3G"]);
        let gpus = *self.dice.pick(&[0, 0, 0, 1, 1, 2, 4]);
        let nothing = cpu.is_empty() && memory.is_empty() && gpus == 0 && self.dice.chance(0.7);
        let cpu = if nothing { "1" } else { cpu };
        Request { cpu: cpu.to_owned(), memory: memory.to_owned(), gpus }
    }

    fn plain_pod(&mut self) -> anyhow::Result<()> {
        let pod = Pod {
            name: self.name("plain"),
            queue: if self.dice.chance(0.4) {
                self.dice.pick(&self.queues).clone()
            } else {
                String::new()
            },
            request: self.request(),
            runs_s: self.dice.chance(0.8).then(|| self.dice.within(2, 45)),
            ..Pod::default()
        };
        self.server.create_value(pod.json())?;
        Ok(())
    }

    fn foreign_pod(&mut self) -> anyhow::Result<()> {
        let Some(node) = self.some("nodes") else { return Ok(()) };
        let name = self.name("foreign");
        let cpu = *self.dice.pick(&["100m", "1", "2"]);
        self.server.create_value(objects::foreign_pod(&name, name_of(&node), cpu))?;
        Ok(())
    }

    async fn delete_pod(&mut self, pods: &[Arc<Value>]) {
        if pods.is_empty() {
            return;
        }
        let pod = Arc::clone(self.dice.pick(pods));
        if self.dice.chance(0.5) {
            self.delete("pods", &pod);
        } else {
            let api: Api<CorePod> = Api::namespaced(self.author.clone(), NAMESPACE);
            // It may be gone already.
            let _ = api.delete(name_of(&pod), &DeleteParams::default()).await;
        }
    }

    /// Another pod takes the name of one that goes.
    fn recreate_pod(&mut self, pods: &[Arc<Value>]) -> anyhow::Result<()> {
        if pods.is_empty() {
            return Ok(());
        }
        let pod = Arc::clone(self.dice.pick(pods));
        self.delete("pods", &pod);
        let mut again = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod["metadata"]["name"], "namespace": NAMESPACE,
                         "annotations": pod["metadata"]["annotations"]},
            "spec": pod["spec"],
        });
        if let Some(spec) = again["spec"].as_object_mut() {
            spec.remove("nodeName");
        }
        self.server.create_value(again)?;
        Ok(())
    }

    fn touch_pod(&mut self, pods: &[Arc<Value>]) -> anyhow::Result<()> {
        if pods.is_empty() {
            return Ok(());
        }
        let mut pod = Value::clone(self.dice.pick(pods).as_ref());
        pod["metadata"]["labels"]["touched"] = self.dice.within(0, 999).to_string().into();
        self.server.apply_value(pod)?;
        Ok(())
    }

    fn delete_gang(&mut self, pods: &[Arc<Value>]) {
        let Some(group) = self.some("podgroups") else {
            pods.iter().take(5).for_each(|pod| self.delete("pods", pod));
            return;
        };
        if self.dice.chance(0.5) {
            self.delete_members(name_of(&group));
            self.delete("podgroups", &group);
        } else {
            self.delete("podgroups", &group);
            self.delete_members(name_of(&group));
        }
    }

    fn delete_members(&self, group: &str) {
        for pod in self.pods() {
            if pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group {
                self.delete("pods", &pod);
            }
        }
    }

    fn new_node(&mut self) -> Value {
        let name = self.name("node");
        let allocatable = json!({
            "cpu": self.dice.pick(&["2", "4", "8", "3500m", "16"]),
            "memory": self.dice.pick(&["4Gi", "8Gi", "16Gi", "7900Mi"]),
            "pods": self.dice.pick(&["4", "8", "110", "110"]),
            GPU: self.dice.pick(&["0", "0", "4", "8"]),
        });
        let zone = *self.dice.pick(&ZONES);
        objects::node(&name, zone, &allocatable, self.dice.chance(0.15))
    }

    fn node_vanishes(&mut self) {
        if self.server.list_values("nodes").len() <= 2 {
            return;
        }
        let Some(node) = self.some("nodes") else { return };
        self.delete("nodes", &node);
        let wait = self.dice.within(100, 15_000);
        self.after(wait, Later::CollectPodsOf(name_of(&node).to_owned()));
        if self.dice.chance(0.5) {
            let mut back = json!({"apiVersion": "v1", "kind": "Node", "spec": node["spec"],
                                  "status": node["status"]});
            back["metadata"] =
                json!({"name": node["metadata"]["name"], "labels": node["metadata"]["labels"]});
            let longer = wait + self.dice.within(1, 20_000);
            self.after(longer, Later::Create(back));
        }
    }

    fn node_changes(&mut self) -> anyhow::Result<()> {
        let Some(node) = self.some("nodes") else { return Ok(()) };
        let mut node = Value::clone(&node);
        match self.dice.within(0, 3) {
            0 => node["spec"]["unschedulable"] = (node["spec"]["unschedulable"] != true).into(),
            1 => {
                let tainted = node["spec"]["taints"].as_array().is_some_and(|it| !it.is_empty());
                node["spec"]["taints"] = if tainted {
                    json!([])
                } else {
                    json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
                };
            }
            2 => {
                node["status"]["allocatable"]["cpu"] =
                    (*self.dice.pick(&["0", "1", "2", "6"])).into();
            }
            _ => node["status"]["allocatable"][GPU] = (*self.dice.pick(&["0", "2", "8"])).into(),
        }
        self.server.apply_value(node)?;
        Ok(())
    }

    fn capability(&mut self) -> Value {
        match self.dice.within(0, 3) {
            0 => json!({"cpu": self.dice.within(2, 12).to_string()}),
            1 => json!({"cpu": self.dice.within(2, 12).to_string(), "memory": "12Gi",
                        GPU: self.dice.within(1, 8).to_string()}),
            _ => Value::Null,
        }
    }

    fn queue_changes(&mut self) -> anyhow::Result<()> {
        let name = self.dice.pick(&self.queues).clone();
        let Some(mut queue) = self.server.get_value("queues", "", &name) else { return Ok(()) };
        if self.dice.chance(0.5) {
            queue["spec"]["weight"] = self.dice.within(1, 5).into();
        } else if name != "default" {
            queue["spec"]["capability"] = self.capability();
        }
        self.server.apply_value(queue)?;
        Ok(())
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

/// `minResources` of the first `min` members.
fn minimum(kinds: &[Request; 2], mixed: bool, min: u64) -> Value {
    let milli = |text: &str| -> u64 {
        match text.strip_suffix('m') {
            Some(milli) => milli.parse::<f64>().map_or(0, |milli| milli.ceil() as u64),
            None => text.parse::<u64>().unwrap_or(0) * 1000,
        }
    };
    let (mut cpu, mut gpus) = (0, 0);
    for at in 0..min {
        let request = if mixed && at % 2 == 1 { &kinds[1] } else { &kinds[0] };
        cpu += milli(&request.cpu);
        gpus += request.gpus;
    }
    let mut resources = json!({"cpu": format!("{cpu}m")});
    if gpus > 0 {
        resources[GPU] = gpus.to_string().into();
    }
    resources
}
