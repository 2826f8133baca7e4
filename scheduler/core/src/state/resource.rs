//! Amounts of resources inside the core: dimensions with dense numbers, sparse requests of pods, and exact
//! sums of queues, jobs and the cluster.
//!
//! Amounts are Volcano's stored units, except that byte-valued scalars (`ephemeral-storage`, `hugepages-*`)
//! are kept in bytes instead of milli-bytes, so that every amount of a node is an integer below 2^53 and thus
//! exact in the `f64` columns that the kernel reads.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::event::Amounts;

/// Dense number of a resource name.
pub type Dim = u16;
/// `cpu`, in milli.
pub const CPU: Dim = 0;
/// `memory`, in bytes.
pub const MEMORY: Dim = 1;
/// `pods`, in pods.
pub const PODS: Dim = 2;

/// Presence masks are 128 bits wide: more distinct resource names than this are refused at the edge.
pub const MAX_DIMENSIONS: usize = 128;

/// What a node may offer at most in one dimension. Larger values are read as this one.
pub const NODE_LIMIT: i64 = 1 << 50;
/// What a pod may ask for at most. It is above [`NODE_LIMIT`], so such a pod fits nowhere.
pub const REQUEST_LIMIT: i64 = 1 << 51;

/// Names of the dimensions, in order of appearance.
#[derive(Debug)]
pub struct Dimensions {
    names: Vec<Arc<str>>,
    divisor: Vec<i64>,
    by_name: FxHashMap<Arc<str>, Dim>,
}

impl Default for Dimensions {
    fn default() -> Self {
        let mut dims =
            Self { names: Vec::new(), divisor: Vec::new(), by_name: FxHashMap::default() };
        for name in ["cpu", "memory", "pods"] {
            dims.intern(name);
        }
        dims
    }
}

impl Dimensions {
    /// Number of dimensions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true: cpu, memory and pods always exist.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Name of a dimension.
    pub fn name(&self, dim: Dim) -> &Arc<str> {
        &self.names[dim as usize]
    }

    /// Number of a name that is already known.
    pub fn get(&self, name: &str) -> Option<Dim> {
        self.by_name.get(name).copied()
    }

    /// Number of a name, given a new one if needed. `None` when there are too many names.
    pub fn intern(&mut self, name: &str) -> Option<Dim> {
        if let Some(&dim) = self.by_name.get(name) {
            return Some(dim);
        }
        if self.names.len() == MAX_DIMENSIONS {
            return None;
        }
        let dim = self.names.len() as Dim;
        let name: Arc<str> = name.into();
        let in_bytes = &*name == "ephemeral-storage" || name.starts_with("hugepages-");
        self.divisor.push(if in_bytes { 1000 } else { 1 });
        self.names.push(name.clone());
        self.by_name.insert(name, dim);
        Some(dim)
    }

    /// A stored amount in the unit of this core, rounded up.
    pub fn to_core(&self, dim: Dim, stored: i64) -> i64 {
        let divisor = self.divisor[dim as usize];
        if divisor == 1 {
            stored
        } else {
            stored.div_euclid(divisor) + i64::from(stored.rem_euclid(divisor) != 0)
        }
    }

    /// An amount of this core in Volcano's stored unit, saturating.
    pub fn to_stored(&self, dim: Dim, amount: i128) -> i64 {
        clamp_i64(amount.saturating_mul(i128::from(self.divisor[dim as usize])))
    }

    /// Reads stored amounts into a presence-aware vector of exact sums.
    pub fn vector(&mut self, amounts: &Amounts) -> Vector {
        let mut vector = Vector::default();
        for (name, stored) in amounts {
            if let Some(dim) = self.intern(name) {
                vector.set(dim, self.to_core(dim, *stored) as f64);
            }
        }
        vector
    }
}

/// Clamps to the range of `i64`.
pub fn clamp_i64(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Request of a pod: sorted by dimension, cpu, memory and pods always present.
pub type Request = SmallVec<[(Dim, i64); 5]>;

/// What a request asks for in a dimension.
pub fn asked(request: &Request, dim: Dim) -> i64 {
    request.iter().find(|(of, _)| *of == dim).map_or(0, |&(_, amount)| amount)
}

/// An exact sum over pods or nodes, by dimension. Dimensions past the end are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(SmallVec<[i128; 4]>);

impl Ledger {
    /// Amount in a dimension.
    pub fn get(&self, dim: Dim) -> i128 {
        self.0.get(dim as usize).copied().unwrap_or(0)
    }

    /// Adds to one dimension.
    pub fn add(&mut self, dim: Dim, amount: i128) {
        let at = dim as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += amount;
    }

    /// Adds `count` times a request (`count` may be negative).
    pub fn add_request(&mut self, request: &Request, count: i64) {
        for &(dim, amount) in request {
            self.add(dim, i128::from(amount) * i128::from(count));
        }
    }

    /// Adds another sum.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|(dim, amount)| self.add(dim, amount));
    }

    /// Amounts by dimension.
    pub fn iter(&self) -> impl Iterator<Item = (Dim, i128)> + '_ {
        self.0.iter().enumerate().map(|(dim, &amount)| (dim as Dim, amount))
    }

    /// True when every dimension is 0.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&amount| amount == 0)
    }

    /// True when all dimensions are equal, whatever the length.
    pub fn same(&self, other: &Self) -> bool {
        let longest = self.0.len().max(other.0.len());
        (0..longest).all(|dim| self.get(dim as Dim) == other.get(dim as Dim))
    }
}

/// Amounts with a presence mask, for quotas and shares: Volcano's `Resource` with `Zero`/`Infinity` defaults
/// for absent dimensions becomes masking. Values are `f64` because `deserved` is a ratio of integers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    values: SmallVec<[f64; 4]>,
    present: u128,
}

/// Volcano's tolerance in comparisons (2.1).
pub const EPSILON: f64 = 0.1;

/// Volcano's `le`: smaller, or equal within the tolerance.
pub fn le(a: f64, b: f64) -> bool {
    a < b || (a - b).abs() < EPSILON
}

impl Vector {
    /// Amount, 0 when absent.
    pub fn get(&self, dim: Dim) -> f64 {
        self.values.get(dim as usize).copied().unwrap_or(0.0)
    }

    /// True when the dimension was given.
    pub fn has(&self, dim: Dim) -> bool {
        self.present & (1 << dim) != 0
    }

    /// Sets one amount and marks it present.
    pub fn set(&mut self, dim: Dim, amount: f64) {
        let at = dim as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, 0.0);
        }
        self.values[at] = amount;
        self.present |= 1 << dim;
    }

    /// Present dimensions in order.
    pub fn dims(&self) -> impl Iterator<Item = Dim> + '_ {
        let mut left = self.present;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let dim = left.trailing_zeros() as Dim;
            left &= left - 1;
            Some(dim)
        })
    }

    /// True when no dimension but `pods` reaches the tolerance (Volcano `IsEmpty`).
    pub fn is_empty(&self) -> bool {
        self.dims().all(|dim| dim == PODS || self.get(dim) < EPSILON)
    }
}

impl From<&Ledger> for Vector {
    fn from(ledger: &Ledger) -> Self {
        let mut vector = Self::default();
        for (dim, amount) in ledger.iter() {
            if amount != 0 || dim <= MEMORY {
                vector.set(dim, amount as f64);
            }
        }
        vector
    }
}

/// Volcano's `Share`: part of `total` that `amount` is; 1 when there is none but some is used.
pub fn share(amount: f64, total: f64) -> f64 {
    if total == 0.0 { if amount == 0.0 { 0.0 } else { 1.0 } } else { amount / total }
}
