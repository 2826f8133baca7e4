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
