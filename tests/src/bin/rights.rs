//! `rights FOLDER`: lists every right that the chart grants, with the number of cases of the real suite that used it, and
//! fails for one that none did. The suite leaves in the folder what it used when `TEPHRA_RIGHTS` names it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Parser;
use tephra_tests::rig::assets::{self, Found};
use tephra_tests::rig::chart::Release;
use tephra_tests::rig::identity::{RELEASE, RIVAL_RELEASE};
use tephra_tests::rig::rights::{self, Right, Rights};

/// Rights that no case uses, each with the reason why it is granted all the same.
const PERMITTED: &[(&str, &str)] = &[];

/// Compares what the chart grants with what the real suite used.
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder that TEPHRA_RIGHTS named when the suite ran.
    folder: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let assets = match assets::find()? {
        Found::Ready(assets) => assets,
        Found::Missing(reason) => {
            writeln!(std::io::stderr(), "SKIPPED rights: {reason}")?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let granted = rights::granted(&Release::new(&assets, RELEASE)?.render()?)?;
    let cases = rights::load(&arguments.folder)?;
    ensure!(!cases.is_empty(), "{} holds nothing", arguments.folder.display());
    let problems = compare(&granted, &cases, &mut std::io::stdout().lock())?;
    for problem in &problems {
        writeln!(std::io::stderr(), "{problem}")?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the list; answers what is wrong.
fn compare(
    granted: &Rights,
    cases: &BTreeMap<String, Rights>,
    out: &mut dyn std::io::Write,
) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for (account, all) in granted {
        for right in all {
            let users = cases.values().filter(|used| uses(used, account, right)).count();
            writeln!(out, "{account}: {right}: used by {users} of {} cases", cases.len())?;
            let text = format!("{account}: {right}");
            let permitted = PERMITTED.iter().find(|(name, _)| *name == text);
            match (users, permitted) {
                (0, None) => problems.push(format!("granted, but used by no case: {text}")),
                (0, Some((_, why))) => writeln!(out, "  permitted: {why}")?,
                (_, Some(_)) => problems.push(format!("no exception any more, it is used: {text}")),
                (_, None) => {}
            }
        }
    }
    Ok(problems)
}

/// The second scheduler of some cases has an account of its own, with the rights of the first.
fn uses(used: &Rights, account: &str, right: &Right) -> bool {
    let rival = account.replacen(RELEASE, RIVAL_RELEASE, 1);
    [account, &rival].iter().any(|it| used.get(*it).is_some_and(|used| used.contains(right)))
}
