//! `tephra resume`: a job that a person suspended may run again as soon as there is room for it.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tephra_api::keys;
use tephra_api::suspension::Intent;

use super::{block_on, print};
use crate::cluster::{Gang, JobArgs};

/// Let a suspended job run again when there is room for it.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Takes the hold off.
///
/// # Errors
/// When the job is not found or the server refuses.
pub fn run(args: ResumeArgs) -> anyhow::Result<ExitCode> {
    block_on(async {
        let (gang, api) = args.job.find().await?;
        let held = gang.annotation(keys::HOLD).is_some();
        gang.annotate(&api, &wish(&gang)).await?;
        let down = gang.annotation(keys::SUSPENDED).is_some();
        print(format_args!("{}: {}\n", gang.name, said(held, down)))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Takes off what a person wanted, unless it has begun.
fn wish(gang: &Gang) -> Value {
    let mut wish = json!({(keys::HOLD): null});
    let intent = gang.annotation(keys::SUSPEND).and_then(|text| Intent::parse(text).ok());
    if intent.is_some_and(|intent| intent.is_a_persons())
        && gang.annotation(keys::SUSPENDED).is_none()
    {
        wish[keys::SUSPEND] = Value::Null;
    }
    wish
}

fn said(held: bool, down: bool) -> &'static str {
    match (held, down) {
        (_, true) => "runs again when there is room for it",
        (true, false) => "need not go",
        (false, false) => "was not suspended",
    }
}
