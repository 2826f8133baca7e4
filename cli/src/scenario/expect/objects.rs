//! Expectations about what users can read: phases, conditions, events, queue status, and what the scheduler
//! said about its configuration.

use serde_json::Value;
use tephra_api::quantity::Quantity;

use super::placement::pod_id;
use crate::scenario::schema::{Contains, Expect, QueueExpect, Scalar, Words};
use crate::scenario::store::ObjectId;
use crate::scenario::verdict::Judgement;
use crate::scenario::world::World;

/// Judges the keys of this file.
pub fn judge(expect: &Expect, world: &World, judgement: &mut Judgement) {
    for (group, phase) in expect.pod_group_phase.iter().flatten() {
        let pod = pod_id(group);
        let id = ObjectId::new("PodGroup", Some(&pod.namespace), &pod.name);
        let got = match world.store().get(&id) {
            None => "no such PodGroup",
            Some(object) => match object.pointer("/status/phase").and_then(Value::as_str) {
                None | Some("") => "Pending",
                Some(phase) => phase,
            },
        };
        judgement.expect(got == phase, format!("phase of PodGroup {group}"), phase, got);
    }
    for (name, reason) in expect.pod_reason.iter().flatten() {
        let got = scheduled_reason(world, name);
        judgement.expect(got == *reason, format!("reason of pod {name}"), reason, got);
    }
    for (name, reason) in expect.pod_reason_not.iter().flatten() {
        let got = scheduled_reason(world, name);
        let holds = got != *reason && got != NO_POD;
        judgement.expect(holds, format!("reason of pod {name}"), format!("not {reason}"), got);
    }
    for (name, status) in expect.queue_status.iter().flatten() {
        queue_status(name, status, world, judgement);
    }
    for words in expect.message.iter().flatten() {
        message(words, true, world, judgement);
    }
    for words in expect.message_not.iter().flatten() {
        message(words, false, world, judgement);
    }
    for (object, max) in expect.event_count_max.iter().flatten() {
        match ObjectId::parse(object) {
            None => judgement.expect(false, object, "Kind/name", "no such object"),
            Some(id) => {
                let events = world.store().events(&id);
                let got = events.iter().map(|e| format!("{}: {}", e.reason, e.message));
                let got = format!("{} [{}]", events.len(), got.collect::<Vec<_>>().join(" | "));
                let what = format!("events of {object}");
                judgement.expect(events.len() <= *max, what, format!("at most {max}"), got);
            }
        }
    }
    configuration(expect, world, judgement);
}

fn configuration(expect: &Expect, world: &World, judgement: &mut Judgement) {
    if let Some(words) = &expect.config_error {
        let error = world.config_error();
        let holds = error.is_some_and(|error| has_all(error, &words.contains));
        let got = error.unwrap_or("the configuration was accepted");
        judgement.expect(holds, "configError", list(words), got);
    }
    if let Some(words) = &expect.config_warning {
        let warnings = world.config_warnings().join("\n");
        let got = if warnings.is_empty() { "no warning" } else { &warnings };
        judgement.expect(has_all(&warnings, &words.contains), "configWarning", list(words), got);
    }
}

const NO_POD: &str = "no such pod";

/// Reason of the condition `PodScheduled`; empty when there is none or the pod is scheduled.
fn scheduled_reason(world: &World, name: &str) -> String {
    let Some(object) = world.store().get(&pod_id(name)) else { return NO_POD.to_owned() };
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let scheduled =
        conditions.into_iter().flatten().find(|condition| condition["type"] == "PodScheduled");
    let reason = scheduled.and_then(|condition| condition["reason"].as_str());
    reason.unwrap_or_default().to_owned()
}

fn queue_status(name: &str, expect: &QueueExpect, world: &World, judgement: &mut Judgement) {
    let Some(queue) = world.store().get(&ObjectId::new("Queue", None, name)) else {
        judgement.expect(false, format!("queue {name}"), "a queue", "no such queue");
        return;
    };
    if let Some(state) = &expect.state {
        let got = queue.pointer("/status/state").and_then(Value::as_str).unwrap_or_default();
        judgement.expect(got == state, format!("state of queue {name}"), state, got);
    }
    for (resource, wanted) in expect.allocated.iter().flatten() {
        let found = queue.pointer("/status/allocated").and_then(|all| all.get(resource));
        let got = match found {
            None => "0".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let what = format!("allocated {resource} of queue {name}");
        judgement.expect(same_quantity(wanted, &got), what, wanted, &got);
    }
}

fn same_quantity(wanted: &Scalar, got: &str) -> bool {
    match (wanted.to_string().parse::<Quantity>(), got.parse::<Quantity>()) {
        (Ok(wanted), Ok(got)) => wanted.cmp(&got).is_eq(),
        _ => false,
    }
}

fn message(words: &Words, wanted: bool, world: &World, judgement: &mut Judgement) {
    let Some(id) = ObjectId::parse(&words.object) else {
        judgement.expect(false, &words.object, "Kind/name", "no such object");
        return;
    };
    let text = world.store().text(&id);
    let got = if text.is_empty() { "no text" } else { &text }.replace('\n', " | ");
    for word in &words.contains {
        let (what, key) = (format!("text of {}", words.object), format!("{word:?}"));
        let expected = if wanted { key } else { format!("not {key}") };
        judgement.expect(text.contains(word.as_str()) == wanted, what, expected, &got);
    }
}

fn has_all(text: &str, words: &[String]) -> bool {
    words.iter().all(|word| text.contains(word.as_str()))
}

fn list(words: &Contains) -> String {
    format!("words [{}]", words.contains.join(", "))
}
