//! Watches: the state they begin with, the events they get, bookmarks, and how they end.
//!
//! A watch pulls from its resource's log with a cursor of its own. It never holds the server back: one that is slower
//! than the kept window gets 410, as with kube-apiserver. Faults apply to each event on its way to each watch.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::time::Sleep;

use super::render::{self, Shape};
use crate::faults::{ConnectionLost, WatchFault, WatchInfo};
use crate::request::{Query, ResourcePath};
use crate::resource::Route;
use crate::selector::Selector;
use crate::server::Inner;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::log::{Change, LogEvent};
use crate::store::object::{Stored, metadata, to_bytes};

/// Bytes after which a frame is handed on.
const FRAME: usize = 64 * 1024;
/// How long a watch lasts when the client does not say.
const DEFAULT_TIMEOUT_S: u64 = 1800;

/// What a watch sees.
#[derive(Debug)]
struct Scope {
    /// `namespace/`, or empty for all.
    prefix: String,
    selector: Selector,
}

impl Scope {
    fn has(&self, key: &str, object: &Value) -> bool {
        key.starts_with(&self.prefix) && self.selector.matches(object)
    }

    /// An event as this watch sees it: leaving the selection is a deletion, entering it an addition.
    fn see(&self, event: &LogEvent) -> Option<Outgoing> {
        let now = event.change != Change::Deleted && self.has(&event.key, &event.object.value);
        let before = event.previous.as_ref().is_some_and(|p| self.has(&event.key, &p.value));
        let (change, object) = match (before, now) {
            (false, false) => return None,
            (false, true) => (Change::Added, Arc::clone(&event.object)),
            (true, true) => (Change::Modified, Arc::clone(&event.object)),
            (true, false) if event.change == Change::Deleted => {
                (Change::Deleted, Arc::clone(&event.object))
            }
            (true, false) => {
                // The last version that was in the selection, at the time it left.
                let mut last = event.previous.as_ref().map(|p| Value::clone(&p.value))?;
                let rv = event.rv.to_string();
                metadata(&mut last).insert("resourceVersion".to_owned(), rv.into());
                (Change::Deleted, Arc::new(Stored::new(last, event.rv)))
            }
        };
        Some(Outgoing { change, object, initial: false })
    }
}

#[derive(Debug, Clone)]
struct Outgoing {
    change: Change,
    object: Arc<Stored>,
    initial: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    No,
    Quietly,
    Broken,
}

/// A watch in progress, as the body of its response.
#[derive(Debug)]
pub(crate) struct WatchBody {
    inner: Arc<Inner>,
    id: u64,
    identity: Arc<str>,
    /// Which life of the client this watch belongs to: a crash ends it.
    life: u64,
    route: Route,
    shape: Shape,
    scope: Scope,
    cursor: u64,
    queue: VecDeque<Outgoing>,
    /// resourceVersion for the bookmark that closes the initial events, until it is sent.
    initial_end: Option<u64>,
    bookmarks: bool,
    stall: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
    bookmark_timer: Option<Pin<Box<Sleep>>>,
    /// Set when the event at the head of the queue has been judged already.
    judged: bool,
    end: End,
}

/// Who starts a watch.
pub(crate) struct Watcher {
    pub(crate) id: u64,
    pub(crate) identity: Arc<str>,
    pub(crate) life: u64,
}

