//! The HTTP endpoints: `/healthz`, `/livez`, `/readyz` (with `?verbose`) and `/metrics`.

use std::fmt::Debug;
use std::io::ErrorKind::AddrInUse;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::flags::Addresses;

/// What a program says about itself.
pub trait Checks: Debug + Send + Sync + 'static {
    /// False when only a restart helps.
    fn live(&self) -> bool;

    /// False while the program cannot do its work yet. A standby is ready.
    fn ready(&self) -> bool;

    /// One line for each check, as kube components write them: `[+]name ok`.
    fn verbose(&self) -> String;
}

/// A program's metrics.
pub trait MetricsText: Send + Sync + 'static {
    /// The format, as a content type.
    const CONTENT_TYPE: &'static str;

    /// What `/metrics` answers.
    fn text(&self) -> impl Future<Output = String> + Send;
}

/// What a program shows on its endpoints.
#[derive(Debug)]
pub struct Endpoints<C, M> {
    /// Behind the health endpoints.
    pub checks: Arc<C>,
    /// Behind `/metrics`.
    pub metrics: Arc<M>,
}

impl<C: Checks, M: MetricsText> Endpoints<C, M> {
    /// Serves until the tasks are dropped.
    ///
    /// # Errors
    /// When an address cannot be listened on.
    pub async fn serve(self, at: Addresses) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let mut servers = JoinSet::new();
        if let Some(address) = at.health {
            servers.spawn(serve(listen(address).await?, health_routes(self.checks)));
        }
        if let Some(address) = at.metrics {
            servers.spawn(serve(listen(address).await?, metrics_routes(self.metrics)));
        }
        Ok(servers)
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != AddrInUse => {
            // This machine has no IPv6.
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    listener.with_context(|| format!("listening on {address}"))
}

async fn serve(listener: TcpListener, routes: Router) -> anyhow::Result<()> {
    axum::serve(listener, routes).await.context("serving HTTP")
}

fn health_routes<C: Checks>(checks: Arc<C>) -> Router {
    Router::new()
        .route("/healthz", get(livez::<C>))
        .route("/livez", get(livez::<C>))
        .route("/readyz", get(readyz::<C>))
        .with_state(checks)
}

fn metrics_routes<M: MetricsText>(metrics: Arc<M>) -> Router {
    let text = async |State(metrics): State<Arc<M>>| {
        ([(header::CONTENT_TYPE, M::CONTENT_TYPE)], metrics.text().await)
    };
    Router::new().route("/metrics", get(text)).with_state(metrics)
}

async fn livez<C: Checks>(State(checks): State<Arc<C>>, query: RawQuery) -> impl IntoResponse {
    answer(checks.live(), &*checks, query)
}

async fn readyz<C: Checks>(State(checks): State<Arc<C>>, query: RawQuery) -> impl IntoResponse {
    answer(checks.live() && checks.ready(), &*checks, query)
}

fn answer(good: bool, checks: &impl Checks, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let verbose =
        query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    let code = if good { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    let text = if verbose || !good { checks.verbose() } else { "ok".to_owned() };
    (code, text)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Fixed {
        live: AtomicBool,
        ready: AtomicBool,
    }

    impl Checks for Fixed {
        fn live(&self) -> bool {
            self.live.load(Ordering::Relaxed)
        }

        fn ready(&self) -> bool {
            self.ready.load(Ordering::Relaxed)
        }

        fn verbose(&self) -> String {
            "[-]part failed\n".to_owned()
        }
    }

    #[tokio::test]
    async fn a_failed_check_answers_500_with_its_reasons_and_a_good_one_ok() {
        let checks = Arc::new(Fixed::default());
        let ask = async |checks: &Arc<Fixed>, query: Option<&str>| {
            let query = || RawQuery(query.map(ToOwned::to_owned));
            let read = async |answer: axum::response::Response| {
                let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
                String::from_utf8(body.to_vec()).unwrap()
            };
            let live = livez(State(checks.clone()), query()).await.into_response();
            let ready = readyz(State(checks.clone()), query()).await.into_response();
            let codes = (live.status().as_u16(), ready.status().as_u16());
            (codes, read(live).await, read(ready).await)
        };
        let bad = "[-]part failed\n".to_owned();
        assert_eq!(ask(&checks, None).await, ((500, 500), bad.clone(), bad.clone()));
        checks.live.store(true, Ordering::Relaxed);
        assert_eq!(ask(&checks, None).await, ((200, 500), "ok".to_owned(), bad.clone()));
        checks.ready.store(true, Ordering::Relaxed);
        assert_eq!(ask(&checks, None).await, ((200, 200), "ok".to_owned(), "ok".to_owned()));
        assert_eq!(ask(&checks, Some("verbose")).await, ((200, 200), bad.clone(), bad));
    }
}
