//! Volcano's resource vector with its comparison rules (spec 2.1), for places where the exact rules matter
//! and speed does not. The scheduling core has its own dense form of the same rules.

#[path = "partly.rs"]
mod partly;

use std::collections::BTreeMap;

/// Tolerance of comparisons, in stored units.
const EPSILON: f64 = 0.1;

/// What an absent scalar stands for in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimensionDefault {
    /// Nothing.
    Zero,
    /// No limit.
    Infinity,
}

/// Amounts of cpu (milli), memory (bytes) and scalars (`pods` whole, others milli).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Cpu in milli.
    pub milli_cpu: f64,
    /// Memory in bytes.
    pub memory: f64,
    /// Other resources; `None` and empty differ in a few rules.
    pub scalars: Option<BTreeMap<String, f64>>,
    /// Pods that fit by count; arithmetic and comparison ignore it.
    pub max_tasks: i64,
}

/// `a <= b` within the tolerance.
fn le(a: f64, b: f64) -> bool {
    a < b || (a - b).abs() < EPSILON
}

impl Resource {
    /// Amount of a name, 0 when absent.
    pub fn get(&self, name: &str) -> f64 {
        match name {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            _ => self.scalar(name).unwrap_or(0.0),
        }
    }

    fn scalar(&self, name: &str) -> Option<f64> {
        self.scalars.as_ref().and_then(|scalars| scalars.get(name)).copied()
    }

    fn scalar_iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.scalars.iter().flatten().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// True when every amount but `pods` is below the tolerance.
    pub fn is_empty(&self) -> bool {
        self.milli_cpu < EPSILON
            && self.memory < EPSILON
            && self.scalar_iter().all(|(name, amount)| name == "pods" || amount < EPSILON)
    }

    /// Names with an amount of at least the tolerance.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if self.milli_cpu >= EPSILON {
            names.push("cpu");
        }
        if self.memory >= EPSILON {
            names.push("memory");
        }
        names.extend(
            self.scalar_iter().filter(|(_, amount)| *amount >= EPSILON).map(|(name, _)| name),
        );
        names
    }

    /// Adds component by component.
    pub fn add(&mut self, other: &Self) -> &mut Self {
        self.milli_cpu += other.milli_cpu;
        self.memory += other.memory;
        for (name, amount) in other.scalar_iter() {
            *self.scalars.get_or_insert_default().entry(name.to_owned()).or_default() += amount;
        }
        self
    }

    /// Subtracts without asking; results may be negative. Without scalars of its own the left side keeps none.
    pub fn subtract(&mut self, other: &Self) -> &mut Self {
        self.milli_cpu -= other.milli_cpu;
        self.memory -= other.memory;
        if let Some(scalars) = &mut self.scalars {
            for (name, amount) in other.scalar_iter() {
                *scalars.entry(name.to_owned()).or_default() -= amount;
            }
        }
        self
    }

    /// Multiplies every component.
    pub fn multiply(&mut self, ratio: f64) -> &mut Self {
        self.milli_cpu *= ratio;
        self.memory *= ratio;
        for amount in self.scalars.iter_mut().flat_map(BTreeMap::values_mut) {
            *amount *= ratio;
        }
        self
    }

    /// Component-wise maximum; a left side without scalars takes the right ones.
    pub fn set_max(&mut self, other: &Self) -> &mut Self {
        self.milli_cpu = self.milli_cpu.max(other.milli_cpu);
        self.memory = self.memory.max(other.memory);
        for (name, amount) in other.scalar_iter() {
            let mine =
                self.scalars.get_or_insert_default().entry(name.to_owned()).or_insert(amount);
            *mine = mine.max(amount);
        }
        self
    }

    /// Every component is smaller, without tolerance (`Less`).
    pub fn less(&self, other: &Self, default: DimensionDefault) -> bool {
        self.all(other, default, |a, b| a < b)
    }

    /// Every component is smaller or equal within the tolerance (`LessEqual`).
    pub fn less_equal(&self, other: &Self, default: DimensionDefault) -> bool {
        self.all(other, default, le)
    }

    fn all(&self, other: &Self, default: DimensionDefault, holds: fn(f64, f64) -> bool) -> bool {
        if !holds(self.milli_cpu, other.milli_cpu) || !holds(self.memory, other.memory) {
            return false;
        }
        let left_only_holds = self.scalar_iter().all(|(name, amount)| match other.scalar(name) {
            Some(limit) => holds(amount, limit),
            None => default == DimensionDefault::Infinity || holds(amount, 0.0),
        });
        // An unlimited left side is not below a limited right one.
        let right_only_holds = default == DimensionDefault::Zero
            || other.scalar_iter().all(|(name, _)| self.scalar(name).is_some());
        left_only_holds && right_only_holds
    }

    /// Some component is smaller (`LessPartly`).
    pub fn less_partly(&self, other: &Self, default: DimensionDefault) -> bool {
        self.any(other, default, |a, b| a < b)
    }

    /// Some component is smaller or equal (`LessEqualPartly`).
    pub fn less_equal_partly(&self, other: &Self, default: DimensionDefault) -> bool {
        self.any(other, default, le)
    }

    fn any(&self, other: &Self, default: DimensionDefault, holds: fn(f64, f64) -> bool) -> bool {
        if holds(self.milli_cpu, other.milli_cpu) || holds(self.memory, other.memory) {
            return true;
        }
        let left = self.scalar_iter().any(|(name, amount)| match other.scalar(name) {
            Some(limit) => holds(amount, limit),
            None => default == DimensionDefault::Infinity || holds(amount, 0.0),
        });
        left || (default == DimensionDefault::Zero
            && other.scalar_iter().any(|(name, _)| self.scalar(name).is_none()))
    }

    /// Every component is equal within the tolerance; scalars that only the right side has are not looked at.
    pub fn equal(&self, other: &Self) -> bool {
        let same = |a: f64, b: f64| (a - b).abs() < EPSILON;
        same(self.milli_cpu, other.milli_cpu)
            && same(self.memory, other.memory)
            && self.scalar_iter().all(|(name, amount)| same(amount, other.get(name)))
    }

    /// Names that exceed the limit among those that `request` asks for, without tolerance, `pods` ignored
    /// (`LessEqualWithDimensionAndResourcesName`).
    pub fn exceeding(&self, limit: &Self, request: &Self) -> Vec<String> {
        let mut names = Vec::new();
        for name in ["cpu", "memory"] {
            if request.get(name) > 0.0 && self.get(name) > limit.get(name) {
                names.push(name.to_owned());
            }
        }
        if self.scalars.is_some() {
            for (name, wanted) in request.scalar_iter() {
                if name != "pods" && wanted > 0.0 && self.get(name) > limit.get(name) {
                    names.push(name.to_owned());
                }
            }
        }
        names
    }
}

