//! The listing half of a reader: pages of 500, newest state, deletions of what is missing.

use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::kind::{Kind, Need};
use super::lines::Change;
use super::{Batch, Closed, Feed, Reader};
use crate::backoff;
use crate::decode::text::Text;

/// Objects a page.
const PAGE: usize = 500;
/// Longest wait for one page.
const PATIENCE: Duration = Duration::from_secs(60);
/// A list older than what was already seen is believed after this many attempts: the store was rolled back.
const BELIEVE_ROLLBACK: u32 = 3;

/// Why a list could not be completed.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error("the server does not know this kind; are its CRDs installed?")]
    UnknownKind,
    #[error("the list expired between two pages")]
    Expired,
    #[error("the server answered {0}")]
    Refused(StatusCode),
    #[error("{0}")]
    Broken(String),
    #[error("the list is older (version {got}) than what was seen before (version {seen})")]
    Older { got: u64, seen: u64 },
    #[error("the session loop has ended")]
    Closed,
}

impl From<Closed> for ListError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    metadata: PageMeta<'a>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta<'a> {
    #[serde(borrow)]
    resource_version: Text<'a>,
    #[serde(borrow, rename = "continue")]
    next: Text<'a>,
}

impl<K: Kind> Reader<K> {
    /// Lists until a list is complete.
    pub(super) async fn list(&mut self) -> Result<(), Closed> {
        let mut pauses = backoff::reads(self.seed);
        let mut older = 0;
        let mut told = String::new();
        loop {
            self.shared.metrics.relist(self.kind.name());
            let error = match self.list_once().await {
                Ok(()) => return self.tell_readable(true).await,
                Err(ListError::UnknownKind) if self.kind.need() == Need::WhereKnown => {
                    return self.know_none().await;
                }
                Err(ListError::Closed) => return Err(Closed),
                Err(error) => error,
            };
            if error.to_string() != told {
                tracing::warn!(kind = self.kind.name(), %error, "could not list; trying again");
                told = error.to_string();
            }
            if self.kind.need() == Need::WhereAllowed
                && matches!(
                    error,
                    ListError::Refused(StatusCode::FORBIDDEN) | ListError::UnknownKind
                )
            {
                if matches!(error, ListError::Refused(_)) {
                    self.tell_readable(false).await?;
                }
                // Nobody waits for it.
                self.tell(Feed::Synced(self.kind.name())).await?;
            }
            if matches!(error, ListError::Older { .. }) {
                if self.kind.need() != Need::WhereAllowed {
                    self.tell(Feed::Unsynced(self.kind.name())).await?;
                }
                older += 1;
                if older >= BELIEVE_ROLLBACK {
                    let kind = self.kind.name();
                    tracing::error!(kind, "the API server went back in time; starting afresh");
                    self.store.forget_versions();
                    self.passed = 0;
                }
            }
            tokio::time::sleep(pauses.next().unwrap_or(PATIENCE)).await;
        }
    }

    async fn tell_readable(&mut self, readable: bool) -> Result<(), Closed> {
        if std::mem::replace(&mut self.readable, readable) == readable {
            return Ok(());
        }
        let events = self.kind.readable(readable).into_iter().collect();
        self.deliver(Batch { events, ..Batch::default() }).await
    }

    /// The server does not have the kind: whatever was known of it is gone.
    async fn know_none(&mut self) -> Result<(), Closed> {
        self.store.begin_list();
        let gone = self.store.end_list(0);
        let events = gone.iter().map(|id| self.kind.gone(id)).collect();
        self.passed = 0;
        self.resume.clear();
        self.unknown = true;
        self.deliver(Batch { events, ..Batch::default() }).await
    }

    async fn list_once(&mut self) -> Result<(), ListError> {
        let mut next = String::new();
        let mut first: Option<(u64, String)> = None;
        loop {
            let body = self.page(&next).await?;
            let page: Page<'_> =
                serde_json::from_slice(&body).map_err(|e| ListError::Broken(e.to_string()))?;
            if first.is_none() {
                let text = page.metadata.resource_version.as_str().to_owned();
                let version = text.parse().unwrap_or(0);
                if version != 0 && version < self.passed {
                    return Err(ListError::Older { got: version, seen: self.passed });
                }
                self.store.begin_list();
                first = Some((version, text));
            }
            let mut batch = Batch::default();
            for item in page.items.unwrap_or_default() {
                self.apply(Change::Set, item.get().as_bytes(), true, &mut batch);
            }
            let more = page.metadata.next.as_str().to_owned();
            self.deliver(batch).await?;
            if more.is_empty() {
                break;
            }
            next = more;
        }
        let (version, text) = first.unwrap_or_default();
        let gone = self.store.end_list(version);
        let events = gone.iter().map(|id| self.kind.gone(id)).collect();
        self.deliver(Batch { events, ..Batch::default() }).await?;
        self.passed = self.passed.max(version);
        self.resume = text;
        self.unknown = false;
        tracing::debug!(kind = self.kind.name(), objects = self.store.len(), "listed");
        Ok(())
    }

    async fn page(&self, next: &str) -> Result<bytes::Bytes, ListError> {
        let mut uri = format!("{}?limit={PAGE}", self.kind.path());
        if !next.is_empty() {
            uri.push_str("&continue=");
            uri.push_str(&escaped(next));
        }
        let request = Request::get(uri)
            .header(header::ACCEPT, "application/json")
            .body(kube::client::Body::empty())
            .map_err(|error| ListError::Broken(error.to_string()))?;
        let exchange = async {
            let response = self.shared.client.send(request).await?;
            let status = response.status();
            Ok::<_, kube::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| ListError::Broken(format!("no answer within {PATIENCE:?}")))?
            .map_err(|error| ListError::Broken(error.to_string()))?;
        match status {
            StatusCode::GONE => Err(ListError::Expired),
            StatusCode::NOT_FOUND => Err(ListError::UnknownKind),
            status if !status.is_success() => Err(ListError::Refused(status)),
            _ => Ok(body),
        }
    }
}

/// Continue tokens are base64: `+`, `/` and `=` must be escaped in a query.
fn escaped(token: &str) -> String {
    let mut escaped = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}
