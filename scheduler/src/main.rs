//! The `tephra-scheduler` binary: flags, logs, clients, signals; all else is in the library.

use std::process::ExitCode;
use std::sync::Arc;

use tephra_api::clock::SystemClock;
use tephra_process::fence::Fence;
use tephra_process::{client, runtime, signals};
use tephra_scheduler::Scheduler;
use tephra_scheduler::flags::Flags;
use tephra_telemetry::logs::{self, LogOptions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match Flags::parse_from_go(std::env::args_os()) {
        Ok(flags) => flags,
        Err(error) => {
            // The terminal is gone when printing fails; the exit code still tells.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    if flags.version {
        #[expect(clippy::print_stdout, reason = "the user asked for it")]
        {
            println!("tephra-scheduler {}", env!("CARGO_PKG_VERSION"));
        }
        return ExitCode::SUCCESS;
    }
    logs::init(LogOptions { verbosity: flags.v });
    match runtime::run(schedule(&flags)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the scheduler ends");
            ExitCode::FAILURE
        }
    }
}

async fn schedule(flags: &Flags) -> anyhow::Result<()> {
    if !flags.without_effect.is_empty() {
        tracing::warn!(flags = ?flags.without_effect, "flags without effect");
    }
    let options = flags.options()?;
    let config = flags.connection.config("tephra-scheduler").await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"), server = %config.cluster_url,
        schedulers = ?options.scheduler_names, actions = ?options.conf.actions, "starting"
    );
    let fence = Fence::closed();
    let scheduler =
        Scheduler::new(client::unfenced(config.clone())?, options, Arc::new(SystemClock))
            .with_writer(client::fenced(config, fence.clone())?, fence);
    scheduler.run(signals::stop()?).await
}
