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
use tephra_api::suspension::{Intent, Mode, Owner, Record};

/// How long after the deadline pods that ought to go are waited for, in seconds.
pub(super) const PATIENCE: i64 = 30;

/// A pod of the gang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodSeen {
    pub(super) name: String,
    pub(super) uid: String,
    /// Its controller.
    pub(super) controller: Option<Owner>,
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
    pub(super) fn runs(&self) -> bool {
        self.bound && self.lives()
    }

    pub(super) fn lives(&self) -> bool {
        !self.over && !self.leaving
    }
}

/// A PodGroup: that of the gang, or its stand-in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupSeen {
    /// None also when its text is no intent.
    pub(super) intent: Option<Intent>,
    /// Something stands where the intent would be.
    pub(super) wanted: bool,
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
    /// Its operator deletes the PodGroup of a suspended job.
    pub(super) loses_group: bool,
    /// A person wants it suspended.
    pub(super) hold: bool,
    /// It ended.
    pub(super) finished: bool,
}

/// Everything that a decision rests on.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) group: Option<GroupSeen>,
    /// Only one that carries a record of this gang.
    pub(super) stand_in: Option<GroupSeen>,
    pub(super) owner: OwnerSeen,
    pub(super) pods: Vec<PodSeen>,
    /// The server understood the last [`Step::Stop`] and refused it.
    pub(super) refused: bool,
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
    /// Its pods are gone, and whoever made them makes new ones, or nobody does.
    Evicted,
}

/// The next step. Its writes (`writes.rs`) may be cut off anywhere: the next look goes on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do until something changes, or until then.
    Wait(Option<Timestamp>),
    /// Ask the pods (by index) for a checkpoint.
    Notify(Vec<usize>),
    /// Take requests back from the pods (by index).
    Hush(Vec<usize>),
    /// Write the record on the PodGroup. From here on the way back is a resume. `silent`: pods (by index) that did not
    /// acknowledge although they should.
    Record { silent: Vec<usize> },
    /// The operator will delete the PodGroup: create the one that waits in its place.
    StandIn,
    /// Suspend the owner and write the record on it, in one write.
    Stop,
    /// Evict the pods (by index); delete them if a disruption budget has no say any more.
    Evict { pods: Vec<usize>, force: bool },
    /// The gang is down: take the intent off.
    Settle,
    /// A person holds the owner, or does so no longer: say it in the record, where the scheduler reads it.
    Hold(bool),
    /// The gang is held by a person: take `resume` off.
    Refuse,
    /// Let the owner run and take its record away, in one write.
    Run,
    /// Create the pods of the record that are missing.
    Create,
    /// Take everything of ours off the PodGroup; delete the stand-in.
    Release(Release),
    /// Take the record off an owner that needs none any more.
    Forget,
    /// Delete a stand-in of an earlier suspension.
    Drop,
}

/// Decides the next step.
pub(super) fn next(seen: &Seen) -> Step {
    let record = |group: &Option<GroupSeen>| group.as_ref()?.record.clone();
    match (record(&seen.group), record(&seen.stand_in), &seen.group, &seen.stand_in) {
        (Some(new), Some(old), ..) if new.id != old.id => Step::Drop,
        (_, Some(record), _, Some(waits)) => recorded(seen, waits, &record),
        (Some(record), _, Some(group), _) => recorded(seen, group, &record),
        _ => unrecorded(seen),
    }
}

fn which(pods: &[PodSeen], wanted: impl Fn(&PodSeen) -> bool) -> Vec<usize> {
    pods.iter().enumerate().filter(|(_, pod)| wanted(pod)).map(|(index, _)| index).collect()
}

