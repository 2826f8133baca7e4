//! For unit tests: an API server that gives a fixed list of answers and records what it was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;

/// One answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Status, `Retry-After`, body.
    Reply(u16, Option<u64>, Vec<u8>),
    /// The connection breaks.
    Broken,
}

impl Answer {
    pub(crate) fn status(code: u16, message: &str) -> Self {
        Self::json(code, &serde_json::json!({"kind": "Status", "code": code, "message": message}))
    }

    pub(crate) fn json(code: u16, body: &serde_json::Value) -> Self {
        Self::Reply(code, None, body.to_string().into_bytes())
    }

    pub(crate) fn text(code: u16, body: &str) -> Self {
        Self::Reply(code, None, body.as_bytes().to_vec())
    }

    pub(crate) fn retry_after(code: u16, seconds: u64) -> Self {
        Self::Reply(code, Some(seconds), b"{}".to_vec())
    }
}

#[derive(Default)]
struct Inner {
    answers: VecDeque<Answer>,
    requests: Vec<String>,
    bodies: Vec<Vec<u8>>,
    now: usize,
    most: usize,
}

/// A scripted API server; clones share one script.
#[derive(Clone, Default)]
pub(crate) struct Script {
    inner: Arc<Mutex<Inner>>,
    delay: Duration,
}

impl Script {
    pub(crate) fn new(answers: Vec<Answer>) -> Self {
        Self::slow(Duration::ZERO, answers)
    }

    pub(crate) fn slow(delay: Duration, answers: Vec<Answer>) -> Self {
        let script = Self { delay, ..Self::default() };
        script.inner.lock().answers = answers.into();
        script
    }

    /// Adds an answer.
    pub(crate) fn push(&self, answer: Answer) {
        self.inner.lock().answers.push_back(answer);
    }

    /// `METHOD path` of each request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.inner.lock().requests.clone()
    }

    /// Bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.inner.lock().bodies.clone()
    }

    /// Most requests under way at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.inner.lock().most
    }

    /// A client that talks to this server; requests beyond the script hang.
    pub(crate) fn client(&self) -> kube::Client {
        let script = self.clone();
        let service = tower::service_fn(move |request| script.clone().answer(request));
        kube::Client::new(service, "default")
    }

    async fn answer(
        self,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Full<bytes::Bytes>>, tower::BoxError> {
        let line = format!("{} {}", request.method(), request.uri());
        let body = request.into_body().collect().await?.to_bytes().to_vec();
        let answer = {
            let mut inner = self.inner.lock();
            inner.requests.push(line);
            inner.bodies.push(body);
            inner.now += 1;
            inner.most = inner.most.max(inner.now);
            inner.answers.pop_front()
        };
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.inner.lock().now -= 1;
        match answer {
            Some(Answer::Reply(code, retry_after, body)) => {
                let mut response = Response::builder().status(StatusCode::from_u16(code)?);
                if let Some(seconds) = retry_after {
                    response = response.header("retry-after", seconds);
                }
                Ok(response.body(Full::from(body))?)
            }
            Some(Answer::Broken) => Err("connection reset".into()),
            None => {
                let never: Infallible = std::future::pending().await;
                match never {}
            }
        }
    }
}
