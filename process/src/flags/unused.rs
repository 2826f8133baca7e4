//! Flags of Volcano that have no effect in Tephra: they are accepted, so that a deployment's command line works
//! unchanged, and named once in a warning that says why.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{given, go};

/// Flags without effect, each with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// Flags that take a value.
    pub values: &'static [(&'static str, &'static str)],
    /// Flags that are true when they stand alone.
    pub switches: &'static [(&'static str, &'static str)],
}

/// klog's flags: our programs log to standard error, one line for each event.
pub(super) const LOGGING: Unused = Unused {
    values: &[
        ("log-backtrace-at", "logs are structured"),
        ("log-dir", "logs go to standard error"),
        ("log-file", "logs go to standard error"),
        ("log-file-max-size", "logs go to standard error"),
        ("log-flush-frequency", "logs are not buffered"),
        ("stderrthreshold", "logs go to standard error"),
        ("vmodule", "set RUST_LOG for levels by module"),
    ],
    switches: &[
        ("logtostderr", "logs go to standard error"),
        ("alsologtostderr", "logs go to standard error"),
        ("add-dir-header", "logs are structured"),
        ("one-output", "logs go to standard error"),
        ("skip-headers", "logs are structured"),
        ("skip-log-headers", "logs are structured"),
    ],
};

/// Adds the flags to a command.
pub(super) fn accept(command: Command, all: &[Unused]) -> Command {
    let heading = "Accepted for compatibility, without effect";
    let flag = |name: &'static str, why: &'static str| {
        Arg::new(name).long(name).help(why).help_heading(heading).hide_short_help(true)
    };
    let values = all.iter().flat_map(|unused| unused.values).map(|(name, why)| {
        flag(name, why).num_args(1).allow_hyphen_values(true).action(ArgAction::Append)
    });
    let switches = all.iter().flat_map(|unused| unused.switches).map(|(name, why)| {
        flag(name, why)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(go::boolean)
            .action(ArgAction::Append)
    });
    command.args(values).args(switches)
}

/// The flags among them that were given, each as `--name: why`.
pub(super) fn without_effect(matches: &ArgMatches, all: &[Unused]) -> Vec<String> {
    let values = all.iter().flat_map(|unused| unused.values);
    let switches = all.iter().flat_map(|unused| unused.switches);
    values
        .chain(switches)
        .filter(|(name, _)| given(matches, name))
        .map(|(name, why)| format!("--{name}: {why}"))
        .collect()
}
