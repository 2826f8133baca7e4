//! The decision: what is the next step of a gang, given what its objects say now. Pure and without memory: whoever looks next,
//! after a crash too, decides the same from what was written. `docs/suspension.md` tells the protocol.
//!
//! | state | seen by |
//! | --- | --- |
//! | Running | no intent, no record |
//! | Notified | intent, no record: nothing was stopped, the scheduler may withdraw |
//! | Stopping | intent and record |
//! | Suspended | record, no intent: the owner is suspended and the pods are gone |
//! | Resuming | record, and `tephra.sh/resume` names it |
//!
//! "The record" is that of the PodGroup or, where an operator has deleted it, of its stand-in. That the intent goes when
//! the gang is down tells a gang that was not stopped yet from one that somebody let run again.

use jiff::Timestamp;
use tephra_api::suspension::{Intent, Mode, Record};

/// How long after the deadline pods that ought to go are waited for, in seconds.
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
    /// `tephra.sh/checkpoint-request`: the suspension that it was asked to write a checkpoint for.
    pub(super) request: Option<String>,
    /// `tephra.sh/checkpoint-ack`: the suspension that it acknowledged.
    pub(super) ack: Option<String>,
}

impl PodSeen {
    /// It holds its place and does not go by itself.
    fn runs(&self) -> bool {
        self.bound && !self.over && !self.leaving
    }

    fn lives(&self) -> bool {
        !self.over && !self.leaving
    }
}

/// A PodGroup: that of the gang, or its stand-in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupSeen {
    pub(super) intent: Option<Intent>,
    pub(super) record: Option<Record>,
    pub(super) resume: Option<String>,
    /// A person wants it suspended.
    pub(super) hold: bool,
}

/// Who has the switch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnerSeen {
    /// Nobody: pods are evicted.
    Pods,
    /// The object of our record does not exist any more.
    Gone,
    /// This object.
    Switch(SwitchSeen),
}

/// An owner with a switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SwitchSeen {
    pub(super) suspended: bool,
    /// Id of the record that it carries.
    pub(super) record: Option<String>,
    /// That record has all that a PodGroup needs to wait with.
    pub(super) complete: bool,
    /// A person wants it suspended.
    pub(super) hold: bool,
    /// It ended.
    pub(super) finished: bool,
}

/// Everything that a decision rests on.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) group: Option<GroupSeen>,
    pub(super) stand_in: Option<GroupSeen>,
    pub(super) owner: OwnerSeen,
    pub(super) pods: Vec<PodSeen>,
    pub(super) now: Timestamp,
}

/// Why everything of ours is taken off a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The intent is gone, a `resume` was left.
    Withdrawn,
    /// The owner ended or is gone, or somebody else suspended it.
    NothingToStop,
    /// The owner runs because a person said so.
    ByHand,
    /// The scheduler gave it room.
    Resumed,
    /// Its pods are gone and nobody makes new ones.
    NothingComesBack,
}

/// The next step. Each is one atomic write per object; the next look sees its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do until something changes, or until then.
    Wait(Option<Timestamp>),
    /// Ask the pods (by index) for a checkpoint.
    Notify(Vec<usize>),
    /// Take requests back from the pods (by index).
    Hush(Vec<usize>),
    /// Write the record on the PodGroup. From here on the way back is a resume.
    Record { acknowledged: bool },
    /// Suspend the owner and write the record on it, in one write; if the server refuses that for good, evict `stuck`.
    Stop { stuck: Vec<usize> },
    /// Evict the pods (by index); delete them if a disruption budget has no say any more.
    Evict { pods: Vec<usize>, force: bool },
    /// The gang is down: take the intent off.
    Settle,
    /// The gang is held by a person: take `resume` off.
    Refuse,
    /// Let the owner run and take its record away, in one write.
    Run,
    /// Create the pods of the record that are missing.
    Create,
    /// Take everything of ours off the PodGroup that carries the record, or delete it if it is of our making.
    Release(Release),
    /// Take the record off an owner that needs none any more.
    Forget,
    /// The owner's record is the only one left: put it on the PodGroup or, if that is gone, on a stand-in.
    Restore,
    /// Delete a stand-in beside a PodGroup that carries the record itself.
    Drop,
}

/// Decides the next step.
pub(super) fn next(seen: &Seen) -> Step {
    let of = |group: &Option<GroupSeen>| {
        let group = group.clone()?;
        Some((group.record.clone()?, group))
    };
    match (of(&seen.group), of(&seen.stand_in)) {
        (Some(_), Some(_)) => Step::Drop,
        (Some((record, group)), None) | (None, Some((record, group))) => {
            recorded(seen, &group, &record)
        }
        (None, None) => unrecorded(seen),
    }
}

fn which(pods: &[PodSeen], wanted: impl Fn(&PodSeen) -> bool) -> Vec<usize> {
    pods.iter().enumerate().filter(|(_, pod)| wanted(pod)).map(|(index, _)| index).collect()
}

fn unrecorded(seen: &Seen) -> Step {
    let held = seen.group.as_ref().is_some_and(|group| group.hold);
    match &seen.owner {
        OwnerSeen::Switch(owner) if owner.record.is_some() => {
            return match (owner.suspended && !owner.finished, owner.complete) {
                // A person's resume: the PodGroup was released before.
                (false, _) => Step::Forget,
                (true, true) => Step::Restore,
                (true, false) if owner.hold || held => Step::Wait(None),
                // Nobody knows any more what it waits for: its pods can wait in the queue themselves.
                (true, false) => Step::Run,
            };
        }
        _ => {}
    }
    match &seen.group {
        None => Step::Wait(None),
        Some(GroupSeen { intent: Some(intent), .. }) => noticed(seen, intent),
        Some(group) => running(seen, group),
    }
}

