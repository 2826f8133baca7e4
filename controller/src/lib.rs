//! The Tephra controllers.
//!
//! Here lives what keeps PodGroups and Queues in shape around the scheduler: plain pods get a PodGroup, queues get
//! their state and counts. [`run`] is the whole of it; `main.rs` only adds flags, a connection and signals. Each
//! controller is one file in `controller/` and one line in `registry.rs`; `reconcile.rs` is the loop they all run in.
//! Nothing here schedules, and nothing is shared with the scheduler but the API server.

mod connection;
mod context;
mod controller;
mod crds;
mod event_log;
mod flags;
mod go_flags;
mod health;
mod mirror;
mod options;
mod reconcile;
mod refusal;
mod registry;
mod watch;
mod work_queue;

use std::sync::Arc;

use futures::{FutureExt, future::join_all};
use kube::Client;
use tephra_api::clock::Clock;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use crate::{
    connection::connect,
    crds::install_crds,
    flags::Flags,
    health::Readiness,
    options::ControllerOptions,
    registry::{Selection, SelectionError, controller_names},
};
use crate::{context::Context, registry::CONTROLLERS};

/// Runs the selected controllers until `shutdown`; calls in the air then get up to five seconds to end.
///
/// Everything happens in the calling task: on a current-thread runtime with paused time the same history of the API
/// server leads to the same requests. A leader election can wrap this function: it holds nothing before it is polled,
/// and cancelling `shutdown` is the way to depose it.
///
/// # Errors
/// Only when the health endpoints cannot be served. Trouble with the API server is retried for ever.
pub async fn run(
    client: Client,
    options: ControllerOptions,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let readiness = Readiness::default();
    for name in options.controllers.missing() {
        warn!(controller = name, "asked for in --controllers, but not built yet");
    }
    let context = Context {
        client,
        options: Arc::new(options),
        clock,
        readiness: readiness.clone(),
        shutdown: shutdown.clone(),
    };
    let selected: Vec<_> = CONTROLLERS
        .iter()
        .filter(|controller| context.options.controllers.includes(controller.name))
        .collect();
    for controller in &selected {
        info!(controller = controller.name, "starting");
        readiness.expect(controller.name);
    }
    let controllers = join_all(selected.iter().map(|controller| (controller.run)(context.clone())));
    let health = match context.options.healthz_address.clone() {
        Some(address) => {
            let shutdown = shutdown.clone();
            async move { health::serve(&address, readiness, shutdown).await }.boxed()
        }
        None => futures::future::ready(Ok(())).boxed(),
    };
    let controllers = async {
        controllers.await;
        shutdown.cancelled().await; // also when no controller was selected
        Ok(())
    };
    let outcome = futures::future::try_join(controllers, health).await;
    outcome.map(|((), ())| ())
}
