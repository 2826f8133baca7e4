//! What a pod asks of its node: quantities are parsed here, with errors that name container and resource; the
//! rules of adding them up are `tephra_api::pod_request`'s.

use tephra_api::pod_request::{ContainerRequest, PodRequest};
use tephra_api::quantity::Quantity;
use tephra_core::event::Amounts;

use super::KIND_POD;
use super::error::DecodeError;
use super::identity;
use super::text::QuantityText;
use super::view::{ContainerStatusView, ContainerView, MetaView, PodView, QuantityMap};

/// Requests of one part of a pod.
type Requests<'v> = Vec<(&'v str, Quantity)>;

/// Parses a quantity; negative ones are refused.
pub(super) fn quantity(
    kind: &'static str,
    meta: &MetaView<'_>,
    text: &QuantityText<'_>,
    place: impl Fn() -> String,
) -> Result<Quantity, DecodeError> {
    refined(kind, meta, text, place, "")
}

fn refined(
    kind: &'static str,
    meta: &MetaView<'_>,
    text: &QuantityText<'_>,
    place: impl Fn() -> String,
    whose: &str,
) -> Result<Quantity, DecodeError> {
    let error = |problem: String| {
        let value = format!("{:?}", text.0);
        DecodeError::at(kind, identity(meta), place(), &value, format!("{problem}{whose}"))
    };
    let quantity =
        Quantity::parse(&text.0).map_err(|problem| error(format!("is no quantity ({problem})")))?;
    if quantity.is_negative() {
        return Err(error("is negative".to_owned()));
    }
    Ok(quantity)
}

/// Effective request in stored units, and the request that scores assume.
pub(super) fn of_pod(view: &PodView<'_>) -> Result<(Amounts, [i64; 2]), DecodeError> {
    let spec = &view.spec;
    let mut request = PodRequest {
        containers: of_containers(view, "containers", &spec.containers.0)?,
        init_containers: of_containers(view, "initContainers", &spec.init_containers.0)?,
        overhead: parsed(view, &spec.overhead, "spec.overhead", "")?,
        ..PodRequest::default()
    };
    if let Some(resources) = &spec.resources {
        request.pod_level = parsed(view, &resources.requests, "spec.resources.requests", "")?;
    }
    let effective = request.effective();
    Ok((effective.requests, effective.nonzero))
}

fn of_containers<'v>(
    view: &'v PodView<'_>,
    list: &str,
    containers: &'v [ContainerView<'_>],
) -> Result<Vec<ContainerRequest<'v>>, DecodeError> {
    let resized = list == "containers";
    let mut requests = Vec::with_capacity(containers.len());
    for (index, container) in containers.iter().enumerate() {
        let place = format!("spec.{list}[{index}].resources.requests");
        let whose = format!(", container \"{}\"", container.name.as_str());
        let own = match &container.resources {
            Some(resources) => parsed(view, &resources.requests, &place, &whose)?,
            None => Vec::new(),
        };
        requests.push(ContainerRequest {
            requests: if resized { granted(view, container, own)? } else { own },
            restartable: container.restart_policy.as_str() == "Always",
        });
    }
    Ok(requests)
}

fn parsed<'v>(
    view: &PodView<'_>,
    quantities: &'v QuantityMap<'_>,
    place: &str,
    whose: &str,
) -> Result<Requests<'v>, DecodeError> {
    let mut requests = Vec::with_capacity(quantities.0.len());
    for (name, text) in &quantities.0 {
        let path = || format!("{place}.{}", name.as_str());
        let quantity = refined(KIND_POD, &view.metadata, text, path, whose)?;
        requests.push((name.as_str(), quantity));
    }
    Ok(requests)
}

/// In-place resize (spec 2.2): for each resource the largest of what is asked for and what the kubelet has
/// granted; when the resize is infeasible, only what is granted.
fn granted<'v>(
    view: &'v PodView<'_>,
    container: &ContainerView<'_>,
    own: Requests<'v>,
) -> Result<Requests<'v>, DecodeError> {
    let statuses = view.status.as_ref().map_or(&[][..], |status| &status.container_statuses.0);
    let named = |status: &&ContainerStatusView<'_>| status.name == container.name;
    let Some(status) = statuses.iter().find(named) else { return Ok(own) };
    let Some(resources) = &status.resources else { return Ok(own) };
    let place = "status.containerStatuses.resources";
    let mut granted = parsed(view, &resources.requests, place, "")?;
    largest(&mut granted, parsed(view, &status.allocated_resources, place, "")?);
    if !infeasible(view) || granted.is_empty() {
        largest(&mut granted, own);
    }
    Ok(granted)
}

fn largest<'v>(requests: &mut Requests<'v>, others: Requests<'v>) {
    for (name, quantity) in others {
        match requests.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if *known < quantity => *known = quantity,
            Some(_) => {}
            None => requests.push((name, quantity)),
        }
    }
}

/// Whether the kubelet said that a resize cannot be granted on this node.
pub(super) fn infeasible(view: &PodView<'_>) -> bool {
    let Some(status) = &view.status else { return false };
    let pending = status.conditions.0.iter().any(|condition| {
        condition.kind.as_str() == "PodResizePending" && condition.reason.as_str() == "Infeasible"
    });
    pending || status.resize.as_str() == "Infeasible"
}
