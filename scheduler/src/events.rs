//! Records events on objects, with Volcano's reasons and messages (spec 7.1). Repetitions of one message about
//! one object are counted on one event instead of writing new ones, and an object that talks too much is cut
//! off (client-go's limits): events must never crowd out binds.

mod ledger;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use serde_json::{Value, json};
use tephra_api::clock::Clock;
use tephra_core::decision::{Notice, NoticeKind};
use tokio::sync::mpsc;

use crate::backoff;
use crate::metrics::Metrics;
use crate::status::body::rfc3339;
use crate::write::{MERGE_PATCH, NoReply, Writer};
use ledger::{Entry, Ledger};

/// Requests for events under way at one time.
const LIMIT: usize = 4;
/// How often counts of repeated events and messages held back are written.
const FLUSH: Duration = Duration::from_secs(10);
/// Attempts before an event is given up.
const ATTEMPTS: usize = 5;
/// Longest message that the API server takes.
const LONGEST: usize = 1024;

/// One event to create, or a new count of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) entry: Entry,
    pub(crate) create: bool,
}

/// Runs until the sending side is dropped and everything queued is written or given up.
pub(crate) async fn run(
    mut inbox: mpsc::UnboundedReceiver<Notice>,
    writer: Writer,
    component: String,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
) {
    let mut ledger = Ledger::default();
    let mut flights = FuturesUnordered::new();
    let mut tick = tokio::time::interval(FLUSH);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut open = true;
    loop {
        while flights.len() < LIMIT
            && let Some(record) = ledger.next()
        {
            let (writer, component) = (writer.clone(), component.clone());
            flights.push(async move { (send(&writer, &component, &record).await, record) });
        }
        tokio::select! {
            biased;
            Some((written, record)) = flights.next(), if !flights.is_empty() => {
                ledger.settled(&record, written);
                if !written {
                    metrics.notices_dropped.inc();
                }
            }
            notice = inbox.recv(), if open => match notice {
                Some(notice) => {
                    if !ledger.add(shortened(notice), clock.now_ms()) {
                        metrics.notices_dropped.inc();
                    }
                }
                None => {
                    open = false;
                    ledger.flush(clock.now_ms(), true);
                }
            },
            _ = tick.tick(), if open => ledger.flush(clock.now_ms(), false),
            else => break,
        }
    }
}

fn shortened(mut notice: Notice) -> Notice {
    if notice.message.len() > LONGEST {
        let end = notice.message.floor_char_boundary(LONGEST - 3);
        notice.message.truncate(end);
        notice.message.push_str("...");
    }
    notice
}

async fn send(writer: &Writer, component: &str, record: &Record) -> bool {
    let entry = &record.entry;
    let events = format!("/api/v1/namespaces/{}/events", entry.namespace());
    let mut create = record.create;
    for pause in backoff::writes(backoff::seed(&entry.name)).take(ATTEMPTS) {
        let sent = if create {
            writer.post(&events, &object(entry, component)).await
        } else {
            let body = json!({"count": entry.count, "lastTimestamp": rfc3339(entry.last_ms)});
            writer.patch(&format!("{events}/{}", entry.name), MERGE_PATCH, &body).await
        };
        let after = match sent {
            Ok(reply) if reply.status.is_success() => return true,
            // Written before by an attempt whose answer was lost.
            Ok(reply) if create && reply.status == StatusCode::CONFLICT => return true,
            // The event has expired; the count goes on in a new one.
            Ok(reply) if !create && reply.status == StatusCode::NOT_FOUND => {
                create = true;
                continue;
            }
            Ok(reply) if retryable(reply.status) => reply.retry_after,
            Ok(reply) => {
                let message = reply.message();
                tracing::debug!(reason = entry.notice.reason, %message, "an event was refused");
                return false;
            }
            Err(NoReply::Unknown(_)) => None,
            Err(_) => return false,
        };
        tokio::time::sleep(after.unwrap_or(pause)).await;
    }
    false
}

