//! Writes what a session says about PodGroups, queues and pods. Per object only the newest wish counts: while
//! a write is under way or waiting its turn, later ones replace it. A bounded number is under way at a time,
//! and an object never has two.

pub(crate) mod body;
mod wishes;

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use tephra_core::decision::PodRef;
use tephra_core::event::{Amounts, ObjectKey, PodGroupStatus};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backoff;
use crate::write::{NoReply, Writer};
use wishes::Wishes;

/// A status to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatusWrite {
    /// Complete status of a PodGroup, on its main object (C1).
    PodGroup { group: ObjectKey, uid: String, status: PodGroupStatus },
    /// An annotation of a PodGroup; `None` removes it.
    Annotation { group: ObjectKey, uid: String, key: &'static str, text: Option<String> },
    /// `status.allocated` of a queue; `stale` are keys stored now that must go.
    Queue { queue: String, allocated: Amounts, stale: Vec<String> },
    /// Annotation `tephra.sh/fairness` of a queue.
    QueueFairness { queue: String, text: String },
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
    Annotation(ObjectKey, &'static str),
    Queue(String),
    QueueFairness(String),
    Pod(String),
}

/// What the session loop tells the status writer.
#[derive(Debug)]
pub(crate) enum Message {
    /// Write this, unless something newer comes.
    Write(StatusWrite),
    /// The pod of this uid is about to be bound or gone: drop a waiting condition.
    Forget(String),
    /// Pods of this PodGroup are being bound (true), or all of them are settled.
    Binding(ObjectKey, bool),
}

impl StatusWrite {
    fn target(&self) -> Target {
        match self {
            Self::PodGroup { group, .. } => Target::PodGroup(group.clone()),
            Self::Annotation { group, key, .. } => Target::Annotation(group.clone(), key),
            Self::Queue { queue, .. } => Target::Queue(queue.clone()),
            Self::QueueFairness { queue, .. } => Target::QueueFairness(queue.clone()),
            Self::Pod { pod, .. } => Target::Pod(pod.uid.to_string()),
        }
    }

    /// Takes the place of an older wish that was not written: what only that one knew still holds.
    fn instead_of(mut self, older: &Self) -> Self {
        match (&mut self, older) {
            (Self::Pod { since, .. }, Self::Pod { since: first, .. }) if since.is_none() => {
                since.clone_from(first);
            }
            (Self::Queue { allocated, stale, .. }, Self::Queue { stale: before, .. }) => {
                let used = |name: &String| allocated.iter().any(|(known, _)| known == name);
                let gone = before.iter().filter(|name| !used(name));
                let missing: Vec<String> = gone.filter(|n| !stale.contains(n)).cloned().collect();
                stale.extend(missing);
            }
            _ => {}
        }
        self
    }
}

/// Runs until the sending side is dropped and everything queued is written.
pub(crate) async fn run(mut inbox: mpsc::UnboundedReceiver<Message>, writer: Writer, limit: usize) {
    let mut wishes = Wishes::default();
    let mut flights = FuturesUnordered::new();
    let mut open = true;
    loop {
        while flights.len() < limit.max(1)
            && let Some((write, failures)) = wishes.next(Instant::now())
        {
            let writer = writer.clone();
            flights.push(async move { (send(&writer, &write, failures).await, write) });
        }
        tokio::select! {
            biased;
            Some((sent, write)) = flights.next(), if !flights.is_empty() => {
                wishes.landed(write, sent, Instant::now());
            }
            message = inbox.recv(), if open => match message {
                Some(Message::Write(write)) => wishes.add(write, Instant::now()),
                Some(Message::Forget(uid)) => wishes.forget(&Target::Pod(uid)),
                Some(Message::Binding(group, busy)) => {
                    wishes.binding(Target::PodGroup(group), busy, Instant::now());
                }
                None => {
                    open = false;
                    wishes.close();
                }
            },
            () = until(wishes.wake()), if open && flights.len() < limit.max(1) => {}
            else => break,
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
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
