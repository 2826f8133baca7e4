//! HTTP in and out: the server as a `tower::Service`, and the bodies of its responses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body::{Body, Frame, SizeHint};
use kube::client::Body as ClientBody;
use tower::Service;

use crate::dispatch::{self, Answer, Asked, Payload};
use crate::faults::{ConnectionLost, Fault, RequestInfo};
use crate::handler::watch::WatchBody;
use crate::request::{self, Query, Target};
use crate::server::ApiServer;
use crate::status::Refusal;

/// Larger request bodies are refused, as kube-apiserver does.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;

/// A response body: complete, or a watch.
#[derive(Debug)]
pub struct ApiBody(Content);

#[derive(Debug)]
enum Content {
    Full(Option<Bytes>),
    Watch(Box<WatchBody>),
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = ConnectionLost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionLost>>> {
        match &mut self.0 {
            Content::Full(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Content::Watch(watch) => watch.poll(cx).map(|next| next.map(|r| r.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Content::Watch(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Content::Watch(_) => SizeHint::default(),
        }
    }
}

/// The server as one client sees it. Cheap to clone; always ready.
#[derive(Clone, Debug)]
pub struct ApiService {
    server: ApiServer,
    identity: Arc<str>,
}

impl ApiService {
    pub(crate) fn new(server: ApiServer, identity: Arc<str>) -> Self {
        Self { server, identity }
    }
}

type Reply = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, ConnectionLost>> + Send>>;

impl Service<Request<ClientBody>> for ApiService {
    type Response = Response<ApiBody>;
    type Error = ConnectionLost;
    type Future = Reply;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Reply {
        let server = self.server.clone();
        let identity = Arc::clone(&self.identity);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(|_| ConnectionLost)?;
            server.respond(identity, &parts, body).await
        })
    }
}

impl Service<Request<ClientBody>> for ApiServer {
    type Response = Response<ApiBody>;
    type Error = ConnectionLost;
    type Future = Reply;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ClientBody>) -> Reply {
        self.service_as("client").call(request)
    }
}

impl ApiServer {
    /// Answers one request: faults first, then the handlers in one atomic step, then what faults do to the answer.
    pub(crate) async fn respond(
        &self,
        identity: Arc<str>,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Response<ApiBody>, ConnectionLost> {
        let accept = header_text(parts, &header::ACCEPT);
        let target = request::target(parts.uri.path());
        let Target::Resource(path) = target else {
            return Ok(respond_with(dispatch::document(&self.inner, &target, accept)));
        };
        let query = match Query::parse(parts.uri.query()) {
            Ok(query) => query,
            Err(refusal) => return Ok(respond_with(Answer::refused(&refusal))),
        };
        let Some(verb) = request::verb(&parts.method, &path, &query) else {
            return Ok(respond_with(Answer::refused(&Refusal::method_not_allowed())));
        };
        if body.len() > MAX_BODY {
            let message = format!("Request entity too large: limit is {MAX_BODY}");
            let refusal = Refusal::new(413, "RequestEntityTooLarge", message);
            return Ok(respond_with(Answer::refused(&refusal)));
        }
        let (seq, life) = {
            let mut state = self.inner.state.lock();
            state.requests += 1;
            (state.requests, state.life(&identity).ok_or(ConnectionLost)?)
        };
        let fault = self
            .inner
            .with_faults(|faults| {
                faults.on_request(&RequestInfo {
                    seq,
                    identity: &identity,
                    verb,
                    group: &path.group,
                    resource: &path.plural,
                    namespace: &path.namespace,
                    name: &path.name,
                    subresource: &path.subresource,
                    time_ms: self.inner.clock.now_ms(),
                })
            })
            .unwrap_or_default();
        match fault {
            Fault::DropBefore => return Err(ConnectionLost),
            Fault::Delay(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Fault::None
            | Fault::Reject(..)
            | Fault::DropAfter
            | Fault::HangAfter(_)
            | Fault::Stale(_) => {}
        }
        let asked = Asked {
            identity: &identity,
            life,
            verb,
            path: &path,
            query: &query,
            content_type: header_text(parts, &header::CONTENT_TYPE),
            accept,
            body: &body,
            stale_by: if let Fault::Stale(n) = fault { n } else { 0 },
            reject: if let Fault::Reject(code, after) = fault { Some((code, after)) } else { None },
            loses_answer: matches!(fault, Fault::DropAfter | Fault::HangAfter(_)),
        };
        let answer = dispatch::answer(&self.inner, &asked)?;
        match fault {
            Fault::DropAfter => Err(ConnectionLost),
            Fault::HangAfter(ms) => {
                drop(answer);
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Err(ConnectionLost)
            }
            _ => Ok(respond_with(answer)),
        }
    }
}

fn header_text<'a>(parts: &'a Parts, name: &header::HeaderName) -> &'a str {
    parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
}

fn respond_with(answer: Answer) -> Response<ApiBody> {
    let content = match answer.payload {
        Payload::Bytes(bytes) => Content::Full(Some(bytes)),
        Payload::Watch(watch) => Content::Watch(watch),
    };
    let mut response = Response::new(ApiBody(content));
    *response.status_mut() =
        StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(answer.content_type));
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
    }
    response
}
