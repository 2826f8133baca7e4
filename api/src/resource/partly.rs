//! The rest of Volcano's functions on resource vectors (spec 2.1): comparisons that name dimensions or look only at those
//! of a request, differences, minima. Their treatment of scalars that one side lacks differs from function to
//! function; the differences are Volcano's and decide what fits (B49). The rule for a nil receiver, `(true, [])`,
//! is for the caller who has none.

use std::collections::BTreeMap;

use super::{DimensionDefault, EPSILON, Resource, le};
use crate::quantity::Quantity;
use crate::resource::{ResourceKind, kind, stored_amount};

/// Stands for an unlimited amount in the result of [`Resource::diff`].
const UNLIMITED: f64 = -1.0;

/// Whether a comparison holds, and the names that decided it: cpu, memory, then scalars by name.
type Named = (bool, Vec<String>);

impl Resource {
    /// Reads a resource list; names that do not count are left out, `pods` counts as scalar and as `max_tasks`.
    pub fn from_list<'a>(list: impl IntoIterator<Item = (&'a str, Quantity)>) -> Self {
        let mut resource = Self::default();
        for (name, quantity) in list {
            let Some(amount) = stored_amount(name, &quantity) else { continue };
            match kind(name) {
                ResourceKind::Cpu => resource.milli_cpu += amount as f64,
                ResourceKind::Memory => resource.memory += amount as f64,
                ResourceKind::Pods => {
                    resource.max_tasks = resource.max_tasks.saturating_add(amount);
                    resource.add_scalar(name, amount as f64);
                }
                ResourceKind::Scalar => resource.add_scalar(name, amount as f64),
                ResourceKind::Dropped => {}
            }
        }
        resource
    }

    /// More than anything has, in cpu, memory and number of pods.
    pub fn infinite() -> Self {
        Self { milli_cpu: f64::MAX, memory: f64::MAX, scalars: None, max_tasks: i64::MAX }
    }

    /// Adds to one scalar, creating it.
    pub fn add_scalar(&mut self, name: &str, amount: f64) {
        *self.scalars.get_or_insert_default().entry(name.to_owned()).or_default() += amount;
    }

    /// True when the amount is below the tolerance; an absent scalar is zero (Volcano panics there).
    pub fn is_zero(&self, name: &str) -> bool {
        self.get(name) < EPSILON
    }

    /// Subtracts after checking that there is enough (`Sub`).
    ///
    /// # Errors
    /// The names of which there is not enough; `self` is unchanged then. (Volcano panics.)
    pub fn checked_subtract(&mut self, other: &Self) -> Result<(), Vec<String>> {
        let (enough, names) = other.less_equal_with_resources_name(self, DimensionDefault::Zero);
        if !enough {
            return Err(names);
        }
        self.subtract(other);
        Ok(())
    }

    /// Component-wise minimum in place (`MinDimensionResource`). A scalar that only `self` has becomes 0 or stays, by
    /// `default`; one that only `other` has is not added.
    pub fn min_dimension(&mut self, other: &Self, default: DimensionDefault) {
        self.milli_cpu = self.milli_cpu.min(other.milli_cpu);
        self.memory = self.memory.min(other.memory);
        for (name, amount) in self.scalars.iter_mut().flatten() {
            match (other.scalar(name), default) {
                (Some(limit), _) => *amount = amount.min(limit),
                (None, DimensionDefault::Zero) => *amount = 0.0,
                (None, DimensionDefault::Infinity) => {}
            }
        }
    }

    /// Takes every requested dimension and the tolerance away (`FitDelta`); what is below zero then is missing.
    pub fn fit_delta(&mut self, request: &Self) {
        if request.milli_cpu > 0.0 {
            self.milli_cpu -= request.milli_cpu + EPSILON;
        }
        if request.memory > 0.0 {
            self.memory -= request.memory + EPSILON;
        }
        for (name, amount) in request.scalar_iter().filter(|(_, amount)| *amount > 0.0) {
            self.add_scalar(name, -(amount + EPSILON));
        }
    }

    /// By how much `self` is above and below `other` (`Diff`). A scalar that one side lacks is 0 or unlimited there, by
    /// `default`; an unlimited side gives -1 in the part where it is the greater one.
    #[must_use]
    pub fn diff(&self, other: &Self, default: DimensionDefault) -> (Self, Self) {
        let (mut more, mut less) = (Self::default(), Self::default());
        more.milli_cpu = (self.milli_cpu - other.milli_cpu).max(0.0);
        less.milli_cpu = (other.milli_cpu - self.milli_cpu).max(0.0);
        more.memory = (self.memory - other.memory).max(0.0);
        less.memory = (other.memory - self.memory).max(0.0);
        let absent = match default {
            DimensionDefault::Zero => 0.0,
            DimensionDefault::Infinity => UNLIMITED,
        };
        let mut names: Vec<&str> =
            self.scalar_iter().chain(other.scalar_iter()).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let left = self.scalar(name).unwrap_or(absent);
            let right = other.scalar(name).unwrap_or(absent);
            if left == UNLIMITED {
                more.add_scalar(name, UNLIMITED);
            } else if right == UNLIMITED {
                less.add_scalar(name, UNLIMITED);
            } else if left > right {
                more.add_scalar(name, left - right);
            } else if left < right {
                less.add_scalar(name, right - left);
            }
        }
        (more, less)
    }

    /// The part of `left` that is above `right` (`ExceededPart`); without a `right` all of it, without a `left` none.
    #[must_use]
    pub fn exceeded_part(left: Option<&Self>, right: Option<&Self>) -> Self {
        match (left, right) {
            (None, _) => Self::default(),
            (Some(left), None) => left.clone(),
            (Some(left), Some(right)) => left.diff(right, DimensionDefault::Zero).0,
        }
    }

    /// Component-wise minimum (`helpers.Min`): scalars only when both sides have a map, and only those of `self`.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let lesser = |(name, amount): (&str, f64)| (name.to_owned(), amount.min(other.get(name)));
        Self {
            milli_cpu: self.milli_cpu.min(other.milli_cpu),
            memory: self.memory.min(other.memory),
            scalars: (self.scalars.is_some() && other.scalars.is_some())
                .then(|| self.scalar_iter().map(lesser).collect()),
            max_tasks: 0,
        }
    }

    /// Component-wise maximum (`helpers.Max`): all scalars of both sides that are not negative.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        let mut scalars = BTreeMap::new();
        for (name, amount) in self.scalar_iter().chain(other.scalar_iter()) {
            if amount >= 0.0 {
                let known = scalars.entry(name.to_owned()).or_insert(amount);
                *known = known.max(amount);
            }
        }
        Self {
            milli_cpu: self.milli_cpu.max(other.milli_cpu),
            memory: self.memory.max(other.memory),
            scalars: (self.scalars.is_some() || other.scalars.is_some()).then_some(scalars),
            max_tasks: 0,
        }
    }

    /// As [`Resource::less_equal`] with the names that fail. Scalars that only `other` has are not looked at, whatever the
    /// default.
    pub fn less_equal_with_resources_name(&self, other: &Self, default: DimensionDefault) -> Named {
        let mut failing = Vec::new();
        for name in ["cpu", "memory"] {
            if !le(self.get(name), other.get(name)) {
                failing.push(name.to_owned());
            }
        }
        for (name, amount) in self.scalar_iter() {
            let unlimited = other.scalar(name).is_none() && default == DimensionDefault::Infinity;
            if !unlimited && !le(amount, other.get(name)) {
                failing.push(name.to_owned());
            }
        }
        (failing.is_empty(), failing)
    }

    /// Not [`Resource::less_equal_with_resources_name`], with the names.
    pub fn greater_partly(&self, other: &Self, default: DimensionDefault) -> Named {
        let (below, names) = self.less_equal_with_resources_name(other, default);
        (!below, names)
    }

    /// In every requested dimension `self` is at most `other`, without tolerance, with the names that fail
    /// ([`Resource::exceeding`] with Volcano's nil rules). Without a request all dimensions count, with tolerance.
    pub fn less_equal_with_dimension_and_resources_name(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
    ) -> Named {
        let Some(other) = other else { return (false, owned(self.names())) };
        let Some(request) = request else {
            return self.less_equal_with_resources_name(other, DimensionDefault::Zero);
        };
        let failing = self.exceeding(other, request);
        (failing.is_empty(), failing)
    }

    /// In some requested dimension `self` is at most `other`, within the tolerance. Gives those names.
    pub fn less_equal_partly_with_dimension(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
    ) -> Named {
        self.partly(other, request, |_, left, right| le(left, right))
    }

    /// As [`Resource::less_equal_partly_with_dimension`], leaving out dimensions where both sides have nothing.
    pub fn less_equal_partly_with_dimension_zero_filtered(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
    ) -> Named {
        self.partly(other, request, |_, left, right| {
            (left >= EPSILON || right >= EPSILON) && le(left, right)
        })
    }

    /// In some requested dimension `self` is strictly above `other`. Gives those names.
    pub fn greater_partly_with_dimension(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
    ) -> Named {
        self.partly(other, request, |_, left, right| left > right)
    }

    /// As [`Resource::greater_partly_with_dimension`], only in dimensions that `other` has: cpu and memory from the tolerance
    /// on, scalars when they are there.
    pub fn greater_partly_with_relevant_dimensions(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
    ) -> Named {
        self.partly(other, request, |name, left, right| {
            let relevant = match name {
                "cpu" | "memory" => right >= EPSILON,
                _ => other.is_some_and(|other| other.scalar(name).is_some()),
            };
            relevant && left > right
        })
    }

    /// Requested dimensions where a comparison holds; `pods` never counts here.
    fn partly(
        &self,
        other: Option<&Self>,
        request: Option<&Self>,
        holds: impl Fn(&str, f64, f64) -> bool,
    ) -> Named {
        let Some(other) = other else { return (false, owned(self.names())) };
        let Some(request) = request else { return (false, Vec::new()) };
        let holding: Vec<String> = [("cpu", request.milli_cpu), ("memory", request.memory)]
            .into_iter()
            .chain(request.scalar_iter())
            .filter(|(name, wanted)| *wanted > 0.0 && *name != "pods")
            .filter(|(name, _)| holds(name, self.get(name), other.get(name)))
            .map(|(name, _)| name.to_owned())
            .collect();
        (!holding.is_empty(), holding)
    }

    /// Names that both sides have from the tolerance on (`Intersection`).
    pub fn intersection(&self, other: &Self) -> Vec<String> {
        let theirs = other.names();
        owned(self.names().into_iter().filter(|name| theirs.contains(name)).collect())
    }

    /// As [`Resource::intersection`], without `pods` (`IntersectionWithIgnoredScalarResources`).
    pub fn intersection_without_pods(&self, other: &Self) -> Vec<String> {
        let mut names = self.intersection(other);
        names.retain(|name| name != "pods");
        names
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
