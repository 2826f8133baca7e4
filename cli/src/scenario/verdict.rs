//! What came of a scenario: passed, failed with what was expected and what came instead, or skipped because
//! nothing in it could be judged.

use std::fmt;

use serde::Serialize;

/// One expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// What was looked at, e.g. `bind default/a-0`.
    pub what: String,
    /// What should have come.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.what, self.expected, self.got)
    }
}

/// Outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict", content = "details")]
pub enum Verdict {
    /// All expectations hold, and there was at least one.
    Passed,
    /// These do not hold.
    Failed(Vec<Mismatch>),
    /// Nothing could be judged, with the reason.
    Skipped(String),
}

impl Verdict {
    /// A failure that has no expectation of its own, like a crash.
    pub fn failed(what: &str, expected: &str, got: impl Into<String>) -> Self {
        let (what, expected) = (what.to_owned(), expected.to_owned());
        Self::Failed(vec![Mismatch { what, expected, got: got.into() }])
    }
}

/// Collects what was judged.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Expectations looked at.
    pub judged: usize,
    /// Those that do not hold.
    pub mismatches: Vec<Mismatch>,
    /// Why something could not be judged.
    pub unjudged: Vec<String>,
    place: String,
}

impl Judgement {
    /// Puts `place` before the names of what is judged from now on, e.g. `check 1: `.
    pub fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    /// Notes an expectation that was looked at, with the mismatch if it does not hold.
    pub fn expect(
        &mut self,
        holds: bool,
        what: impl fmt::Display,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) {
        self.judged += 1;
        if !holds {
            let what = format!("{}{what}", self.place);
            let (expected, got) = (expected.to_string(), got.to_string());
            self.mismatches.push(Mismatch { what, expected, got });
        }
    }

    /// Notes something that cannot be judged here.
    pub fn skip(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unjudged.contains(&why) {
            self.unjudged.push(why);
        }
    }

    /// The verdict over everything seen.
    pub fn verdict(self) -> Verdict {
        if !self.mismatches.is_empty() {
            Verdict::Failed(self.mismatches)
        } else if self.judged > 0 {
            Verdict::Passed
        } else if self.unjudged.is_empty() {
            Verdict::Skipped("the scenario expects nothing".to_owned())
        } else {
            Verdict::Skipped(self.unjudged.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_expects_nothing_is_skipped_not_passed() {
        assert!(matches!(Judgement::default().verdict(), Verdict::Skipped(_)));
    }

    #[test]
    fn a_call_that_cannot_be_evaluated_does_not_make_a_pass() {
        let mut judgement = Judgement::default();
        judgement.skip("VictimTasks");
        judgement.skip("VictimTasks");
        assert_eq!(judgement.verdict(), Verdict::Skipped("VictimTasks".to_owned()));
    }

    #[test]
    fn one_mismatch_fails_and_names_the_place() {
        let mut judgement = Judgement::default();
        judgement.at("check 1: ");
        judgement.expect(true, "a", 1, 1);
        judgement.expect(false, "b", 1, 2);
        let Verdict::Failed(mismatches) = judgement.verdict() else { panic!("failed") };
        assert_eq!(mismatches[0].to_string(), "check 1: b: expected 1, got 2");
    }
}
