//! Writes what a session says about PodGroups, queues and pods. Per object only the newest wish counts: while
//! a write is under way or waiting its turn, later ones replace it. A bounded number is under way at a time,
//! and an object never has two.

pub(crate) mod body;

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use rustc_hash::{FxHashMap, FxHashSet};
use tephra_core::decision::PodRef;
use tephra_core::event::{Amounts, ObjectKey, PodGroupStatus};
use tokio::sync::mpsc;

use crate::backoff;
use crate::write::{NoReply, Writer};

/// A status to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatusWrite {
    /// Complete status of a PodGroup, on its main object (C1).
    PodGroup { group: ObjectKey, uid: String, status: PodGroupStatus },
    /// `status.allocated` of a queue; `stale` are keys stored now that must go.
    Queue { queue: String, allocated: Amounts, stale: Vec<String> },
    /// Condition `PodScheduled=False`. `since` is set when the pod carries no such condition yet.
    Pod {
        pod: PodRef,
        reason: &'static str,
        message: String,
        nominated: Option<String>,
        since: Option<String>,
    },
}

/// The object of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    PodGroup(ObjectKey),
    Queue(String),
    Pod(String),
}

/// What the session loop tells the status writer.
#[derive(Debug)]
pub(crate) enum Message {
    /// Write this, unless something newer comes.
    Write(StatusWrite),
    /// The pod of this uid is about to be bound or gone: drop a waiting condition.
    Forget(String),
}

impl StatusWrite {
    fn target(&self) -> Target {
        match self {
            Self::PodGroup { group, .. } => Target::PodGroup(group.clone()),
            Self::Queue { queue, .. } => Target::Queue(queue.clone()),
            Self::Pod { pod, .. } => Target::Pod(pod.uid.to_string()),
        }
    }
}

/// Runs until the sending side is dropped and everything queued is written.
pub(crate) async fn run(mut inbox: mpsc::UnboundedReceiver<Message>, writer: Writer, limit: usize) {
    let mut wishes = Wishes::default();
    let mut flights = FuturesUnordered::new();
    let mut open = true;
    loop {
        while flights.len() < limit.max(1)
            && let Some(write) = wishes.next()
        {
            let writer = writer.clone();
            let attempt = wishes.attempts(&write.target());
            flights.push(async move { (send(&writer, &write, attempt).await, write) });
        }
        tokio::select! {
            biased;
            Some((sent, write)) = flights.next(), if !flights.is_empty() => {
                wishes.landed(write, sent);
            }
            message = inbox.recv(), if open => match message {
                Some(Message::Write(write)) => wishes.add(write),
                Some(Message::Forget(uid)) => wishes.forget(&Target::Pod(uid)),
                None => open = false,
            },
            else => break,
        }
    }
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// Written, or hopeless.
    Done,
    /// Worth another attempt with whatever is wished then.
    Again,
}

/// Newest wishes by object, in the order in which the objects were first wished for.
#[derive(Default)]
struct Wishes {
    waiting: FxHashMap<Target, StatusWrite>,
    order: VecDeque<Target>,
    under_way: FxHashSet<Target>,
    failures: FxHashMap<Target, u32>,
}

impl Wishes {
    fn add(&mut self, write: StatusWrite) {
        let target = write.target();
        if self.waiting.insert(target.clone(), write).is_none() && !self.under_way.contains(&target)
        {
            self.order.push_back(target);
        }
    }

    fn forget(&mut self, target: &Target) {
        self.waiting.remove(target);
    }

    fn next(&mut self) -> Option<StatusWrite> {
        loop {
            let target = self.order.pop_front()?;
            if let Some(write) = self.waiting.remove(&target) {
                self.under_way.insert(target);
                return Some(write);
            }
        }
    }

    fn attempts(&self, target: &Target) -> u32 {
        self.failures.get(target).copied().unwrap_or(0)
    }

    fn landed(&mut self, write: StatusWrite, sent: Sent) {
        let target = write.target();
        self.under_way.remove(&target);
        match sent {
            Sent::Done => {
                self.failures.remove(&target);
            }
            Sent::Again => {
                *self.failures.entry(target.clone()).or_insert(0) += 1;
                self.waiting.entry(target.clone()).or_insert(write);
            }
        }
        if self.waiting.contains_key(&target) {
            self.order.push_back(target);
        }
    }
}

/// One attempt; after a failure that may pass it waits before it returns, so that a retry is not too early.
async fn send(writer: &Writer, write: &StatusWrite, failures: u32) -> Sent {
    let (path, content_type, body) = body::request(write);
    let after = match writer.patch(&path, content_type, &body).await {
        Ok(reply) if reply.status.is_success() => return Sent::Done,
        Ok(reply) => match reply.status {
            StatusCode::NOT_FOUND => return Sent::Done,
            StatusCode::CONFLICT => Some(Duration::ZERO).filter(|_| failures == 0),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED => reply.retry_after,
            status if status.is_server_error() => reply.retry_after,
            status => {
                let message = reply.message();
                tracing::warn!(%path, %status, %message, "a status was refused");
                return Sent::Done;
            }
        },
        Err(NoReply::Fenced) => return Sent::Done,
        Err(NoReply::Impossible(why)) => {
            tracing::warn!(%path, %why, "a status cannot be written");
            return Sent::Done;
        }
        Err(NoReply::Unknown(_)) => None,
    };
    let pause =
        after.or_else(|| backoff::writes(backoff::seed(&path)).nth(failures.min(20) as usize));
    tokio::time::sleep(pause.unwrap_or(Duration::from_secs(10))).await;
    Sent::Again
}

#[cfg(test)]
mod tests;
