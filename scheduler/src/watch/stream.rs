//! The watching half of a reader: streams changes from the version reached, and resumes without a new list
//! whenever the server still knows that version.

use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::Instant;

use super::kind::Kind;
use super::lines::{self, Change, Lines};
use super::{Batch, End, Reader};
use crate::backoff;
use crate::decode::text::Text;

/// After this long the server ends a watch by itself.
const WATCH: Duration = Duration::from_secs(240);
/// A stream that is silent for this long, bookmarks included, is taken for dead.
const SILENCE: Duration = Duration::from_secs(270);
/// A watch that ends sooner than this counts as a failure: the next one waits.
const HEALTHY: Duration = Duration::from_secs(1);

/// Failures in a row, without any progress, after which the version is given up and a new list taken: the server
/// may have been replaced by one with an older store, or the kind removed.
const HOPELESS: u32 = 5;

/// How one stream ended.
enum Ended {
    /// Resume from the version reached.
    Resume,
    /// Resume after a pause.
    Failed(String),
    /// Ends the watch.
    Watch(End),
}

impl<K: Kind> Reader<K> {
    /// Watches until a new list is needed.
    pub(super) async fn watch(&mut self) -> End {
        let mut pauses = backoff::reads(self.seed);
        let mut failures = 0;
        loop {
            let (started, passed) = (Instant::now(), self.passed);
            let ended = self.stream().await;
            let healthy = started.elapsed() >= HEALTHY;
            if healthy || self.passed > passed {
                pauses = backoff::reads(self.seed);
                failures = 0;
            }
            let why = match ended {
                Ended::Watch(end) => return end,
                Ended::Resume if healthy => continue,
                Ended::Resume => "the watch ended at once".to_owned(),
                Ended::Failed(why) => why,
            };
            failures += 1;
            tracing::debug!(kind = self.kind.name(), %why, failures, "watch interrupted; resuming");
            if failures >= HOPELESS {
                return End::Expired;
            }
            let pause = pauses.next().unwrap_or(HEALTHY);
            tokio::select! {
                biased;
                () = self.shared.feed.closed() => return End::Closed,
                () = tokio::time::sleep(pause) => {}
            }
            if Instant::now() >= self.audit_at {
                return End::Audit;
            }
        }
    }

    async fn stream(&mut self) -> Ended {
        let request = match self.watch_request() {
            Ok(request) => request,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let client = self.shared.client.clone();
        let sent = tokio::select! {
            biased;
            () = self.shared.feed.closed() => return Ended::Watch(End::Closed),
            sent = tokio::time::timeout(SILENCE, client.send(request)) => sent,
            () = tokio::time::sleep_until(self.audit_at) => return Ended::Watch(End::Audit),
        };
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Ended::Failed(error.to_string()),
            Err(_) => return Ended::Failed("no answer".to_owned()),
        };
        match response.status() {
            StatusCode::GONE => return Ended::Watch(End::Expired),
            status if !status.is_success() => return Ended::Failed(status.to_string()),
            _ => {}
        }
        let mut body = response.into_body();
        let mut lines = Lines::default();
        loop {
            let frame = tokio::select! {
                biased;
                () = self.shared.feed.closed() => return Ended::Watch(End::Closed),
                frame = tokio::time::timeout(SILENCE, body.frame()) => frame,
                () = tokio::time::sleep_until(self.audit_at) => {
                    return Ended::Watch(End::Audit);
                }
            };
            let chunk = match frame {
                Err(_) => return Ended::Failed("silent for too long".to_owned()),
                Ok(None) => return Ended::Resume,
                Ok(Some(Err(error))) => return Ended::Failed(error.to_string()),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(chunk) => chunk,
                    Err(_trailers) => continue,
                },
            };
            lines.push(&chunk);
            let mut batch = Batch::default();
            let mut ended = None;
            while ended.is_none()
                && let Some(line) = lines.next()
            {
                ended = self.line(line, &mut batch);
            }
            if self.deliver(batch).await.is_err() {
                return Ended::Watch(End::Closed);
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Takes in one line; `Some` when it ends the stream.
    fn line(&mut self, line: &[u8], batch: &mut Batch) -> Option<Ended> {
        match lines::parse(line) {
            Some((Change::Error, status)) => Some(stream_error(status)),
            Some((Change::Bookmark, object)) => {
                self.advance(bookmark(object));
                None
            }
            Some((change, object)) => {
                self.apply(change, object, false, batch);
                None
            }
            None => Some(Ended::Failed("the stream is no watch stream".to_owned())),
        }
    }

    fn watch_request(&self) -> http::Result<Request<kube::client::Body>> {
        let seconds = self.jittered(WATCH).as_secs();
        let uri = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={seconds}",
            self.kind.path(),
            self.resume
        );
        Request::get(uri)
            .header(header::ACCEPT, "application/json")
            // Servers from 1.37 on compress each event by itself.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(kube::client::Body::empty())
    }
}

/// `ERROR` carries a Status; 410 means that the version is too old.
fn stream_error(status: &[u8]) -> Ended {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        code: u16,
        reason: String,
        message: String,
    }
    let status: Status = serde_json::from_slice(status).unwrap_or_default();
    if status.code == 410 || status.reason == "Expired" || status.reason == "Gone" {
        return Ended::Watch(End::Expired);
    }
    Ended::Failed(format!("{} {}", status.code, status.message))
}

fn bookmark(object: &[u8]) -> u64 {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Meta<'a>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow)]
        resource_version: Text<'a>,
    }
    let object: Object<'_> = serde_json::from_slice(object).unwrap_or_default();
    object.metadata.resource_version.as_str().parse().unwrap_or(0)
}
