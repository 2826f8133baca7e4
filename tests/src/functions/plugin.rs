//! What small plugins read: cooldowns of pods, windows of revocable zones, quotas of a namespace.

use anyhow::Context;
use serde_json::{Value, json};
use tephra_core::event::{ObjectKey, Quantities};
use tephra_core::plugin::tdm::window::Window;
use tephra_core::state::quotas::Quotas;
use tephra_scheduler::convert;
use tephra_scheduler::decode::{self, Names};

use super::{Answer, Call, Counterpart};

pub(super) const COUNTERPARTS: &[(&str, Counterpart)] = &[
    ("cdp.CooldownProtectionPlugin.podCooldownTime", cooldown),
    ("tdm.parseRevocableZone", window),
    ("api.NamespaceCollection.Update", |call| {
        let mut quotas = collected(call)?;
        quotas.set(convert::resource_quota(&call.args["quota"])?);
        Ok(Answer { receiver: written(call, &quotas), ..Answer::default() })
    }),
    ("api.NamespaceCollection.Delete", |call| {
        let mut quotas = collected(call)?;
        quotas.remove(&convert::resource_quota(&call.args["quota"])?.key);
        Ok(Answer { receiver: written(call, &quotas), ..Answer::default() })
    }),
    ("api.NamespaceCollection.Snapshot", |call| {
        Ok(Answer { result: written(call, &collected(call)?), ..Answer::default() })
    }),
];

/// How long after it was scheduled a pod is protected, as Go writes it, and whether it is.
fn cooldown(call: &Call) -> anyhow::Result<Answer> {
    let pod = &call.args["pod"];
    let scheduled = pod.pointer("/status/conditions/0/lastTransitionTime");
    let scheduled = scheduled.and_then(Value::as_str).context("no condition")?;
    let since: jiff::Timestamp = scheduled.parse()?;
    let object = decode::pod(&serde_json::to_vec(pod)?, &Names::any())?;
    let seconds = object.cooling_until_ms.map(|until| (until - since.as_millisecond()) / 1000);
    let result = match seconds {
        Some(seconds) => json!([format!("{}m{}s", seconds / 60, seconds % 60), true]),
        None => json!(["0s", false]),
    };
    Ok(Answer { result, ..Answer::default() })
}

/// A window on the day of the recording, or the words of refusal; Go's error structs are compared by their words.
fn window(call: &Call) -> anyhow::Result<Answer> {
    let text = call.args["rzRaw"].as_str().context("no text")?;
    let recorded = &call.result;
    let result = match Window::parse(text) {
        Ok(window) => {
            let today: jiff::Timestamp = recorded[0].as_str().context("no time")?.parse()?;
            let midnight = today.as_second().div_euclid(86_400) * 86_400;
            let at = |day: i64, second: u32| {
                let time = midnight + day * 86_400 + i64::from(second);
                jiff::Timestamp::from_second(time).map(|time| time.to_string())
            };
            let tomorrow = i64::from(window.start >= window.end);
            json!([at(0, window.start)?, at(tomorrow, window.end)?, null])
        }
        Err(error) => {
            let same = recorded[2]["message"] == error.to_string();
            let error = if same { recorded[2].clone() } else { json!(error.to_string()) };
            json!(["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", error])
        }
    };
    Ok(Answer { result, ..Answer::default() })
}

/// The quotas of the receiver.
fn collected(call: &Call) -> anyhow::Result<Quotas> {
    let mut quotas = Quotas::default();
    let known = call.args["receiver"]["QuotaStatus"].as_object();
    for (name, status) in known.into_iter().flatten() {
        let quota = json!({"metadata": {"name": name}, "status": status});
        quotas.set(convert::resource_quota(&quota)?);
    }
    Ok(quotas)
}

fn written(call: &Call, quotas: &Quotas) -> Value {
    let amounts = |list: &Quantities| -> Value {
        list.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
    };
    let namespace = ObjectKey::default().namespace;
    let status: serde_json::Map<String, Value> = quotas
        .of(&namespace)
        .iter()
        .map(|quota| (quota.key.name.clone(), json!({"hard": amounts(&quota.hard)})))
        .collect();
    json!({"Name": call.args["receiver"]["Name"], "QuotaStatus": status})
}
