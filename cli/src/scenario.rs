//! Scenarios: small cluster stories with the decisions that must come out, run on the very core that the
//! scheduler runs, without an API server.
//!
//! A scenario file is read by [`file`] into the shapes of [`schema`]; [`story`] plays it in a [`world`] and
//! [`expect`] judges it. `tephra simulate`, the conformance runner and users' policy tests all go
//! through [`run`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub mod calls;
pub mod config;
pub mod corpus;
pub mod expect;
pub mod file;
pub mod hyper_nodes;
pub mod ingest;
pub mod manifest;
pub mod rows;
pub mod schema;
pub mod store;
pub mod story;
pub mod verdict;
pub mod world;
pub mod writeback;

use schema::Scenario;
use story::{Outcome, Overrides};
use verdict::Verdict;

/// A story that takes longer does not end: a scenario is small and a session takes microseconds.
pub const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Plays and judges a scenario. A crash and a story that does not end are failures of the scenario, not of
/// the program.
pub fn run(scenario: Scenario, overrides: &Overrides) -> Outcome {
    let scenario = Arc::new(scenario);
    let name = scenario.label().to_owned();
    let (story, overrides) = (Arc::clone(&scenario), overrides.clone());
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().name(format!("scenario {name}")).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| story::play(&story, &overrides).0));
        let outcome = outcome.unwrap_or_else(|panic| {
            let verdict = Verdict::failed("story", "an end", crash(&*panic));
            Outcome::of_verdict(story.label(), verdict)
        });
        // The other side is gone only when the time limit has passed.
        let _ = sender.send(outcome);
    });
    if let Err(error) = worker {
        let verdict = Verdict::failed("story", "a thread to run in", error.to_string());
        return Outcome::of_verdict(&name, verdict);
    }
    receiver.recv_timeout(TIME_LIMIT).unwrap_or_else(|_| {
        let got = format!("none after {} s", TIME_LIMIT.as_secs());
        Outcome::of_verdict(&name, Verdict::failed("story", "an end", got))
    })
}

/// The words of a panic.
fn crash(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("crash: {}", text.unwrap_or("without words"))
}
