//! `tephra-controller`: flags, connection, logs and signals around [`tephra_controller::run_fenced`].

use std::{process::ExitCode, sync::Arc};

use tephra_api::clock::SystemClock;
use tephra_controller::{Flags, run_fenced};
use tephra_process::{client::Clients, runtime, signals};
use tephra_telemetry::logs::{self, LogOptions};
use tracing::{error, info, warn};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match Flags::parse_go(std::env::args_os()) {
        Ok(flags) => flags,
        Err(error) => {
            // Help and version go to standard output with code 0, mistakes to standard error with code 2. The terminal
            // is gone when printing fails; the exit code still tells.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    logs::init(LogOptions { verbosity: flags.verbosity });
    match runtime::run(control(&flags)) {
        Ok(()) => {
            info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            error!(error = format!("{error:#}"), "the controller ends");
            ExitCode::FAILURE
        }
    }
}

async fn control(flags: &Flags) -> anyhow::Result<()> {
    if !flags.without_effect().is_empty() {
        warn!(flags = ?flags.without_effect(), "flags without effect");
    }
    let options = flags.options()?;
    let config = flags.connection.config("tephra-controller").await?;
    info!(version = env!("CARGO_PKG_VERSION"), server = %config.cluster_url, "starting");
    let clients = Clients::connect(config)?;
    run_fenced(clients, options, Arc::new(SystemClock), signals::stop()?).await
}
