//! Reads Alibaba's public `cluster-trace-gpu-v2023` (openb) in place. Each pod becomes a job of one pod that is submitted
//! at its creation and runs from the time at which it was scheduled to its deletion; pods that were never scheduled say
//! nothing about their run time and are left out. A pod that uses a part of a GPU counts as one with a whole GPU. The trace
//! names no teams: pods are dealt to four by a hash of their names.

use std::path::Path;

use anyhow::{Context as _, ensure};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::plan::{Job, NodeShape, Plan, PodShape, Team};
use super::workload::TraceFiles;

/// Teams that pods are dealt to.
const TEAMS: usize = 4;
const MIB: i64 = 1 << 20;

#[derive(Debug, Deserialize)]
struct NodeRow {
    cpu_milli: i64,
    memory_mib: i64,
    gpu: i64,
    model: String,
}

#[derive(Debug, Deserialize)]
struct PodRow {
    name: String,
    cpu_milli: i64,
    memory_mib: i64,
    num_gpu: i64,
    #[serde(default)]
    gpu_spec: String,
    creation_time: i64,
    deletion_time: Option<i64>,
    scheduled_time: Option<i64>,
}

/// Fills a plan's nodes, teams and jobs. Without a horizon it goes on to the last ending.
///
/// # Errors
/// When a file cannot be read or lacks a column, or nothing in it can be played.
pub fn fill(plan: &mut Plan, files: &TraceFiles, weights: Option<&[i32]>) -> anyhow::Result<()> {
    let mut nodes: Vec<NodeRow> = rows(&files.nodes)?;
    nodes.truncate(files.take_nodes.unwrap_or(usize::MAX));
    plan.nodes = nodes
        .into_iter()
        .map(|row| NodeShape {
            cpu_milli: row.cpu_milli,
            memory: row.memory_mib.saturating_mul(MIB),
            gpus: row.gpu,
            model: row.model,
        })
        .collect();
    let weights = weights.unwrap_or(&[1; TEAMS]);
    ensure!(weights.len() == TEAMS, "a trace has {TEAMS} teams: give as many weights");
    plan.teams = weights
        .iter()
        .enumerate()
        .map(|(at, &weight)| Team { name: format!("team-{}", at + 1), weight })
        .collect();
    let mut known: FxHashMap<PodShape, usize> = FxHashMap::default();
    for row in rows::<PodRow>(&files.pods)? {
        let (Some(start), Some(end)) = (row.scheduled_time, row.deletion_time) else { continue };
        if end <= start {
            continue;
        }
        let shape = PodShape {
            cpu_milli: row.cpu_milli,
            memory: row.memory_mib.saturating_mul(MIB),
            gpus: row.num_gpu,
            models: row.gpu_spec.split('|').filter(|m| !m.is_empty()).map(str::to_owned).collect(),
        };
        let shape = *known.entry(shape).or_insert_with_key(|shape| {
            plan.shapes.push(shape.clone());
            plan.shapes.len() - 1
        });
        plan.jobs.push(Job {
            team: team_of(&row.name),
            arrival_ms: row.creation_time.saturating_mul(1000),
            pods: 1,
            shape,
            runtime_ms: (end - start).saturating_mul(1000),
            estimate_ms: None,
        });
    }
    ensure!(!plan.jobs.is_empty(), "{}: no pod that was ever scheduled", files.pods.display());
    ensure!(!plan.nodes.is_empty(), "{}: no node", files.nodes.display());
    plan.jobs.sort_by_key(|job| job.arrival_ms);
    if plan.horizon_ms == 0 {
        let ends = plan.jobs.iter().map(|job| job.arrival_ms.saturating_add(job.runtime_ms));
        plan.horizon_ms = ends.max().unwrap_or(1);
    }
    let horizon_ms = plan.horizon_ms;
    plan.jobs.retain(|job| job.arrival_ms < horizon_ms);
    Ok(())
}

fn rows<R: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<Vec<R>> {
    let mut reader = csv::Reader::from_path(path)
        .with_context(|| format!("cannot read the trace {}", path.display()))?;
    let rows: Result<Vec<R>, csv::Error> = reader.deserialize().collect();
    rows.with_context(|| format!("the trace {}", path.display()))
}

/// FNV-1a (32 bits) of the name, modulo the number of teams.
fn team_of(name: &str) -> usize {
    let hash = name
        .bytes()
        .fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize % TEAMS
}
