//! What the plugins have in common that hold queues to quotas (`proportion`, `capacity`): how far a queue may go, how
//! many copies of a class that leaves, and the words for it. A quota is a [`Vector`]; a *ceiling* is a function from
//! a dimension to an amount, `None` where the quota says nothing.

use crate::planted::{Bug, planted};
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::fingerprint::mix;
use crate::state::queues::QueueId;
use crate::state::resource::{CPU, Dim, EPSILON, Ledger, MEMORY, PODS, Vector, share};

/// Adds the dimensions of a vector to a list.
pub(super) fn at_least(dims: &mut Vec<Dim>, vector: &Vector) {
    for dim in vector.dims() {
        if !dims.contains(&dim) {
            dims.push(dim);
        }
    }
}

/// One number for a vector.
pub(super) fn imprint(vector: &Vector) -> u64 {
    mix(vector.dims().flat_map(|dim| [u64::from(dim), vector.get(dim).to_bits()]))
}

/// What `spec.capability` allows in a dimension; `None` where it says nothing. 0 cpu or memory means "not limited"
/// (proportion step 2).
pub(super) fn declared(capability: Option<&Vector>, dim: Dim) -> Option<f64> {
    let limit = capability.filter(|capability| capability.has(dim))?.get(dim);
    (dim > MEMORY || limit > 0.0).then_some(limit)
}

/// Volcano's `real capability` of a queue that stands beside all others: what nobody else is guaranteed, plus its own
/// guarantee, at most what `spec.capability` allows.
pub(super) fn real_capability(
    total: &Vector,
    guaranteed: &Vector,
    own: &Vector,
    capability: Option<&Vector>,
) -> Vector {
    let mut real = Vector::default();
    let mut dims: Vec<Dim> = vec![CPU, MEMORY];
    at_least(&mut dims, total);
    at_least(&mut dims, own);
    for dim in dims {
        let amount = (total.get(dim) - guaranteed.get(dim)).max(0.0) + own.get(dim);
        let limit = declared(capability, dim).unwrap_or(f64::INFINITY);
        real.set(dim, amount.min(limit));
    }
    real
}

/// Largest part of its deserved amounts that a queue has (names of deserved from the tolerance on, P21).
pub(super) fn share_of(allocated: &Ledger, deserved: &Vector) -> f64 {
    let mut largest = 0.0;
    for dim in deserved.dims().filter(|&dim| deserved.get(dim) >= EPSILON) {
        let part = share(allocated.get(dim) as f64, deserved.get(dim));
        if part > largest {
            largest = part;
        }
    }
    largest
}

/// How many of `count` copies of a class stay below a ceiling, in the dimensions that the class asks for. Beside what the queue
/// uses, what is about to leave it counts.
pub(super) fn copies(
    state: &State,
    queue: QueueId,
    used: &Ledger,
    ceiling: impl Fn(Dim) -> Option<f64>,
    class: ClassId,
    count: u32,
) -> u32 {
    let slack = if planted(Bug::LooseComparison) { 1.0 } else { 0.0 };
    let mut allowed = count;
    for &(dim, amount) in &state.classes.list[class as usize].request {
        let Some(ceiling) = ceiling(dim).filter(|_| amount > 0) else { continue };
        let leaving = state.leaving.get(queue as usize).map_or(0, |leaving| leaving.get(dim));
        let room = ceiling + slack - (used.get(dim) + leaving) as f64;
        let copies = (room / amount as f64).floor();
        allowed = if copies < f64::from(allowed) { copies.max(0.0) as u32 } else { allowed };
    }
    allowed
}

/// The first dimension in which `count` copies do not stay below a ceiling, in words that name the queue.
pub(super) fn reached(
    state: &State,
    name: &str,
    used: &Ledger,
    ceiling: impl Fn(Dim) -> Option<f64>,
    class: ClassId,
    count: u32,
) -> Option<String> {
    state.classes.list[class as usize].request.iter().find_map(|&(dim, amount)| {
        let ceiling = ceiling(dim).filter(|_| amount > 0)?;
        let (in_use, asked) = (used.get(dim) as f64, amount as f64 * f64::from(count));
        (in_use + asked > ceiling).then(|| {
            format!(
                "queue {name} is at its limit of {}: {} of {} in use, {} more asked for",
                state.dims.name(dim),
                shown(state, dim, in_use),
                shown(state, dim, ceiling),
                shown(state, dim, asked)
            )
        })
    })
}

/// True when `spec.capability` keeps a queue from taking `count` copies, however many nodes there are.
pub(super) fn capped(
    state: &State,
    used: &Ledger,
    capability: Option<&Vector>,
    class: ClassId,
    count: u32,
) -> bool {
    state.classes.list[class as usize].request.iter().any(|&(dim, amount)| {
        let wanted = used.get(dim) as f64 + amount as f64 * f64::from(count);
        amount > 0 && declared(capability, dim).is_some_and(|limit| wanted > limit)
    })
}

/// Names of the resources of `minResources` (the number of pods aside) of which a queue would have more than it may.
pub(super) fn insufficient(
    state: &State,
    min: &Vector,
    wanted: impl Fn(Dim) -> f64,
    ceiling: impl Fn(Dim) -> Option<f64>,
) -> Vec<String> {
    min.dims()
        .filter(|&dim| dim != PODS && min.get(dim) > 0.0)
        .filter(|&dim| ceiling(dim).is_some_and(|ceiling| wanted(dim) > ceiling))
        .map(|dim| format!("insufficient {}", state.dims.name(dim)))
        .collect()
}

/// An amount as a quantity.
fn shown(state: &State, dim: Dim, amount: f64) -> String {
    let stored = state.dims.to_stored(dim, amount as i128);
    tephra_api::resource::from_stored(state.dims.name(dim), stored).to_string()
}
