//! `tephra simulate --report`: plays workloads over time and reports fairness, waits, utilisation and lost work.

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;

use super::{Output, SimulateArgs, complain, print};
use crate::report::picture;
use crate::report::summary::{self, Policy, Report};
use crate::report::workload::{TraceFiles, Workload};

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// Arguments of `--report`.
#[derive(Clone, Debug, Default, Args)]
pub struct ReportArgs {
    /// Play workload files over time and report fairness, waits, utilisation and lost work
    #[arg(long)]
    pub report: bool,
    /// With --report: a public trace (openb pod list, CSV) instead of a workload file
    #[arg(long, value_name = "CSV", requires_all = ["report", "node_file"], conflicts_with = "paths")]
    pub trace: Option<PathBuf>,
    /// With --trace: the nodes (openb node list, CSV)
    #[arg(long, value_name = "CSV", requires = "trace")]
    pub node_file: Option<PathBuf>,
    /// With --report: configuration to compare, may be repeated; volcano is always beside it
    #[arg(long, value_name = "NAME|FILE", requires = "report", conflicts_with = "conf")]
    pub policy: Vec<String>,
    /// With --report: seeds instead of the workload's own
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "report")]
    pub seeds: Vec<u64>,
    /// With --report: draw shares, utilisation and waits
    #[arg(long, value_name = "FILE", requires = "report")]
    pub svg: Option<PathBuf>,
}

/// Runs the report; answers the exit code.
pub(super) fn run(
    args: &SimulateArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<u8> {
    let read = workloads(args).and_then(|workloads| {
        let policies = summary::policies(&args.report.policy)?;
        ensure!(
            args.report.svg.is_none() || workloads.len() == 1,
            "--svg draws one workload: name one"
        );
        Ok((workloads, policies))
    });
    let (workloads, policies) = match read {
        Ok(read) => read,
        Err(error) => return complain(err, &error),
    };
    let mut reports = Vec::new();
    for workload in &workloads {
        match play(workload, &policies, err) {
            Ok(report) => reports.push(report),
            Err(error) => return complain(err, &error),
        }
    }
    if let (Some(path), [report]) = (&args.report.svg, reports.as_slice()) {
        std::fs::write(path, picture::svg(report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.output == Output::Table {
        for report in &reports {
            write!(out, "{}", report.tables())?;
        }
    } else {
        print(args.output, &json!({ "reports": reports }), out)?;
    }
    Ok(0)
}

fn workloads(args: &SimulateArgs) -> anyhow::Result<Vec<Workload>> {
    let mut workloads = match (&args.report.trace, &args.report.node_file) {
        (Some(pods), Some(nodes)) => vec![of_trace(pods, nodes)],
        _ => args.paths.iter().map(|path| Workload::read(path)).collect::<Result<_, _>>()?,
    };
    if !args.report.seeds.is_empty() {
        workloads.iter_mut().for_each(|workload| workload.seeds.clone_from(&args.report.seeds));
    }
    Ok(workloads)
}

fn of_trace(pods: &Path, nodes: &Path) -> Workload {
    let name = pods.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let files = TraceFiles { pods: pods.to_owned(), nodes: nodes.to_owned(), take_nodes: None };
    Workload::of_trace(name, files)
}

/// Plays a workload; tells a person at a terminal how far it is.
fn play(workload: &Workload, policies: &[Policy], err: &mut dyn Write) -> anyhow::Result<Report> {
    let shown = std::io::stderr().is_terminal();
    let mut last = Instant::now();
    summary::report(workload, policies, &mut |run, percent| {
        if shown && last.elapsed() >= PROGRESS {
            last = Instant::now();
            // Progress is a courtesy: a closed terminal must not end the run.
            let _ = writeln!(err, "{} {run}: {percent} %", workload.name);
        }
    })
}
