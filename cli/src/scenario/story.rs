//! Plays a scenario from its first object to its last expectation.

use std::collections::BTreeMap;

use serde::Serialize;
use tephra_scheduler::decode::Names;

use super::calls;
use super::config::Chosen;
use super::expect::{self, Reading};
use super::file::parse_duration;
use super::hyper_nodes;
use super::ingest::Ingest;
use super::schema::{Expect, Scenario};
use super::store::ObjectId;
use super::verdict::{Judgement, Verdict};
use super::world::{DEFAULT_CLOCK_MS, Setup, World};
use super::writeback;

/// The scheduler names of pods that scenarios and manifests hand to us.
pub const OUR_NAMES: [&str; 2] = ["volcano", "tephra"];

/// What the command line may override.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Configuration instead of the scenario's own.
    pub config: Option<Chosen>,
    /// Sessions instead of `cycles`; stories told in steps keep their steps.
    pub cycles: Option<u32>,
}

/// What a scenario came to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Name or id.
    pub name: String,
    /// Verdict over all checks and expectations.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Pod to node for all binds.
    pub bind: BTreeMap<String, String>,
    /// Evicted pods, in order.
    pub evict: Vec<String>,
    /// Pods that wait on a node whose room is still being freed.
    pub pipelined: BTreeMap<String, String>,
    /// PodGroup to phase.
    pub pod_group_phase: BTreeMap<String, String>,
    /// Warnings about the configuration and the like.
    pub notes: Vec<String>,
}

impl Outcome {
    /// An outcome that is only a verdict: the story could not be played to its end.
    pub fn of_verdict(name: &str, verdict: Verdict) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            bind: BTreeMap::new(),
            evict: Vec::new(),
            pipelined: BTreeMap::new(),
            pod_group_phase: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Reads what can be told about a world.
    pub fn of_world(name: &str, verdict: Verdict, world: &World) -> Self {
        let phase = |object: &serde_json::Value| {
            let phase = object.pointer("/status/phase").and_then(serde_json::Value::as_str);
            phase.filter(|phase| !phase.is_empty()).unwrap_or("Pending").to_owned()
        };
        let pipelined = world.placements().into_iter().filter(|(_, placed)| placed.pipelined);
        let groups = world.store().of_kind("PodGroup");
        Self {
            name: name.to_owned(),
            verdict,
            bind: world.binds().iter().map(|(pod, node)| (pod.key(), node.clone())).collect(),
            evict: world.evictions().iter().map(ObjectId::key).collect(),
            pipelined: pipelined.map(|(pod, at)| (pod.key(), at.node.to_string())).collect(),
            pod_group_phase: groups.map(|(id, object)| (id.key(), phase(object))).collect(),
            notes: world.config_warnings().to_vec(),
        }
    }
}

/// Plays a scenario and judges it.
pub fn play(scenario: &Scenario, overrides: &Overrides) -> (Outcome, World) {
    let mut world = begin(scenario, overrides);
    let mut judgement = Judgement::default();
    let reading =
        Reading { recorded: scenario.recorded(), hyper_nodes: scenario.hyper_node_view.as_ref() };
    let unknown: Vec<String> =
        world.config().unknown_plugins().into_iter().map(ToOwned::to_owned).collect();
    let missing = world.config().missing_plugins().len();

    if let Some(calls) = &scenario.calls {
        if missing > 0 {
            judgement.skip("calls of plugins that are not built");
        } else {
            calls::judge(calls, &mut world, &mut judgement);
        }
    }
    match &scenario.steps {
        Some(steps) => {
            let mut checks = 0;
            for step in steps {
                step_objects(step, &mut world);
                for _ in 0..step.run {
                    world.session();
                }
                if let Some(check) = &step.check {
                    checks += 1;
                    judgement.at(format!("check {checks}: "));
                    expect::judge(check, &world, reading, &mut judgement);
                    judgement.at("");
                }
            }
        }
        // A recorded file of calls alone asks about an open session, before any action.
        None if scenario.calls.is_some() && scenario.expect.is_none() => {}
        None => {
            for _ in 0..overrides.cycles.or(scenario.cycles).unwrap_or(1) {
                world.session();
            }
        }
    }
    if let Some(expect) = &scenario.expect {
        expect::judge(expect, &world, reading, &mut judgement);
    }
    if judgement.judged > 0 {
        configuration(scenario, &world, &unknown, &mut judgement);
        for violation in world.violations() {
            judgement.expect(false, "invariants", "all hold", violation);
        }
    }
    let mut outcome = Outcome::of_world(scenario.label(), judgement.verdict(), &world);
    if scenario.accepted_outcomes.as_deref().is_some_and(|seen| !is_among(&outcome, seen)) {
        outcome.notes.push("the binds are none of those seen in the recording".to_owned());
    }
    (outcome, world)
}

