//! Status of a task (one pod) inside the core and the classes of statuses that the rules speak of (2.3).

/// Status of a task. The first four after `Pending` are the core's own; the rest comes from the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Waits for a node.
    Pending = 0,
    /// Has a node in this session, not committed yet.
    Allocated,
    /// Has a node in this session whose room is still being freed.
    Pipelined,
    /// Committed; the bind is under way.
    Binding,
    /// Bound, not running yet.
    Bound,
    /// Running.
    Running,
    /// Being deleted.
    Releasing,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// The node does not answer.
    Unknown,
}

/// Number of statuses.
pub const STATUSES: usize = 10;

/// All statuses, in order.
pub const ALL: [Status; STATUSES] = [
    Status::Pending,
    Status::Allocated,
    Status::Pipelined,
    Status::Binding,
    Status::Bound,
    Status::Running,
    Status::Releasing,
    Status::Succeeded,
    Status::Failed,
    Status::Unknown,
];

impl Status {
    /// Volcano's "allocated" class: holds a node and its queue's quota.
    pub fn is_allocated(self) -> bool {
        matches!(self, Self::Allocated | Self::Binding | Self::Bound | Self::Running)
    }

    /// Ended.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Takes room on its node, or has it promised.
    pub fn occupies(self) -> bool {
        !matches!(self, Self::Pending | Self::Succeeded | Self::Failed)
    }

    /// Counts into the queue's allocation inside a session: the allocated class, and pipelined tasks, for
    /// which Volcano fires the same allocate event (3.5).
    pub fn is_charged(self) -> bool {
        self.is_allocated() || self == Self::Pipelined
    }

    /// The word in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Allocated => "Allocated",
            Self::Pipelined => "Pipelined",
            Self::Binding => "Binding",
            Self::Bound => "Bound",
            Self::Running => "Running",
            Self::Releasing => "Releasing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// Number of tasks by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u32; STATUSES]);

impl Counts {
    /// Tasks in a status.
    pub fn of(&self, status: Status) -> u32 {
        self.0[status as usize]
    }

    /// One task more in a status.
    pub fn enter(&mut self, status: Status) {
        self.0[status as usize] += 1;
    }

    /// One task less in a status.
    pub fn leave(&mut self, status: Status) {
        debug_assert!(self.0[status as usize] > 0, "a task left a status it was not counted in");
        self.0[status as usize] = self.0[status as usize].saturating_sub(1);
    }

    /// All tasks.
    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Tasks of the allocated class.
    pub fn allocated(&self) -> u32 {
        self.of(Status::Allocated)
            + self.of(Status::Binding)
            + self.of(Status::Bound)
            + self.of(Status::Running)
    }

    /// Volcano `ReadyTaskNum`.
    pub fn ready(&self) -> u32 {
        self.allocated() + self.of(Status::Succeeded)
    }

    /// Volcano `ValidTaskNum`.
    pub fn valid(&self) -> u32 {
        self.ready() + self.of(Status::Pipelined) + self.of(Status::Pending)
    }
}
