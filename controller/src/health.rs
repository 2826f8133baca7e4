//! Whether the process lives and its controllers know the cluster, and the HTTP endpoints that say so.
//!
//! `/healthz` (Volcano's name) and `/livez`: the process answers. `/readyz`: every running controller has seen a full
//! list of what it watches; `?verbose` or a failure lists the checks in kube style.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context as _;
use axum::{Router, extract::State, http::StatusCode, routing::get};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Which parts are ready. Cheap to clone; all clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, bool>>>);

impl Readiness {
    /// Adds a part that is not ready yet.
    pub(crate) fn expect(&self, part: &'static str) {
        self.0.lock().entry(part).or_insert(false);
    }

    /// Marks a part as ready.
    pub(crate) fn mark(&self, part: &'static str) {
        self.0.lock().insert(part, true);
    }

    /// Whether all parts are ready.
    pub fn ready(&self) -> bool {
        self.0.lock().values().all(|ready| *ready)
    }

    fn report(&self) -> String {
        let parts = self.0.lock();
        let mut text = String::new();
        for (part, ready) in parts.iter() {
            text.push_str(if *ready { "[+]" } else { "[-]" });
            text.push_str(part);
            text.push_str(if *ready { " ok\n" } else { " not synced\n" });
        }
        text
    }
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    if readiness.ready() {
        (StatusCode::OK, format!("{}readyz check passed\n", readiness.report()))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}readyz check failed\n", readiness.report()))
    }
}

fn routes(readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .with_state(readiness)
}

/// Serves the endpoints on `address` (Go's form: `:11251` means every local address) until shutdown.
///
/// # Errors
/// When the address is not valid or taken.
pub(crate) async fn serve(
    address: &str,
    readiness: Readiness,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let listener =
        bind(address).await.with_context(|| format!("health endpoints on `{address}`"))?;
    axum::serve(listener, routes(readiness))
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
        .context("health endpoints")
}

async fn bind(address: &str) -> std::io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await;
    };
    match TcpListener::bind(format!("[::]:{port}")).await {
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            // No IPv6 on this machine.
            TcpListener::bind(format!("0.0.0.0:{port}")).await
        }
        bound => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readyz_fails_and_names_the_part_until_every_part_is_ready() {
        let readiness = Readiness::default();
        readiness.expect("pg-controller");
        readiness.expect("queue-controller");
        readiness.mark("queue-controller");
        let (code, text) = readyz(State(readiness.clone())).await;
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            text,
            "[-]pg-controller not synced\n[+]queue-controller ok\nreadyz check failed\n"
        );
        readiness.mark("pg-controller");
        assert_eq!(readyz(State(readiness)).await.0, StatusCode::OK);
    }
}
