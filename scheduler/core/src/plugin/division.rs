//! Weighted water filling: how an amount is divided among queues that want parts of it. What plugin `proportion` deals to all
//! queues at once, and `capacity` to the queues below another.

use super::quota::at_least;
use crate::state::resource::{CPU, Dim, EPSILON, MEMORY, Vector, le};

/// Noise of the water filling as part of an amount; it is at least the tolerance, below which a remainder is no longer
/// divided.
const NOISE_PART: f64 = 1e-12;

/// A queue that takes part.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Its weight, above 0.
    pub weight: f64,
    /// What it wants.
    pub request: Vector,
    /// What it may reach; dimensions that are absent have no limit.
    pub limit: Vector,
    /// What it gets in any case, within its limit.
    pub guarantee: Vector,
    /// It takes nothing.
    pub absent: bool,
}

/// Divides an amount (proportion step 7): in each round every queue that wants more gets its part by weight of what
/// remains, capped by limit and request, lifted to its guarantee. The order of the parts must not depend on when queues came:
/// rounding follows it.
pub(super) fn divide(total: Vector, parts: &[Part]) -> Vec<Vector> {
    let mut deserved = vec![Vector::default(); parts.len()];
    let mut remaining = total;
    let mut met: Vec<bool> = parts.iter().map(|part| part.absent).collect();
    // Each round meets a queue, changes what remains, or is the last one.
    loop {
        let wanting = parts.iter().zip(&met).filter(|(_, met)| !**met);
        let weights: f64 = wanting.map(|(part, _)| part.weight).sum();
        if weights == 0.0 {
            break;
        }
        let before = remaining.clone();
        let mut given = Vector::default();
        for (at, part) in parts.iter().enumerate() {
            if met[at] {
                continue;
            }
            let old = deserved[at].clone();
            let ratio = part.weight / weights;
            let mut dims: Vec<Dim> = vec![CPU, MEMORY];
            at_least(&mut dims, &before);
            at_least(&mut dims, &old);
            at_least(&mut dims, &part.guarantee);
            for dim in dims {
                let limit = if part.limit.has(dim) { part.limit.get(dim) } else { f64::INFINITY };
                let amount = (old.get(dim) + before.get(dim) * ratio).min(limit);
                // A limit below the guarantee is still the ceiling (I4).
                let lift = part.guarantee.get(dim).min(limit);
                let amount = amount.min(part.request.get(dim)).max(lift);
                deserved[at].set(dim, amount);
                given.set(dim, given.get(dim) + amount - old.get(dim));
            }
            let request = &part.request;
            let satisfied = request.dims().all(|dim| le(request.get(dim), deserved[at].get(dim)));
            met[at] = satisfied || same(&deserved[at], &old);
        }
        for dim in given.dims() {
            let left = before.get(dim) - given.get(dim);
            remaining.set(dim, left.max(0.0));
        }
        if remaining.is_empty() || remaining == before {
            break;
        }
    }
    deserved.iter().map(settled).collect()
}

/// Adding parts leaves noise in the last bits, the rounds end while a little remains, and one bit too little would refuse a
/// pod that fits exactly: amounts that miss a whole unit by noise alone become that unit.
fn settled(deserved: &Vector) -> Vector {
    let mut settled = Vector::default();
    for dim in deserved.dims() {
        let amount = deserved.get(dim);
        let noise = (amount * NOISE_PART).max(EPSILON);
        let whole = amount.round();
        settled.set(dim, if (amount - whole).abs() <= noise { whole } else { amount });
    }
    settled
}

fn same(a: &Vector, b: &Vector) -> bool {
    a.dims().chain(b.dims()).all(|dim| a.get(dim) == b.get(dim))
}
