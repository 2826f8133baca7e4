//! Runs many scenarios and adds up. A list of expected failures turns a corpus that is ahead of the code into
//! a test: what is listed must fail, what is not must pass, so the list can only shrink honestly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::schema::Scenario;
use super::story::{Outcome, Overrides};
use super::verdict::Verdict;

/// Scenarios that are not expected to pass yet: name to reason.
#[derive(Clone, Debug, Default)]
pub struct ExpectedFailures(BTreeMap<String, String>);

impl ExpectedFailures {
    /// Reads a list: one scenario a line, name and reason parted by blanks; `#` starts a comment line.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the list {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("the list {} is wrong", path.display()))
    }

    /// Reads the text of a list.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut list = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let reason = reason.trim();
            anyhow::ensure!(!reason.is_empty(), "line {}: {name} has no reason", index + 1);
            let twice = list.insert(name.to_owned(), reason.to_owned()).is_some();
            anyhow::ensure!(!twice, "line {}: {name} is listed twice", index + 1);
        }
        Ok(Self(list))
    }

    /// Why a scenario is expected to fail.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What a scenario counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Passed, and was not listed.
    Passed,
    /// Failed unlisted, or did not fail although listed.
    Failed,
    /// Nothing could be judged.
    Skipped,
    /// Listed, and failed.
    ExpectedFailure,
}

/// One scenario of a run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// File it stands in.
    pub path: PathBuf,
    /// What came of it.
    pub outcome: Outcome,
    /// What it counts as.
    pub count: Count,
}

impl Entry {
    /// The line that tells of a failure: name, what was expected, what came.
    pub fn failure(&self) -> Option<String> {
        if self.count != Count::Failed {
            return None;
        }
        let told = match &self.outcome.verdict {
            Verdict::Failed(mismatches) => {
                let all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
                all.join("; ")
            }
            Verdict::Passed => "passes although it is listed as an expected failure".to_owned(),
            Verdict::Skipped(why) => {
                format!("is skipped ({why}) although it is listed as an expected failure")
            }
        };
        Some(format!("FAIL {}: {}", self.outcome.name, told.replace('\n', " | ")))
    }
}

/// All scenarios of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// In the order of the input.
    pub entries: Vec<Entry>,
}

impl Summary {
    /// How many count as `count`.
    pub fn count(&self, count: Count) -> usize {
        self.entries.iter().filter(|entry| entry.count == count).count()
    }

    /// The closing line.
    pub fn closing(&self) -> String {
        let (passed, failed) = (self.count(Count::Passed), self.count(Count::Failed));
        let skipped = self.count(Count::Skipped);
        let line = format!("{passed} passed, {failed} failed, {skipped} skipped");
        match self.count(Count::ExpectedFailure) {
            0 => line,
            expected => format!("{line} ({expected} failed as expected)"),
        }
    }
}

/// Runs scenarios one after the other. A name that two files give is a failure of the second.
pub fn run(
    scenarios: Vec<(PathBuf, Scenario)>,
    overrides: &Overrides,
    expected: &ExpectedFailures,
) -> Summary {
    let mut summary = Summary::default();
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, scenario) in scenarios {
        let name = scenario.label().to_owned();
        let outcome = match seen.insert(name.clone(), path.clone()) {
            Some(other) => {
                let got = format!("also in {}", other.display());
                Outcome::of_verdict(&name, Verdict::failed("name", "a name of its own", got))
            }
            None => super::run(scenario, overrides),
        };
        let count = match (&outcome.verdict, expected.reason(&name).is_some()) {
            (Verdict::Passed, false) => Count::Passed,
            (Verdict::Skipped(_), false) => Count::Skipped,
            (Verdict::Failed(_), true) => Count::ExpectedFailure,
            _ => Count::Failed,
        };
        summary.entries.push(Entry { path, outcome, count });
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> (PathBuf, Scenario) {
        let (mut scenarios, _) = super::super::file::parse(text).expect("parses");
        (PathBuf::from("t.yaml"), scenarios.remove(0))
    }

    fn corpus(list: &str) -> Summary {
        let passing = scenario("name: good\nexpect: {bindCount: 0}\n");
        let failing = scenario("name: bad\nexpect: {bindCount: 1}\n");
        let nothing = scenario("name: empty\n");
        let list = ExpectedFailures::parse(list).expect("list");
        run(vec![passing, failing, nothing], &Overrides::default(), &list)
    }

    #[test]
    fn passes_failures_and_skips_are_counted() {
        let summary = corpus("");
        assert_eq!(summary.closing(), "1 passed, 1 failed, 1 skipped");
        let lines: Vec<String> = summary.entries.iter().filter_map(Entry::failure).collect();
        assert_eq!(lines, ["FAIL bad: bindCount: expected 1, got 0"]);
    }

    #[test]
    fn a_listed_failure_is_expected_and_a_listed_pass_is_a_failure() {
        let summary = corpus("# later work\nbad needs preempt\ngood was wrong\n");
        assert_eq!(summary.closing(), "0 passed, 1 failed, 1 skipped (1 failed as expected)");
        let lines: Vec<String> = summary.entries.iter().filter_map(Entry::failure).collect();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("good: passes although"), "{}", lines[0]);
    }

    #[test]
    fn a_list_needs_a_reason_for_every_name_and_no_name_twice() {
        assert!(ExpectedFailures::parse("bad\n").is_err());
        assert!(ExpectedFailures::parse("bad x\nbad y\n").is_err());
    }

    #[test]
    fn a_name_that_two_scenarios_share_is_a_failure() {
        let twice = || scenario("name: same\nexpect: {bindCount: 0}\n");
        let list = ExpectedFailures::default();
        let summary = run(vec![twice(), twice()], &Overrides::default(), &list);
        assert_eq!(summary.count(Count::Failed), 1);
    }
}
