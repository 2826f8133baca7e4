//! `tephra man`: manual pages of `tephra`, its commands and the two long-running programs, made from their definitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};

/// Arguments of `tephra man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages, e.g. /usr/local/share/man/man1; made when it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Writes the pages; `program` is `tephra` itself.
pub fn run(args: ManArgs, program: Command) -> anyhow::Result<ExitCode> {
    write(&args.folder, program)?;
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, program: Command) -> anyhow::Result<()> {
    let named = || folder.display().to_string();
    fs::create_dir_all(folder).with_context(named)?;
    let scheduler = tephra_scheduler::flags::Flags::command();
    for program in [program, scheduler, tephra_controller::Flags::command()] {
        clap_mangen::generate_to(program, folder).with_context(named)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_and_command_gets_a_page_that_names_its_flags() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("man1");
        let flag = clap::Arg::new("nodes").long("nodes");
        let program = Command::new("tephra").subcommand(Command::new("bench").arg(flag));
        write(&inner, program).unwrap();
        let page = |name: &str| fs::read_to_string(inner.join(name)).unwrap();
        assert!(page("tephra.1").contains("bench"));
        // Hyphens are escaped in pages.
        assert!(page("tephra-bench.1").contains(r"\-\-nodes"));
        assert!(page("tephra-scheduler.1").contains(r"\-\-scheduler\-conf"));
        assert!(page("tephra-controller.1").contains(r"\-\-controllers"));
    }
}
