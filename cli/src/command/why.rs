//! `tephra why`: why a job is not running although it was: who made it go, since when, and what it waits for.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use tephra_api::keys;
use tephra_api::suspension::{Intent, Ledger, Record};

use super::{block_on, print};
use crate::cluster::{Gang, JobArgs};

/// Tell who made a job go and when it comes back.
#[derive(Debug, Args)]
pub struct WhyArgs {
    #[command(flatten)]
    job: JobArgs,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Where a job stands.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    job: String,
    /// `Running`, `Leaving`, `Suspended`, `Resuming`, or the phase of a job that has nothing to do with suspension.
    state: String,
    /// `namespace/name` of the gang that gets its room; a person's wish names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Since when it is down, or when it is stopped at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    /// Who keeps it down.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<String>,
    /// When the scheduler expects to start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_start: Option<String>,
    /// Suspensions of its life.
    suspensions: u64,
    /// Seconds that it was down before the present suspension.
    suspended_seconds: i64,
    /// What the scheduler says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Prints the story of a job.
///
/// # Errors
/// When the job is not found.
pub fn run(args: WhyArgs) -> anyhow::Result<ExitCode> {
    block_on(async {
        let story = story(&args.job.find().await?.0);
        match args.output {
            Output::Text => print(format_args!("{}", text(&story)))?,
            Output::Json => {
                print(format_args!("{}\n", serde_json::to_string_pretty(&story)?))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn story(gang: &Gang) -> Story {
    let told = |key: &str| gang.annotation(key).map(str::to_owned);
    let intent = gang.annotation(keys::SUSPEND).and_then(|text| Intent::parse(text).ok());
    let record = gang.annotation(keys::SUSPENDED).and_then(|text| Record::parse(text).ok());
    let ledger = gang.annotation(keys::SUSPENSIONS).and_then(Ledger::parse).unwrap_or_default();
    let status = gang.groups.iter().filter_map(|group| group.status.as_ref());
    let phase = status.clone().find_map(|status| status.phase.clone());
    let conditions = status.filter_map(|status| status.conditions.as_ref()).flatten();
    let message = conditions
        .filter(|condition| condition.type_.as_deref() == Some("Unschedulable"))
        .find_map(|condition| condition.message.clone());
    let resumes =
        record.as_ref().is_some_and(|record| told(keys::RESUME).as_ref() == Some(&record.id));
    let (state, by, reason, at) = match (&record, intent) {
        (Some(record), intent) => {
            let state = match (intent, resumes) {
                (Some(_), _) => "Leaving",
                (None, true) => "Resuming",
                (None, false) => "Suspended",
            };
            (
                state.to_owned(),
                Some(record.by.clone()),
                Some(record.reason.clone()),
                Some(record.at),
            )
        }
        (None, Some(intent)) => {
            ("Leaving".to_owned(), Some(intent.by), Some(intent.reason), Some(intent.deadline))
        }
        (None, None) => (phase.unwrap_or_else(|| "Pending".to_owned()), None, None, None),
    };
    let known = record.map_or((ledger.suspensions, ledger.suspended_seconds), |record| {
        (record.suspensions, record.suspended_seconds)
    });
    Story {
        job: gang.name.clone(),
        message: message.filter(|_| state != "Running"),
        state,
        by: by.filter(|by| !by.is_empty()),
        reason: reason.filter(|reason| !reason.is_empty()),
        at,
        held_by: told(keys::HOLD),
        predicted_start: told(keys::PREDICTED_START),
        suspensions: known.0,
        suspended_seconds: known.1,
    }
}

fn text(story: &Story) -> String {
    let at = story.at.map(|at| at.to_string()).unwrap_or_default();
    let reason = story.reason.as_deref().unwrap_or("no reason given");
    let cause = match &story.by {
        Some(by) => format!("for {by} ({reason})"),
        None => format!("by a person ({reason})"),
    };
    let mut lines = vec![match story.state.as_str() {
        "Leaving" => format!("{} makes room {cause}, by {at} at the latest", story.job),
        "Suspended" => format!("{} is suspended since {at} {cause}", story.job),
        "Resuming" => format!("{} comes back: its room is held", story.job),
        state => format!("{} is {state}", story.job),
    }];
    match (&story.held_by, &story.predicted_start) {
        (Some(who), _) => lines.push(format!("held by {who} until `tephra resume`")),
        (None, Some(when)) => lines.push(format!("expected to start at {when}")),
        (None, None) if story.state == "Suspended" => {
            lines.push("comes back when there is room for it".to_owned())
        }
        (None, None) => {}
    }
    if let Some(message) = &story.message {
        lines.push(message.clone());
    }
    if story.suspensions > 0 {
        let (times, seconds) = (story.suspensions, story.suspended_seconds);
        lines.push(format!("suspensions so far: {times}, {seconds} s before the present one"));
    }
    let mut text = lines.join("\n  ");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(annotations: Value, status: Value) -> String {
        let group = json!({"metadata": {"name": "train", "annotations": annotations}, "spec": {}, "status": status});
        let groups = vec![serde_json::from_value(group).expect("a PodGroup")];
        text(&story(&Gang { name: "ns/train".to_owned(), groups }))
    }

    fn record(by: &str) -> String {
        json!({"id": "s-1", "by": by, "reason": "Preempt", "at": "2026-12-02T01:00:00Z", "since": "2026-12-02T01:00:00Z",
               "deadline": "2026-12-02T01:00:00Z", "group": "train", "suspensions": 2, "suspendedSeconds": 30})
        .to_string()
    }

    #[test]
    fn a_gang_that_is_down_tells_who_made_it_go_and_when_it_comes_back() {
        let status = json!({"phase": "Inqueue", "conditions": [
            {"type": "Unschedulable", "status": "True", "message": "0/2 nodes are available"}]});
        let annotations = json!({"tephra.sh/suspended": record("ns/big"), "tephra.sh/predicted-start": "2026-12-02T02:00:00Z"});
        assert_eq!(
            told(annotations, status),
            "ns/train is suspended since 2026-12-02T01:00:00Z for ns/big (Preempt)\n  \
             expected to start at 2026-12-02T02:00:00Z\n  0/2 nodes are available\n  \
             suspensions so far: 2, 30 s before the present one\n"
        );
        let annotations = json!({"tephra.sh/suspended": record(""), "tephra.sh/hold": "user"});
        assert_eq!(
            told(annotations, Value::Null),
            "ns/train is suspended since 2026-12-02T01:00:00Z by a person (Preempt)\n  \
             held by user until `tephra resume`\n  suspensions so far: 2, 30 s before the present one\n"
        );
        let annotations =
            json!({"tephra.sh/suspended": record("ns/big"), "tephra.sh/resume": "s-1"});
        assert!(
            told(annotations, Value::Null).starts_with("ns/train comes back: its room is held\n")
        );
    }

    #[test]
    fn a_gang_that_is_asked_to_go_tells_by_when_and_one_that_runs_that_it_runs() {
        let intent = r#"{"id":"s","by":"ns/big","reason":"Reclaim","deadline":"2026-12-02T01:10:00Z","mode":"Ack"}"#;
        assert_eq!(
            told(json!({"tephra.sh/suspend": intent}), json!({"phase": "Running"})),
            "ns/train makes room for ns/big (Reclaim), by 2026-12-02T01:10:00Z at the latest\n"
        );
        assert_eq!(told(json!({}), json!({"phase": "Running"})), "ns/train is Running\n");
    }
}
