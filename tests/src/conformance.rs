//! Runs scenario corpora over the scheduling core: our own in `tests/scenarios`, and, when the checkout has them
//! beside it, the behaviour users want (`../shared/scenarios`) and the recorded decisions of the real
//! Volcano (`../shared/conformance`).
//!
//! What is not expected to pass yet stands in `tests/not-yet.txt`, each with a reason. A listed scenario that
//! passes and an unlisted one that fails are both failures, so the list tells the truth at every commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tephra::scenario::corpus::{self, Entry, ExpectedFailures, Summary};
use tephra::scenario::file;
use tephra::scenario::story::Overrides;

/// Folder of this crate.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Our own scenarios.
pub fn own_folder() -> PathBuf {
    here().join("scenarios")
}

/// Corpora beside the checkout; `None` when absent.
pub fn shared_folder(name: &str) -> Option<PathBuf> {
    let folder = here().join("../../shared").join(name);
    folder.is_dir().then_some(folder)
}

/// Scenarios that are not expected to pass yet.
pub fn not_yet() -> anyhow::Result<ExpectedFailures> {
    ExpectedFailures::read(&here().join("not-yet.txt"))
}

/// Runs a folder of scenarios.
///
/// # Errors
/// When a file of the folder cannot be read.
pub fn run_folder(folder: &Path, expected: &ExpectedFailures) -> anyhow::Result<Summary> {
    let input = file::read_paths(&[folder.to_owned()]);
    if let Some(error) = input.errors.into_iter().next() {
        return Err(error.into());
    }
    Ok(corpus::run(input.scenarios, &Overrides::default(), expected))
}

/// The lines of everything that did not come out as it should.
pub fn failures(summary: &Summary) -> Vec<String> {
    summary.entries.iter().filter_map(Entry::failure).collect()
}

/// Listed names that no scenario has.
pub fn strangers(expected: &ExpectedFailures, summaries: &[&Summary]) -> Vec<String> {
    let seen: BTreeSet<&str> = summaries
        .iter()
        .flat_map(|summary| &summary.entries)
        .map(|entry| entry.outcome.name.as_str())
        .collect();
    expected.names().filter(|name| !seen.contains(name)).map(ToOwned::to_owned).collect()
}
