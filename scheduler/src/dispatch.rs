//! Hands the decisions of a session to those who carry them out, and remembers the little that writing them
//! needs: which pods carry a `PodScheduled=False` condition already, which keys a queue has stored.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tephra_api::clock::Clock;
use tephra_api::{keys, reasons};
use tephra_core::decision::{Decision, GangBind, Notice, NoticeKind, PodRef};
use tephra_core::event::{Amounts, Event, ObjectKey};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::bind::Bind;
use crate::decode::DecodeError;
use crate::evict::Evict;
use crate::metrics::Metrics;
use crate::status::body::rfc3339;
use crate::status::{Message, StatusWrite};

/// Unreadable objects remembered, so that each is logged once.
const REMEMBERED: usize = 1024;

/// Ways to everyone who writes.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) binds: UnboundedSender<Vec<Bind>>,
    pub(crate) evictions: UnboundedSender<Evict>,
    pub(crate) statuses: UnboundedSender<Message>,
    pub(crate) notices: UnboundedSender<Notice>,
}

/// Turns decisions into work.
pub(crate) struct Dispatcher {
    outbox: Outbox,
    clock: Arc<dyn Clock>,
    component: String,
    metrics: Arc<Metrics>,
    /// Uids of pending pods with a condition `PodScheduled=False`.
    marked: FxHashSet<String>,
    /// Keys of `status.allocated` as stored, by queue.
    stored: FxHashMap<String, Vec<String>>,
    rejected: FxHashSet<String>,
    /// Binds by pod uid, until the watch says that the pod is bound.
    binding: FxHashMap<String, Binding>,
    /// Binds that are not settled, by PodGroup.
    unsettled: FxHashMap<ObjectKey, usize>,
}

/// A bind that was handed to the binder.
struct Binding {
    node: Arc<str>,
    group: ObjectKey,
    /// The server has said that the pod is bound.
    bound: bool,
}

