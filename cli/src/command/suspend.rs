//! `tephra suspend`: a person suspends a job. It is the protocol by which the scheduler asks gangs to make room
//! (`docs/suspension.md`), with an intent that names nobody who gets the room, and a hold until `tephra resume`.

use std::process::ExitCode;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tephra_api::keys;
use tephra_api::suspension::{Intent, Mode};

use super::{block_on, print};
use crate::cluster::JobArgs;

/// Suspend a job: its owner is stopped by its own switch, and stays so until `tephra resume`.
#[derive(Debug, Args)]
pub struct SuspendArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Ask for a checkpoint first, and wait so long for acknowledgements.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "2m")]
    checkpoint: Option<SignedDuration>,
    /// Why, in one word: it stands in the job's events.
    #[arg(long, default_value = "Manual")]
    reason: String,
}

/// Writes hold and intent.
///
/// # Errors
/// When the job is not found or the server refuses.
pub fn run(args: SuspendArgs) -> anyhow::Result<ExitCode> {
    block_on(async {
        let (gang, api) = args.job.find().await?;
        let known = [keys::SUSPEND, keys::SUSPENDED].map(|key| gang.annotation(key).is_some());
        gang.annotate(&api, &wish(&args, known, Timestamp::now())).await?;
        print(format_args!("{}: {}\n", gang.name, said(known)))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The annotations. A gang that is on its way out already, or down, is only kept there.
fn wish(args: &SuspendArgs, known: [bool; 2], now: Timestamp) -> Value {
    let mut wish = json!({(keys::HOLD): keys::HELD_BY_USER});
    if known == [false; 2] {
        let grace = args.checkpoint.unwrap_or_default().max(SignedDuration::ZERO);
        let intent = Intent {
            id: format!("m-{}", now.as_millisecond()),
            by: String::new(),
            reason: args.reason.clone(),
            deadline: now.saturating_add(grace).unwrap_or(Timestamp::MAX),
            mode: if args.checkpoint.is_some() { Mode::Ack } else { Mode::None },
        };
        wish[keys::SUSPEND] = intent.text().into();
    }
    wish
}

fn said(known: [bool; 2]) -> &'static str {
    match known {
        [_, true] => "is suspended already, and stays so until `tephra resume`",
        [true, false] => "is about to be suspended, and stays so until `tephra resume`",
        [false, false] => "will be suspended until `tephra resume`",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SuspendArgs,
    }

    fn wished(line: &str, known: [bool; 2]) -> (Value, Option<Intent>) {
        let args = Line::parse_from(line.split_whitespace()).args;
        let now = Timestamp::from_second(1_000).expect("a time");
        let wish = wish(&args, known, now);
        let intent = wish.get(keys::SUSPEND).and_then(Value::as_str);
        (wish.clone(), intent.map(|text| Intent::parse(text).expect("valid")))
    }

    #[test]
    fn the_job_is_held_and_asked_for_a_checkpoint_if_the_user_wants_one() {
        let (wish, intent) = wished("suspend train", [false; 2]);
        let intent = intent.expect("an intent");
        assert_eq!(wish[keys::HOLD], "user");
        assert_eq!((intent.mode, intent.deadline.as_second()), (Mode::None, 1_000));
        assert_eq!((intent.by.as_str(), intent.reason.as_str()), ("", "Manual"));
        let (_, intent) = wished("suspend train --checkpoint --reason Maintenance", [false; 2]);
        let intent = intent.expect("an intent");
        assert_eq!((intent.mode, intent.deadline.as_second()), (Mode::Ack, 1_120));
        assert_eq!(intent.reason, "Maintenance");
        let (_, intent) = wished("suspend train --checkpoint=30s", [false; 2]);
        assert_eq!(intent.expect("an intent").deadline.as_second(), 1_030);
    }

    #[test]
    fn whoever_goes_already_or_is_down_is_only_held() {
        for known in [[true, false], [false, true], [true, true]] {
            let (wish, intent) = wished("suspend train", known);
            assert_eq!((wish, intent), (json!({(keys::HOLD): "user"}), None));
        }
    }
}
