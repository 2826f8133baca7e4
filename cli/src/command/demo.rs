//! `tephra demo`: the whole system in one process. An API server without sockets of its own, the controllers, the
//! scheduler and simulated kubelets run together; gangs of three teams are submitted, start as whole gangs, run and
//! end. The API server also listens on a port, so that kubectl can look at everything while it happens.

mod samples;
mod view;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tephra_api::clock::SystemClock;
use tephra_controller::ControllerOptions;
use tephra_scheduler::{Scheduler, SchedulerOptions};
use tephra_simulator::kubelet::{self, KubeletOptions};
use tephra_simulator::{ApiServer, ServerOptions, serve};
use tokio_util::sync::CancellationToken;

use view::Snapshot;

/// Run scheduler, controllers, kubelets and API server in this process and watch gangs being scheduled.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Simulated nodes, each with 32 CPUs, 256 GiB and 8 GPUs.
    #[arg(long, default_value_t = 8)]
    nodes: usize,
    /// Port of the API server on the loopback address; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// End when the samples have completed: exit code 0 only if every gang ran whole.
    #[arg(long)]
    until_done: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Runs the demo.
///
/// # Errors
/// When the port is taken or a component fails.
pub fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?
        .block_on(demo(args))
}

async fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let clock = Arc::new(SystemClock);
    let server = ApiServer::new(ServerOptions { clock: clock.clone(), ..ServerOptions::default() });
    let shutdown = CancellationToken::new();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port))
        .await
        .with_context(|| format!("listening on port {}", args.port))?;
    let address = listener.local_addr().context("reading the address of the API server")?;
    let folder = std::env::temp_dir().join(format!("tephra-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, serve::kubeconfig(&format!("http://{address}")))
        .with_context(|| format!("writing {}", kubeconfig.display()))?;

    samples::cluster(&server, args.nodes)?;
    let http = tokio::spawn({
        let (server, shutdown) = (server.clone(), shutdown.clone());
        async move { server.serve(listener, shutdown).await }
    });
    let controller = tokio::spawn(tephra_controller::run(
        server.client_as("tephra-controller"),
        ControllerOptions::default(),
        clock.clone(),
        shutdown.clone(),
    ));
    let kubelets = tokio::spawn(kubelet::run(
        server.client_as("kubelets"),
        KubeletOptions { clock: clock.clone(), ..KubeletOptions::default() },
        shutdown.clone(),
    ));
    let scheduler = Scheduler::new(
        server.client_as("tephra-scheduler"),
        SchedulerOptions { lease: None, ..SchedulerOptions::default() },
        clock,
    );
    let scheduler = tokio::spawn(scheduler.run(shutdown.clone()));
    samples::gangs(&server, args.nodes)?;

    let quiet = args.output == Output::Json;
    if !quiet {
        view::line(&format!(
            "kubectl --kubeconfig {} get pods,podgroups,queues -A",
            kubeconfig.display()
        ));
    }
    let outcome = watch(&server, args.until_done, quiet).await;
    shutdown.cancel();
    for task in [controller, scheduler] {
        // A component that failed earlier would have left the samples undone; its error says why.
        if let Ok(Ok(ended)) = tokio::time::timeout(Duration::from_secs(6), task).await {
            ended.context("a component failed")?;
        }
    }
    kubelets.abort();
    http.abort();
    let _ = std::fs::remove_dir_all(&folder);
    let last = outcome?;
    let audit = last.audit(&server);
    match args.output {
        Output::Json => view::line(&serde_json::to_string_pretty(&last.report(&audit))?),
        Output::Table => view::summary(&last, &audit),
    }
    let good = audit.is_empty() && (last.done() || !args.until_done);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the state until the samples are done, time is up, or the user interrupts.
async fn watch(server: &ApiServer, until_done: bool, quiet: bool) -> anyhow::Result<Snapshot> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let start = tokio::time::Instant::now();
    let mut screen = view::Screen::new(quiet);
    loop {
        let now = Snapshot::take(server);
        screen.show(&now);
        if until_done && (now.done() || start.elapsed() > PATIENCE) {
            return Ok(now);
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("waiting for an interrupt")?;
                return Ok(now);
            }
        }
    }
}