impl Dispatcher {
    pub(crate) fn new(
        outbox: Outbox,
        clock: Arc<dyn Clock>,
        component: String,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            outbox,
            clock,
            component,
            metrics,
            marked: FxHashSet::default(),
            stored: FxHashMap::default(),
            rejected: FxHashSet::default(),
            binding: FxHashMap::default(),
            unsettled: FxHashMap::default(),
        }
    }

    /// Takes note of an event before the core sees it, and mends what is known to be out of date: a pod that the
    /// server said is bound stays bound, although events from before that may still be on their way.
    pub(crate) fn observe(&mut self, event: &mut Event) {
        match event {
            Event::BindOk(uid) => {
                if let Some(binding) = self.binding.get_mut(uid).filter(|binding| !binding.bound) {
                    binding.bound = true;
                    let group = binding.group.clone();
                    self.settled(group);
                }
            }
            Event::BindFailed { uid, .. } => self.unbind(uid),
            Event::Pod(pod) if pod.ours => {
                if pod.node.is_some() {
                    self.unbind(&pod.uid);
                } else if let Some(binding) = self.binding.get(&pod.uid).filter(|it| it.bound) {
                    pod.node = Some(binding.node.to_string());
                }
                if pod.node.is_none() && pod.scheduled_condition.is_some() {
                    self.marked.insert(pod.uid.clone());
                } else {
                    self.marked.remove(&pod.uid);
                }
            }
            Event::PodDeleted(uid) => {
                self.unbind(uid);
                if self.marked.remove(uid) {
                    self.send(Message::Forget(uid.clone()));
                }
            }
            Event::Queue(queue) => {
                self.stored.insert(queue.name.clone(), names(&queue.allocated));
            }
            Event::QueueDeleted(name) => {
                self.stored.remove(name);
            }
            _ => {}
        }
    }

    /// Carries out one decision. Nothing waits here: the writers queue.
    pub(crate) fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Bind(gang) => self.bind(gang),
            Decision::Evict { pod, reason } => self.evict(pod, reason),
            Decision::PodGroupStatus { group, uid, status } => {
                self.send(Message::Write(StatusWrite::PodGroup { group, uid, status }));
            }
            Decision::PredictedStart { group, uid, start_ms } => {
                self.annotate(group, uid, keys::PREDICTED_START, start_ms.map(rfc3339));
            }
            Decision::Suspend { group, uid, intent } => {
                tracing::info!(%group, by = %intent.by, id = %intent.id, "asking a gang to make room");
                self.metrics.suspension("asked");
                self.annotate(group, uid, keys::SUSPEND, Some(intent.text()));
            }
            Decision::Withdraw { group, uid } => {
                tracing::info!(%group, "a gang need not make room any more");
                self.metrics.suspension("withdrawn");
                self.annotate(group, uid, keys::SUSPEND, None);
            }
            Decision::Resume { group, uid, id } => {
                tracing::info!(%group, %id, "room is held for a suspended gang");
                self.metrics.suspension("resumed");
                self.annotate(group, uid, keys::RESUME, Some(id));
            }
            Decision::QueueAllocated { queue, allocated } => self.queue(queue, allocated),
            Decision::QueueFairness { queue, text } => {
                self.send(Message::Write(StatusWrite::QueueFairness { queue, text }));
            }
            Decision::PodCondition { pod, reason, message, nominated } => {
                let new = self.marked.insert(pod.uid.to_string());
                let since = new.then(|| rfc3339(self.clock.now_ms()));
                let nominated = nominated.map(|node| node.to_string());
                let message = message.to_string();
                let write = StatusWrite::Pod { pod, reason, message, nominated, since };
                self.send(Message::Write(write));
            }
            Decision::Notice(notice) => self.notice(notice),
        }
    }

    /// Logs an object that could not be read, once, and tells its owner with an event.
    pub(crate) fn reject(&mut self, error: &DecodeError) {
        let text = error.to_string();
        if self.rejected.len() >= REMEMBERED {
            self.rejected.clear();
        }
        if !self.rejected.insert(text.clone()) {
            return;
        }
        tracing::warn!(error = %text, "an object is skipped until it is mended");
        let kind = match error.kind {
            "Pod" => NoticeKind::Pod,
            "PodGroup" => NoticeKind::PodGroup,
            "Queue" => NoticeKind::Queue,
            "Node" => NoticeKind::Node,
            "HyperNode" => NoticeKind::HyperNode,
            _ => return,
        };
        if error.name.is_empty() {
            return;
        }
        self.notice(Notice {
            kind,
            object: ObjectKey::new(error.namespace.clone(), error.name.clone()),
            uid: error.uid.clone(),
            warning: true,
            reason: reasons::INVALID_OBJECT,
            message: format!("{}: {}, got {}", error.path, error.problem, error.value),
        });
    }

    fn bind(&mut self, gang: GangBind) {
        tracing::debug!(group = %gang.group, pods = gang.binds.len(), "binding");
        *self.unsettled.entry(gang.group.clone()).or_insert(0) += gang.binds.len();
        self.send(Message::Binding(gang.group.clone(), true));
        self.metrics.placed(&gang, self.clock.now_ms());
        let (mut binds, decided) = (Vec::with_capacity(gang.binds.len()), Instant::now());
        for ((pod, node), created_ms) in gang.binds.into_iter().zip(gang.created_ms) {
            if self.marked.remove(&*pod.uid) {
                self.send(Message::Forget(pod.uid.to_string()));
            }
            let (group, kept) = (gang.group.clone(), node.clone());
            let binding = Binding { node: kept, group, bound: false };
            let before = self.binding.insert(pod.uid.to_string(), binding);
            if let Some(before) = before.filter(|before| !before.bound) {
                self.settled(before.group);
            }
            binds.push(Bind { pod, node, created_ms, decided });
        }
        self.closed(self.outbox.binds.send(binds).is_err());
    }

    /// The bind of this pod is over, or its outcome has become visible.
    fn unbind(&mut self, uid: &str) {
        if let Some(binding) = self.binding.remove(uid).filter(|binding| !binding.bound) {
            self.settled(binding.group);
        }
    }

    /// One bind less of this PodGroup is open.
    fn settled(&mut self, group: ObjectKey) {
        if let Some(open) = self.unsettled.get_mut(&group) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.unsettled.remove(&group);
                self.send(Message::Binding(group, false));
            }
        }
    }

    fn annotate(&self, group: ObjectKey, uid: String, key: &'static str, text: Option<String>) {
        self.send(Message::Write(StatusWrite::Annotation { group, uid, key, text }));
    }

    fn evict(&self, pod: PodRef, reason: &'static str) {
        self.metrics.evicted(reason);
        let now = rfc3339(self.clock.now_ms());
        tracing::debug!(namespace = %pod.namespace, pod = %pod.name, reason, "evicting");
        let evict = Evict { pod, now, component: self.component.clone() };
        self.closed(self.outbox.evictions.send(evict).is_err());
    }

    fn queue(&mut self, queue: String, allocated: Amounts) {
        let written = names(&allocated);
        let before = self.stored.insert(queue.clone(), written.clone()).unwrap_or_default();
        let stale = before.into_iter().filter(|name| !written.contains(name)).collect();
        self.send(Message::Write(StatusWrite::Queue { queue, allocated, stale }));
    }

    fn notice(&self, notice: Notice) {
        self.closed(self.outbox.notices.send(notice).is_err());
    }

    fn send(&self, message: Message) {
        self.closed(self.outbox.statuses.send(message).is_err());
    }

    /// A writer has ended: the supervisor sees that, too, and ends the process.
    fn closed(&self, closed: bool) {
        if closed {
            tracing::error!("a writer has ended; its work is lost");
        }
    }
}

fn names(amounts: &Amounts) -> Vec<String> {
    amounts.iter().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests;
