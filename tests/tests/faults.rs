//! The fault simulation as part of the suite: a sample of seeds, and every crash point of the fixed scenarios.
//!
//! `TEPHRA_FAULT_SEEDS` and `TEPHRA_FAULT_STEPS` make the sample larger; `docs/faults.md` has the full run.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::time::Duration;

use tephra_tests::faults::{Plan, Theme, campaign, crash, run_seed};

/// Seeds of the sample; the full run starts at 0, so these are among its first.
const SEEDS: u64 = 24;
const STEPS: u64 = 2_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn no_promise_is_broken_whatever_the_weather() {
    let plan = Plan { theme: Theme::Cluster, steps: setting("TEPHRA_FAULT_STEPS", STEPS) };
    let figures = campaign(0..setting("TEPHRA_FAULT_SEEDS", SEEDS), plan).unwrap();
    assert_eq!(figures.violations(), 0, "{}", figures.text(plan, Duration::ZERO));
    // A sample in which nothing happens would prove nothing.
    assert!(figures.bound > figures.seeds * 10, "{figures:?}");
    assert!(figures.faults.len() > 15, "{figures:?}");
}

#[test]
fn a_crash_after_any_single_write_leads_to_a_good_end() {
    let report = crash::after_every_write(None).unwrap();
    assert!(report.is_good(), "{}", report.text(Duration::ZERO));
    assert_eq!(report.scenarios, crash::SCENARIOS.len());
    assert!(report.crashes > 100, "{report:?}");
}

#[test]
fn a_seed_stands_for_one_run_write_for_write() {
    let plan = Plan { theme: Theme::Cluster, steps: 800 };
    for seed in [3, 4] {
        let [first, second] = [run_seed(seed, plan), run_seed(seed, plan)].map(Result::unwrap);
        assert_eq!((first.digest, first.steps), (second.digest, second.steps), "seed {seed}");
        assert_eq!(first.faults, second.faults);
    }
    let [one, other] = [3, 4].map(|seed| run_seed(seed, plan).unwrap().digest);
    assert_ne!(one, other);
}
