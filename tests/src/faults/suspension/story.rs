//! The stage of a seed, what is on the programme, and how it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tephra_api::conf::{Arguments, SchedulerConf};
use tephra_simulator::ApiServer;
use tephra_simulator::checker::{Programs, Rules};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::objects;
use super::operators::Operators;
use crate::faults::cluster::Cluster;
use crate::faults::dice::Dice;
use crate::faults::objects::{node, priority_class, queue};
use crate::faults::process::{Process, Program};
use crate::faults::run::{STALENESS_MS, Tale};
use crate::faults::weather::{Sky, Weather};

/// Room is held for five minutes; a run is at rest only when even that is over.
const QUIET: Duration = Duration::from_secs(400);
/// Gangs of a story run one after the other in the worst case, and are suspended in between.
const PATIENCE: Duration = Duration::from_secs(3 * 3_600);
/// How late news may be where nothing goes wrong on the way: the time of a session and of a few writes.
const PROMPT_MS: i64 = 10_000;
/// Cpus of each node.
pub(super) const CPUS: u64 = 8;

/// A story that is being told.
pub(crate) struct Story {
    pub(super) dice: Dice,
    pub(super) server: ApiServer,
    pub(super) author: kube::Client,
    pub(super) sky: Arc<Sky>,
    pub(super) processes: Vec<Process>,
    pub(super) queues: Vec<String>,
    operators: JoinHandle<()>,
    stop: CancellationToken,
    /// Nothing goes wrong on the way of requests and events; processes crash all the same.
    bright: bool,
    /// All pods end by themselves, so everything must have run in the end.
    pub(super) finite: bool,
    pub(super) named: u64,
    pub(super) later: VecDeque<(i64, Later)>,
}

/// What comes of an act after a while.
#[derive(Debug)]
pub(super) enum Later {
    Create(Value),
    /// The pods of a node that is gone.
    Collect(String),
}

impl Story {
    fn set_stage(&mut self) -> anyhow::Result<()> {
        self.server.create_value(objects::pytorch_definition())?;
        for (name, value) in [("low", 10), ("high", 1_000)] {
            self.server.create_value(priority_class(name, value))?;
        }
        for at in 0..self.dice.within(3, 5) {
            let allocatable =
                serde_json::json!({"cpu": CPUS.to_string(), "memory": "64Gi", "pods": "50"});
            self.server.create_value(node(&format!("node-{at}"), "east", &allocatable, false))?;
        }
        for at in 0..self.dice.within(2, 3) {
            let name = format!("team-{at}");
            let weight = self.dice.within(1, 3);
            self.server.create_value(queue(&name, weight, &Value::Null))?;
            self.policy(&name)?;
            self.queues.push(name);
        }
        Ok(())
    }

    /// Creates or changes how gangs of a queue make room.
    pub(super) fn policy(&mut self, queue: &str) -> anyhow::Result<()> {
        let checkpoint = *self.dice.pick(&["None", "Signal", "Ack", "Ack", "Ack"]);
        let grace_s = *self.dice.pick(&[3, 10, 20, 40]);
        let min_runtime_s = *self.dice.pick(&[0, 0, 5, 15]);
        self.server.apply_value(objects::policy(queue, checkpoint, grace_s, min_runtime_s))?;
        Ok(())
    }

