//! Plugin `reservation`: the gang at the head of the line that finds no room gets a reservation, and others start around it
//! (EASY backfill). It only carries the rules; `session/reservation` applies them in action allocate.
//!
//! | argument | default |
//! | --- | --- |
//! | `reservation.hold` | `30s`: a Go duration; so long a gang must have been the head of its queue |
//! | `reservation.perPool` | 1: reservations of gangs whose nodes overlap |
//! | `reservation.backfill` | true: who ends in time may use reserved nodes meanwhile |
//! | `reservation.scan` | 64: jobs of a queue that are refused beside a reservation before the rest waits for the next session |
//! | `reservation.quantile` | 75: of past run times of the same kind of pod, where nothing is said |

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
use crate::state::waiting::positive_ms;

const HOLD: &str = "reservation.hold";
const PER_POOL: &str = "reservation.perPool";
const BACKFILL: &str = "reservation.backfill";
const SCAN: &str = "reservation.scan";
const QUANTILE: &str = "reservation.quantile";

/// Rules of reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// So long a gang must have been the head of its queue, in milliseconds.
    pub hold_ms: i64,
    /// Reservations of gangs whose nodes overlap.
    pub per_pool: usize,
    /// Who ends in time may use reserved nodes meanwhile.
    pub backfill: bool,
    /// Jobs of a queue that may be refused beside a reservation in one session.
    pub scan: u32,
    /// Per cent of past run times that an estimate covers, 1 to 100.
    pub quantile: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { hold_ms: 30_000, per_pool: 1, backfill: true, scan: 64, quantile: 75 }
    }
}

/// The plugin.
#[derive(Debug, Default)]
pub struct Reservation {
    rules: Rules,
}

impl Plugin for Reservation {
    fn hooks(&self) -> Hooks {
        Hooks::empty()
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        let defaults = Rules::default();
        if let Some(text) = arguments.string(HOLD, warnings) {
            match positive_ms(&text) {
                Some(hold_ms) => self.rules.hold_ms = hold_ms,
                None if matches!(text.as_str(), "0" | "0s") => self.rules.hold_ms = 0,
                None => warnings
                    .push(format!("argument {HOLD} must be a duration like 30s, not {text:?}")),
            }
        }
        let mut number = |key, default: u32, most: u32| {
            let value = arguments.int(key, warnings);
            let fitting = value.and_then(|value| u32::try_from(value).ok());
            match (value, fitting.filter(|value| (1..=most).contains(value))) {
                (_, Some(value)) => value,
                (Some(_), None) => {
                    warnings.push(format!("argument {key} must be from 1 to {most}: ignored"));
                    default
                }
                (None, None) => default,
            }
        };
        self.rules.per_pool = number(PER_POOL, defaults.per_pool as u32, 1_000) as usize;
        self.rules.scan = number(SCAN, defaults.scan, 1_000_000);
        self.rules.quantile = number(QUANTILE, defaults.quantile, 100);
        self.rules.backfill = arguments.bool(BACKFILL, warnings).unwrap_or(defaults.backfill);
    }

    fn reservation(&self) -> Option<Rules> {
        Some(self.rules)
    }
}
