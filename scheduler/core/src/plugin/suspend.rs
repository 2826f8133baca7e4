//! Plugin `suspend`: gangs that have to make room as a whole are suspended and come back by themselves, instead of losing
//! their pods for good (`features.md` 2). It only carries the rules; `session/suspend` applies them. Who may be a victim is
//! still for the other plugins to say, save that QueuePolicies are heard: `preemption.mode`, `minRuntime`, `maxSuspensionsPerDay`.
//!
//! | argument | default |
//! | --- | --- |
//! | `suspend.budget` | 20: per cent of the cluster (its dominant share) beyond which no further gang is asked to go while others are on their way |
//! | `suspend.pairCooldown` | `30m`: a gang that was suspended for another does not make that one go for so long |
//! | `suspend.patience` | `1m`: so long after its deadline an intent that nobody carries out is withdrawn |

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
use crate::state::waiting::argument_ms;

const BUDGET: &str = "suspend.budget";
const PAIR_COOLDOWN: &str = "suspend.pairCooldown";
const PATIENCE: &str = "suspend.patience";

/// Rules of suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Per cent of the cluster that may be on its way out when one more gang is asked to go.
    pub budget: u32,
    /// So long a gang does not make go for whom it had to go itself, in milliseconds.
    pub pair_cooldown_ms: i64,
    /// So long after its deadline an intent that nobody carries out stands, in milliseconds.
    pub patience_ms: i64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { budget: 20, pair_cooldown_ms: 30 * 60_000, patience_ms: 60_000 }
    }
}

/// The plugin.
#[derive(Debug, Default)]
pub struct Suspend {
    rules: Rules,
}

impl Plugin for Suspend {
    fn hooks(&self) -> Hooks {
        Hooks::empty()
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        if let Some(budget) = arguments.int(BUDGET, warnings) {
            match u32::try_from(budget).ok().filter(|budget| (1..=100).contains(budget)) {
                Some(budget) => self.rules.budget = budget,
                None => warnings.push(format!("argument {BUDGET} must be from 1 to 100: ignored")),
            }
        }
        for (key, value) in [
            (PAIR_COOLDOWN, &mut self.rules.pair_cooldown_ms),
            (PATIENCE, &mut self.rules.patience_ms),
        ] {
            *value = argument_ms(arguments, key, warnings).unwrap_or(*value);
        }
    }

    fn suspension(&self) -> Option<Rules> {
        Some(self.rules)
    }
}
