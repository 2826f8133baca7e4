//! Plugin `drf`: among jobs, the one with the smaller dominant share goes first. No arguments. (The weighted
//! tree of `enableHierarchy` is later work.)

use super::{Hooks, OrderKey, Plugin};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::resource::{Ledger, share};

/// The plugin.
#[derive(Debug)]
pub struct Drf;

/// Largest part that `allocated` is of the cluster in any dimension, `pods` included (P13).
pub fn dominant_share(allocated: &Ledger, total: &Ledger) -> f64 {
    let mut largest = 0.0;
    for (dim, amount) in total.iter() {
        if amount > 0 {
            let part = share(allocated.get(dim) as f64, amount as f64);
            if part > largest {
                largest = part;
            }
        }
    }
    largest
}

impl Plugin for Drf {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ORDER
    }

    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push_f64(dominant_share(&state.jobs[job as usize].allocated, &state.total));
    }
}
