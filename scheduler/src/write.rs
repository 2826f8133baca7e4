//! How every write reaches the API server: through the fence, with a time limit, and with an answer that says
//! plainly whether the server took it, refused it, or may have done either.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde::Serialize;

use crate::fence::Fence;
use crate::metrics::{Metrics, Verb};

/// How long the answer to one request may take before its outcome counts as unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Content type of a JSON merge patch.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// Content type of a strategic merge patch (built-in kinds only).
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
/// Content type of a plain object.
pub(crate) const JSON: &str = "application/json";

/// Sends requests to the API server on behalf of one process.
#[derive(Clone)]
pub(crate) struct Writer {
    client: kube::Client,
    fence: Fence,
    metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// An answer of the server.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// `Retry-After` in seconds.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The server's own words, for logs and conditions.
    pub(crate) fn message(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Status {
            message: String,
        }
        match serde_json::from_slice::<Status>(&self.body) {
            Ok(status) => status.message,
            Err(_) => self.status.to_string(),
        }
    }
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoReply {
    /// Nothing was sent: the lease is not held.
    #[error("the lease is not held")]
    Fenced,
    /// Nothing was sent: the request cannot be built (an impossible name).
    #[error("request cannot be built: {0}")]
    Impossible(String),
    /// The connection broke or time ran out: the server may or may not have done it.
    #[error("no answer: {0}")]
    Unknown(String),
}

impl Writer {
    pub(crate) fn new(client: kube::Client, fence: Fence, metrics: Arc<Metrics>) -> Self {
        Self { client, fence, metrics }
    }

    /// Creates an object or subresource.
    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Reply, NoReply> {
        self.write(Verb::Create, Method::POST, path, JSON, body).await
    }

    /// Patches an object; `content_type` names the kind of patch.
    pub(crate) async fn patch(
        &self,
        path: &str,
        content_type: &str,
        body: &impl Serialize,
    ) -> Result<Reply, NoReply> {
        self.write(Verb::Patch, Method::PATCH, path, content_type, body).await
    }

    /// Deletes an object with the given options.
    pub(crate) async fn delete(
        &self,
        path: &str,
        options: &impl Serialize,
    ) -> Result<Reply, NoReply> {
        self.write(Verb::Delete, Method::DELETE, path, JSON, options).await
    }

    /// Reads an object; reads pass the fence, too, since only writers settle outcomes here.
    pub(crate) async fn get(&self, path: &str) -> Result<Reply, NoReply> {
        self.send(Method::GET, path, JSON, Vec::new()).await
    }

    async fn write(
        &self,
        verb: Verb,
        method: Method,
        path: &str,
        content_type: &str,
        body: &impl Serialize,
    ) -> Result<Reply, NoReply> {
        let body =
            serde_json::to_vec(body).map_err(|error| NoReply::Impossible(error.to_string()))?;
        let reply = self.send(method, path, content_type, body).await;
        if !matches!(reply, Err(NoReply::Fenced | NoReply::Impossible(_))) {
            self.metrics.api_write(verb, path);
        }
        reply
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Reply, NoReply> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, JSON)
            .body(kube::client::Body::from(body))
            .map_err(|error| NoReply::Impossible(error.to_string()))?;
        self.fence.may_write().map_err(|_| NoReply::Fenced)?;
        match tokio::time::timeout(PATIENCE, self.exchange(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(NoReply::Unknown(format!("no answer within {PATIENCE:?}"))),
        }
    }

    async fn exchange(&self, request: Request<kube::client::Body>) -> Result<Reply, NoReply> {
        let unknown = |error: kube::Error| NoReply::Unknown(error.to_string());
        let response = self.client.send(request).await.map_err(unknown)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(unknown)?.to_bytes();
        let retry_after = parts.headers.get(header::RETRY_AFTER);
        let seconds = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Ok(Reply { status: parts.status, retry_after: seconds.map(Duration::from_secs), body })
    }
}
