//! The fault hook: what a test may do to requests and to watch events on their way.
//!
//! The server asks the hook before it answers a request and before it delivers an event; the hook decides, with its own
//! seeded randomness. Nothing here is random by itself.

use crate::store::log::Change;

/// A request about to be answered.
#[derive(Debug, Clone, Copy)]
pub struct RequestInfo<'a> {
    /// Number of the request since the server started.
    pub seq: u64,
    /// Who sends it.
    pub identity: &'a str,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'a str,
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural name of the resource.
    pub resource: &'a str,
    /// Empty for cluster-scoped resources and all-namespace requests.
    pub namespace: &'a str,
    /// Empty for collections and creates.
    pub name: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Simulated wall time in Unix milliseconds.
    pub time_ms: i64,
}

impl RequestInfo<'_> {
    /// Whether the request changes anything.
    #[must_use]
    pub fn is_write(&self) -> bool {
        crate::request::is_write(self.verb)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// It is answered.
    #[default]
    None,
    /// It is answered after this many milliseconds; the state that counts is the one then.
    Delay(u64),
    /// It is refused with this HTTP code and, if given, a `Retry-After` in seconds. Nothing is applied.
    Reject(u16, Option<u32>),
    /// The connection breaks before the server sees it. Nothing is applied.
    DropBefore,
    /// It is applied, then the connection breaks: the client cannot know.
    DropAfter,
    /// As [`Fault::DropAfter`], but the client learns of the broken connection only this many milliseconds later.
    HangAfter(u64),
    /// A list that permits it (a resourceVersion is given) shows the state of this many resourceVersions ago.
    Stale(u64),
}

/// An event about to be delivered to one watch.
#[derive(Debug, Clone, Copy)]
pub struct WatchInfo<'a> {
    /// Which watch, numbered since the server started.
    pub watch: u64,
    /// Who watches.
    pub identity: &'a str,
    /// API group of the watched resource, empty for the core group.
    pub group: &'a str,
    /// Plural name of the watched resource.
    pub resource: &'a str,
    /// Namespace of the object, empty if cluster-scoped.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// What happened, as this watch sees it.
    pub change: Change,
    /// resourceVersion of the object in the event.
    pub rv: u64,
    /// Part of the state that a watch begins with, not news.
    pub initial: bool,
    /// Simulated wall time in Unix milliseconds.
    pub time_ms: i64,
}

/// What happens to an event on its way to one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchFault {
    /// It arrives.
    #[default]
    Deliver,
    /// It is lost without a trace.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It, and all that follows on this watch, arrives this many milliseconds later.
    Delay(u64),
    /// It arrives after the event that follows it.
    Swap,
    /// The watch ends with an ERROR event 410 instead.
    Gone410,
    /// The watch ends, without an error, before the event.
    Cut,
    /// The connection of the watch breaks in the middle of the event's line.
    CutInside,
}

/// Decides about requests and events. Implementations are seeded, so that a run can be repeated.
pub trait Faults: Send {
    /// Called for each request for a resource before it is answered.
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        let _ = request;
        Fault::None
    }

    /// Called for each event before it goes to one watch.
    fn on_watch_event(&mut self, event: &WatchInfo<'_>) -> WatchFault {
        let _ = event;
        WatchFault::Deliver
    }
}

/// What a client sees of a broken connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection lost")]
pub struct ConnectionLost;
