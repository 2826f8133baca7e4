//! Whole reports of small workloads.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;
use crate::report::workload::TraceFiles;
use crate::report::{picture, workload};

fn play(workload: &Workload, policies: &[Policy]) -> Report {
    report(workload, policies, &mut |_, _| {}).expect("a report")
}

fn volcano() -> Vec<Policy> {
    policies(&["volcano".to_owned()]).expect("built in")
}

fn shipped(name: &str) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/workloads").join(name);
    Workload::read(&path).expect("a workload")
}

/// One node of two GPUs; the first queue has four jobs of one GPU and an hour, all at the start.
const TINY: &str = "
name: tiny
horizon: 3h
pool: {nodes: 1, gpus: 2, cpu: '8', memory: 64Gi}
queues:
- name: only
  jobs:
  - gang: {fixed: 1}
    runtime: {fixed: 1h}
    arrival: {atStart: {load: 0.6}}
";

#[test]
fn a_tiny_workload_has_the_outcome_one_works_out_by_hand() {
    // 0.6 of 6 GPU-hours is 3.6, so 4 jobs come: two run at once, two an hour later.
    let workload = Workload::parse(TINY).expect("sound");
    let report = play(&workload, &volcano());
    let figures = &report.runs[0].seeds[0].figures;
    assert_eq!(figures["jobs"], 4);
    assert_eq!(figures["finished"], 4);
    assert_eq!(figures["evictions"], 0);
    let utilisation = figures["utilisation"].as_f64().expect("a number");
    assert!((utilisation - 4.0 / 6.0).abs() < 1e-9, "{utilisation}");
    // Admission follows the cluster's room times 1.2: the third and fourth are admitted when room is free, and bound by the
    // session that follows 100 ms later.
    let team = &figures["teams"][0];
    assert_eq!(team["waits"]["unstarted"], 0);
    assert_eq!(team["serviceHours"], json!(4.0));
    assert_eq!(team["waits"]["max"].as_f64().map(f64::round), Some(60.0));
}

#[test]
fn a_workload_gives_the_same_report_each_time_and_another_seed_another() {
    let mut workload = shipped("big-gang-short.yaml");
    workload.variants.truncate(1);
    workload.seeds.truncate(1);
    let first = serde_json::to_string(&play(&workload, &volcano())).expect("JSON");
    let again = serde_json::to_string(&play(&workload, &volcano())).expect("JSON");
    assert_eq!(first, again);
    workload.seeds = vec![99];
    assert_ne!(first, serde_json::to_string(&play(&workload, &volcano())).expect("JSON"));
}

#[test]
fn volcano_gives_a_team_with_gangs_of_sixty_percent_of_the_pool_nothing() {
    let workload = shipped("big-gang-short.yaml");
    let report = play(&workload, &volcano());
    assert_eq!(report.runs.len(), 2);
    for cell in &report.runs {
        assert_eq!(cell.median["teams"][0]["serviceShareRatio"], 0.0, "{}", cell.variant);
        assert_eq!(cell.median["teams"][0]["finished"], 0.0);
    }
    let svg = picture::svg(&report).expect("a picture");
    for word in ["<svg", "1:1:2:4 volcano: share", "utilisation", "small-3"] {
        assert!(svg.contains(word), "{word}");
    }
    let text = report.tables();
    assert!(text.contains("SHARE/FAIR") && text.contains("small-3"), "{text}");
}

#[test]
fn tephra_gives_every_team_its_share_whatever_the_size_of_its_gangs() {
    let mut workload = shipped("big-gang-short.yaml");
    workload.seeds.truncate(1);
    let report = play(&workload, &policies(&["tephra".to_owned()]).expect("built in"));
    for cell in report.runs.iter().filter(|cell| cell.policy == "tephra") {
        let figure = |name: &str| cell.median[name].as_f64().expect("a number");
        let which = &cell.variant;
        // No two teams that wait are further apart than one of the largest jobs: fair queueing promises two.
        assert!(figure("normalisedLag") < 1.0, "{which}: {}", figure("normalisedLag"));
        assert!(figure("jain") > 0.97, "{which}: {}", figure("jain"));
        assert!(figure("utilisation") > 0.95, "{which}: {}", figure("utilisation"));
    }
    assert_eq!(report.runs.len(), 4);
}