    fn start_processes(&mut self, seed: u64) -> anyhow::Result<()> {
        let two = self.dice.chance(0.3);
        let mut options = Cluster::scheduler(two || self.dice.chance(0.3));
        options.conf = SchedulerConf::tephra();
        let budget = *self.dice.pick(&[20, 60, 100]);
        let pair = *self.dice.pick(&["1m", "5m", "30m"]);
        let patience = *self.dice.pick(&["20s", "1m"]);
        let plugins = options.conf.tiers.iter_mut().flat_map(|tier| &mut tier.plugins);
        for plugin in plugins.filter(|plugin| plugin.name == "suspend") {
            plugin.arguments = Arguments::new([
                ("suspend.budget".to_owned(), budget.into()),
                ("suspend.pairCooldown".to_owned(), pair.into()),
                ("suspend.patience".to_owned(), patience.into()),
            ]);
        }
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

    pub(super) fn now_ms(&self) -> i64 {
        self.server.clock().now_ms()
    }

    pub(super) fn happen(&mut self, later: Later) -> anyhow::Result<()> {
        match later {
            Later::Create(object) => {
                // An operator may have been faster.
                let _ = self.server.create_value(object);
            }
            Later::Collect(node) => {
                for pod in self.server.list_values("pods") {
                    let over =
                        matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
                    if pod["spec"]["nodeName"] == *node && !over {
                        self.delete("pods", &pod);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn after(&mut self, ms: u64, later: Later) {
        let at = self.now_ms() + ms as i64;
        let place = self.later.partition_point(|(other, _)| *other <= at);
        self.later.insert(place, (at, later));
    }
}

impl Tale for Story {
    const QUIET: Duration = QUIET;
    const PATIENCE: Duration = PATIENCE;

    fn begin(seed: u64, cluster: &Cluster, sky: Arc<Sky>) -> anyhow::Result<Self> {
        let mut dice = Dice::new(seed, 2);
        let server = cluster.server.clone();
        let stop = CancellationToken::new();
        let (bright, finite) = (dice.chance(0.3), dice.chance(0.75));
        let mut story = Self {
            author: server.client_as(crate::faults::weather::AUTHOR),
            operators: Operators::start(&server, Dice::new(seed, 3), stop.clone()),
            dice,
            server,
            sky,
            processes: Vec::new(),
            queues: Vec::new(),
            stop,
            bright,
            finite,
            named: 0,
            later: VecDeque::new(),
        };
        story.set_stage()?;
        story.start_processes(seed)?;
        Ok(story)
    }

    fn weather(&self, seed: u64) -> Weather {
        let sky = Arc::clone(&self.sky);
        if self.bright { Weather::bright(seed, sky) } else { Weather::of(seed, sky) }
    }

    async fn act(&mut self) -> anyhow::Result<()> {
        let pause = match self.dice.within(0, 9) {
            0..=3 => self.dice.within(0, 1_000),
            4..=7 => self.dice.within(1_000, 5_000),
            _ => self.dice.within(5_000, 20_000),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let now_ms = self.now_ms();
        while self.later.front().is_some_and(|(at, _)| *at <= now_ms) {
            if let Some((_, later)) = self.later.pop_front() {
                self.happen(later)?;
            }
        }
        self.next_act().await
    }

    /// What was to come comes, crashes are disarmed, nodes take pods again. People let go of what they held, of all of it or of
    /// nothing, and of what they suspended themselves.
    async fn calm(&mut self) -> anyhow::Result<()> {
        for process in &self.processes {
            let identity = process.vita.identity();
            if !self.server.is_dead(&identity) {
                self.server.revive(&identity);
            }
        }
        while let Some((at, later)) = self.later.pop_front() {
            let wait = u64::try_from(at - self.now_ms()).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            self.happen(later)?;
        }
        for node in self.server.list_values("nodes") {
            if node["spec"]["unschedulable"] == true {
                let mut node = Value::clone(&node);
                node["spec"]["unschedulable"] = false.into();
                self.server.apply_value(node)?;
            }
        }
        if self.dice.chance(0.7) {
            while self.let_go()? {}
        }
        Ok(())
    }

    fn rules(&self) -> Rules {
        Rules {
            staleness_ms: if self.bright { PROMPT_MS } else { STALENESS_MS },
            suspension: Some(Programs {
                scheduler: "scheduler".to_owned(),
                controller: "controller".to_owned(),
            }),
            keeps_room: true,
            all_ends: self.finite,
            ..Rules::default()
        }
    }

    async fn end(self) -> Vec<String> {
        self.stop.cancel();
        let mut strange = Vec::new();
        if let Err(error) = self.operators.await {
            strange.push(format!("the operators failed: {error}"));
        }
        for process in self.processes {
            let vita = Arc::clone(&process.vita);
            process.stop().await;
            strange.extend(vita.strange_ends());
        }
        strange
    }
}
