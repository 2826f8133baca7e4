//! Bugs that a test build can switch on at run time, to prove that the tests would notice them. Without the
//! feature `planted-bugs` every check is a constant `false` and costs nothing. The list and the command that
//! runs it are in `docs/planted-bugs.md`.

/// One mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A rolled back statement forgets its last operation.
    SkippedUndo = 1,
    /// A task of a queue is added twice to the queue's allocation.
    DoubleCount,
    /// The index lets a request fit that is one unit too large.
    LooseComparison,
    /// The binder writes without asking whether the lease still holds.
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

#[cfg(feature = "planted-bugs")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Switches a bug on, or all off.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), std::sync::atomic::Ordering::Relaxed);
}

/// True when this bug is switched on.
#[inline(always)]
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Always false: the feature is off.
#[inline(always)]
#[cfg(not(feature = "planted-bugs"))]
pub fn planted(_: Bug) -> bool {
    false
}
