//! The end-to-end bench: how close the scheduler comes to the rate at which this machine's API server can bind at all,
//! and what a placed pod costs in API writes and CPU.
//!
//! Rounds alternate between the raw rate (a loop that only posts bindings, same Rust client, 32 in flight) and the
//! scheduler binary on the same nodes with as many pods; medians are compared, so that neighbours on the machine
//! disturb both alike. Pods are created beforehand; kubelets and the controller manager are off, since they would take
//! most of the CPU. Run it as `cargo run --release -p tephra-tests --bin e2e-bench -- --nodes 100 --pods 2000`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

mod measure;
mod report;
mod stage;

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Parser, ValueEnum};
use tephra_tests::rig::assets::{self, Found};
use tephra_tests::rig::{Rig, RigOptions, program};

use report::Report;
use stage::Stage;

/// Binds per second of the scheduler on a real API server against the raw rate.
#[derive(Clone, Debug, Parser)]
#[command(name = "e2e-bench")]
struct Arguments {
    /// Nodes, 110 pods each at most.
    #[arg(long, default_value_t = 100)]
    nodes: u32,
    /// Pods of each measurement.
    #[arg(long, default_value_t = 2000)]
    pods: u32,
    /// Pods of a gang.
    #[arg(long, default_value_t = 20)]
    gang: u32,
    /// Pairs of measurements; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Binds in flight, of both.
    #[arg(long, default_value_t = 32)]
    in_flight: u16,
    /// Measure the raw rate alone: what this machine's API server can do.
    #[arg(long)]
    raw_only: bool,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (nodes, pods, gang) = (arguments.nodes, arguments.pods, arguments.gang);
    ensure!(nodes > 0 && gang > 0 && arguments.rounds > 0, "nodes, gang and rounds start at 1");
    ensure!(pods >= gang && pods <= nodes * 110, "{pods} pods do not fit on {nodes} nodes");
    if cfg!(debug_assertions) {
        eprintln!("not a release build: the figures mean nothing (cargo run --release)");
    }
    let assets = match assets::find()? {
        Found::Ready(assets) => assets,
        Found::Missing(reason) => bail!("{reason}"),
    };
    let binaries = if arguments.raw_only { PathBuf::new() } else { program::binaries()? };
    let rig = Rig::start(&assets, RigOptions::default()).await?;
    let stage = Stage::set(&rig, &binaries, &arguments).await?;
    let mut rounds = Vec::new();
    for number in 1..=arguments.rounds {
        let raw = measure::raw(&stage).await?;
        if arguments.raw_only {
            println!("round {number}: raw {:.0} binds/s", raw.per_second());
            continue;
        }
        let tephra = measure::tephra(&stage).await?;
        eprintln!(
            "round {number}: raw {:.0} binds/s, tephra {:.0} binds/s",
            raw.per_second(),
            tephra.binds.per_second()
        );
        rounds.push((raw, tephra));
    }
    if arguments.raw_only {
        return Ok(());
    }
    let report = Report::new(&arguments, &rounds);
    match arguments.output {
        Format::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Format::Table => print!("{}", report.table()),
    }
    Ok(())
}