/// Whether a recording of a run that is not deterministic saw these binds. Its list is a lower bound.
fn is_among(outcome: &Outcome, seen: &[serde_json::Value]) -> bool {
    let binds = serde_json::json!(outcome.bind);
    seen.iter().any(|accepted| accepted.get("bind") == Some(&binds))
}

fn step_objects(step: &super::schema::Step, world: &mut World) {
    for object in &step.apply {
        world.apply(object.clone());
    }
    for target in &step.delete {
        world.delete(&ObjectId::new(&target.kind, target.namespace.as_deref(), &target.name));
    }
    for pod in &step.fail_bind {
        world.fail_bind(expect::placement::pod_id(pod));
    }
    if let Some(advance) = &step.advance {
        world.advance(parse_duration(advance).unwrap_or(0));
    }
    if step.restart {
        world.restart();
    }
}

/// The world at the start of a scenario.
fn begin(scenario: &Scenario, overrides: &Overrides) -> World {
    let recorded = scenario.recorded();
    let config =
        overrides.config.clone().unwrap_or_else(|| Chosen::of_scenario(scenario.conf.as_ref()));
    let mut options = tephra_core::Options::default();
    let queue = scenario.scheduler_options.as_ref().and_then(|o| o.default_queue.as_deref());
    if let Some(queue) = queue.filter(|queue| !queue.is_empty()) {
        options.default_queue = queue.to_owned();
    }
    let names = if recorded { Names::any() } else { Names::new(OUR_NAMES) };
    let clock_ms = scenario.clock.as_deref().and_then(writeback::time_ms);
    let mut world = World::new(Setup {
        config,
        options,
        ingest: Ingest::new(names),
        clock_ms: clock_ms.unwrap_or(DEFAULT_CLOCK_MS),
        stamp_creation: !recorded,
    });
    if !recorded {
        world.create_standard_queues(&scenario.objects);
    }
    let view = scenario.hyper_node_view.as_ref();
    let made = view.and_then(|view| hyper_nodes::objects(view, &scenario.objects));
    for object in &scenario.objects {
        if made.is_none() || object["kind"] != "HyperNode" {
            world.apply(object.clone());
        }
    }
    made.into_iter().flatten().for_each(|object| world.apply(object));
    world
}

/// A story told with another configuration than its own proves nothing, so that is a failure unless the
/// scenario is about it.
fn configuration(
    scenario: &Scenario,
    world: &World,
    unknown: &[String],
    judgement: &mut Judgement,
) {
    let expects = all_expectations(scenario);
    let error = world.config_error();
    if let Some(error) = error.filter(|_| !expects.iter().any(|e| e.config_error.is_some())) {
        judgement.expect(false, "configuration", "accepted", error);
    }
    if !unknown.is_empty() && !expects.iter().any(|e| e.config_warning.is_some()) {
        let got = format!("unknown plugin {}", unknown.join(", "));
        judgement.expect(false, "configuration", "known plugins", got);
    }
}

fn all_expectations(scenario: &Scenario) -> Vec<&Expect> {
    let checks = scenario.steps.iter().flatten().filter_map(|step| step.check.as_ref());
    let mut all: Vec<&Expect> = checks.chain(&scenario.expect).collect();
    let mut next = 0;
    while let Some(expect) = all.get(next).copied() {
        all.extend(expect.any_of.iter().flatten());
        next += 1;
    }
    all
}
