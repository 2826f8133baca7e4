//! Developer commands: `codegen` writes the files that are generated from Rust types, `tidy` checks the rules of the
//! workspace that no compiler checks. Both also run as tests of this crate. Nothing here is shipped.

mod codegen;
mod direction;
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
}

fn main() -> anyhow::Result<()> {
    let problems = match Arguments::parse().command {
        Command::Codegen { check: false } => {
            for path in codegen::write(&root())? {
                writeln!(std::io::stdout(), "wrote {}", path.display())?;
            }
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
