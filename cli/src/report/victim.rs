//! What a job keeps when the scheduler stops it. This is the one place that knows the difference between a job whose pods
//! are deleted and one that is told beforehand.

/// How a job was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its pods were deleted: it keeps its last checkpoint.
    Deleted,
    /// It got notice and could write a checkpoint first.
    Noticed,
}

/// How a workload's jobs write checkpoints. All times are milliseconds of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// One is written each time so much work was done; `None`: never.
    pub every_ms: Option<i64>,
    /// Work lost between the checkpoint written on notice and the stop; `None`: notice is ignored.
    pub on_notice_ms: Option<i64>,
    /// How long a restart takes before work goes on.
    pub restore_ms: i64,
}

impl Checkpoints {
    /// Progress that is kept of `progress`, of which `kept` was safe already.
    pub fn keep(self, progress: i64, kept: i64, stop: Stop) -> i64 {
        let periodic = match self.every_ms {
            Some(every) if every > 0 => progress / every * every,
            _ => 0,
        };
        let noticed = match (stop, self.on_notice_ms) {
            (Stop::Noticed, Some(lost)) => progress - lost,
            _ => 0,
        };
        periodic.max(noticed).max(kept).min(progress.max(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKPOINTS: Checkpoints =
        Checkpoints { every_ms: Some(30), on_notice_ms: Some(2), restore_ms: 5 };

    #[test]
    fn a_deleted_job_goes_back_to_its_last_checkpoint_and_a_noticed_one_loses_little() {
        assert_eq!(CHECKPOINTS.keep(100, 0, Stop::Deleted), 90);
        assert_eq!(CHECKPOINTS.keep(100, 0, Stop::Noticed), 98);
        assert_eq!(Checkpoints::default().keep(100, 0, Stop::Deleted), 0);
        assert_eq!(Checkpoints::default().keep(100, 0, Stop::Noticed), 0);
    }

    #[test]
    fn what_was_safe_stays_safe() {
        // It went on from 45 and was stopped before the next checkpoint.
        assert_eq!(CHECKPOINTS.keep(50, 45, Stop::Deleted), 45);
        assert_eq!(CHECKPOINTS.keep(46, 45, Stop::Noticed), 45);
    }
}
