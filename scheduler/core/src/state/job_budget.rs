//! How many pods of a gang may be away at one time, as annotations of its PodGroup say (plugin tdm).

use tephra_api::keys;

use super::status::{Counts, Status};
use crate::event::Labels;

/// A number of pods, or a percentage of all pods of the gang, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many.
    Count(u32),
    /// So many of a hundred.
    Percent(u32),
}

impl Share {
    /// Reads `3` or `30%`; negative numbers count as 0.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let number: i32 = text.parse().ok()?;
            Some(number.max(0).unsigned_abs())
        };
        match text.strip_suffix('%') {
            Some(percent) => number(percent).map(Self::Percent),
            None => number(text).map(Self::Count),
        }
    }

    /// The number among `all` pods.
    pub fn of(self, all: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let pods = (u64::from(all) * u64::from(percent)).div_ceil(100);
                u32::try_from(pods).unwrap_or(u32::MAX)
            }
        }
    }
}

/// What the annotations say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobBudget {
    /// Nothing: pods go one by one.
    #[default]
    OneByOne,
    /// `volcano.sh/jdb-max-unavailable`.
    MaxUnavailable(Share),
    /// `volcano.sh/jdb-min-available`.
    MinAvailable(Share),
}

impl JobBudget {
    /// Reads the annotations of a PodGroup; the first one wins. What cannot be read lets nobody go.
    pub fn annotated(annotations: &Labels) -> Self {
        let value = |key| {
            annotations.iter().find(|(name, _)| name == key).map(|(_, text)| Share::parse(text))
        };
        if let Some(share) = value(keys::JDB_MAX_UNAVAILABLE) {
            return Self::MaxUnavailable(share.unwrap_or(Share::Count(0)));
        }
        match value(keys::JDB_MIN_AVAILABLE) {
            Some(share) => Self::MinAvailable(share.unwrap_or(Share::Percent(100))),
            None => Self::OneByOne,
        }
    }

    /// How many of a gang with these pods may be evicted at once (spec 13, maxVictims).
    pub fn victims(self, counts: &Counts) -> u32 {
        let (all, running) = (counts.total(), counts.of(Status::Running));
        match self {
            Self::MaxUnavailable(share) => {
                let ended = counts.of(Status::Succeeded) + counts.of(Status::Failed);
                share.of(all).saturating_sub(all - ended - running)
            }
            Self::MinAvailable(share) => running.saturating_sub(share.of(all)),
            Self::OneByOne => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(Status, u32)]) -> Counts {
        let mut counts = Counts::default();
        for &(status, count) in list {
            (0..count).for_each(|_| counts.enter(status));
        }
        counts
    }

    fn budget(list: &[(&str, &str)]) -> JobBudget {
        let pairs = list.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        JobBudget::annotated(&pairs.collect())
    }

    #[test]
    fn percentages_are_rounded_up_and_what_is_no_number_is_refused() {
        assert_eq!(Share::parse("30%").map(|share| share.of(5)), Some(2));
        assert_eq!(Share::parse("99%").map(|share| share.of(5)), Some(5));
        assert_eq!(Share::parse("4294967295%"), None);
        assert_eq!(Share::parse("2147483647%").map(|share| share.of(u32::MAX)), Some(u32::MAX));
        assert_eq!(Share::parse("3"), Some(Share::Count(3)));
        assert_eq!(Share::parse("-3"), Some(Share::Count(0)));
        assert_eq!(Share::parse("half"), None);
    }

    #[test]
    fn max_unavailable_counts_those_that_do_not_run_and_min_available_those_that_do() {
        let five = counts(&[(Status::Running, 5)]);
        let three = counts(&[(Status::Running, 3), (Status::Pending, 1), (Status::Succeeded, 1)]);
        let (max, min) = (keys::JDB_MAX_UNAVAILABLE, keys::JDB_MIN_AVAILABLE);
        let victims = |list: &[(&str, &str)]| {
            let budget = budget(list);
            (budget.victims(&five), budget.victims(&three))
        };
        assert_eq!(victims(&[]), (1, 1));
        assert_eq!(victims(&[(max, "3")]), (3, 2));
        assert_eq!(victims(&[(max, "50%")]), (3, 2));
        assert_eq!(victims(&[(max, "1")]), (1, 0));
        assert_eq!(victims(&[(min, "3")]), (2, 0));
        assert_eq!(victims(&[(min, "30%")]), (3, 1));
        assert_eq!(victims(&[(min, "4")]), (1, 0), "P66: below its minimum nobody goes");
        assert_eq!(victims(&[(max, "0"), (min, "0")]), (0, 0), "the first annotation wins");
    }

    #[test]
    fn a_budget_that_cannot_be_read_lets_nobody_go() {
        let five = counts(&[(Status::Running, 5)]);
        for key in [keys::JDB_MAX_UNAVAILABLE, keys::JDB_MIN_AVAILABLE] {
            assert_eq!(budget(&[(key, "few")]).victims(&five), 0, "{key}");
        }
    }
}
