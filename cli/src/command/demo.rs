//! `tephra demo`: the whole system in one process. An API server, the controllers, the scheduler and simulated kubelets
//! run together; gangs of three teams are submitted, start as whole gangs, run and end. The API server also
//! listens on a port, so that kubectl can look at everything, and change it, while it happens. At the end the API
//! server's history is audited.

mod audit;
mod samples;
mod snapshot;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use tephra_api::clock::SystemClock;
use tephra_controller::ControllerOptions;
use tephra_process::signals;
use tephra_scheduler::{Scheduler, SchedulerOptions};
use tephra_simulator::kubelet::{self, KubeletOptions};
use tephra_simulator::{ApiServer, ServerOptions, serve};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use audit::Audit;
use snapshot::Snapshot;

/// Run scheduler, controllers, kubelets and API server in this process and watch gangs being scheduled.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Simulated nodes, each with 32 CPUs, 256 GiB and 8 GPUs (1 to 5000).
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=5000))]
    nodes: u16,
    /// Port of the API server on the loopback address; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// End when the samples have completed, instead of at Ctrl-C.
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

/// How long the samples may stand still before the demo gives up waiting for them.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at the state.
const PAUSE: Duration = Duration::from_millis(200);
/// What the components get to end in.
const FAREWELL: Duration = Duration::from_secs(6);

/// Runs the demo. The exit code is 0 only if the audit found nothing and, with `--until-done`, every gang ran whole.
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
    // The audit wants the history from the first write on.
    let options = ServerOptions { history_limit: usize::MAX, ..ServerOptions::default() };
    let server = ApiServer::new(ServerOptions { clock: Arc::new(SystemClock), ..options });
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port))
        .await
        .with_context(|| format!("listening on port {}", args.port))?;
    let address = listener.local_addr().context("reading the address of the API server")?;
    let kubeconfig = Kubeconfig::write(&serve::kubeconfig(&format!("http://{address}")))?;
    samples::cluster(&server, args.nodes)?;
    let shutdown = CancellationToken::new();
    let mut components = components(&server, listener, &shutdown);
    samples::gangs(&server, args.nodes)?;

    let quiet = args.output == Output::Json;
    // Whoever has read the hint may end the demo: from then on it must end cleanly.
    let interrupted = signals::stop()?;
    view::hint(&kubeconfig.0, quiet);
    let watched = tokio::select! {
        watched = watch(&server, args.until_done, quiet, &interrupted) => watched,
        Some(ended) = components.join_next() => match ended.context("a component crashed")? {
            Ok(name) => bail!("{name} ended by itself"),
            Err(error) => return Err(error),
        },
    };
    shutdown.cancel();
    let farewell = async {
        while let Some(ended) = components.join_next().await {
            ended.context("a component crashed")??;
        }
        anyhow::Ok(())
    };
    // One that hangs is cut off when the process ends; everything it wrote is in the history.
    tokio::time::timeout(FAREWELL, farewell).await.unwrap_or(Ok(()))?;
    let last = watched?;
    let audit = Audit::of(&server.history(), last.done());
    match args.output {
        Output::Json => view::line(&serde_json::to_string_pretty(&audit::report(&last, &audit))?),
        Output::Table => view::summary(&last, &audit),
    }
    Ok(audit.exit_code(&last, args.until_done))
}

/// Everything that runs beside the samples; each ends at `shutdown` and gives its name.
fn components(
    server: &ApiServer,
    listener: tokio::net::TcpListener,
    shutdown: &CancellationToken,
) -> JoinSet<anyhow::Result<&'static str>> {
    let clock = Arc::new(SystemClock);
    let mut components = JoinSet::new();
    let http = server.clone().serve(listener, shutdown.clone());
    components.spawn(async move {
        http.await.context("the API server failed")?;
        Ok("the API server")
    });
    let controllers = tephra_controller::run(
        server.client_as("tephra-controller"),
        ControllerOptions::default(),
        clock.clone(),
        shutdown.clone(),
    );
    components.spawn(async move {
        controllers.await.context("the controllers failed")?;
        Ok("the controllers")
    });
    // Deleted pods go at once: nothing in them would use its grace period.
    let options = KubeletOptions {
        clock: clock.clone(),
        termination_ms: Some(0),
        ..KubeletOptions::default()
    };
    let kubelets = kubelet::run(server.client_as("kubelets"), options, shutdown.clone());
    components.spawn(async move {
        kubelets.await;
        Ok("the kubelets")
    });
    let options = SchedulerOptions { lease: None, ..SchedulerOptions::default() };
    let scheduler = Scheduler::new(server.client_as("tephra-scheduler"), options, clock);
    let scheduler = scheduler.run(shutdown.clone());
    components.spawn(async move {
        scheduler.await.context("the scheduler failed")?;
        Ok("the scheduler")
    });
    components
}

/// Shows the state until the samples are done (or get nowhere), or the user interrupts.
async fn watch(
    server: &ApiServer,
    until_done: bool,
    quiet: bool,
    interrupted: &CancellationToken,
) -> anyhow::Result<Snapshot> {
    let mut screen = view::Screen::new(quiet);
    let mut moved = Instant::now();
    loop {
        let now = Snapshot::take(server);
        if screen.show(&now) {
            moved = Instant::now();
        }
        if until_done && (now.done() || moved.elapsed() > PATIENCE) {
            return Ok(now);
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = interrupted.cancelled() => return Ok(now),
        }
    }
}

/// The kubeconfig file; it goes when the demo ends.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(content: &str) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("tephra-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("creating {}", folder.display()))?;
        let path = folder.join("kubeconfig");
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
