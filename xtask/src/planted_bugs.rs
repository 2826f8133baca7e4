//! `cargo xtask planted-bugs`: would the tests notice? One test build carries ten mistakes, each behind a switch
//! (`tephra_api::planted`). The tests are run once as they are, and once for each mistake until one of them
//! fails. What each mistake is caught by stands in `docs/planted-bugs.md`.

mod build;
mod judge;

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use tephra_api::planted::{ALL, Bug};

use judge::{Verdict, judge};

/// Longest run of one test binary. Whoever takes longer has caught nothing: only a failed assertion counts.
const PATIENCE: Duration = Duration::from_secs(240);
/// Fewer than this are a failure of the command.
const LEAST: usize = 9;

/// Runs the tests against the bugs of these names (all when there are none) and prints who caught what.
///
/// # Errors
/// When the tests do not build, do not pass without a bug, or let too many bugs through.
pub(crate) fn run(root: &Path, names: &[String]) -> anyhow::Result<()> {
    let bugs = chosen(names)?;
    let mut out = std::io::stdout();
    let started = Instant::now();
    let tests = build::test_binaries(root)?;
    writeln!(out, "built {} test binaries in {} s", tests.len(), started.elapsed().as_secs())?;
    for test in &tests {
        let started = Instant::now();
        match judge(test, None, PATIENCE)? {
            Verdict::Passed => {
                writeln!(out, "{:22} passes, {} s", test.name, started.elapsed().as_secs())?;
            }
            Verdict::Caught(by) => bail!("{}: {by} fails although no bug is planted", test.name),
            Verdict::Died(how) => bail!("{}: {how}, although no bug is planted", test.name),
        }
    }
    let mut caught = 0;
    for bug in &bugs {
        let started = Instant::now();
        let catch = first_catch(&tests, *bug)?;
        caught += usize::from(catch.is_some());
        let catch = catch.unwrap_or_else(|| "NOT CAUGHT".to_owned());
        writeln!(out, "{:22} {catch} ({} s)", bug.name(), started.elapsed().as_secs())?;
    }
    writeln!(out, "{caught} of {} caught in {} s", bugs.len(), started.elapsed().as_secs())?;
    let missed = bugs.len() - caught;
    if missed > ALL.len() - LEAST {
        bail!("{missed} bugs went unnoticed");
    }
    Ok(())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Bug>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    names.iter().map(|name| Ok(Bug::named(name)?)).collect()
}

/// The test that fails first, binary by binary.
fn first_catch(tests: &[build::TestBinary], bug: Bug) -> anyhow::Result<Option<String>> {
    for test in tests {
        match judge(test, Some(bug), PATIENCE)? {
            Verdict::Caught(by) => return Ok(Some(format!("{}: {by}", test.name))),
            Verdict::Passed => {}
            Verdict::Died(how) => {
                writeln!(std::io::stdout(), "{:22} ({}: {how})", bug.name(), test.name)?;
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn bugs_are_chosen_by_name_and_a_wrong_name_is_answered_with_the_right_ones() {
        assert_eq!(chosen(&[]).unwrap(), ALL);
        let one = chosen(&["tie-by-hash".to_owned()]).unwrap();
        assert_eq!(one, [Bug::TieByHash]);
        let error = chosen(&["tie".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("there is no bug tie; there are skipped-undo, "), "{error}");
    }

    #[test]
    fn the_document_has_one_row_for_each_bug_in_their_order() {
        let text = std::fs::read_to_string(crate::root().join("docs/planted-bugs.md")).unwrap();
        let row = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
        let rows: Vec<String> = text.lines().filter_map(row).collect();
        assert_eq!(rows, ALL.map(Bug::name));
    }

    #[test]
    fn no_crate_switches_planted_bugs_on_by_itself() {
        let metadata = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(crate::root())
            .output()
            .unwrap();
        let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let dependencies = package["dependencies"].as_array().unwrap();
            let wanted = dependencies.iter().map(|dependency| &dependency["features"]);
            for features in wanted.chain([&package["features"]["default"]]) {
                assert!(!features.to_string().contains("planted-bugs"), "{}", package["name"]);
            }
        }
    }
}
