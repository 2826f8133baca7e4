//! The HTTP endpoints: `/healthz`, `/livez`, `/readyz` (with `?verbose`) and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::health::Health;
use crate::metrics::Metrics;

/// Content type of the OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A listener on an address that a flag named.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))
}

/// The health endpoints.
pub(crate) fn health_routes(health: Arc<Health>) -> Router {
    Router::new()
        .route("/healthz", get(livez))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(health)
}

/// The metrics endpoint.
pub(crate) fn metrics_routes(metrics: Arc<Metrics>) -> Router {
    Router::new().route("/metrics", get(metrics_text)).with_state(metrics)
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, routes: Router) -> anyhow::Result<()> {
    axum::serve(listener, routes).await.context("serving HTTP")
}

async fn livez(State(health): State<Arc<Health>>, query: RawQuery) -> impl IntoResponse {
    answer(health.live(), &health, query)
}

async fn readyz(State(health): State<Arc<Health>>, query: RawQuery) -> impl IntoResponse {
    answer(health.live() && health.ready(), &health, query)
}

fn answer(good: bool, health: &Health, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let verbose =
        query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    let code = if good { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    let text = if verbose || !good { health.verbose() } else { "ok".to_owned() };
    (code, text)
}

async fn metrics_text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text())
}
