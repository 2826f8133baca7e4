//! `tephra simulate`: schedules manifests or scenario files offline, without a server, and with `--check`
//! compares the outcome with what the files expect. With `--report` ([`report`]) it plays workloads over time instead.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::scenario::config::Chosen;
use crate::scenario::corpus::{self, Count, Entry, ExpectedFailures, Summary};
use crate::scenario::file::{self, Input};
use crate::scenario::rows::{self, Row};
use crate::scenario::story::{self, Overrides};
use crate::scenario::{manifest, story::Outcome};

/// Arguments of `tephra simulate`.
#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    /// Scenario files, manifests, or folders of them (all *.yaml and *.yml, recursively); workload files with --report
    #[arg(required_unless_present = "trace", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Configuration instead of the scenario's own: a file, or builtin, volcano, tephra
    #[arg(long, value_name = "FILE")]
    pub conf: Option<String>,
    /// Sessions to run; manifests run until nothing changes when absent
    #[arg(long, value_name = "N")]
    pub cycles: Option<u32>,
    /// Compare with what the scenarios expect; exit 1 when one fails
    #[arg(long)]
    pub check: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// With --check: a list of scenarios that must fail, one a line with a reason
    #[arg(long, value_name = "FILE", requires = "check")]
    pub expected_failures: Option<PathBuf>,
    /// What `--report` takes.
    #[command(flatten)]
    pub report: report::ReportArgs,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines and tables for people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Exit code when the input cannot be read.
const BAD_INPUT: u8 = 2;

/// Runs the command on standard output.
pub fn run(args: SimulateArgs) -> anyhow::Result<ExitCode> {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    match simulate(&args, &mut out, &mut err).and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => Ok(ExitCode::from(code)),
        // The reader of a pipe has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Runs the command; answers the exit code. Results go to `out`, complaints to `err`.
pub fn simulate(
    args: &SimulateArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    if args.report.report {
        return report::run(args, out, err);
    }
    let config = match args.conf.as_deref().map(Chosen::of_flag).transpose() {
        Ok(config) => config,
        Err(error) => return complain(err, &error),
    };
    let expected = match args.expected_failures.as_deref().map(ExpectedFailures::read).transpose() {
        Ok(expected) => expected.unwrap_or_default(),
        Err(error) => return complain(err, &error),
    };
    let overrides = Overrides { config, cycles: args.cycles };
    let input = file::read_paths(&args.paths);
    for error in &input.errors {
        writeln!(err, "error: {error}")?;
    }
    let bad = !input.errors.is_empty();
    let failed = if args.check {
        check(args, input, &overrides, &expected, out)?
    } else {
        show(args, &input, &overrides, out)?;
        false
    };
    Ok(if bad { BAD_INPUT } else { u8::from(failed) })
}

fn complain(err: &mut dyn Write, error: &anyhow::Error) -> anyhow::Result<u8> {
    writeln!(err, "error: {error:#}")?;
    Ok(BAD_INPUT)
}

/// Compares; true when something failed.
fn check(
    args: &SimulateArgs,
    input: Input,
    overrides: &Overrides,
    expected: &ExpectedFailures,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let manifests = (!input.manifests.is_empty()).then(|| Entry {
        path: PathBuf::new(),
        outcome: manifest::run(&input.manifests, overrides).0,
        count: Count::Skipped,
    });
    let mut summary = corpus::run(input.scenarios, overrides, expected);
    summary.entries.extend(manifests);
    match args.output {
        Output::Table => {
            for line in summary.entries.iter().filter_map(Entry::failure) {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "{}", summary.closing())?;
        }
        Output::Json | Output::Yaml => print(args.output, &document(&summary)?, out)?,
    }
    Ok(summary.count(Count::Failed) > 0)
}

fn document(summary: &Summary) -> anyhow::Result<Value> {
    let mut scenarios = Vec::new();
    for entry in &summary.entries {
        let mut scenario = serde_json::to_value(&entry.outcome)?;
        scenario["file"] = json!(entry.path);
        scenario["expectedFailure"] = json!(entry.count == Count::ExpectedFailure);
        scenarios.push(scenario);
    }
    Ok(json!({
        "scenarios": scenarios,
        "passed": summary.count(Count::Passed),
        "failed": summary.count(Count::Failed),
        "skipped": summary.count(Count::Skipped),
        "expectedFailures": summary.count(Count::ExpectedFailure),
    }))
}

/// Schedules and prints where every pod went.
fn show(
    args: &SimulateArgs,
    input: &Input,
    overrides: &Overrides,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut clusters: Vec<(Outcome, Vec<Row>)> = Vec::new();
    for (_, scenario) in &input.scenarios {
        let (outcome, world) = story::play(scenario, overrides);
        clusters.push((outcome, rows::rows(&world)));
    }
    if !input.manifests.is_empty() {
        let (outcome, world) = manifest::run(&input.manifests, overrides);
        clusters.push((outcome, rows::rows(&world)));
    }
    match args.output {
        Output::Table => {
            for (outcome, rows) in &clusters {
                writeln!(out, "{}", outcome.name)?;
                for note in &outcome.notes {
                    writeln!(out, "note: {note}")?;
                }
                writeln!(out, "{}\n", table(rows).trim_fmt())?;
            }
        }
        Output::Json | Output::Yaml => {
            let mut all = Vec::new();
            for (outcome, rows) in &clusters {
                let mut cluster = serde_json::to_value(outcome)?;
                cluster["pods"] = serde_json::to_value(rows)?;
                all.push(cluster);
            }
            print(args.output, &json!({ "scenarios": all }), out)?;
        }
    }
    Ok(())
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["POD", "GROUP", "QUEUE", "STATE", "NODE", "WHY"]);
    for row in rows {
        table.add_row([&row.pod, &row.group, &row.queue, &row.state, &row.node, &row.why]);
    }
    table
}

fn print(output: Output, document: &Value, out: &mut dyn Write) -> anyhow::Result<()> {
    if output == Output::Yaml {
        write!(out, "{}", serde_saphyr::to_string(document)?)?;
    } else {
        writeln!(out, "{}", serde_json::to_string_pretty(document)?)?;
    }
    Ok(())
}

mod report;
#[cfg(test)]
mod tests;
