//! Many seeds over all cores.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::figures::Figures;
use super::run::{Plan, run_seed};

/// Runs all seeds of a range; the figures do not depend on the number of threads.
///
/// # Errors
/// When a run could not be carried out.
pub fn campaign(seeds: Range<u64>, plan: Plan) -> anyhow::Result<Figures> {
    let next = AtomicU64::new(seeds.start);
    let figures = Mutex::new(Ok(Figures::default()));
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let outcome = run_seed(seed, plan);
                    let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
                    match (outcome, &mut *figures) {
                        (Ok(outcome), Ok(figures)) => figures.add(outcome),
                        (Err(error), slot) => {
                            *slot = Err(error.context(format!("seed {seed}")));
                            return;
                        }
                        (Ok(_), Err(_)) => return,
                    }
                }
            });
        }
    });
    figures.into_inner().unwrap_or_else(PoisonError::into_inner)
}
