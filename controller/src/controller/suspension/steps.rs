//! The decision: what is the next step of a gang, given what its objects say now. Pure, and without any memory: whoever
//! looks next, after a crash too, decides the same from what was written.
//!
//! | state | seen by |
//! | --- | --- |
//! | Running | no intent, no record |
//! | Notified | intent, no record: nothing was stopped, the intent may be withdrawn |
//! | Stopping | record, and the owner runs or pods are left |
//! | Suspended | record, the owner is suspended, no pods are left |
//! | Resuming | record, and `tephra.sh/resume` names it |
//!
//! One step at a time, each of them one atomic write per object; the next look sees its effect.

use jiff::Timestamp;

use super::record::{Intent, Mode, Record};

/// How long after the deadline an owner that cannot be suspended is given before its pods are evicted, in seconds.
pub(super) const PATIENCE: i64 = 30;

/// A pod of the gang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodSeen {
    pub(super) name: String,
    pub(super) uid: String,
    /// It has a node.
    pub(super) bound: bool,
    /// It ended.
    pub(super) over: bool,
    /// It is being deleted.
    pub(super) leaving: bool,
    /// Suspension that it was asked to write a checkpoint for.
    pub(super) request: Option<String>,
    /// Suspension that it acknowledged.
    pub(super) ack: Option<String>,
}

impl PodSeen {
    /// It holds its place and does not go by itself.
    fn runs(&self) -> bool {
        self.bound && !self.over && !self.leaving
    }
}

/// The owner.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnerSeen {
    /// Nobody has a switch: pods are evicted.
    Pods,
    /// The object of our record does not exist any more.
    Gone,
    /// It has a switch.
    Switch(SwitchSeen),
}

/// An owner with a switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SwitchSeen {
    pub(super) suspended: bool,
    /// Suspension of the record that it carries.
    pub(super) record: Option<String>,
    /// A person wants it suspended.
    pub(super) hold: bool,
    /// It ended.
    pub(super) finished: bool,
}

/// Conditions of the PodGroup that are `True`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) suspending: bool,
    pub(super) suspended: bool,
}

/// Everything that a decision rests on.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) intent: Option<Intent>,
    pub(super) record: Option<Record>,
    pub(super) resume: Option<String>,
    pub(super) told: Told,
    pub(super) pods: Vec<PodSeen>,
    pub(super) owner: OwnerSeen,
    pub(super) now: Timestamp,
}

/// Why the gang is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The intent is gone.
    Withdrawn,
    /// The owner ended, or was suspended by somebody else: there is nothing to stop.
    NothingToStop,
    /// The owner runs because a person said so.
    ByHand,
    /// The scheduler gave it room.
    Resumed,
    /// The pods were evicted because the owner could not be suspended.
    FellBack,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do until something changes, at the latest until then.
    Wait(Option<Timestamp>),
    /// Say on the PodGroup that it is going to be suspended.
    Announce,
    /// Ask the pods (by index) for a checkpoint.
    Notify(Vec<usize>),
    /// Take requests back from the pods (by index).
    Hush(Vec<usize>),
    /// Write the record on the PodGroup. From here on there is no way back but a resume.
    Record { acknowledged: bool },
    /// Suspend the owner and write the record on it, in one write.
    Stop { fall_back: bool },
    /// Evict the pods (by index); by force once the deadline is over.
    Evict { pods: Vec<usize>, force: bool },
    /// Say on the PodGroup that it is suspended.
    Settle,
    /// Let the owner run and take its record away, in one write.
    Run,
    /// Create the pods of the record again that we have to create.
    Create,
    /// Take everything of ours off the PodGroup, in one write.
    Release(Release),
    /// Take the record off an owner that a person has let run.
    Forget,
}

/// Decides the next step.
pub(super) fn next(seen: &Seen) -> Step {
    match (&seen.record, &seen.intent) {
        (Some(record), _) => recorded(seen, record),
        (None, Some(intent)) => noticed(seen, intent),
        (None, None) => running(seen),
    }
}

fn which(pods: &[PodSeen], wanted: impl Fn(&PodSeen) -> bool) -> Vec<usize> {
    pods.iter().enumerate().filter(|(_, pod)| wanted(pod)).map(|(index, _)| index).collect()
}

