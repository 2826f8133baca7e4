//! Bugs that a test build can switch on at run time, to prove that the tests would notice them: with the feature
//! `planted-bugs`, the environment variable [`VARIABLE`] names the bug. Without the feature every check is a
//! constant `false` and costs nothing. The list, and which test catches what, is in `docs/planted-bugs.md`.

/// Environment variable that names the bug to switch on; read once.
pub const VARIABLE: &str = "TEPHRA_PLANT";

/// One mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A rolled back statement forgets its last operation.
    SkippedUndo,
    /// A task is added twice to the allocation of its queue.
    DoubleCount,
    /// A request fits that is one unit too large.
    LooseComparison,
    /// Writes are sent without asking whether the lease still holds.
    NoFencing,
    /// A gang is committed before its minimum is placed.
    NoGangCheck,
    /// A changed node does not move the version of its block.
    StaleIndexBlock,
    /// A refused bind is never reported to the state.
    DroppedBindFailure,
    /// A lost watch event is not noticed when the list is read again.
    LostWatchEvent,
    /// A quantity is rounded down instead of up.
    WrongRounding,
    /// Ties among equal nodes go by a hash of the node instead of its slot.
    TieByHash,
}

/// All bugs, in order.
pub const ALL: [Bug; 10] = [
    Bug::SkippedUndo,
    Bug::DoubleCount,
    Bug::LooseComparison,
    Bug::NoFencing,
    Bug::NoGangCheck,
    Bug::StaleIndexBlock,
    Bug::DroppedBindFailure,
    Bug::LostWatchEvent,
    Bug::WrongRounding,
    Bug::TieByHash,
];

impl Bug {
    /// The name by which [`VARIABLE`] switches the bug on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SkippedUndo => "skipped-undo",
            Self::DoubleCount => "double-count",
            Self::LooseComparison => "loose-comparison",
            Self::NoFencing => "no-fencing",
            Self::NoGangCheck => "no-gang-check",
            Self::StaleIndexBlock => "stale-index-block",
            Self::DroppedBindFailure => "dropped-bind-failure",
            Self::LostWatchEvent => "lost-watch-event",
            Self::WrongRounding => "wrong-rounding",
            Self::TieByHash => "tie-by-hash",
        }
    }

    /// The bug of this name.
    ///
    /// # Errors
    /// When there is none: a typing error must not pass for a bug that no test catches.
    pub fn named(name: &str) -> Result<Self, UnknownBug> {
        let found = ALL.into_iter().find(|bug| bug.name() == name);
        found.ok_or_else(|| UnknownBug(name.to_owned()))
    }
}

/// There is no bug of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no bug {0}; there are {known}", known = ALL.map(Bug::name).join(", "))]
pub struct UnknownBug(pub String);

/// True when this bug is switched on.
///
/// # Panics
/// When [`VARIABLE`] names no bug: this is a test build, and its run would say nothing.
#[inline(always)]
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    use std::sync::LazyLock;
    static PLANTED: LazyLock<Option<Bug>> = LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        Some(Bug::named(&name).unwrap_or_else(|error| panic!("{VARIABLE}: {error}")))
    });
    *PLANTED == Some(bug)
}

/// Always false: the feature is off.
#[inline(always)]
#[cfg(not(feature = "planted-bugs"))]
pub const fn planted(_: Bug) -> bool {
    false
}

// Known at compile time, so that nothing is left of a switch in what is shipped.
#[cfg(not(feature = "planted-bugs"))]
const _: () = assert!(!planted(Bug::SkippedUndo));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bug_is_found_by_its_name_and_a_wrong_name_is_an_error_that_lists_the_right_ones() {
        for bug in ALL {
            assert_eq!(Bug::named(bug.name()), Ok(bug));
        }
        let error = Bug::named("tie").unwrap_err().to_string();
        assert!(error.starts_with("there is no bug tie; there are skipped-undo, "), "{error}");
        assert!(error.ends_with(", tie-by-hash"), "{error}");
    }
    #[cfg(feature = "planted-bugs")]
    #[test]
    fn a_run_with_a_wrong_name_fails_where_a_switch_is_asked() {
        const SELF: &str = "planted::tests::a_run_with_a_wrong_name_fails_where_a_switch_is_asked";
        if std::env::var(VARIABLE).is_ok_and(|name| name == "tie") {
            planted(Bug::TieByHash);
            return;
        }
        let program = std::env::current_exe().unwrap();
        let mut run = std::process::Command::new(program);
        let output = run.args(["--exact", SELF]).env(VARIABLE, "tie").output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!output.status.success() && text.contains("there is no bug tie"), "{text}");
    }
}