#[test]
fn a_victim_is_counted_and_runs_again_from_its_last_checkpoint() {
    // The second queue's burst takes back its half of the pool from the first by deleting pods.
    let text = "
name: taken-back
horizon: 4h
pool: {nodes: 1, gpus: 2, cpu: '8', memory: 64Gi}
queues:
- name: lender
  jobs:
  - {gang: {fixed: 1}, runtime: {fixed: 3h}, arrival: {atStart: {load: 1.4}}}
- name: owner
  jobs:
  - {gang: {fixed: 1}, runtime: {fixed: 1h}, arrival: {bursty: {load: 0.5, every: 4h, shift: 1h, within: 0.01}}}
variants:
- {name: from zero}
- {name: checkpoints, checkpoint: {every: 15m, restore: 60s}}
";
    let conf = "
actions: allocate, reclaim
tiers:
- plugins: [{name: gang, enableReclaimable: false}, {name: predicates}, {name: proportion}]
";
    let mut workload = Workload::parse(text).expect("sound");
    workload.seeds = vec![seed_with_one_owner(&workload)];
    let conf = SchedulerConf::parse(conf, tephra_core::registry::action_names()).expect("sound");
    let report = play(&workload, &[Policy { name: "reclaim".to_owned(), conf }]);
    let [zero, checkpoints] = report.runs.as_slice() else { panic!("two variants") };
    for cell in [zero, checkpoints] {
        assert_eq!(cell.median["evictions"], 1, "{}", cell.variant);
        assert_eq!(cell.median["restarts"], 1, "{}", cell.variant);
        assert!(cell.median["teams"][1]["waits"]["max"].as_f64() < Some(1.0), "{}", cell.variant);
    }
    let lost = |cell: &Cell| cell.median["lostHours"].as_f64().expect("a number");
    assert!(lost(zero) >= 1.0, "all since the start: {}", lost(zero));
    assert!(lost(checkpoints) < 0.25, "less than a checkpoint's distance: {}", lost(checkpoints));
    assert_eq!(checkpoints.median["restoreHours"].as_f64().map(|h| (h * 60.0).round()), Some(1.0));
}

/// The first seed whose burst is a single job.
fn seed_with_one_owner(workload: &Workload) -> u64 {
    let owners = |seed: &u64| {
        let plan = generate::plan(workload, &workload.variants[0], *seed).expect("a plan");
        plan.jobs.iter().filter(|job| job.team == 1).count()
    };
    (1..100).find(|seed| owners(seed) == 1).expect("one of them")
}

#[test]
fn offered_work_is_the_load_times_the_fair_share() {
    let workload = shipped("big-gang.yaml");
    for variant in &workload.variants {
        let plan = generate::plan(&workload, variant, 1).expect("a plan");
        for (team, target) in plan.targets().into_iter().enumerate() {
            let jobs = plan.jobs.iter().filter(|job| job.team == team);
            let work: f64 = jobs.map(|job| plan.charge(job) * job.runtime_ms as f64).sum();
            let load = work / (plan.capacity() * target * plan.horizon_ms as f64);
            assert!((1.1..1.5).contains(&load), "{} team {team}: {load}", variant.name);
        }
    }
}

#[test]
fn a_burst_stays_in_its_part_of_the_period() {
    let workload = shipped("bursty.yaml");
    let plan = generate::plan(&workload, &workload.variants[0], 2).expect("a plan");
    let hour = 3_600_000;
    for (team, begin) in [(2, 0), (3, 4 * hour)] {
        let mut jobs = plan.jobs.iter().filter(|job| job.team == team).peekable();
        assert!(jobs.peek().is_some());
        for job in jobs {
            let since = (job.arrival_ms - begin).rem_euclid(8 * hour);
            assert!(since <= 8 * hour / 3, "team {team} at {}", job.arrival_ms);
        }
    }
}

#[test]
fn medians_are_taken_number_by_number() {
    let one = json!({"a": 1, "deep": [{"b": 10.0, "name": "x"}]});
    let two = json!({"a": 5, "deep": [{"b": 30.0, "name": "x"}]});
    let three = json!({"a": 2, "deep": [{"b": 20.0, "name": "x"}]});
    let expected = json!({"a": 2.0, "deep": [{"b": 20.0, "name": "x"}]});
    assert_eq!(median(&[&one, &two, &three]), Some(expected));
    assert_eq!(median(&[&one, &two]).expect("a median")["a"], 3.0);
    assert_eq!(median(&[]), None);
}