impl WatchBody {
    /// Starts a watch. `Err` is answered as an HTTP error; a resourceVersion that is too old comes as an ERROR event
    /// in the stream unless the server is set to answer 410.
    pub(crate) fn start(
        inner: &Arc<Inner>,
        store: &Store,
        watcher: Watcher,
        route: &Route,
        path: &ResourcePath,
        query: &Query,
        shape: Shape,
    ) -> Result<Self, Refusal> {
        let mut fields = query.field_selector.clone();
        if !path.name.is_empty() {
            fields = format!("metadata.name={}", path.name);
        }
        let prefix = match path.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let selector = Selector::parse(&route.ty.plural, &query.label_selector, &fields)?;
        let scope = Scope { prefix, selector };
        let asked = query.revision()?;
        let streams_list = query.send_initial_events == Some(true);
        if streams_list && asked.is_some_and(|rv| rv > store.rv) {
            return Err(Refusal::too_large_resource_version(asked.unwrap_or(0), store.rv));
        }
        let with_state =
            streams_list || (asked.unwrap_or(0) == 0 && query.send_initial_events != Some(false));
        let mut queue = VecDeque::new();
        let mut cursor = asked.filter(|rv| *rv > 0).unwrap_or(store.rv);
        if with_state {
            cursor = store.rv;
            queue = store
                .range(route.table, &scope.prefix)
                .filter(|(_, o)| scope.selector.matches(&o.value))
                .map(|(_, object)| Outgoing {
                    change: Change::Added,
                    object: Arc::clone(object),
                    initial: true,
                })
                .collect();
        }
        let seconds = query.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_S);
        let mut body = Self {
            id: watcher.id,
            identity: watcher.identity,
            life: watcher.life,
            route: route.clone(),
            shape,
            scope,
            cursor,
            queue,
            initial_end: (streams_list && query.bookmarks).then_some(cursor),
            bookmarks: query.bookmarks,
            stall: None,
            deadline: Box::pin(tokio::time::sleep(Duration::from_secs(seconds))),
            bookmark_timer: None,
            judged: false,
            end: End::No,
            inner: Arc::clone(inner),
        };
        body.restart_bookmarks();
        Ok(body)
    }

    fn restart_bookmarks(&mut self) {
        let every = self.inner.bookmark_interval;
        self.bookmark_timer = self.bookmarks.then(|| Box::pin(tokio::time::sleep(every)));
    }

    /// Whether `cursor` lies before what `store` still has.
    pub(crate) fn is_too_old(store: &Store, route: &Route, query: &Query) -> bool {
        let asked = query.revision().ok().flatten().filter(|rv| *rv > 0);
        query.send_initial_events != Some(true)
            && asked.is_some_and(|rv| store.tables[route.table].log.check(rv).is_err())
    }

    /// The refusal for a resourceVersion that is too old.
    pub(crate) fn too_old(rv: u64, oldest: u64) -> Refusal {
        Refusal::expired(format!("too old resource version: {rv} ({oldest})"))
    }

    /// Takes new events out of the log, or arranges to be woken. False if the watch ended.
    fn fetch(&mut self, task: &TaskContext<'_>, out: &mut BytesMut) -> bool {
        let mut state = self.inner.state.lock();
        if state.life(&self.identity) != Some(self.life) {
            self.end = End::Broken;
            return false;
        }
        let store = &mut state.store;
        let table = &store.tables[self.route.table];
        let too_old = match table.log.after(self.cursor) {
            Ok(events) => {
                self.queue.extend(events.filter_map(|e| self.scope.see(e)));
                None
            }
            Err(compacted) => Some(compacted.oldest),
        };
        if let Some(oldest) = too_old {
            drop(state);
            let status = Self::too_old(self.cursor, oldest).to_value();
            self.finish_with_error(out, &status);
            return false;
        }
        if !table.served {
            self.end = End::Quietly;
            return false;
        }
        self.cursor = self.cursor.max(store.rv);
        if self.queue.is_empty() {
            store.wait(self.route.table, self.id, task.waker().clone());
        }
        true
    }

    fn finish_with_error(&mut self, out: &mut BytesMut, status: &Value) {
        render::watch_line(out, "ERROR", &to_bytes(status));
        self.queue.clear();
        self.initial_end = None;
        self.end = End::Quietly;
    }

    fn judge(&self, event: &Outgoing) -> WatchFault {
        if !self.inner.has_faults() {
            return WatchFault::Deliver;
        }
        let info = WatchInfo {
            watch: self.id,
            identity: &self.identity,
            group: &self.route.ty.group,
            resource: &self.route.ty.plural,
            namespace: event.object.namespace(),
            name: event.object.name(),
            change: event.change,
            rv: event.object.rv,
            initial: event.initial,
            time_ms: self.inner.clock.now_ms(),
        };
        self.inner.with_faults(|f| f.on_watch_event(&info)).unwrap_or_default()
    }

    /// Moves queued events into `out` until a frame is full, a fault stops the watch, or nothing is left.
    fn drain(&mut self, out: &mut BytesMut) {
        while out.len() < FRAME {
            let Some(event) = self.queue.pop_front() else { break };
            let fault = if self.judged { WatchFault::Deliver } else { self.judge(&event) };
            self.judged = false;
            match fault {
                WatchFault::Deliver => self.write(out, &event),
                WatchFault::Drop => {}
                WatchFault::Duplicate => {
                    self.write(out, &event);
                    self.write(out, &event);
                }
                WatchFault::Swap => {
                    if let Some(next) = self.queue.pop_front() {
                        self.write(out, &next);
                    }
                    self.write(out, &event);
                }
                WatchFault::Delay(ms) => {
                    self.queue.push_front(event);
                    self.judged = true;
                    let pause = tokio::time::sleep(Duration::from_millis(ms));
                    self.stall = Some(Box::pin(pause));
                    return;
                }
                WatchFault::Gone410 => {
                    let status = Self::too_old(event.object.rv, self.cursor).to_value();
                    self.finish_with_error(out, &status);
                    return;
                }
                WatchFault::Cut => {
                    self.end = End::Quietly;
                    return;
                }
                WatchFault::CutInside => {
                    let mut line = BytesMut::new();
                    self.write(&mut line, &event);
                    out.extend_from_slice(&line.split_to(line.len() / 2));
                    self.end = End::Broken;
                    return;
                }
            }
        }
        if self.queue.is_empty()
            && self.end == End::No
            && let Some(rv) = self.initial_end.take()
        {
            self.bookmark(out, rv, true);
        }
    }

    fn write(&self, out: &mut BytesMut, event: &Outgoing) {
        let now_ms = match self.shape {
            Shape::Table => self.inner.clock.now_ms(),
            _ => 0,
        };
        let object = render::object(&self.route, self.shape, &event.object, now_ms);
        render::watch_line(out, event.change.word(), &object);
    }

    fn bookmark(&self, out: &mut BytesMut, rv: u64, ends_initial: bool) {
        let mut metadata = json!({ "resourceVersion": rv.to_string(), "creationTimestamp": null });
        if ends_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version) = match self.shape {
            Shape::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            _ => (self.route.ty.kind.as_str(), self.route.api_version()),
        };
        let object = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        render::watch_line(out, "BOOKMARK", &to_bytes(&object));
    }

    /// The next piece of the stream.
    pub(crate) fn poll(
        &mut self,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectionLost>>> {
        let mut out = BytesMut::new();
        while self.end == End::No {
            if let Some(stall) = &mut self.stall {
                if stall.as_mut().poll(task).is_pending() {
                    break;
                }
                self.stall = None;
            }
            if !self.queue.is_empty() || self.initial_end.is_some() {
                self.drain(&mut out);
                if out.len() >= FRAME || self.end != End::No {
                    break;
                }
                if self.stall.is_some() || !self.queue.is_empty() {
                    continue;
                }
            }
            if !self.fetch(task, &mut out) || self.queue.is_empty() {
                break;
            }
        }
        if !out.is_empty() {
            return Poll::Ready(Some(Ok(out.freeze())));
        }
        match self.end {
            End::Quietly => return Poll::Ready(None),
            End::Broken => {
                self.end = End::Quietly;
                return Poll::Ready(Some(Err(ConnectionLost)));
            }
            End::No => {}
        }
        if self.deadline.as_mut().poll(task).is_ready() {
            self.end = End::Quietly;
            return Poll::Ready(None);
        }
        if self.stall.is_none()
            && let Some(timer) = &mut self.bookmark_timer
            && timer.as_mut().poll(task).is_ready()
        {
            self.restart_bookmarks();
            if let Some(timer) = &mut self.bookmark_timer {
                // Registers the fresh timer with the task.
                let _ = timer.as_mut().poll(task);
            }
            self.bookmark(&mut out, self.cursor, false);
            return Poll::Ready(Some(Ok(out.freeze())));
        }
        Poll::Pending
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.inner.state.lock().store.forget(self.route.table, self.id);
    }
}
