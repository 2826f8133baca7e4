//! Carries out binds, a bounded number at a time, and reports each outcome as an event. An outcome that is
//! unknown (broken connection, time-out, 5xx) is settled by reading the pod before anything else is decided
//! about it: until then the core keeps the pod's room on its node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tephra_api::clock::Clock;
use tephra_core::decision::PodRef;
use tephra_core::event::Event;
use tephra_core::planted::{Bug, planted};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backoff;
use crate::metrics::{Metrics, Stage};
use crate::write::{NoReply, Reply, Writer};

/// How long a server may answer "later" before the bind counts as failed and the pod is decided anew.
const GIVE_UP: Duration = Duration::from_secs(300);

/// One bind to carry out.
#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub(crate) pod: PodRef,
    pub(crate) node: Arc<str>,
    /// When the pod was created, in milliseconds since 1970; 0 when that is not known.
    pub(crate) created_ms: i64,
    /// When the node was chosen.
    pub(crate) decided: Instant,
}

/// Who watches binds.
pub(crate) struct Watch {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Watch {
    /// The request is about to be sent.
    fn begins(&self, bind: &Bind) {
        self.metrics.took("PreBind", bind.decided.elapsed());
        self.metrics.reached(Stage::PreBound, bind.created_ms, self.clock.now_ms());
    }

    /// It took so long to settle.
    fn ends(&self, bind: &Bind, outcome: &Outcome, took: Duration) {
        if *outcome == Outcome::Bound {
            self.metrics.took("Bind", took);
            self.metrics.reached(Stage::Bound, bind.created_ms, self.clock.now_ms());
        }
    }
}

/// How a bind ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The pod is bound to our node.
    Bound,
    /// The pod is not bound to our node and this bind will not do it.
    Failed(String),
    /// The lease is gone; nobody may be told anything any more.
    Abandoned,
}

/// Runs until the sending side is dropped and everything queued is settled.
pub(crate) async fn run(
    mut queue: mpsc::UnboundedReceiver<Vec<Bind>>,
    outcomes: mpsc::UnboundedSender<Event>,
    writer: Writer,
    limit: usize,
    watch: Watch,
) {
    let mut waiting: VecDeque<Bind> = VecDeque::new();
    let mut flights = FuturesUnordered::new();
    let mut open = true;
    loop {
        while flights.len() < limit.max(1)
            && let Some(bind) = waiting.pop_front()
        {
            let writer = writer.clone();
            watch.begins(&bind);
            flights.push(async move {
                let started = Instant::now();
                (settle(&writer, &bind).await, bind, started.elapsed())
            });
        }
        watch.metrics.binds_in_flight.set(flights.len() as i64);
        tokio::select! {
            biased;
            Some((outcome, bind, took)) = flights.next(), if !flights.is_empty() => {
                watch.ends(&bind, &outcome, took);
                report(&outcomes, &watch.metrics, &bind, outcome);
            }
            more = queue.recv(), if open => match more {
                Some(binds) => waiting.extend(binds),
                None => open = false,
            },
            else => break,
        }
    }
}

