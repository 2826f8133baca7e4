//! The commands of `tephra`, one file each. A command takes its parsed arguments and answers an exit code.

use anyhow::Context as _;

pub mod bench;
pub mod completions;
pub mod demo;
pub mod man;
pub mod resume;
pub mod simulate;
pub mod suspend;
pub mod why;

/// Prints the answer of a command.
fn print(answer: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    std::io::Write::write_fmt(&mut std::io::stdout().lock(), answer).context("printing")
}

/// Runs what a command does with a cluster.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(work)
}
