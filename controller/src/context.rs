//! What `run` hands to each controller.

use std::sync::Arc;

use kube::Client;
use tephra_api::clock::Clock;
use tokio_util::sync::CancellationToken;

use crate::{health::Readiness, metrics::Metrics, options::ControllerOptions};

/// Everything a controller may use of the outer world.
#[derive(Clone)]
pub(crate) struct Context {
    /// Connection to the API server.
    pub(crate) client: Client,
    /// The process's options.
    pub(crate) options: Arc<ControllerOptions>,
    /// Wall time, for what is written into objects.
    pub(crate) clock: Arc<dyn Clock>,
    /// To be marked when the controller's watches are complete.
    pub(crate) readiness: Readiness,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Ends the controller.
    pub(crate) shutdown: CancellationToken,
}
