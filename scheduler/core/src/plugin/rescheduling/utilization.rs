//! Strategy `lowNodeUtilization` (spec 17): pods leave nodes above a target as long as nodes below a threshold could take their
//! requests. Percentages are sums of requests over what a node offers.
//!
//! | parameter | default |
//! | --- | --- |
//! | `thresholds` | 100 each: a node below all of them is low; keys `cpu`, `memory`, `pods` (or `pod`, P86), in percent |
//! | `targetThresholds` | 100 each: a node above one of them is high |
//! | `numberOfNodes` | 0: nothing is done for so few low nodes |
//! | `thresholdPriority`, `thresholdPriorityClassName` | none: pods of this priority and above stay |
//! | `nodeFit` | true: pods that fit on no low node stay |

use serde_json::Value;

use crate::state::State;
use crate::state::classes::NO_KEY;
use crate::state::nodes::NodeId;
use crate::state::resource::{CPU, Dim, MEMORY, PODS};
use crate::state::tasks::{Task, TaskId};

/// Dimensions that are looked at, with the names that thresholds have for them.
const DIMS: [(Dim, &[&str]); 3] =
    [(CPU, &["cpu"]), (MEMORY, &["memory"]), (PODS, &["pods", "pod"])];

/// One figure for each of [`DIMS`].
type Figures = [f64; DIMS.len()];

/// The strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct LowNodeUtilization {
    thresholds: Figures,
    targets: Figures,
    number_of_nodes: usize,
    threshold_priority: Option<i32>,
    threshold_class: Option<String>,
    node_fit: bool,
}

impl Default for LowNodeUtilization {
    fn default() -> Self {
        Self {
            thresholds: [100.0; DIMS.len()],
            targets: [100.0; DIMS.len()],
            number_of_nodes: 0,
            threshold_priority: None,
            threshold_class: None,
            node_fit: true,
        }
    }
}

/// A node and what its pods ask for.
struct Load {
    node: NodeId,
    offered: Figures,
    used: Figures,
}

impl Load {
    fn of(state: &State, node: NodeId) -> Self {
        let figures = |amount: fn(&State, NodeId, Dim) -> i64| {
            DIMS.map(|(dim, _)| amount(state, node, dim) as f64)
        };
        Self {
            node,
            offered: figures(|state, node, dim| state.nodes.allocatable(node, dim)),
            used: figures(|state, node, dim| state.nodes.used(node, dim)),
        }
    }

    /// Percent in use.
    fn percent(&self, at: usize) -> f64 {
        if self.offered[at] > 0.0 { 100.0 * self.used[at] / self.offered[at] } else { 0.0 }
    }
}

impl LowNodeUtilization {
    /// Reads the parameters; what is wrong with them goes into `warnings`, the default stays.
    pub fn read(params: &Value, warnings: &mut Vec<String>) -> Self {
        let mut read = Self::default();
        let Some(params) = params.as_object() else { return read };
        for (key, value) in params {
            let understood = match key.as_str() {
                "thresholds" => read_figures(value, &mut read.thresholds),
                "targetThresholds" => read_figures(value, &mut read.targets),
                "numberOfNodes" => take(value.as_u64(), |n| read.number_of_nodes = n as usize),
                "thresholdPriority" => take(value.as_i64(), |priority| {
                    let limit = priority.clamp(i32::MIN.into(), i32::MAX.into());
                    read.threshold_priority = i32::try_from(limit).ok();
                }),
                "thresholdPriorityClassName" => {
                    take(value.as_str(), |name| read.threshold_class = Some(name.to_owned()))
                }
                "nodeFit" => take(value.as_bool(), |fit| read.node_fit = fit),
                _ => false,
            };
            if !understood {
                warnings.push(format!(
                    "parameter {key} of lowNodeUtilization: {value} is not understood: ignored"
                ));
            }
        }
        read
    }

