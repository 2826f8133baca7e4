//! The events on a gang's PodGroup: one for each transition. Pure.

use tephra_api::suspension::Record;

use super::{
    gang::{Gang, Top, invalid_intent},
    steps::{Release, Step},
};
use crate::event_log::Severity;

/// Names of pods that an event lists at most.
const NAMED: usize = 5;

/// Reason and text of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

fn told(severity: Severity, reason: &'static str, text: String) -> Vec<Told> {
    vec![Told { severity, reason, text }]
}

/// For whom, in words.
fn cause(by: &str, reason: &str) -> String {
    let by = if by.is_empty() { "another gang" } else { by };
    if reason.is_empty() { format!("for {by}") } else { format!("for {by} ({reason})") }
}

fn for_whom(record: Option<Record>) -> String {
    record.map_or_else(|| cause("", ""), |record| cause(&record.by, &record.reason))
}

/// What is told when a step has been taken.
pub(super) fn telling(gang: &Gang, step: &Step) -> Vec<Told> {
    use Severity::{Normal, Warning};
    match step {
        Step::Notify(_) => gang.intent().map_or_else(Vec::new, |it| {
            let text =
                format!("asked for a checkpoint by {}, {}", it.deadline, cause(&it.by, &it.reason));
            told(Normal, "CheckpointRequested", text)
        }),
        Step::Record { silent } => {
            let intent = gang.intent();
            let whom = intent.map_or_else(String::new, |it| cause(&it.by, &it.reason));
            let mut all = told(Normal, "Suspending", format!("makes room {whom}"));
            let names: Vec<&str> = silent
                .iter()
                .filter_map(|index| Some(gang.pods.get(*index)?.name.as_str()))
                .collect();
            if !names.is_empty() {
                let some = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
                let text =
                    format!("{} pods did not acknowledge by the deadline: {some}", names.len());
                all.extend(told(Warning, "CheckpointNotAcknowledged", text));
            }
            all
        }
        Step::Evict { force: true, .. } => {
            let owner = matches!(gang.owner, Top::Switch(_));
            let text = match (owner, gang.refused) {
                (false, _) => return Vec::new(),
                (true, true) => "its owner cannot be suspended: its pods are deleted",
                (true, false) => "its owner is suspended, but pods stayed: they are deleted",
            };
            told(Warning, "SuspendFellBack", text.to_owned())
        }
        Step::Settle => {
            let text = format!("is down {}, and waits for room to resume", for_whom(gang.record()));
            told(Normal, "Suspended", text)
        }
        Step::Refuse => told(
            Normal,
            "ResumeHeld",
            "not resumed: it is held by a person, or was not suspended so".to_owned(),
        ),
        Step::Run | Step::Create => told(Normal, "Resuming", "there is room again".to_owned()),
        Step::Release(Release::Resumed) => told(Normal, "Resumed", "runs again".to_owned()),
        Step::Release(Release::ByHand) => {
            told(Normal, "Resumed", "somebody let it run again".to_owned())
        }
        Step::Release(Release::Evicted) => {
            told(Normal, "Evicted", format!("its pods were evicted {}", for_whom(gang.record())))
        }
        Step::Release(Release::NothingToStop) => {
            told(Normal, "SuspensionEnded", "there is nothing to stop or to resume".to_owned())
        }
        Step::Wait(_) => {
            let invalid = gang.group.as_ref().and_then(invalid_intent);
            invalid.map_or_else(Vec::new, |error| {
                let text = format!("annotation tephra.sh/suspend is passed over: {error}");
                told(Warning, "InvalidSuspendIntent", text)
            })
        }
        Step::Hush(_) => {
            told(Normal, "SuspensionWithdrawn", "it need not make room any more".to_owned())
        }
        Step::Release(Release::Withdrawn)
        | Step::StandIn
        | Step::Stop
        | Step::Evict { .. }
        | Step::Hold(_)
        | Step::Forget
        | Step::Drop => Vec::new(),
    }
}
