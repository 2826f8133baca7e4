//! What a pod asks of its node, from what its containers ask (spec 2.2). The caller hands in borrowed names and
//! parsed quantities, container by container; amounts are rounded up to stored units per container, as
//! Volcano does, and saturate.
//!
//! A decoder calls it like this: fill a [`PodRequest`] with one [`ContainerRequest`] per container and init
//! container in their order, then [`PodRequest::effective`]. Nothing is allocated per name that is already
//! known to the sum.

use crate::quantity::Quantity;
use crate::resource::{ResourceKind, kind, stored_amount};

/// Requests of one container: names with quantities, each name once.
#[derive(Clone, Debug, Default)]
pub struct ContainerRequest<'a> {
    /// `resources.requests`.
    pub requests: Vec<(&'a str, Quantity)>,
    /// Init container with `restartPolicy: Always`: a sidecar that keeps running.
    pub restartable: bool,
}

/// Requests of a pod's parts.
#[derive(Clone, Debug, Default)]
pub struct PodRequest<'a> {
    /// Regular containers.
    pub containers: Vec<ContainerRequest<'a>>,
    /// Init containers in their order.
    pub init_containers: Vec<ContainerRequest<'a>>,
    /// `spec.resources.requests`, which replaces what the containers add up to for the names it has.
    pub pod_level: Vec<(&'a str, Quantity)>,
    /// `spec.overhead`.
    pub overhead: Vec<(&'a str, Quantity)>,
}

/// Result of [`PodRequest::effective`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effective {
    /// Amounts in stored units, sorted by name, `pods` included.
    pub requests: Vec<(String, i64)>,
    /// Cpu (milli) and memory (bytes) with Kubernetes' defaults for containers that name none.
    pub nonzero: [i64; 2],
}

/// Cpu that scores assume of a container that asks for none: 100 milli.
pub const DEFAULT_CPU_MILLI: i64 = 100;
/// Memory that scores assume of a container that asks for none: 200 MiB.
pub const DEFAULT_MEMORY_BYTES: i64 = 200 << 20;

/// A small vector of amounts by name.
#[derive(Clone, Debug, Default)]
struct Sum<'a> {
    amounts: Vec<(&'a str, i64)>,
    nonzero: [i64; 2],
}

