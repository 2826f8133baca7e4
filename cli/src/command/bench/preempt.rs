//! `tephra bench --scenario preempt`: what a search for victims costs on a full cluster. Each gang that needs room arrives
//! alone and gets a session of its own, which is timed as a whole; of gangs that no eviction helps, many share one.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::event::Event;
use tephra_core::registry;
use tephra_core::workload::preemption::PreemptionWorkload;
use tephra_core::{Core, Options};

/// Gangs that need room.
const PREEMPTORS: u32 = 24;
/// Gangs that no eviction helps.
const IMPOSSIBLE: u32 = 200;

/// Evictions of whole gangs, and nothing that would keep one from asking for them.
const CONF: &str = "
actions: allocate, gangpreempt
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
";

/// The figures, in the order in which they are printed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    scenario: &'static str,
    nodes: u32,
    /// Resident pods.
    pods: u32,
    gangs: u32,
    /// Gangs that were promised room.
    solved: u32,
    evicted: u32,
    /// Mean and longest time of a session with one preempting gang.
    gang_ms: f64,
    longest_ms: f64,
    /// Time of a session per gang that no eviction helps.
    impossible_ms: f64,
}

pub(super) fn measure(
    nodes: u32,
    seed: u64,
    conf: Option<SchedulerConf>,
) -> anyhow::Result<Figures> {
    let conf = match conf {
        Some(conf) => conf,
        None => SchedulerConf::parse(CONF, registry::action_names())?,
    };
    let workload = PreemptionWorkload { nodes, seed };
    let mut core = Core::new(Options::default(), &conf);
    workload.residents(&mut |event| core.apply(event));
    let mut now_ms = 1_000_000;
    let mut timed = |core: &mut Core| {
        now_ms += 1_000;
        let start = Instant::now();
        let report = core.session(now_ms);
        (start.elapsed(), report)
    };
    timed(&mut core);
    // The first search sums the whole cluster up; later ones follow what changed.
    workload.impossible(IMPOSSIBLE, &mut |event| core.apply(event));
    timed(&mut core);
    workload.withdraw_impossible(IMPOSSIBLE, &mut |event| core.apply(event));
    timed(&mut core);

    (0..IMPOSSIBLE).for_each(|gang| workload.impossible(gang, &mut |event| core.apply(event)));
    let (impossible, report) = timed(&mut core);
    ensure!(report.evicted == 0, "{} pods were evicted for nothing", report.evicted);
    (0..IMPOSSIBLE)
        .for_each(|gang| workload.withdraw_impossible(gang, &mut |event| core.apply(event)));
    timed(&mut core);

    let (mut solved, mut evicted) = (0, 0);
    let mut times: Vec<Duration> = Vec::new();
    for gang in 0..PREEMPTORS {
        workload.preemptor(gang, &mut |event| core.apply(event));
        let (time, report) = timed(&mut core);
        times.push(time);
        evicted += report.evicted;
        solved += u32::from(report.decisions.iter().any(is_promise));
        // The victims leave and the gang starts before the next one comes.
        for decision in report.decisions {
            if let Decision::Evict { pod, .. } = decision {
                core.apply(Event::PodDeleted(pod.uid.to_string()));
            }
        }
        timed(&mut core);
    }
    let sum: Duration = times.iter().sum();
    Ok(Figures {
        scenario: "preempt",
        nodes,
        pods: workload.pods(),
        gangs: PREEMPTORS,
        solved,
        evicted,
        gang_ms: sum.as_secs_f64() * 1e3 / f64::from(PREEMPTORS),
        longest_ms: times.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3,
        impossible_ms: impossible.as_secs_f64() * 1e3 / f64::from(IMPOSSIBLE),
    })
}

fn is_promise(decision: &Decision) -> bool {
    matches!(decision, Decision::PodCondition { nominated: Some(node), .. } if !node.is_empty())
}