/// No intent: what an earlier one left behind is taken back.
fn running(seen: &Seen, group: &GroupSeen) -> Step {
    let asked = which(&seen.pods, |pod| pod.request.is_some() && pod.lives());
    if !asked.is_empty() {
        return Step::Hush(asked);
    }
    if group.resume.is_some() { Step::Release(Release::Withdrawn) } else { Step::Wait(None) }
}

fn noticed(seen: &Seen, intent: &Intent) -> Step {
    let runs = which(&seen.pods, PodSeen::runs);
    match &seen.owner {
        OwnerSeen::Switch(owner) if owner.finished || owner.suspended => {
            return Step::Release(Release::NothingToStop);
        }
        OwnerSeen::Gone => return Step::Release(Release::NothingToStop),
        OwnerSeen::Pods if runs.is_empty() => return Step::Release(Release::NothingToStop),
        _ => {}
    }
    if intent.mode == Mode::None || runs.is_empty() {
        return Step::Record { acknowledged: true };
    }
    let id = Some(&intent.id);
    let acknowledged = runs.iter().all(|index| seen.pods[*index].ack.as_ref() == id);
    if seen.now >= intent.deadline {
        return Step::Record { acknowledged: acknowledged || intent.mode == Mode::Signal };
    }
    let unasked = which(&seen.pods, |pod| pod.runs() && pod.request.as_ref() != id);
    if !unasked.is_empty() {
        return Step::Notify(unasked);
    }
    if acknowledged && intent.mode == Mode::Ack {
        return Step::Record { acknowledged };
    }
    Step::Wait(Some(intent.deadline))
}

fn recorded(seen: &Seen, group: &GroupSeen, record: &Record) -> Step {
    let held_owner = matches!(&seen.owner, OwnerSeen::Switch(owner) if owner.hold);
    let hold = held_owner || seen.group.as_ref().is_some_and(|group| group.hold);
    let resume = group.resume.as_ref() == Some(&record.id) && !hold;
    let owner = match &seen.owner {
        OwnerSeen::Gone => return Step::Release(Release::NothingToStop),
        OwnerSeen::Switch(owner) if owner.finished => {
            return Step::Release(Release::NothingToStop);
        }
        _ if hold && group.resume.is_some() => return Step::Refuse,
        OwnerSeen::Pods => return recorded_pods(seen, group, record, resume),
        OwnerSeen::Switch(owner) => owner,
    };
    let down = group.intent.is_none();
    match (owner.suspended, owner.record.as_ref() == Some(&record.id)) {
        // Its record went with the same write that let it run.
        (false, false) if resume => Step::Release(Release::Resumed),
        (false, false) if !down => Step::Stop { stuck: stuck(seen, record) },
        (false, _) => Step::Release(Release::ByHand),
        // Somebody suspended it before we could, or took our record away: it is theirs.
        (true, false) => Step::Release(Release::NothingToStop),
        (true, true) if resume => Step::Run,
        (true, true) => draining(seen, record, down),
    }
}

/// When pods that ought to be gone are evicted.
fn given(record: &Record) -> Timestamp {
    let from = record.deadline.max(record.at);
    Timestamp::from_second(from.as_second().saturating_add(PATIENCE)).unwrap_or(Timestamp::MAX)
}

fn stuck(seen: &Seen, record: &Record) -> Vec<usize> {
    if seen.now >= given(record) { which(&seen.pods, PodSeen::runs) } else { Vec::new() }
}

/// The owner is suspended: its operator takes the pods away.
fn draining(seen: &Seen, record: &Record, down: bool) -> Step {
    let stuck = stuck(seen, record);
    if !stuck.is_empty() {
        return Step::Evict { pods: stuck, force: true };
    }
    if seen.pods.iter().any(PodSeen::runs) {
        return Step::Wait(Some(given(record)));
    }
    settled(seen, down)
}

fn settled(seen: &Seen, down: bool) -> Step {
    let left = seen.pods.iter().any(|pod| pod.bound && !pod.over);
    if left || down { Step::Wait(None) } else { Step::Settle }
}

/// Nobody has a switch. Pods that we create come back under their names: their predecessors must be gone.
fn recorded_pods(seen: &Seen, group: &GroupSeen, record: &Record, resume: bool) -> Step {
    let down = group.intent.is_none();
    let names = || record.members.iter().flat_map(|member| &member.names);
    let of = |name: &String| seen.pods.iter().find(|pod| pod.name == *name);
    let back = names().all(|name| of(name).is_some_and(PodSeen::lives));
    if resume {
        return match (back, names().any(|name| of(name).is_none())) {
            (true, _) => Step::Release(Release::Resumed),
            (false, true) => Step::Create,
            (false, false) => Step::Wait(None),
        };
    }
    if down && back && names().next().is_some() {
        return Step::Release(Release::ByHand);
    }
    let runs = which(&seen.pods, PodSeen::runs);
    if !down && !runs.is_empty() {
        return Step::Evict { pods: runs, force: seen.now >= record.deadline };
    }
    match settled(seen, down) {
        Step::Settle if record.members.is_empty() => Step::Release(Release::NothingComesBack),
        step => step,
    }
}