#[test]
fn volcano_stands_beside_every_policy_and_nothing_twice() {
    let names = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        let policies = policies(&given).expect("built in");
        policies.into_iter().map(|policy| policy.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["builtin"]), ["builtin", "volcano"]);
    assert_eq!(names(&["volcano", "volcano"]), ["volcano"]);
    assert_eq!(names(&[]).last().map(String::as_str), Some("volcano"));
    assert!(super::policies(&["/no/such/file".to_owned()]).is_err());
}

#[test]
fn a_workload_with_a_slip_is_refused_with_its_place() {
    let refusal = |from: &str, to: &str| {
        let error = Workload::parse(&TINY.replace(from, to)).expect_err("refused");
        format!("{error:#}")
    };
    assert!(refusal("horizon", "horizn").contains("horizn"));
    assert!(refusal("3h", "'-3h'").contains("negative"));
    assert!(refusal("load: 0.6", "load: 0").contains("queues[0].jobs[0]: arrival.load"));
    assert!(refusal("fixed: 1}", "fixed: 0}").contains("gang"));
    assert!(refusal("{fixed: 1h}", "{fixed: 0s}").contains("runtime"));
    assert!(refusal("nodes: 1,", "nodes: 0,").contains("pool.nodes"));
}

const NODES: &str =
    "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,65536,2,T4\nn1,8000,65536,1,V100M16\n";
const PODS: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,1000,1024,1,460,V100M16|V100M32,LS,Running,0,120,20
p1,1000,1024,1,1000,V100M16,LS,Running,10,60,30
p2,1000,1024,1,1000,,LS,Pending,10,60,
p3,1000,1024,0,0,,LS,Running,10,60,10
";

#[test]
fn pods_of_a_trace_become_jobs_on_the_nodes_they_may_use() {
    let folder = tempfile::tempdir().expect("folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("file");
        path
    };
    let trace = TraceFiles {
        pods: file("pods.csv", PODS),
        nodes: file("nodes.csv", NODES),
        take_nodes: None,
    };
    let workload = Workload::of_trace("small".to_owned(), trace);
    let plan = generate::plan(&workload, &workload.variants[0], 1).expect("a plan");
    // The pod that was never scheduled is left out; the others run from their scheduling to their deletion.
    let jobs: Vec<(i64, i64)> =
        plan.jobs.iter().map(|job| (job.arrival_ms, job.runtime_ms)).collect();
    assert_eq!(jobs, [(0, 100_000), (10_000, 30_000), (10_000, 50_000)]);
    assert_eq!(plan.horizon_ms, 100_000);
    let report = play(&workload, &volcano());
    let figures = &report.runs[0].seeds[0].figures;
    // Both GPU pods want the one V100, so the second starts when the run is over.
    assert_eq!(figures["finished"], 1);
    assert_eq!(figures["waits"]["unstarted"], 1);
}

#[test]
fn a_trace_without_the_columns_is_refused_by_its_name() {
    let trace = TraceFiles {
        pods: PathBuf::from("/no/such/pods.csv"),
        nodes: PathBuf::from("/no/such/nodes.csv"),
        take_nodes: None,
    };
    let workload = Workload::of_trace("none".to_owned(), trace);
    let error = report(&workload, &volcano(), &mut |_, _| {}).expect_err("refused");
    assert!(format!("{error:#}").contains("/no/such/nodes.csv"), "{error:#}");
}

#[test]
fn the_public_trace_is_played_to_its_end() {
    let folder = Path::new("/work/shared/traces");
    if !folder.exists() {
        eprintln!("skipped: {} is absent", folder.display());
        return;
    }
    let mut workload = Workload::of_trace(
        "openb".to_owned(),
        TraceFiles {
            pods: folder.join("openb_pod_list_default.csv"),
            nodes: folder.join("openb_node_list_gpu_node.csv"),
            take_nodes: Some(40),
        },
    );
    workload.horizon = Some(workload::Span(10 * 24 * 3_600_000));
    let plan = generate::plan(&workload, &workload.variants[0], 1).expect("a plan");
    let first_days = plan.jobs.len();
    let report = play(&workload, &volcano());
    let figures = &report.runs[0].seeds[0].figures;
    assert_eq!(figures["jobs"].as_u64(), Some(first_days as u64));
    let started = first_days as u64 - figures["waits"]["unstarted"].as_u64().expect("a count");
    assert!(started > 0 && figures["finished"].as_u64() <= Some(started), "{figures}");
}