fn unrecorded(seen: &Seen) -> Step {
    let held = seen.group.as_ref().is_some_and(|group| group.hold);
    if let OwnerSeen::Switch(owner) = &seen.owner
        && owner.record.is_some()
    {
        return match owner.suspended && !owner.finished {
            false => Step::Forget,
            true if owner.hold || held => Step::Wait(None),
            // Somebody deleted what waited for it: its pods can wait in the queue themselves.
            true => Step::Run,
        };
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
        return Step::Record { silent: Vec::new() };
    }
    let of_this = |id: &Option<String>| id.as_ref() == Some(&intent.id);
    let silent = match intent.mode {
        Mode::Ack => which(&seen.pods, |pod| pod.runs() && !of_this(&pod.ack)),
        _ => Vec::new(),
    };
    if seen.now >= intent.deadline {
        return Step::Record { silent };
    }
    let unasked = which(&seen.pods, |pod| pod.runs() && !of_this(&pod.request));
    if !unasked.is_empty() {
        return Step::Notify(unasked);
    }
    if silent.is_empty() && intent.mode == Mode::Ack {
        return Step::Record { silent };
    }
    Step::Wait(Some(intent.deadline))
}

fn recorded(seen: &Seen, waits: &GroupSeen, record: &Record) -> Step {
    let held = |group: &Option<GroupSeen>| group.as_ref().is_some_and(|group| group.hold);
    let owner_held = matches!(&seen.owner, OwnerSeen::Switch(owner) if owner.hold);
    let hold = owner_held || held(&seen.group) || held(&seen.stand_in);
    let down = !waits.wanted;
    let resume = down && !hold && waits.resume.as_ref() == Some(&record.id);
    let owner = match &seen.owner {
        OwnerSeen::Gone => return Step::Release(Release::NothingToStop),
        OwnerSeen::Switch(owner) if owner.finished => {
            return Step::Release(Release::NothingToStop);
        }
        _ if record.held != owner_held => return Step::Hold(owner_held),
        _ if waits.resume.is_some() && !resume => return Step::Refuse,
        OwnerSeen::Pods => return recorded_pods(seen, record, down, resume),
        OwnerSeen::Switch(owner) => owner,
    };
    match (owner.suspended, owner.record.as_ref() == Some(&record.id)) {
        // Its record went with the same write that let it run.
        (false, false) if resume => Step::Release(Release::Resumed),
        (false, false) if !down => stopping(seen, owner, record),
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

/// The owner runs still. If the server will not have it suspended, its pods are evicted in the end, as if it had no switch.
fn stopping(seen: &Seen, owner: &SwitchSeen, record: &Record) -> Step {
    if owner.loses_group && seen.stand_in.is_none() {
        return Step::StandIn;
    }
    if !seen.refused || seen.now < given(record) {
        return Step::Stop;
    }
    let runs = which(&seen.pods, PodSeen::runs);
    match (runs.is_empty(), left(seen)) {
        (false, _) => Step::Evict { pods: runs, force: true },
        (true, true) => Step::Wait(None),
        (true, false) => Step::Release(Release::Evicted),
    }
}

/// The owner is suspended: its operator takes the pods away.
fn draining(seen: &Seen, record: &Record, down: bool) -> Step {
    let runs = which(&seen.pods, PodSeen::runs);
    match runs.is_empty() {
        false if seen.now < given(record) => Step::Wait(Some(given(record))),
        false => Step::Evict { pods: runs, force: true },
        true if left(seen) || down => Step::Wait(None),
        true => Step::Settle,
    }
}

/// A pod of the gang is on its node yet.
fn left(seen: &Seen) -> bool {
    seen.pods.iter().any(|pod| pod.bound && !pod.over)
}

/// Nobody has a switch. Pods that we create come back under their names: their predecessors must be gone.
fn recorded_pods(seen: &Seen, record: &Record, down: bool, resume: bool) -> Step {
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
    if down {
        return if back { Step::Release(Release::ByHand) } else { Step::Wait(None) };
    }
    let runs = which(&seen.pods, PodSeen::runs);
    if !runs.is_empty() {
        return Step::Evict { pods: runs, force: seen.now >= record.deadline };
    }
    match (left(seen), names().next()) {
        (true, _) => Step::Wait(None),
        (false, None) => Step::Release(Release::Evicted),
        (false, Some(_)) => Step::Settle,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DEADLINE: i64 = 1_800_000_060;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn intent(mode: Mode) -> Intent {
        let (by, reason) = ("ns/big".into(), "Preempt".into());
        Intent { id: "s".into(), by, reason, deadline: at(DEADLINE), mode }
    }

    fn record(names: &[&str]) -> Record {
        let members = json!([{"count": names.len(), "names": names, "pod": {}}]);
        Record::parse(
            &json!({
                "id": "s", "at": at(DEADLINE - 60), "since": at(DEADLINE), "deadline": at(DEADLINE),
                "group": "g", "members": members,
            })
            .to_string(),
        )
        .unwrap()
    }

    fn pod(name: &str) -> PodSeen {
        PodSeen { name: name.into(), bound: true, ..PodSeen::default() }
    }

    /// Two running pods of a Job, a minute before the deadline.
    fn running() -> Seen {
        Seen {
            group: Some(GroupSeen::default()),
            stand_in: None,
            owner: OwnerSeen::Switch(SwitchSeen::default()),
            pods: vec![pod("a"), pod("b")],
            refused: false,
            now: at(DEADLINE - 60),
        }
    }

    fn of_group(seen: &mut Seen) -> &mut GroupSeen {
        seen.group.get_or_insert_default()
    }

    fn notified(mode: Mode) -> Seen {
        let mut seen = running();
        (of_group(&mut seen).intent, of_group(&mut seen).wanted) = (Some(intent(mode)), true);
        seen
    }

    fn stopping() -> Seen {
        let mut seen = notified(Mode::None);
        of_group(&mut seen).record = Some(record(&[]));
        seen
    }

    /// A suspended Job whose pods are gone.
    fn suspended() -> Seen {
        let mut seen = running();
        of_group(&mut seen).record = Some(record(&[]));
        let record = Some("s".into());
        seen.owner =
            OwnerSeen::Switch(SwitchSeen { suspended: true, record, ..SwitchSeen::default() });
        seen.pods.clear();
        seen
    }

    fn plain(mut seen: Seen, pods: &[&str]) -> Seen {
        seen.owner = OwnerSeen::Pods;
        seen.pods = pods.iter().map(|name| pod(name)).collect();
        if let Some(group) = &mut seen.group {
            group.record = Some(record(&["a", "b"]));
        }
        seen
    }

    fn with(mut seen: Seen, change: impl FnOnce(&mut Seen)) -> Seen {
        change(&mut seen);
        seen
    }

    fn owner(seen: &mut Seen) -> &mut SwitchSeen {
        match &mut seen.owner {
            OwnerSeen::Switch(owner) => owner,
            _ => panic!("an owner with a switch"),
        }
    }

    #[test]
    fn each_state_of_the_objects_has_its_next_step() {
        let deadline = Some(at(DEADLINE));
        let asked = |seen: &mut Seen| {
            seen.pods.iter_mut().for_each(|pod| pod.request = Some("s".into()));
        };
        let resume = |seen: &mut Seen| of_group(seen).resume = Some("s".into());
        let table = [
            ("running", running(), Step::Wait(None)),
            ("asked, withdrawn", with(running(), asked), Step::Hush(vec![0, 1])),
            (
                "a resume without a record",
                with(running(), resume),
                Step::Release(Release::Withdrawn),
            ),
            ("no PodGroup", with(running(), |it| it.group = None), Step::Wait(None)),
            ("Ack", notified(Mode::Ack), Step::Notify(vec![0, 1])),
            ("Signal, asked", with(notified(Mode::Signal), asked), Step::Wait(deadline)),
            (
                "Ack, a pod that ends is not asked",
                with(notified(Mode::Ack), |it| it.pods[0].over = true),
                Step::Notify(vec![1]),
            ),
            (
                "Ack, asked by an earlier intent",
                with(notified(Mode::Ack), |it| it.pods[1].request = Some("s-0".into())),
                Step::Notify(vec![0, 1]),
            ),
            (
                "Ack, at the deadline",
                with(notified(Mode::Ack), |it| it.now = at(DEADLINE)),
                Step::Record { silent: vec![0, 1] },
            ),
            (
                "Ack, nothing runs",
                with(notified(Mode::Ack), |it| {
                    it.pods.iter_mut().for_each(|pod| pod.bound = false)
                }),
                Step::Record { silent: vec![] },
            ),
            (
                "the owner is gone",
                with(notified(Mode::Ack), |it| it.owner = OwnerSeen::Gone),
                Step::Release(Release::NothingToStop),
            ),
            ("recorded", stopping(), Step::Stop),
            (
                "recorded, the PodGroup will go",
                with(stopping(), |it| owner(it).loses_group = true),
                Step::StandIn,
            ),
            (
                "refused, some time is left",
                with(stopping(), |it| (it.refused, it.now) = (true, at(DEADLINE + PATIENCE - 1))),
                Step::Stop,
            ),
            (
                "refused for good",
                with(stopping(), |it| (it.refused, it.now) = (true, at(DEADLINE + PATIENCE))),
                Step::Evict { pods: vec![0, 1], force: true },
            ),
            ("down", suspended(), Step::Wait(None)),
            (
                "down, the intent stands",
                with(suspended(), |it| of_group(it).wanted = true),
                Step::Settle,
            ),
            (
                "a pod is on its way out",
                with(suspended(), |it| {
                    of_group(it).wanted = true;
                    it.pods = vec![PodSeen { leaving: true, ..pod("a") }];
                }),
                Step::Wait(None),
            ),
            ("resumed", with(suspended(), resume), Step::Run),
            (
                "a resume of another suspension",
                with(suspended(), |it| of_group(it).resume = Some("s-0".into())),
                Step::Refuse,
            ),
            (
                "a resume while it is stopped",
                with(with(suspended(), resume), |it| of_group(it).wanted = true),
                Step::Refuse,
            ),
            (
                "a person holds the owner",
                with(with(suspended(), resume), |it| owner(it).hold = true),
                Step::Hold(true),
            ),
            (
                "a person has let go of the owner",
                with(suspended(), |it| {
                    of_group(it).record = Some(Record { held: true, ..record(&[]) });
                }),
                Step::Hold(false),
            ),
            (
                "resumed, the owner runs",
                with(with(suspended(), resume), |it| *owner(it) = SwitchSeen::default()),
                Step::Release(Release::Resumed),
            ),
            (
                "a person lets it run",
                with(suspended(), |it| owner(it).suspended = false),
                Step::Release(Release::ByHand),
            ),
            (
                "the record is left on an owner that runs",
                with(running(), |it| owner(it).record = Some("s".into())),
                Step::Forget,
            ),
            (
                "the record is left on a suspended owner alone",
                with(suspended(), |it| of_group(it).record = None),
                Step::Run,
            ),
            (
                "the same, held",
                with(suspended(), |it| (of_group(it).record, owner(it).hold) = (None, true)),
                Step::Wait(None),
            ),
            (
                "a stand-in of an earlier suspension",
                with(stopping(), |it| {
                    let mut old = record(&[]);
                    old.id = "s-0".into();
                    it.stand_in = Some(GroupSeen { record: Some(old), ..GroupSeen::default() });
                }),
                Step::Drop,
            ),
            (
                "plain pods",
                plain(stopping(), &["a", "b"]),
                Step::Evict { pods: vec![0, 1], force: false },
            ),
            ("plain pods, gone", plain(stopping(), &[]), Step::Settle),
            ("plain pods, down", plain(suspended(), &[]), Step::Wait(None)),
            (
                "plain pods, made by hand",
                plain(suspended(), &["a", "b"]),
                Step::Release(Release::ByHand),
            ),
            ("plain pods, resumed in part", with(plain(suspended(), &["a"]), resume), Step::Create),
            (
                "plain pods, resumed",
                with(plain(suspended(), &["a", "b"]), resume),
                Step::Release(Release::Resumed),
            ),
        ];
        for (what, seen, wanted) in table {
            assert_eq!(next(&seen), wanted, "{what}");
        }
    }
}