fn report(
    outcomes: &mpsc::UnboundedSender<Event>,
    metrics: &Metrics,
    bind: &Bind,
    outcome: Outcome,
) {
    let uid = bind.pod.uid.to_string();
    tracing::debug!(pod = %bind.pod.name, node = %bind.node, ?outcome, "bind settled");
    let event = match outcome {
        Outcome::Bound => {
            metrics.bind("bound");
            Event::BindOk(uid)
        }
        Outcome::Failed(message) => {
            metrics.bind("failed");
            tracing::warn!(
                namespace = %bind.pod.namespace, pod = %bind.pod.name, node = %bind.node, %message,
                "bind failed"
            );
            if planted(Bug::DroppedBindFailure) {
                return;
            }
            Event::BindFailed { uid, message }
        }
        Outcome::Abandoned => {
            metrics.bind("abandoned");
            return;
        }
    };
    // The receiver is gone only when the scheduler ends.
    let _ = outcomes.send(event);
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Meta<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Precondition: a pod re-created under the same name is not bound by mistake.
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

/// Binds one pod and does not return before the outcome is certain or the lease is gone.
pub(crate) async fn settle(writer: &Writer, bind: &Bind) -> Outcome {
    let pod = &bind.pod;
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
    let body = Binding {
        api_version: "v1",
        kind: "Binding",
        metadata: Meta { namespace: &pod.namespace, name: &pod.name, uid: &pod.uid },
        target: Target { api_version: "v1", kind: "Node", name: &bind.node },
    };
    let binding = format!("{path}/binding");
    let started = Instant::now();
    let mut pauses = backoff::writes(backoff::seed(&pod.uid));
    loop {
        let pause = match writer.post(&binding, &body).await {
            Ok(reply) if reply.status.is_success() => return Outcome::Bound,
            Ok(reply) => match refusal(&reply) {
                Refusal::Final if reply.status == StatusCode::CONFLICT => {
                    return conflict(writer, bind, &path, &reply.message()).await;
                }
                Refusal::Final => return failed(bind, &reply.message()),
                Refusal::Later(_) if started.elapsed() >= GIVE_UP => {
                    return failed(bind, &reply.message());
                }
                Refusal::Later(after) => after.or_else(|| pauses.next()),
                Refusal::Unknown => match settled(writer, bind, &path).await {
                    Some(outcome) => return outcome,
                    None => pauses.next(),
                },
            },
            Err(NoReply::Fenced) => return Outcome::Abandoned,
            Err(NoReply::Impossible(why)) => return failed(bind, &why),
            Err(NoReply::Unknown(why)) => {
                tracing::debug!(pod = %pod.name, %why, "outcome of a bind is unknown; reading the pod");
                match settled(writer, bind, &path).await {
                    Some(outcome) => return outcome,
                    None => pauses.next(),
                }
            }
        };
        tokio::time::sleep(pause.unwrap_or(Duration::from_secs(10))).await;
    }
}

enum Refusal {
    /// It was not done and will not be.
    Final,
    /// It was not done; ask again after this long.
    Later(Option<Duration>),
    /// It may have been done.
    Unknown,
}

fn refusal(reply: &Reply) -> Refusal {
    match reply.status {
        StatusCode::TOO_MANY_REQUESTS => Refusal::Later(reply.retry_after),
        StatusCode::SERVICE_UNAVAILABLE if reply.retry_after.is_some() => {
            Refusal::Later(reply.retry_after)
        }
        // Credentials are re-read from their file; an expired token mends itself.
        StatusCode::UNAUTHORIZED => Refusal::Later(None),
        status if status.is_server_error() => Refusal::Unknown,
        _ => Refusal::Final,
    }
}

fn failed(bind: &Bind, message: &str) -> Outcome {
    Outcome::Failed(format!("failed to bind to node {}: {message}", bind.node))
}

/// A conflict may mean that an earlier attempt of ours went through.
async fn conflict(writer: &Writer, bind: &Bind, path: &str, message: &str) -> Outcome {
    match settled(writer, bind, path).await {
        Some(Outcome::Failed(_)) | None => failed(bind, message),
        Some(outcome) => outcome,
    }
}

/// Reads the pod until the server answers. `None`: the pod is there and not bound.
async fn settled(writer: &Writer, bind: &Bind, path: &str) -> Option<Outcome> {
    let mut pauses = backoff::writes(backoff::seed(path));
    loop {
        match writer.get(path).await {
            Ok(reply) if reply.status.is_success() => match verdict(&reply, bind) {
                Ok(outcome) => return outcome,
                Err(error) => tracing::warn!(%path, %error, "could not read a pod"),
            },
            Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
                return Some(failed(bind, "the pod is gone"));
            }
            Ok(reply) => tracing::debug!(%path, status = %reply.status, "could not read a pod"),
            Err(NoReply::Fenced) => return Some(Outcome::Abandoned),
            Err(error) => tracing::debug!(%path, %error, "could not read a pod"),
        }
        tokio::time::sleep(pauses.next().unwrap_or(Duration::from_secs(10))).await;
    }
}

fn verdict(reply: &Reply, bind: &Bind) -> Result<Option<Outcome>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Pod {
        metadata: Uid,
        #[serde(default)]
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Uid {
        #[serde(default)]
        uid: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        node_name: Option<String>,
    }
    let pod: Pod = serde_json::from_slice(&reply.body)?;
    if pod.metadata.uid != *bind.pod.uid {
        return Ok(Some(failed(bind, "the pod was deleted and another one has its name")));
    }
    Ok(match pod.spec.node_name.filter(|node| !node.is_empty()) {
        None => None,
        Some(node) if node == *bind.node => Some(Outcome::Bound),
        Some(node) => Some(failed(bind, &format!("the pod is bound to node {node}"))),
    })
}

#[cfg(test)]
mod tests;
