//! The `tephra` program: one file per command in `command/`.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tephra::command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Queue and gang scheduling for Kubernetes, compatible with Volcano.
#[derive(Debug, Parser)]
#[command(name = "tephra", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Schedule manifests or scenario files offline, on simulated nodes.
    Simulate(command::simulate::SimulateArgs),
    /// Run the whole system in one process and watch gangs of three teams.
    Demo(command::demo::DemoArgs),
    /// Measure the scheduling core alone.
    Bench(command::bench::BenchArgs),
    /// Write the script with which a shell completes commands and flags.
    Completions(command::completions::CompletionsArgs),
    /// Write manual pages into a folder.
    Man(command::man::ManArgs),
    /// Suspend a job of a cluster until `tephra resume`.
    Suspend(command::suspend::SuspendArgs),
    /// Let a suspended job run again when there is room for it.
    Resume(command::resume::ResumeArgs),
    /// Tell who made a job go and when it comes back.
    Why(command::why::WhyArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(args) => command::simulate::run(args),
        Command::Demo(args) => command::demo::run(args),
        Command::Bench(args) => command::bench::run(args),
        Command::Completions(args) => command::completions::run(args, Cli::command()),
        Command::Man(args) => command::man::run(args, Cli::command()),
        Command::Suspend(args) => command::suspend::run(args),
        Command::Resume(args) => command::resume::run(args),
        Command::Why(args) => command::why::run(args),
    };
    result.unwrap_or_else(|error| {
        let _ =
            std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("error: {error:#}\n"));
        ExitCode::from(2)
    })
}
