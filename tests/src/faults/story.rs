//! The story of a seed: what users, administrators and bad luck do to a small cluster, one act after the other.
//!
//! Acts go straight into the server; only graceful deletions are requests. Some acts have consequences later (pods of
//! a vanished node are collected, the second half of a gang arrives): those wait in `later` for their time.

mod acts;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tephra_api::conf::SchedulerConf;
use tephra_simulator::ApiServer;
use tephra_simulator::checker::Rules;

use super::cluster::Cluster;
use super::dice::Dice;
use super::objects::{self, NAMESPACE};
use super::process::{Process, Program};
use super::run::{STALENESS_MS, Tale};
use super::weather::{AUTHOR, Sky, Weather};

/// Pods that exist at most at a time.
const CROWD: usize = 90;

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
        if self.dice.chance(0.5) {
            let evictors =
                *self.dice.pick(&[["preempt", "reclaim"], ["gangpreempt", "gangreclaim"]]);
            let after = options.conf.actions.iter().position(|action| action == "allocate");
            let at = after.map_or(options.conf.actions.len(), |at| at + 1);
            options.conf.actions.splice(at..at, evictors.map(ToOwned::to_owned));
        }
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
}

impl Tale for Story {
    const QUIET: Duration = Duration::from_secs(75);
    const PATIENCE: Duration = Duration::from_secs(3_600);

    fn begin(seed: u64, cluster: &Cluster, sky: Arc<Sky>) -> anyhow::Result<Self> {
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

    fn weather(&self, seed: u64) -> Weather {
        Weather::of(seed, Arc::clone(&self.sky))
    }

    async fn act(&mut self) -> anyhow::Result<()> {
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

    /// What was to come comes, armed crashes are disarmed, and some of what would run for ever goes.
    async fn calm(&mut self) -> anyhow::Result<()> {
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

    fn rules(&self) -> Rules {
        Rules {
            staleness_ms: STALENESS_MS,
            enforces_capability: !self.plain_conf,
            ..Rules::default()
        }
    }

    async fn end(self) -> Vec<String> {
        let mut strange = Vec::new();
        for process in self.processes {
            let vita = Arc::clone(&process.vita);
            process.stop().await;
            strange.extend(vita.strange_ends());
        }
        strange
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}