fn retryable(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

fn object(entry: &Entry, component: &str) -> Value {
    let notice = &entry.notice;
    let (kind, api_version) = match notice.kind {
        NoticeKind::Pod => ("Pod", "v1"),
        NoticeKind::PodGroup => ("PodGroup", "scheduling.volcano.sh/v1beta1"),
        NoticeKind::Queue => ("Queue", "scheduling.volcano.sh/v1beta1"),
        NoticeKind::Node => ("Node", "v1"),
        NoticeKind::HyperNode => ("HyperNode", "topology.volcano.sh/v1alpha1"),
    };
    let mut involved = json!({
        "kind": kind, "apiVersion": api_version, "name": notice.object.name, "uid": notice.uid,
    });
    if !matches!(notice.kind, NoticeKind::Queue | NoticeKind::Node | NoticeKind::HyperNode) {
        involved["namespace"] = notice.object.namespace.as_str().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": entry.namespace(), "name": entry.name},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": notice.message,
        "type": if notice.warning { "Warning" } else { "Normal" },
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "count": entry.count,
        "firstTimestamp": rfc3339(entry.first_ms),
        "lastTimestamp": rfc3339(entry.last_ms),
    })
}

#[cfg(test)]
mod tests {
    use tephra_core::event::ObjectKey;

    use super::*;
    use crate::fence::Fence;
    use crate::scripted::{Answer, Script};

    #[derive(Debug)]
    struct Fixed;
    impl Clock for Fixed {
        fn now_ms(&self) -> i64 {
            1_000
        }
    }

    fn notice(message: &str) -> Notice {
        Notice {
            kind: NoticeKind::PodGroup,
            object: ObjectKey::new("ns", "g"),
            uid: "u".to_owned(),
            warning: true,
            reason: "Unschedulable",
            message: message.to_owned(),
        }
    }

    async fn record(answers: Vec<Answer>, notices: Vec<Notice>) -> Script {
        let script = Script::slow(Duration::from_millis(1), answers);
        let writer = Writer::new(script.client(), Fence::open(), Arc::default());
        let (send, inbox) = mpsc::unbounded_channel();
        notices.into_iter().for_each(|notice| send.send(notice).unwrap());
        drop(send);
        run(inbox, writer, "volcano".to_owned(), Arc::new(Fixed), Arc::default()).await;
        script
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_names_object_reason_message_and_component() {
        let script = record(vec![Answer::status(201, "")], vec![notice("waits")]).await;
        assert_eq!(script.requests(), ["POST /api/v1/namespaces/ns/events"]);
        let body: Value = serde_json::from_slice(&script.bodies()[0]).unwrap();
        assert_eq!(body["involvedObject"]["kind"], "PodGroup");
        assert_eq!(body["involvedObject"]["uid"], "u");
        assert_eq!((&body["reason"], &body["message"]), (&json!("Unschedulable"), &json!("waits")));
        assert_eq!((&body["type"], &body["count"]), (&json!("Warning"), &json!(1)));
        assert_eq!(body["source"]["component"], "volcano");
    }

    #[tokio::test(start_paused = true)]
    async fn repetitions_become_one_count_on_one_event() {
        let ok = Answer::status(201, "");
        let script = record(vec![ok; 2], vec![notice("waits"); 7]).await;
        let requests = script.requests();
        assert_eq!(requests.len(), 2);
        assert!(requests[1].starts_with("PATCH /api/v1/namespaces/ns/events/g."));
        let body: Value = serde_json::from_slice(&script.bodies()[1]).unwrap();
        assert_eq!(body["count"], 7);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_talks_too_much_is_cut_off() {
        const REASONS: [&str; 30] = [
            "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q",
            "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "AA", "BB", "CC", "DD",
        ];
        let notices = REASONS.map(|reason| Notice { reason, ..notice("x") }).to_vec();
        let script = record(vec![Answer::status(201, ""); 100], notices).await;
        assert_eq!(script.requests().len(), 25);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_wordings_in_a_short_time_the_first_and_the_last_are_told() {
        let notices = (0..100).map(|i| notice(&format!("0/{i} nodes"))).collect();
        let script = record(vec![Answer::status(201, ""); 100], notices).await;
        let told: Vec<Value> =
            script.bodies().iter().map(|body| serde_json::from_slice(body).unwrap()).collect();
        let messages: Vec<&str> =
            told.iter().filter_map(|event| event["message"].as_str()).collect();
        assert_eq!(messages, ["0/0 nodes", "0/99 nodes"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_event_is_given_up_and_a_failed_one_tried_again() {
        let script = record(vec![Answer::status(403, "no")], vec![notice("x")]).await;
        assert_eq!(script.requests().len(), 1);
        let answers = vec![Answer::Broken, Answer::status(201, "")];
        let script = record(answers, vec![notice("x")]).await;
        assert_eq!(script.requests().len(), 2);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = shortened(notice(&"ä".repeat(2_000))).message;
        assert!(long.len() <= LONGEST && long.ends_with("..."));
    }
}
