//! Events on objects, for what their owner has to know.
//!
//! Written through the legacy core API with `lastTimestamp` set, which is what Volcano's users read. Best effort: an
//! event that cannot be written is logged and dropped, nothing waits for it.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, api::PostParams};
use tracing::warn;

use crate::context::Context;

/// Component of all events of the controllers (Volcano's).
const COMPONENT: &str = "vc-controller-manager";
/// Longest message the API accepts.
const LONGEST: usize = 1024;

/// The two types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

/// Writes an event about `object` (of a cluster-wide kind: into namespace `default`).
pub(crate) async fn record(
    context: Context,
    object: ObjectReference,
    severity: Severity,
    reason: &'static str,
    message: String,
) {
    let namespace = object.namespace.clone().unwrap_or_else(|| "default".into());
    let now = Timestamp::from_millisecond(context.clock.now_ms()).unwrap_or_default();
    let name = object.name.clone().unwrap_or_default();
    let severity = match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    let mut event = Event {
        involved_object: object,
        reason: Some(reason.into()),
        message: Some(message.chars().take(LONGEST).collect()),
        type_: Some(severity.into()),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource { component: Some(COMPONENT.into()), host: None }),
        ..Event::default()
    };
    event.metadata.namespace = Some(namespace.clone());
    event.metadata.generate_name = Some(format!("{name}."));
    let events: Api<Event> = Api::namespaced(context.client, &namespace);
    if let Err(error) = events.create(&PostParams::default(), &event).await {
        warn!(%namespace, %name, reason, %error, "event was not written");
    }
}
