//! Carries out evictions: condition `DisruptionTarget` first, then a delete with a uid precondition. The core
//! hears the outcome as an event; a pod that is already gone counts as evicted.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tephra_core::decision::PodRef;
use tephra_core::event::Event;
use tokio::sync::mpsc;

use crate::backoff;
use crate::write::{NoReply, Reply, STRATEGIC_PATCH, Writer};

/// One eviction to carry out.
#[derive(Clone, Debug)]
pub(crate) struct Evict {
    pub(crate) pod: PodRef,
    /// Time of the decision, RFC 3339.
    pub(crate) now: String,
    /// Scheduler name for the condition's message.
    pub(crate) component: String,
}

/// Runs until the sending side is dropped and everything queued is settled.
pub(crate) async fn run(
    mut queue: mpsc::UnboundedReceiver<Evict>,
    outcomes: mpsc::UnboundedSender<Event>,
    writer: Writer,
    limit: usize,
) {
    let mut flights = FuturesUnordered::new();
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            Some(event) = flights.next(), if !flights.is_empty() => {
                if let Some(event) = event {
                    let _ = outcomes.send(event);
                }
            }
            evict = queue.recv(), if open && flights.len() < limit.max(1) => match evict {
                Some(evict) => {
                    let writer = writer.clone();
                    flights.push(async move { settle(&writer, &evict).await });
                }
                None => open = false,
            },
            else => break,
        }
    }
}

/// Evicts one pod; `None` when the lease is gone. The condition tells the pod's owner why and is no more than that: when it
/// is refused, the pod is deleted all the same (B5).
async fn settle(writer: &Writer, evict: &Evict) -> Option<Event> {
    let pod = &evict.pod;
    let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
    let status_path = format!("{path}/status?fieldManager=tephra-scheduler");
    let condition = condition(evict);
    match until_answered(pod, || writer.patch(&status_path, STRATEGIC_PATCH, &condition)).await {
        Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
            return Some(Event::EvictOk(pod.uid.to_string()));
        }
        Ok(_) => {}
        Err(error) => return not_sent(pod, &error),
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &*pod.uid},
    });
    let mut attempts = backoff::writes(backoff::seed(&pod.uid));
    loop {
        let reply = match until_answered(pod, || writer.delete(&path, &options)).await {
            Ok(reply) => reply,
            Err(error) => return not_sent(pod, &error),
        };
        if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Some(Event::EvictOk(pod.uid.to_string()));
        }
        // A conflict may mean that another pod has the name by now.
        let conflict = reply.status == StatusCode::CONFLICT;
        if conflict && is_leaving(writer, pod, &path).await {
            return Some(Event::EvictOk(pod.uid.to_string()));
        }
        match attempts.next().filter(|_| conflict) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => {
                let (uid, message) = (pod.uid.to_string(), reply.message());
                return Some(Event::EvictFailed { uid, message });
            }
        }
    }
}

/// The pod of this uid is gone or being deleted.
async fn is_leaving(writer: &Writer, pod: &PodRef, path: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        uid: String,
        deletion_timestamp: Option<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Found {
        metadata: Metadata,
    }
    match writer.get(path).await {
        Ok(reply) if reply.status == StatusCode::NOT_FOUND => true,
        Ok(reply) if reply.status.is_success() => {
            let found: Found = serde_json::from_slice(&reply.body).unwrap_or_default();
            found.metadata.uid != *pod.uid || found.metadata.deletion_timestamp.is_some()
        }
        _ => false,
    }
}

fn condition(evict: &Evict) -> serde_json::Value {
    let message = format!("{}: preempting to accommodate a higher priority pod", evict.component);
    json!({
        "metadata": {"uid": &*evict.pod.uid},
        "status": {"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": message, "lastTransitionTime": evict.now,
        }]},
    })
}

/// Both requests may be repeated safely: the uid names one pod for ever.
async fn until_answered<F>(pod: &PodRef, mut attempt: impl FnMut() -> F) -> Result<Reply, NoReply>
where
    F: Future<Output = Result<Reply, NoReply>>,
{
    let mut pauses = backoff::writes(backoff::seed(&pod.uid));
    loop {
        let after = match attempt().await {
            Err(NoReply::Unknown(_)) => None,
            Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => reply.retry_after,
            Ok(reply) if reply.status.is_server_error() => reply.retry_after,
            answered => return answered,
        };
        let pause = after.or_else(|| pauses.next()).unwrap_or(Duration::from_secs(10));
        tokio::time::sleep(pause).await;
    }
}

fn not_sent(pod: &PodRef, error: &NoReply) -> Option<Event> {
    match error {
        NoReply::Fenced => None,
        other => Some(Event::EvictFailed { uid: pod.uid.to_string(), message: other.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fence::Fence;
    use crate::scripted::{Answer, Script};

    async fn evict(answers: Vec<Answer>) -> (Option<Event>, Script) {
        let script = Script::new(answers);
        let writer = Writer::new(script.client(), Fence::open(), Arc::default());
        let evict = Evict {
            pod: PodRef::new("ns", "a", "u"),
            now: "2026-12-02T00:00:00Z".to_owned(),
            component: "volcano".to_owned(),
        };
        (settle(&writer, &evict).await, script)
    }

    #[tokio::test(start_paused = true)]
    async fn the_condition_is_written_before_the_delete_and_both_name_the_uid() {
        let ok = || Answer::status(200, "");
        let (event, script) = evict(vec![ok(), ok()]).await;
        assert!(matches!(event, Some(Event::EvictOk(uid)) if uid == "u"));
        let pod = "/api/v1/namespaces/ns/pods/a";
        assert_eq!(
            script.requests(),
            [format!("PATCH {pod}/status?fieldManager=tephra-scheduler"), format!("DELETE {pod}")]
        );
        for body in script.bodies() {
            assert!(String::from_utf8(body).unwrap().contains(r#""uid":"u""#));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_victim_that_is_gone_counts_as_evicted_and_a_refusal_is_told() {
        let (event, _) = evict(vec![Answer::status(404, "gone")]).await;
        assert!(matches!(event, Some(Event::EvictOk(_))));
        let (event, _) = evict(vec![Answer::status(200, ""), Answer::status(403, "no")]).await;
        assert!(matches!(event, Some(Event::EvictFailed { message, .. }) if message == "no"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_condition_does_not_stop_the_delete() {
        let answers = vec![Answer::status(409, "changed"), Answer::status(200, "")];
        let (event, script) = evict(answers).await;
        assert!(matches!(event, Some(Event::EvictOk(_))));
        assert_eq!(script.requests().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_settled_by_a_read() {
        let conflict = || Answer::status(409, "no");
        let pod = |uid: &str| Answer::json(200, &json!({"metadata": {"uid": uid}}));
        let ok = || Answer::status(200, "");
        let (event, script) = evict(vec![ok(), conflict(), pod("another")]).await;
        assert!(matches!(event, Some(Event::EvictOk(_))));
        assert_eq!(script.requests().len(), 3);
        let (event, script) = evict(vec![ok(), conflict(), pod("u"), ok()]).await;
        assert!(matches!(event, Some(Event::EvictOk(_))));
        assert_eq!(script.requests().len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_connection_is_tried_again() {
        let ok = || Answer::status(200, "");
        let (event, script) = evict(vec![Answer::Broken, ok(), Answer::Broken, ok()]).await;
        assert!(matches!(event, Some(Event::EvictOk(_))));
        assert_eq!(script.requests().len(), 4);
    }
}
