//! A fault proxy before a real API server: plain HTTP towards the program under test, TLS with an identity's credentials
//! towards the server. It reads verb and resource of each request and breaks what its rules (`rule.rs`) name; everything
//! else passes unchanged. Watches are passed event by event (`events.rs`).
//!
//! Rules may change at any time. Each counts what it struck, so that a fault that met nothing fails its test.

mod events;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::TryStreamExt as _;
use http::{Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use rule::Target;
pub use rule::{Active, Fault, Rule};

type Body = UnsyncBoxBody<Bytes, anyhow::Error>;

/// A running proxy; closes when dropped.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    kubeconfig: PathBuf,
    task: JoinHandle<()>,
}

struct State {
    upstream: Client,
    rules: Mutex<Vec<Arc<Active>>>,
    /// First answer to a list by its path, for [`Fault::Stale`].
    lists: Mutex<BTreeMap<String, Bytes>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy that speaks to the server as `config` says, and writes the kubeconfig for its clients to `kubeconfig`.
    ///
    /// # Errors
    /// When no port is free or the file cannot be written.
    pub async fn start(mut config: Config, kubeconfig: &Path) -> anyhow::Result<Self> {
        // What the program under test sends is to reach the server exactly once.
        config.default_retry = false;
        config.read_timeout = None;
        let state = Arc::new(State {
            upstream: Client::try_from(config)?,
            rules: Mutex::default(),
            lists: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = format!("http://{}", listener.local_addr()?);
        let content = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        });
        std::fs::write(kubeconfig, content.to_string())
            .with_context(|| format!("writing {}", kubeconfig.display()))?;
        let task = tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(Self { state, kubeconfig: kubeconfig.to_owned(), task })
    }

    /// The kubeconfig that leads to the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Puts a rule into force, behind those that are: of several that would strike one request the first does.
    pub fn add(&self, rule: Rule) -> Arc<Active> {
        let active = Arc::new(Active::new(rule));
        self.state.rules().push(Arc::clone(&active));
        active
    }

    /// Takes all rules out of force.
    pub fn calm(&self) {
        self.state.rules().clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Active>>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to this request (`events` false) or event of a watch.
    fn fault(&self, events: bool, target: &Target, text: &str) -> Option<Fault> {
        let rules = self.rules();
        let mut of_kind = rules.iter().filter(|it| it.rule().fault.is_of_events() == events);
        of_kind.find_map(|active| active.strikes(target, text))
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(&state);
        let service = hyper::service::service_fn(move |request| {
            let state = Arc::clone(&state);
            async move { answer(&state, request).await }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        let serving = connection.serve_connection(TokioIo::new(stream), service);
        // An error is a connection that a rule or either side broke off.
        connections.spawn(async move { drop(serving.await) });
    }
}

/// An error closes the connection without an answer.
async fn answer(state: &Arc<State>, request: Request<Incoming>) -> anyhow::Result<Response<Body>> {
    let uri = request.uri().clone();
    let target = Target::read(request.method(), uri.path(), uri.query().unwrap_or(""));
    let fault = state.fault(false, &target, uri.path());
    match fault {
        Some(Fault::Delay(pause)) => tokio::time::sleep(pause).await,
        Some(Fault::Reset) => bail!("reset by a rule"),
        Some(Fault::Answer { code, retry_after }) => return refusal(code, retry_after),
        _ => {}
    }
    // The client may be gone before the answer: what it sent is carried out all the same, as a server would.
    let upstream = state.upstream.clone();
    let request = outbound(request).await?;
    let response = tokio::spawn(async move { upstream.send(request).await }).await??;
    if fault == Some(Fault::LoseAnswer) {
        response.into_body().collect().await?;
        bail!("answer lost by a rule");
    }
    let (mut parts, body) = response.into_parts();
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        parts.headers.remove(name);
    }
    let body = if target.verb == "watch" && parts.status.is_success() {
        let frames = body.into_data_stream().map_err(anyhow::Error::from);
        events::pass(Arc::clone(state), target, Box::pin(frames))
    } else {
        let mut whole = body.collect().await?.to_bytes();
        if target.verb == "list" && parts.status.is_success() {
            let mut lists = state.lists.lock().unwrap_or_else(PoisonError::into_inner);
            let first = lists.entry(uri.path().to_owned()).or_insert_with(|| whole.clone());
            if fault == Some(Fault::Stale) {
                whole = first.clone();
            }
        }
        Full::new(whole).map_err(|never: Infallible| match never {}).boxed_unsync()
    };
    Ok(Response::from_parts(parts, body))
}

/// The request as the server gets it; the credentials are added by the client that sends it.
async fn outbound(request: Request<Incoming>) -> anyhow::Result<Request<kube::client::Body>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().context("no path")?.as_str();
    let mut outbound = Request::builder().method(parts.method).uri(path);
    for name in [header::ACCEPT, header::CONTENT_TYPE, header::USER_AGENT] {
        if let Some(value) = parts.headers.get(&name) {
            outbound = outbound.header(name, value);
        }
    }
    Ok(outbound.body(body.collect().await?.to_bytes().into())?)
}

/// An answer in the form of the API server.
fn refusal(code: u16, retry_after: Option<u32>) -> anyhow::Result<Response<Body>> {
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    let body = status(code).to_string();
    Ok(response.body(Full::from(body).map_err(|never| match never {}).boxed_unsync())?)
}

/// A `Status` of failure.
fn status(code: u16) -> serde_json::Value {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "code": code, "message": format!("{reason}, said by the fault proxy"),
    })
}