    /// Pods that should go, of those that run: the hottest node first, on a node the least important first.
    pub fn victims(&self, state: &State, running: &[TaskId]) -> Vec<TaskId> {
        let loads: Vec<Load> = state.nodes.known().map(|node| Load::of(state, node)).collect();
        let (low, others): (Vec<&Load>, Vec<&Load>) =
            loads.iter().partition(|load| self.is_low(state, load));
        let mut high: Vec<&Load> = others.into_iter().filter(|load| self.is_high(load)).collect();
        if low.len() <= self.number_of_nodes || low.is_empty() || high.is_empty() {
            return Vec::new();
        }
        let heat = |load: &Load| load.percent(0) + load.percent(1);
        high.sort_by(|a, b| heat(b).total_cmp(&heat(a)).then(a.node.cmp(&b.node)));
        let mut budget: Figures = std::array::from_fn(|at| {
            let room =
                |load: &&Load| (self.targets[at] - load.percent(at)) / 100.0 * load.offered[at];
            low.iter().map(room).sum()
        });
        let threshold = self.threshold_priority(state);
        let mut victims = Vec::new();
        for load in high {
            let mut load = Load { ..*load };
            let mut pods: Vec<TaskId> = running
                .iter()
                .copied()
                .filter(|&task| state.tasks[task].node == load.node)
                .filter(|&task| threshold.is_none_or(|limit| state.tasks[task].priority < limit))
                .collect();
            pods.sort_by_key(|&task| {
                let row = &state.tasks[task];
                (row.priority, !state.classes.list[row.class as usize].best_effort)
            });
            for task in pods {
                let hot = (0..DIMS.len()).any(|at| load.percent(at) >= self.targets[at]);
                if !hot || budget.iter().any(|left| *left <= 0.0) {
                    break;
                }
                let row = &state.tasks[task];
                if self.node_fit && !low.iter().any(|low| fits(state, row, low.node)) {
                    continue;
                }
                victims.push(task);
                for (at, asked) in requests(state, row).into_iter().enumerate() {
                    budget[at] -= asked;
                    load.used[at] -= asked;
                }
            }
        }
        victims
    }

    fn is_low(&self, state: &State, load: &Load) -> bool {
        !state.nodes.identity[load.node as usize].unschedulable
            && (0..DIMS.len()).all(|at| load.percent(at) < self.thresholds[at])
    }

    fn is_high(&self, load: &Load) -> bool {
        (0..DIMS.len()).any(|at| load.percent(at) > self.targets[at])
    }

    /// The lower one of the two limits.
    fn threshold_priority(&self, state: &State) -> Option<i32> {
        let class = self.threshold_class.as_ref().and_then(|name| state.priority_class(name));
        [self.threshold_priority, class].into_iter().flatten().min()
    }
}

fn requests(state: &State, row: &Task) -> Figures {
    let request = &state.classes.list[row.class as usize].request;
    DIMS.map(|(dim, _)| {
        request.iter().find(|(known, _)| *known == dim).map_or(0.0, |&(_, amount)| amount as f64)
    })
}

fn fits(state: &State, row: &Task, node: NodeId) -> bool {
    let class = &state.classes.list[row.class as usize];
    let allowed = class.key == NO_KEY || state.classes.keys[class.key as usize].allows(node);
    allowed && state.nodes.fits(node, &class.request, false)
}

/// Takes a value over if it has the right type.
fn take<T>(value: Option<T>, set: impl FnOnce(T)) -> bool {
    value.map(set).is_some()
}

/// Reads percentages by name; false when one is not understood.
fn read_figures(value: &Value, figures: &mut Figures) -> bool {
    let Some(map) = value.as_object() else { return false };
    let mut understood = true;
    for (name, value) in map {
        let at = DIMS.iter().position(|(_, names)| names.contains(&name.as_str()));
        match (at, value.as_f64()) {
            (Some(at), Some(percent)) => figures[at] = percent,
            _ => understood = false,
        }
    }
    understood
}
