//! The Tephra controllers.
//!
//! Here lives what keeps PodGroups and Queues in shape around the scheduler: plain pods get a PodGroup, gangs are suspended and resumed, queues get
//! their state and counts. [`run_fenced`] is the whole of it; `main.rs` only adds flags, a connection and signals. Each
//! controller is one file in `controller/` and one line in `registry.rs`; `reconcile.rs` is the loop they all run in.
//! Nothing here schedules, and nothing is shared with the scheduler but the API server.

mod context;
mod controller;
mod crds;
mod event_log;
mod flags;
mod health;
mod metrics;
mod mirror;
mod options;
mod reconcile;
mod refusal;
mod registry;
mod watch;
mod work_queue;

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use futures::future::join_all;
use kube::Client;
use tephra_api::clock::Clock;
use tephra_process::{client::Clients, leadership::Leadership, serve::Endpoints};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{context::Context, metrics::Metrics, registry::CONTROLLERS};
pub use crate::{
    crds::install_crds,
    flags::Flags,
    health::Readiness,
    options::ControllerOptions,
    registry::{Selection, SelectionError, controller_names},
};

/// Runs the controllers through one client that has no sockets of its own ([`run_fenced`]).
///
/// # Errors
/// As [`run_fenced`].
pub async fn run(
    client: Client,
    options: ControllerOptions,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    run_fenced(Clients::sharing(client), options, clock, shutdown).await
}

/// Waits for the lease, if there is one to hold, and runs the selected controllers until `shutdown`; calls in the air
/// then get up to five seconds to end, and the lease is handed over.
///
/// The controllers run in the calling task: on a current-thread runtime with paused time the same history of the API
/// server leads to the same requests.
///
/// # Errors
/// When the lease is lost ([`LeaseLost`](tephra_process::lease::LeaseLost)) or the endpoints cannot be served: the
/// process must end then. Trouble with the API server is retried for ever.
pub async fn run_fenced(
    clients: Clients,
    options: ControllerOptions,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    for name in options.controllers.missing() {
        warn!(controller = name, "asked for in --controllers, but not built yet");
    }
    let Clients { lease, work, fence } = clients;
    let (readiness, metrics) = (Readiness::default(), Arc::new(Metrics::default()));
    let endpoints = Endpoints { checks: Arc::new(readiness.clone()), metrics: metrics.clone() };
    let mut servers = endpoints.serve(options.addresses).await?;
    let leading =
        Leadership::begin(lease, options.lease.as_ref(), &fence, clock.clone(), &shutdown);
    let Some(mut leadership) = leading.await else { return Ok(()) };
    metrics.leading(true);

    let context = Context {
        client: work,
        options: Arc::new(options),
        clock,
        readiness: readiness.clone(),
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
    };
    let selected =
        CONTROLLERS.iter().filter(|it| context.options.controllers.includes(it.name)).map(|it| {
            info!(controller = it.name, "starting");
            readiness.expect(it.name);
            (it.run)(context.clone())
        });
    let controllers = join_all(selected);
    let until_told = async {
        controllers.await;
        shutdown.cancelled().await; // also when no controller was selected
    };
    let ended = tokio::select! {
        biased;
        lost = leadership.lost() => Err(lost.map_or_else(|| anyhow!("the lease keeper has ended"), Into::into)),
        () = until_told => Ok(()),
        Some(server) = servers.join_next() => {
            server.context("an HTTP server has failed")?.context("an HTTP server has ended")
        }
    };
    metrics.leading(false);
    if ended.is_ok() {
        leadership.release().await;
    }
    fence.close();
    ended
}
