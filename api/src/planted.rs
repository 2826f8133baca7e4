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
}

/// True when this bug is switched on.
#[inline(always)]
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    use std::sync::LazyLock;
    static PLANTED: LazyLock<Option<Bug>> = LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        let found = ALL.into_iter().find(|bug| bug.name() == name);
        // A test build: a typing error must not pass for a bug that no test catches.
        Some(found.unwrap_or_else(|| panic!("{VARIABLE}: there is no bug {name:?}")))
    });
    *PLANTED == Some(bug)
}

/// Always false: the feature is off.
#[inline(always)]
#[cfg(not(feature = "planted-bugs"))]
pub fn planted(_: Bug) -> bool {
    false
}
