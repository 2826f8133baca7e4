//! Plugin `rescheduling`: from time to time, action `shuffle` takes pods off full nodes while others stand nearly empty.
//!
//! | argument | default |
//! | --- | --- |
//! | `interval` | `5m`: least time between two rounds, and before the first one |
//! | `strategies` | a list of `{name, params}`; `lowNodeUtilization` with its defaults |
//! | `metricsPeriod` | accepted without effect: how full a node is goes by requests, not by measured usage (P83) |
//!
//! The only strategy is [`utilization`], as in Volcano; other names are warned about.

pub mod utilization;

use serde_json::Value;
use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
use crate::state::State;
use crate::state::tasks::TaskId;
use crate::state::waiting::positive_ms;
use utilization::LowNodeUtilization;

const INTERVAL: &str = "interval";
const STRATEGIES: &str = "strategies";
const LOW_NODE_UTILIZATION: &str = "lowNodeUtilization";

/// The plugin.
#[derive(Debug)]
pub struct Rescheduling {
    interval_ms: i64,
    strategies: Vec<LowNodeUtilization>,
    /// When a round last began; the first session of a configuration counts as one.
    last_ms: Option<i64>,
}

impl Default for Rescheduling {
    fn default() -> Self {
        Self {
            interval_ms: 300_000,
            strategies: vec![LowNodeUtilization::default()],
            last_ms: None,
        }
    }
}

impl Plugin for Rescheduling {
    fn hooks(&self) -> Hooks {
        Hooks::VICTIM_TASKS | Hooks::OPEN
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        if let Some(text) = arguments.string(INTERVAL, warnings) {
            match positive_ms(&text) {
                Some(interval_ms) => self.interval_ms = interval_ms,
                None => warnings.push(format!(
                    "argument {INTERVAL} must be a positive duration like 5m, not {text:?}: ignored"
                )),
            }
        }
        let Some(listed) = arguments.get(STRATEGIES) else { return };
        let Some(listed) = listed.as_array() else {
            warnings.push(format!("argument {STRATEGIES} must be a list: ignored"));
            return;
        };
        if listed.is_empty() {
            return;
        }
        self.strategies.clear();
        for strategy in listed {
            match strategy.get("name").and_then(Value::as_str) {
                Some(LOW_NODE_UTILIZATION) => {
                    let params = strategy.get("params").unwrap_or(&Value::Null);
                    self.strategies.push(LowNodeUtilization::read(params, warnings));
                }
                Some(name) => warnings.push(format!("strategy {name} is unknown: skipped")),
                None => warnings.push(format!("strategy {strategy} has no name: skipped")),
            }
        }
    }

    fn open(&mut self, state: &State) {
        self.last_ms.get_or_insert(state.now_ms);
    }

    /// Only a round that is asked for uses the interval up (P88).
    fn victim_tasks(&mut self, state: &State, running: &[TaskId]) -> Vec<TaskId> {
        if self.last_ms.is_some_and(|last| state.now_ms - last < self.interval_ms) {
            return Vec::new();
        }
        self.last_ms = Some(state.now_ms);
        let mut victims: Vec<TaskId> = Vec::new();
        for strategy in &self.strategies {
            for task in strategy.victims(state, running) {
                if !victims.contains(&task) {
                    victims.push(task);
                }
            }
        }
        victims
    }
}

#[cfg(test)]
mod tests;