/// Part of `total` that `amount` is; of nothing, something is 1 and nothing is 0.
pub fn share(amount: f64, total: f64) -> f64 {
    if total == 0.0 { if amount == 0.0 { 0.0 } else { 1.0 } } else { amount / total }
}

#[cfg(test)]
mod tests {
    use super::DimensionDefault::{Infinity, Zero};
    use super::*;

    fn vector(cpu: f64, memory: f64, scalars: &[(&str, f64)]) -> Resource {
        Resource {
            milli_cpu: cpu,
            memory,
            scalars: (!scalars.is_empty()).then(|| {
                scalars.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
            }),
            max_tasks: 0,
        }
    }

    #[test]
    fn equal_within_the_tolerance_is_less_or_equal_but_not_less() {
        let (a, b) = (vector(1000.05, 10.0, &[]), vector(1000.0, 10.0, &[]));
        assert!(a.less_equal(&b, Zero));
        assert!(!a.less(&b, Zero));
        assert!(!vector(1000.2, 10.0, &[]).less_equal(&b, Zero));
    }

    #[test]
    fn an_absent_limit_is_zero_or_infinite_as_asked() {
        let (wanted, limit) = (vector(1.0, 1.0, &[("gpu/x", 5.0)]), vector(2.0, 2.0, &[]));
        assert!(!wanted.less_equal(&limit, Zero));
        assert!(wanted.less_equal(&limit, Infinity));
        assert!(limit.less_equal(&vector(3.0, 3.0, &[("gpu/x", 1.0)]), Zero));
        assert!(!limit.less_equal(&vector(3.0, 3.0, &[("gpu/x", 1.0)]), Infinity));
    }

    #[test]
    fn only_requested_names_can_exceed_and_pods_never_do() {
        let used = vector(10.0, 10.0, &[("pods", 9.0), ("gpu/x", 3.0)]);
        let limit = vector(5.0, 20.0, &[("pods", 1.0)]);
        assert_eq!(
            used.exceeding(&limit, &vector(1.0, 0.0, &[("pods", 1.0), ("gpu/x", 1.0)])),
            ["cpu", "gpu/x"]
        );
        assert!(used.exceeding(&limit, &vector(0.0, 1.0, &[("pods", 1.0)])).is_empty());
    }
}
