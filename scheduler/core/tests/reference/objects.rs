//! Small building blocks of random clusters: shapes of nodes and pods from which few differ, so that they meet.

use std::sync::Arc;

use tephra_core::event::{
    Amounts, HostPort, LabelSelector, Labels, NodeObject, NodeSelectorTerm, Operator,
    PodAffinityTerm, PodSpec, Requirement, SpreadConstraint, Taint, TaintEffect, Toleration,
};

/// Namespace of most pods.
pub const NAMESPACE: &str = "team";
/// Namespace of the others.
pub const OTHER_NAMESPACE: &str = "other";
/// Sets of constraints that [`spec`] knows.
pub const CONSTRAINTS: u8 = 27;
const GIB: i64 = 1 << 30;
const GPU: &str = "nvidia.com/gpu";
const ZONE: &str = "topology.kubernetes.io/zone";
const POOL: &str = "pool";
const CORES: &str = "cores";

/// Sorted amounts.
pub fn amounts(list: &[(&str, i64)]) -> Amounts {
    let mut amounts: Amounts = list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    amounts.sort();
    amounts
}

fn labels(list: &[(&str, &str)]) -> Labels {
    let mut labels: Labels =
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    labels.sort();
    labels
}

/// A node; every number picks one of few variants.
#[derive(Clone, Debug)]
pub struct NodeSeed {
    pub shape: u8,
    pub zone: u8,
    pub pool: u8,
    pub taint: u8,
    pub cordoned: bool,
}

impl NodeSeed {
    /// The object.
    pub fn object(&self, number: usize) -> NodeObject {
        let allocatable = match self.shape % 5 {
            0 => amounts(&[("cpu", 4_000), ("memory", 8 * GIB), ("pods", 6)]),
            1 => amounts(&[("cpu", 8_000), ("memory", 16 * GIB), ("pods", 10), (GPU, 2_000)]),
            2 => amounts(&[("cpu", 16_000), ("memory", 32 * GIB), ("pods", 20), (GPU, 4_000)]),
            3 => amounts(&[("cpu", 3_000), ("memory", 12 * GIB), ("pods", 3)]),
            _ => amounts(&[("cpu", 1_500), ("memory", 2 * GIB), ("pods", 5)]),
        };
        let name = format!("node-{number}");
        let zone = ["a", "b", "c", ""][self.zone as usize % 4];
        let taint = |effect| Taint { key: "dedicated".to_owned(), value: "gpu".to_owned(), effect };
        let slow = |effect| Taint { key: "slow".to_owned(), value: String::new(), effect };
        let cores = ["4", "8", "16", "many", "-1"][self.shape as usize % 5];
        let mut its = vec![
            ("kubernetes.io/hostname", name.as_str()),
            (POOL, ["red", "blue"][self.pool as usize % 2]),
            (CORES, cores),
        ];
        if !zone.is_empty() {
            its.push((ZONE, zone));
        }
        NodeObject {
            labels: labels(&its),
            taints: match self.taint % 8 {
                0 => vec![taint(TaintEffect::NoSchedule)],
                1 => vec![taint(TaintEffect::PreferNoSchedule)],
                2 => vec![taint(TaintEffect::NoExecute)],
                3 => vec![slow(TaintEffect::PreferNoSchedule), taint(TaintEffect::NoSchedule)],
                4 => {
                    vec![slow(TaintEffect::PreferNoSchedule), taint(TaintEffect::PreferNoSchedule)]
                }
                _ => Vec::new(),
            },
            unschedulable: self.cordoned,
            allocatable,
            images: if self.pool == 1 {
                vec![("registry/app:1".to_owned(), 700 << 20)]
            } else {
                Vec::new()
            },
            name,
        }
    }
}

/// What a pod asks for; number 0 asks for nothing but a place.
pub fn requests(shape: u8) -> Amounts {
    let pods = ("pods", 1);
    match shape % 9 {
        0 => amounts(&[pods]),
        1 => amounts(&[("cpu", 1_000), ("memory", GIB), pods]),
        2 => amounts(&[("cpu", 2_000), ("memory", 4 * GIB), pods]),
        3 => amounts(&[("cpu", 500), ("memory", GIB / 2), pods]),
        4 => amounts(&[("cpu", 1_000), ("memory", 2 * GIB), (GPU, 1_000), pods]),
        5 => amounts(&[("cpu", 3_000), ("memory", GIB), pods]),
        6 => amounts(&[("cpu", 700), pods]),
        7 => amounts(&[("memory", 3 * GIB), pods]),
        _ => amounts(&[("cpu", 2_000), ("memory", GIB), (GPU, 2_000), pods]),
    }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator, values }
}

fn term(requirement: Requirement) -> NodeSelectorTerm {
    NodeSelectorTerm { expressions: vec![requirement], fields: Vec::new() }
}

/// Label `app` of pods with a set of constraints.
pub fn app(constraint: u8) -> String {
    format!("app-{}", constraint % CONSTRAINTS)
}

const HOST: &str = "kubernetes.io/hostname";

fn apps(constraints: &[u8]) -> LabelSelector {
    let apps: Vec<String> = constraints.iter().map(|&constraint| app(constraint)).collect();
    let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
    LabelSelector { requirements: vec![requirement("app", Operator::In, &apps)] }
}

fn pod_term(constraints: &[u8], topology_key: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        selector: Some(apps(constraints)),
        topology_key: topology_key.to_owned(),
        ..PodAffinityTerm::default()
    }
}

fn spread(constraint: u8, topology_key: &str, hard: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew: 1,
        topology_key: topology_key.to_owned(),
        hard,
        selector: apps(&[constraint]),
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    }
}

