//! Plays a workload under several policies, variants and seeds, and sets the figures side by side.

use anyhow::{Context as _, ensure};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Number, Value};
use tephra_api::conf::SchedulerConf;

use super::engine;
use super::figures::figures;
use super::generate;
use super::workload::Workload;
use crate::scenario::config::Chosen;

/// A scheduler configuration under test.
#[derive(Clone, Debug)]
pub struct Policy {
    /// As the user named it.
    pub name: String,
    /// What it says.
    pub conf: SchedulerConf,
}

/// Reads `--policy`: the named ones, `tephra` when none is, and always `volcano` beside them. A configuration that says the
/// same as one before is left out.
///
/// # Errors
/// When a file cannot be read or is refused.
pub fn policies(names: &[String]) -> anyhow::Result<Vec<Policy>> {
    let volcano = "volcano".to_owned();
    let ours = ["tephra".to_owned()];
    let names = if names.is_empty() { &ours[..] } else { names };
    let mut policies: Vec<Policy> = Vec::new();
    for name in names.iter().chain([&volcano]) {
        let conf = Chosen::of_flag(name)?.conf;
        if policies.iter().all(|policy| policy.conf != conf) {
            policies.push(Policy { name: name.clone(), conf });
        }
    }
    Ok(policies)
}

/// One policy under one variant of the load.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Variant of the workload.
    pub variant: String,
    /// Policy.
    pub policy: String,
    /// Each figure's median over the seeds.
    pub median: Value,
    /// The figures of each seed.
    pub seeds: Vec<SeedFigures>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct SeedFigures {
    /// Seed.
    pub seed: u64,
    /// Its figures.
    pub figures: Value,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the workload.
    pub workload: String,
    /// What it is for.
    pub description: String,
    /// All combinations, policies of a variant next to each other.
    pub runs: Vec<Cell>,
}

/// Plays everything. `progress` is told which run it is, of how many, and how far that is, in percent.
///
/// # Errors
/// When a plan cannot be made, or the core's audit finds a broken ledger.
pub fn report(
    workload: &Workload,
    policies: &[Policy],
    progress: &mut dyn FnMut(&str, u32),
) -> anyhow::Result<Report> {
    let mut runs = Vec::new();
    for variant in &workload.variants {
        for policy in policies {
            let mut seeds = Vec::new();
            for &seed in &workload.seeds {
                let plan = generate::plan(workload, variant, seed)?;
                let what = format!("{} {} seed {seed}", variant.name, policy.name);
                let outcome = engine::play(&plan, &policy.conf, &mut |at_ms| {
                    progress(&what, (at_ms * 100 / plan.horizon_ms.max(1)) as u32);
                });
                ensure!(outcome.violations.is_empty(), "{what}: {}", outcome.violations.join("; "));
                let figures = serde_json::to_value(figures(&plan, &outcome))?;
                seeds.push(SeedFigures { seed, figures });
            }
            let all: Vec<&Value> = seeds.iter().map(|run| &run.figures).collect();
            runs.push(Cell {
                variant: variant.name.clone(),
                policy: policy.name.clone(),
                median: median(&all).context("no seed")?,
                seeds,
            });
        }
    }
    Ok(Report { workload: workload.name.clone(), description: workload.description.clone(), runs })
}

/// The median of each number in documents of one shape; of an even count the mean of the middle two. What is no number is
/// the first document's.
pub fn median(documents: &[&Value]) -> Option<Value> {
    let first = *documents.first()?;
    Some(match first {
        Value::Object(map) => {
            let of = |key: &String| {
                let parts: Vec<&Value> = documents.iter().filter_map(|d| d.get(key)).collect();
                median(&parts).map(|value| (key.clone(), value))
            };
            Value::Object(map.keys().filter_map(of).collect())
        }
        Value::Array(items) => {
            let of = |at: usize| {
                let parts: Vec<&Value> = documents.iter().filter_map(|d| d.get(at)).collect();
                median(&parts)
            };
            Value::Array((0..items.len()).filter_map(of).collect())
        }
        Value::Number(number) => {
            let mut numbers: Vec<f64> = documents.iter().filter_map(|d| d.as_f64()).collect();
            numbers.sort_by(f64::total_cmp);
            let (low, high) = (numbers[(numbers.len() - 1) / 2], numbers[numbers.len() / 2]);
            if low == high && documents.len() == 1 {
                Value::Number(number.clone())
            } else {
                Number::from_f64((low + high) / 2.0).map_or(Value::Null, Value::Number)
            }
        }
        other => other.clone(),
    })
}

impl Report {
    /// For people: one table of the runs and one of their teams.
    pub fn tables(&self) -> String {
        let mut runs = table(&[
            "VARIANT",
            "POLICY",
            "USED",
            "GOODPUT",
            "JAIN",
            "HOUR ERR",
            "LAG",
            "FINISHED",
            "WAIT P50",
            "P95",
            "MAX",
            "RHO P50",
            "P99",
            "EVICTED",
            "SUSPENDED",
            "LOST GPU-H",
            "LOST",
        ]);
        let mut teams = table(&[
            "VARIANT",
            "POLICY",
            "QUEUE",
            "WEIGHT",
            "SHARE/FAIR",
            "GPU-H",
            "FINISHED",
            "JOBS",
            "UNSTARTED",
            "WAIT P50",
            "P95",
            "MAX",
        ]);
        for cell in &self.runs {
            let at = |path: &str| cell.median.pointer(path).and_then(Value::as_f64);
            let number = |path: &str, digits: usize| decimals(at(path), digits);
            runs.add_row([
                cell.variant.clone(),
                cell.policy.clone(),
                percent(at("/utilisation")),
                percent(at("/goodput")),
                number("/jain", 3),
                number("/hourlyShareError", 3),
                number("/normalisedLag", 1),
                number("/finished", 0),
                wait(at("/waits/median")),
                wait(at("/waits/p95")),
                wait(at("/waits/max")),
                number("/finishTime/median", 2),
                number("/finishTime/p99", 2),
                number("/evictions", 0),
                number("/suspensions", 0),
                number("/lostHours", 0),
                percent(at("/lostShare")),
            ]);
            for team in cell.median["teams"].as_array().into_iter().flatten() {
                let at = |path: &str| team.pointer(path).and_then(Value::as_f64);
                teams.add_row([
                    cell.variant.clone(),
                    cell.policy.clone(),
                    team["name"].as_str().unwrap_or_default().to_owned(),
                    decimals(at("/weight"), 0),
                    decimals(at("/serviceShareRatio"), 2),
                    decimals(at("/serviceHours"), 0),
                    decimals(at("/finished"), 0),
                    decimals(at("/jobs"), 0),
                    decimals(at("/waits/unstarted"), 0),
                    wait(at("/waits/median")),
                    wait(at("/waits/p95")),
                    wait(at("/waits/max")),
                ]);
            }
        }
        format!(
            "{}: {}\n\n{}\n\n{}\n",
            self.workload,
            self.description.trim(),
            runs.trim_fmt(),
            teams.trim_fmt()
        )
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied());
    table
}

fn decimals(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}%", value * 100.0))
}

/// Minutes, or hours when there are many.
fn wait(minutes: Option<f64>) -> String {
    match minutes {
        None => "-".to_owned(),
        Some(minutes) if minutes < 120.0 => format!("{minutes:.1}m"),
        Some(minutes) => format!("{:.1}h", minutes / 60.0),
    }
}

#[cfg(test)]
mod tests;
