//! Arithmetic on Volcano's resource vector that only the reference needs (spec 2.1).

use std::collections::BTreeMap;

use tephra_api::resource::Resource;
use tephra_core::event::Amounts;

/// A vector from stored amounts.
pub fn vector(amounts: &Amounts) -> Resource {
    let mut vector = Resource::default();
    for (name, amount) in amounts {
        match name.as_str() {
            "cpu" => vector.milli_cpu = *amount as f64,
            "memory" => vector.memory = *amount as f64,
            _ => {
                vector.scalars.get_or_insert_default().insert(name.clone(), *amount as f64);
            }
        }
    }
    vector
}

/// A copy with one more vector added.
pub fn plus(a: &Resource, b: &Resource) -> Resource {
    let mut sum = a.clone();
    sum.add(b);
    sum
}

fn each(vector: &mut Resource, mut change: impl FnMut(&str, f64) -> f64) {
    vector.milli_cpu = change("cpu", vector.milli_cpu);
    vector.memory = change("memory", vector.memory);
    for (name, amount) in vector.scalars.iter_mut().flatten() {
        *amount = change(name, *amount);
    }
}

/// Positive part of `a - b` (`ExceededPart`).
pub fn positive_difference(a: &Resource, b: &Resource) -> Resource {
    let mut left = a.clone();
    each(&mut left, |name, amount| (amount - b.get(name)).max(0.0));
    left
}

/// `MinDimensionResource(limit, Infinity)`: scalars without a limit stay.
pub fn cap(value: &mut Resource, limit: &Resource) {
    let empty = BTreeMap::new();
    let scalars = limit.scalars.as_ref().unwrap_or(&empty);
    each(value, |name, amount| match name {
        "cpu" | "memory" => amount.min(limit.get(name)),
        _ => scalars.get(name).map_or(amount, |limit| amount.min(*limit)),
    });
}

/// `MinDimensionResource(limit, Zero)`: scalars without a limit become 0.
pub fn cap_or_zero(value: &mut Resource, limit: &Resource) {
    each(value, |name, amount| amount.min(limit.get(name)));
}

/// What misses a whole unit by less than the tolerance, or by the noise of additions, becomes that unit.
pub fn settle(value: &mut Resource) {
    each(value, |_, amount| {
        let whole = amount.round();
        let noise = (amount * 1e-12).max(0.1);
        if (amount - whole).abs() <= noise { whole } else { amount }
    });
}

/// `wanted` is above `limit` in something that is requested, exactly and `pods` apart
/// (`LessEqualWithDimensionAndResourcesName` says no).
pub fn exceeds(wanted: &Resource, limit: &Resource, request: &Resource) -> bool {
    let scalars = request.scalars.iter().flatten().map(|(name, _)| name.as_str());
    ["cpu", "memory"]
        .into_iter()
        .chain(scalars.filter(|name| *name != "pods"))
        .any(|name| request.get(name) > 0.0 && wanted.get(name) > limit.get(name))
}

/// `Share`: of nothing, something is 1 and nothing is 0.
pub fn share(amount: f64, total: f64) -> f64 {
    if total == 0.0 { if amount == 0.0 { 0.0 } else { 1.0 } } else { amount / total }
}
