//! `tephra-controller`: flags, connection, logs and signals around [`tephra_controller::run`].

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use tephra_api::clock::SystemClock;
use tephra_controller::{Flags, connect, run};
use tephra_telemetry::logs::{self, LogOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let flags = match Flags::parse_go(std::env::args_os()) {
        Ok(flags) => flags,
        Err(error) => {
            // Help and version go to standard output with code 0, mistakes to standard error with code 2.
            error.print().context("printing the usage")?;
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
        }
    };
    logs::init(LogOptions { verbosity: flags.verbosity });
    if flags.leader_elect() {
        warn!(
            "leader election is not built yet: run one replica only (--leader-elect=false says so)"
        );
    }
    if !flags.without_effect().is_empty() {
        warn!(flags = flags.without_effect().join(" "), "accepted without effect");
    }
    let client = connect(flags.kubeconfig.as_deref(), flags.master.as_deref()).await?;
    let shutdown = CancellationToken::new();
    tokio::spawn(stop_on_signal(shutdown.clone()));
    run(client, flags.options(), Arc::new(SystemClock), shutdown).await?;
    info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// SIGTERM or SIGINT: stop cleanly; what is in the air gets five seconds.
async fn stop_on_signal(shutdown: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        warn!("signals cannot be caught: no clean shutdown");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping");
    shutdown.cancel();
}
