//! `faults`: the seeded fault simulation on the command line. Prints figures, and for each seed that failed the one command
//! that replays it; exit code 1 when a promise was broken.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use tephra_tests::faults::{Figures, Plan, Theme, campaign, crash, run_seed};

/// Runs the whole scheduler and controller over a simulated API server, with faults, and checks what they did.
#[derive(Debug, Parser)]
struct Arguments {
    /// What is told.
    #[arg(long, value_enum, default_value_t)]
    story: Theme,
    /// Number of seeds.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Requests answered and events delivered before the weather calms down.
    #[arg(long, default_value_t = 2_000)]
    steps: u64,
    /// Instead: in fixed scenarios, a crash after every single write.
    #[arg(long)]
    crash_after_every_write: bool,
    /// With --crash-after-every-write: only this scenario.
    #[arg(long, requires = "crash_after_every_write")]
    scenario: Option<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Log what the programs log, at this level (`warn`, `info`, `debug`).
    #[arg(long)]
    log: Option<tracing_subscriber::filter::LevelFilter>,
    /// With --seed: print every write, too.
    #[arg(long, requires = "seed")]
    history: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[expect(clippy::print_stdout, reason = "the report is what this program is for")]
fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(level) = arguments.log {
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
    }
    let start = Instant::now();
    if arguments.crash_after_every_write {
        let report = crash::after_every_write(arguments.scenario.as_deref())?;
        match arguments.output {
            Output::Text => print!("{}", report.text(start.elapsed())),
            Output::Json => println!("{:#}", report.json(start.elapsed())),
        }
        return Ok(exit_code(report.is_good()));
    }
    let plan = Plan { theme: arguments.story, steps: arguments.steps };
    let figures = match arguments.seed {
        Some(seed) => {
            let outcome = run_seed(seed, plan)?;
            if arguments.history {
                outcome.history.iter().for_each(|record| println!("{}", told(record)));
            }
            let mut figures = Figures::default();
            figures.add(outcome);
            figures
        }
        None => campaign(arguments.from..arguments.from + arguments.seeds, plan)?,
    };
    match arguments.output {
        Output::Text => print!("{}", figures.text(plan, start.elapsed())),
        Output::Json => println!("{:#}", figures.json(plan, start.elapsed())),
    }
    Ok(exit_code(figures.failed.is_empty()))
}

fn told(record: &tephra_simulator::WriteRecord) -> String {
    format!(
        "{} {} {} {} {} {}/{} {} -> {}{} {}",
        record.seq,
        record.time_ms,
        record.identity,
        record.verb,
        record.resource,
        record.namespace,
        record.name,
        record.subresource,
        record.outcome,
        if record.answered { "" } else { " (answer lost)" },
        record.body
    )
}

fn exit_code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
