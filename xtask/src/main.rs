//! Developer commands: `codegen` writes the files that are generated from Rust types, `tidy` checks the rules of the
//! workspace that no compiler checks; both also run as tests of this crate. `planted-bugs` asks whether the tests would
//! notice mistakes. Nothing here is shipped.

mod codegen;
mod direction;
mod planted_bugs;
mod tidy;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Parser, Subcommand};

/// Developer commands of Tephra.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes the generated files.
    Codegen {
        /// Only compare; fail when a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Checks file length, module docs, module names and the direction of dependencies.
    Tidy,
    /// Plants known mistakes in one test build, one at a time, and tells which test notices each.
    PlantedBugs {
        /// Names of the mistakes; all when there are none.
        bugs: Vec<String>,
    },
}

fn main() -> anyhow::Result<()> {
    let problems = match Arguments::parse().command {
        Command::Codegen { check: false } => {
            for path in codegen::write(&root())? {
                writeln!(std::io::stdout(), "wrote {}", path.display())?;
            }
            Vec::new()
        }
        Command::PlantedBugs { bugs } => {
            planted_bugs::run(&root(), &bugs)?;
            Vec::new()
        }
        Command::Codegen { check: true } => codegen::stale(&root())?,
        Command::Tidy => {
            let mut problems = tidy::problems(&root())?;
            problems.extend(direction::problems(&root())?);
            problems
        }
    };
    for problem in &problems {
        writeln!(std::io::stderr(), "{problem}")?;
    }
    match problems.len() {
        0 => Ok(()),
        count => bail!("{count} found"),
    }
}

/// Top folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