/// A pod template: what it asks for, and one of few sets of constraints.
pub fn spec(namespace: &str, shape: u8, constraint: u8) -> Arc<PodSpec> {
    let requests = requests(shape);
    let of = |name: &str| requests.iter().find(|(known, _)| known == name).map(|(_, n)| *n);
    let mut spec = PodSpec {
        namespace: namespace.to_owned(),
        nonzero: [of("cpu").unwrap_or(100), of("memory").unwrap_or(200 << 20)],
        requests,
        ..PodSpec::default()
    };
    match constraint % CONSTRAINTS {
        1 => spec.node_selector = labels(&[(ZONE, "a")]),
        2 => {
            spec.required_node_terms = vec![
                term(requirement(POOL, Operator::NotIn, &["red"])),
                term(requirement(ZONE, Operator::In, &["b"])),
            ];
        }
        3 => {
            spec.tolerations = vec![Toleration {
                key: "dedicated".to_owned(),
                exists: true,
                ..Toleration::default()
            }];
        }
        4 => {
            spec.preferred_node_terms = vec![
                (30, term(requirement(ZONE, Operator::In, &["b", "c"]))),
                (50, term(requirement(POOL, Operator::Exists, &[]))),
            ];
        }
        5 => {
            spec.host_ports =
                vec![HostPort { port: 80, protocol: "TCP".to_owned(), ip: "0.0.0.0".to_owned() }];
        }
        6 => spec.images = vec!["registry/app:1".to_owned(), "registry/other".to_owned()],
        7 => {
            spec.preferred_node_terms = vec![(10, term(requirement(ZONE, Operator::In, &["c"])))];
            spec.tolerations = vec![Toleration {
                key: "dedicated".to_owned(),
                value: "gpu".to_owned(),
                exists: false,
                effect: Some(TaintEffect::NoSchedule),
            }];
        }
        8 => {
            spec.required_node_terms = vec![NodeSelectorTerm {
                expressions: Vec::new(),
                fields: vec![requirement("metadata.name", Operator::In, &["node-1"])],
            }];
        }
        9 => spec.pod_anti_affinity = vec![pod_term(&[9], HOST)],
        10 => spec.pod_affinity = vec![pod_term(&[10], ZONE)],
        11 => spec.preferred_pod_affinity = vec![(50, pod_term(&[11, 0], ZONE))],
        12 => spec.spread = vec![spread(12, ZONE, true)],
        13 => spec.spread = vec![spread(13, HOST, false), spread(13, ZONE, false)],
        14 => spec.preferred_pod_affinity = vec![(-30, pod_term(&[14, 0, 1], HOST))],
        15 => {
            spec.pod_affinity = vec![pod_term(&[9, 13, 0], ZONE)];
            spec.pod_anti_affinity = vec![pod_term(&[15], HOST), pod_term(&[4], POOL)];
        }
        16 => {
            spec.spread = vec![SpreadConstraint { min_domains: 3, ..spread(16, ZONE, true) }];
        }
        17 => {
            let constraint = SpreadConstraint {
                max_skew: 2,
                honor_affinity: false,
                honor_taints: true,
                ..spread(17, HOST, true)
            };
            spec.spread = vec![constraint];
            spec.node_selector = labels(&[(ZONE, "a")]);
        }
        18 => {
            let elsewhere =
                LabelSelector { requirements: vec![requirement("env", Operator::In, &["prod"])] };
            spec.pod_affinity = vec![PodAffinityTerm {
                namespace_selector: Some(elsewhere),
                ..pod_term(&[0, 18], ZONE)
            }];
        }
        19 => {
            spec.pod_anti_affinity = vec![PodAffinityTerm {
                namespaces: vec![OTHER_NAMESPACE.to_owned()],
                ..pod_term(&[0, 19], HOST)
            }];
        }
        20 => {
            let any_value = |effect| Toleration {
                key: "dedicated".to_owned(),
                exists: true,
                effect: Some(effect),
                ..Toleration::default()
            };
            let empty_value = Toleration { key: "slow".to_owned(), ..Toleration::default() };
            spec.tolerations = vec![any_value(TaintEffect::NoExecute), empty_value];
        }
        21 => {
            spec.required_node_terms = vec![
                term(requirement(CORES, Operator::Gt, &["7"])),
                term(requirement(CORES, Operator::Lt, &["0"])),
            ];
        }
        22 => {
            let port = |protocol: &str, ip: &str| HostPort {
                port: 80,
                protocol: protocol.to_owned(),
                ip: ip.to_owned(),
            };
            spec.host_ports = vec![port("TCP", "10.0.0.1"), port("UDP", "0.0.0.0")];
        }
        23 => {
            spec.required_node_terms = vec![NodeSelectorTerm {
                expressions: vec![requirement(ZONE, Operator::DoesNotExist, &[])],
                fields: vec![requirement("metadata.name", Operator::NotIn, &["node-0"])],
            }];
        }
        24 => {
            spec.spread = vec![spread(24, ZONE, true), spread(24, HOST, false)];
            spec.pod_anti_affinity = vec![pod_term(&[24, 9], HOST)];
        }
        25 => {
            let all = PodAffinityTerm {
                namespace_selector: Some(LabelSelector::default()),
                ..pod_term(&[25, 1], ZONE)
            };
            spec.preferred_pod_affinity = vec![(70, all.clone()), (-20, pod_term(&[25], HOST))];
            spec.pod_anti_affinity = vec![PodAffinityTerm { topology_key: POOL.to_owned(), ..all }];
        }
        26 => {
            spec.tolerations = vec![Toleration { exists: true, ..Toleration::default() }];
            spec.preferred_node_terms = vec![(20, term(requirement(CORES, Operator::Gt, &["9"])))];
        }
        _ => {}
    }
    Arc::new(spec)
}
