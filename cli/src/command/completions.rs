//! `tephra completions`: the script with which a shell completes the commands and flags of `tephra`, made from their definition.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `tephra completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// Shell that will read the script
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Writes the script of `program` to standard output.
pub fn run(args: CompletionsArgs, program: Command) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(&script(args.shell, program))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell, mut program: Command) -> Vec<u8> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_commands_and_flags() {
        let flag = clap::Arg::new("nodes").long("nodes");
        let program = Command::new("tephra").subcommand(Command::new("bench").arg(flag));
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell, program.clone())).unwrap();
            assert!(script.contains("bench") && script.contains("nodes"), "{shell}: {script}");
        }
    }
}
