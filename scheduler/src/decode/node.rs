//! A node's JSON becomes a [`NodeObject`].

use tephra_api::{keys, resource};
use tephra_core::event::{Amounts, NodeObject, Taint};

use super::error::DecodeError;
use super::pod::taint_effect;
use super::request;
use super::view::{MetaView, NodeView};
use super::{KIND_NODE, identity, version};

/// A decoded node with its resource version (0 when absent).
pub(crate) fn decode(bytes: &[u8]) -> Result<(NodeObject, u64, String), DecodeError> {
    let view: NodeView<'_> = serde_json::from_slice(bytes)
        .map_err(|error| DecodeError::diagnose::<NodeView<'_>>(KIND_NODE, bytes, &error))?;
    let meta = &view.metadata;
    if meta.name.is_empty() {
        return Err(DecodeError::at(
            KIND_NODE,
            identity(meta),
            "metadata.name",
            "\"\"",
            "is missing",
        ));
    }
    let spec = view.spec.as_ref();
    let node = NodeObject {
        name: meta.name.as_str().to_owned(),
        labels: meta.labels.to_labels(),
        taints: spec.map(|spec| taints(&spec.taints.0)).unwrap_or_default(),
        unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
        allocatable: allocatable(&view)?,
        images: images(&view),
    };
    Ok((node, version(meta), meta.uid.as_str().to_owned()))
}

/// Taints with a known effect; Kubernetes ignores the rest, too.
fn taints(views: &[super::view::TaintView<'_>]) -> Vec<Taint> {
    views
        .iter()
        .filter_map(|view| {
            Some(Taint {
                key: view.key.as_str().to_owned(),
                value: view.value.as_str().to_owned(),
                effect: taint_effect(view.effect.as_str())?,
            })
        })
        .collect()
}

fn allocatable(view: &NodeView<'_>) -> Result<Amounts, DecodeError> {
    let meta = &view.metadata;
    let Some(status) = &view.status else { return Ok(Amounts::new()) };
    let mut amounts = Amounts::new();
    for (name, quantity) in &status.allocatable.0 {
        let place = || format!("status.allocatable.{}", name.as_str());
        let quantity = request::quantity(KIND_NODE, meta, quantity, place)?;
        if let Some(amount) = resource::stored_amount(name.as_str(), &quantity) {
            amounts.push((name.as_str().to_owned(), amount));
        }
    }
    for (key, name) in
        [(keys::OVERSUBSCRIPTION_CPU, "cpu"), (keys::OVERSUBSCRIPTION_MEMORY, "memory")]
    {
        let extra = oversubscription(meta, key);
        if extra == 0 {
            continue;
        }
        match amounts.iter_mut().find(|(known, _)| known == name) {
            Some((_, amount)) => *amount = amount.saturating_add(extra),
            None => amounts.push((name.to_owned(), extra)),
        }
    }
    amounts.sort();
    amounts.dedup_by(|later, kept| later.0 == kept.0);
    Ok(amounts)
}

/// Volcano reads these annotations as floating-point numbers, milli-cpu and bytes; unreadable counts as 0.
fn oversubscription(meta: &MetaView<'_>, key: &str) -> i64 {
    let amount = meta.annotations.get(key).and_then(|text| text.parse::<f64>().ok());
    amount.filter(|amount| amount.is_finite() && *amount > 0.0).map_or(0, |amount| amount as i64)
}

fn images(view: &NodeView<'_>) -> Vec<(String, i64)> {
    let Some(status) = &view.status else { return Vec::new() };
    status
        .images
        .0
        .iter()
        .flat_map(|image| {
            let size = image.size_bytes.unwrap_or(0).max(0);
            image.names.0.iter().map(move |name| (name.as_str().to_owned(), size))
        })
        .collect()
}