impl<'a> Sum<'a> {
    fn of(requests: &[(&'a str, Quantity)]) -> Self {
        let mut sum = Self::default();
        sum.add_list(requests);
        let named = |wanted| requests.iter().find(|(name, _)| *name == wanted);
        sum.nonzero = [
            named("cpu").map_or(DEFAULT_CPU_MILLI, |(_, q)| q.milli_value()),
            named("memory").map_or(DEFAULT_MEMORY_BYTES, |(_, q)| q.value()),
        ];
        sum
    }

    fn add_list(&mut self, requests: &[(&'a str, Quantity)]) {
        for &(name, ref quantity) in requests {
            if let Some(amount) = stored_amount(name, quantity) {
                *self.entry(name) = self.get(name).saturating_add(amount.max(0));
            }
        }
    }

    fn get(&self, name: &str) -> i64 {
        self.amounts.iter().find(|(known, _)| *known == name).map_or(0, |(_, amount)| *amount)
    }

    fn entry(&mut self, name: &'a str) -> &mut i64 {
        let at = self.amounts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.amounts.push((name, 0));
            self.amounts.len() - 1
        });
        &mut self.amounts[at].1
    }

    fn add(&mut self, other: &Self) {
        for &(name, amount) in &other.amounts {
            let entry = self.entry(name);
            *entry = entry.saturating_add(amount);
        }
        for (mine, theirs) in self.nonzero.iter_mut().zip(other.nonzero) {
            *mine = mine.saturating_add(theirs);
        }
    }

    fn max(&mut self, other: &Self) {
        for &(name, amount) in &other.amounts {
            let entry = self.entry(name);
            *entry = (*entry).max(amount);
        }
        for (mine, theirs) in self.nonzero.iter_mut().zip(other.nonzero) {
            *mine = (*mine).max(theirs);
        }
    }
}

impl PodRequest<'_> {
    /// The request that decides where the pod fits, and the one that scores assume.
    pub fn effective(&self) -> Effective {
        let mut sum = Sum::default();
        for container in &self.containers {
            sum.add(&Sum::of(&container.requests));
        }
        let mut sidecars = Sum::default();
        let mut largest = Sum::default();
        for container in &self.init_containers {
            let own = Sum::of(&container.requests);
            if container.restartable {
                sum.add(&own);
                sidecars.add(&own);
                largest.max(&sidecars);
            } else {
                let mut candidate = own;
                candidate.add(&sidecars);
                largest.max(&candidate);
            }
        }
        sum.max(&largest);
        for (name, quantity) in &self.pod_level {
            let replaces = matches!(kind(name), ResourceKind::Cpu | ResourceKind::Memory)
                || name.starts_with("hugepages-");
            if let Some(amount) = stored_amount(name, quantity).filter(|_| replaces) {
                *sum.entry(name) = amount.max(0);
            }
        }
        sum.add_list(&self.overhead);
        for (name, quantity) in &self.overhead {
            match *name {
                "cpu" => {
                    sum.nonzero[0] = sum.nonzero[0].saturating_add(quantity.milli_value().max(0))
                }
                "memory" => sum.nonzero[1] = sum.nonzero[1].saturating_add(quantity.value().max(0)),
                _ => {}
            }
        }
        *sum.entry("pods") = sum.get("pods").saturating_add(1);
        let mut requests: Vec<(String, i64)> =
            sum.amounts.iter().map(|&(name, amount)| (name.to_owned(), amount)).collect();
        requests.sort();
        Effective { requests, nonzero: sum.nonzero }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(cpu: &str, memory: &str) -> ContainerRequest<'static> {
        let mut requests = Vec::new();
        if !cpu.is_empty() {
            requests.push(("cpu", Quantity::parse(cpu).unwrap()));
        }
        if !memory.is_empty() {
            requests.push(("memory", Quantity::parse(memory).unwrap()));
        }
        ContainerRequest { requests, restartable: false }
    }

    fn amounts(pod: &PodRequest<'_>) -> Vec<(String, i64)> {
        pod.effective().requests
    }

    fn expect(list: &[(&str, i64)]) -> Vec<(String, i64)> {
        list.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
    }

    #[test]
    fn containers_add_up_and_a_pod_counts_as_one() {
        let pod = PodRequest {
            containers: vec![container("500m", "1Gi"), container("1", "")],
            ..PodRequest::default()
        };
        assert_eq!(amounts(&pod), expect(&[("cpu", 1500), ("memory", 1 << 30), ("pods", 1)]));
    }

    #[test]
    fn a_large_init_container_decides_alone() {
        let pod = PodRequest {
            containers: vec![container("1", "1Gi")],
            init_containers: vec![container("4", "100Mi"), container("2", "3Gi")],
            ..PodRequest::default()
        };
        assert_eq!(amounts(&pod), expect(&[("cpu", 4000), ("memory", 3 << 30), ("pods", 1)]));
    }

    #[test]
    fn a_sidecar_runs_beside_later_init_containers_and_beside_the_containers() {
        let sidecar = ContainerRequest { restartable: true, ..container("1", "") };
        let pod = PodRequest {
            containers: vec![container("2", "")],
            init_containers: vec![container("3", ""), sidecar, container("4", "")],
            ..PodRequest::default()
        };
        assert_eq!(amounts(&pod), expect(&[("cpu", 5000), ("pods", 1)]));
    }

    #[test]
    fn pod_level_requests_replace_and_overhead_is_added() {
        let pod = PodRequest {
            containers: vec![container("1", "1Gi")],
            pod_level: vec![("cpu", Quantity::parse("3").unwrap())],
            overhead: vec![("cpu", Quantity::parse("250m").unwrap())],
            ..PodRequest::default()
        };
        assert_eq!(amounts(&pod), expect(&[("cpu", 3250), ("memory", 1 << 30), ("pods", 1)]));
    }

    #[test]
    fn scores_assume_a_little_of_containers_that_ask_for_nothing() {
        let pod = PodRequest {
            containers: vec![container("", ""), container("1", "1Gi")],
            ..PodRequest::default()
        };
        assert_eq!(pod.effective().nonzero, [1100, (200 << 20) + (1 << 30)]);
    }

    #[test]
    fn four_hundred_containers_with_huge_requests_saturate() {
        let pod = PodRequest {
            containers: (0..400).map(|_| container("9E", "9E")).collect(),
            ..PodRequest::default()
        };
        assert_eq!(amounts(&pod), expect(&[("cpu", i64::MAX), ("memory", i64::MAX), ("pods", 1)]));
    }
}