/// No intent: what an earlier one left behind is taken back.
fn running(seen: &Seen) -> Step {
    let asked = which(&seen.pods, |pod| pod.request.is_some() && !pod.over && !pod.leaving);
    if !asked.is_empty() {
        return Step::Hush(asked);
    }
    if seen.told.suspending || seen.told.suspended || seen.resume.is_some() {
        return Step::Release(Release::Withdrawn);
    }
    Step::Wait(None)
}

fn noticed(seen: &Seen, intent: &Intent) -> Step {
    if let OwnerSeen::Switch(owner) = &seen.owner
        && (owner.finished || owner.suspended && owner.record.as_ref() != Some(&intent.id))
    {
        return Step::Release(Release::NothingToStop);
    }
    let runs = which(&seen.pods, PodSeen::runs);
    if runs.is_empty() && seen.owner == OwnerSeen::Pods {
        return Step::Release(Release::NothingToStop);
    }
    if !seen.told.suspending {
        return Step::Announce;
    }
    if intent.mode == Mode::None || runs.is_empty() {
        return Step::Record { acknowledged: true };
    }
    let id = Some(&intent.id);
    let over = seen.now >= intent.deadline;
    let unasked = which(&seen.pods, |pod| pod.runs() && pod.request.as_ref() != id);
    if !unasked.is_empty() && !over {
        return Step::Notify(unasked);
    }
    let acknowledged = intent.mode == Mode::Signal
        || seen.pods.iter().all(|pod| !pod.runs() || pod.ack.as_ref() == id);
    if over || intent.mode == Mode::Ack && acknowledged {
        return Step::Record { acknowledged };
    }
    Step::Wait(Some(intent.deadline))
}

fn recorded(seen: &Seen, record: &Record) -> Step {
    let resume = seen.resume.as_ref() == Some(&record.id);
    let runs = which(&seen.pods, PodSeen::runs);
    let force = seen.now >= record.deadline;
    if record.fell_back {
        return match runs.is_empty() {
            true => Step::Release(Release::FellBack),
            false => Step::Evict { pods: runs, force },
        };
    }
    match &seen.owner {
        OwnerSeen::Gone => Step::Release(Release::NothingToStop),
        OwnerSeen::Pods if resume => resume_pods(seen, record),
        OwnerSeen::Pods if !runs.is_empty() => Step::Evict { pods: runs, force },
        OwnerSeen::Pods => suspended(seen),
        OwnerSeen::Switch(owner) => {
            let ours = owner.record.as_ref() == Some(&record.id);
            match (owner.suspended, ours) {
                // Its record went with the same write that let it run.
                (false, false) if resume => Step::Release(Release::Resumed),
                (false, false) if owner.finished => Step::Release(Release::NothingToStop),
                (false, false) => {
                    let given = record.deadline.max(record.at).as_second() + PATIENCE;
                    Step::Stop { fall_back: seen.now.as_second() >= given }
                }
                (false, true) => Step::Forget,
                // Somebody suspended it before we could, or took our record away: it is theirs.
                (true, false) => Step::Release(Release::NothingToStop),
                (true, true) if resume && !owner.hold => Step::Run,
                (true, true) => suspended(seen),
            }
        }
    }
}

fn suspended(seen: &Seen) -> Step {
    let left = seen.pods.iter().any(|pod| pod.bound && !pod.over);
    if !left && !seen.told.suspended {
        return Step::Settle;
    }
    Step::Wait(None)
}

/// Pods that we create come back under their names: their predecessors must be gone.
fn resume_pods(seen: &Seen, record: &Record) -> Step {
    let mut names = record.members.iter().flat_map(|member| &member.names);
    let of = |name: &String| seen.pods.iter().find(|pod| pod.name == *name);
    let lives = |pod: &PodSeen| !pod.over && !pod.leaving;
    if names.clone().all(|name| of(name).is_some_and(lives)) {
        return Step::Release(Release::Resumed);
    }
    match names.any(|name| of(name).is_none()) {
        true => Step::Create,
        false => Step::Wait(None),
    }
}
