//! The common part of a command line: Go's syntax ([`go`]), flags that are accepted without effect ([`unused`]), and
//! the flags of the endpoints. A flag of Volcano that has no effect here is named once in a warning; an unknown
//! flag is an error.

pub mod go;
pub mod unused;

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches};

use unused::Unused;

/// How a program's command line differs from what its fields say.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Defaults of shared flags in this program, by the name of the field.
    pub defaults: &'static [(&'static str, &'static str)],
    /// What is accepted without effect, beside [`unused::LOGGING`].
    pub unused: Unused,
}

/// A command line that was read.
#[derive(Clone, Debug)]
pub struct Parsed<F> {
    /// The flags.
    pub flags: F,
    /// Flags that were given and have no effect, each as `--name: why`.
    pub without_effect: Vec<String>,
    /// Where each value came from.
    pub matches: ArgMatches,
}

impl Dialect {
    /// Reads a command line in Go's syntax; the first item is the program's name.
    ///
    /// # Errors
    /// Unknown flags and malformed values, with a message that names them.
    pub fn parse<F: CommandFactory + FromArgMatches>(
        &self,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Parsed<F>, clap::Error> {
        let unused = [self.unused, unused::LOGGING];
        let mut command = unused::accept(F::command(), &unused);
        for &(field, default) in self.defaults {
            command = command.mut_arg(field, |arg| arg.default_value(default));
        }
        let matches = command.try_get_matches_from(go::normalised(args))?;
        Ok(Parsed {
            flags: F::from_arg_matches(&matches)?,
            without_effect: unused::without_effect(&matches, &unused),
            matches,
        })
    }
}

/// Whether a value was given, on the command line or in the environment.
fn given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.value_source(id);
    matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// Flags of the HTTP endpoints.
#[derive(Clone, Debug, Args)]
pub struct EndpointFlags {
    /// Serve /healthz, /livez and /readyz.
    #[arg(long, env = "TEPHRA_ENABLE_HEALTHZ", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub enable_healthz: bool,
    /// Address of the health endpoints (giving it also switches them on).
    #[arg(long, env = "TEPHRA_HEALTHZ_ADDRESS", default_value = ":11251")]
    pub healthz_address: String,
    /// Serve /metrics.
    #[arg(long, env = "TEPHRA_ENABLE_METRICS", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", value_parser = go::boolean,
          action = ArgAction::Set)]
    pub enable_metrics: bool,
    /// Address of /metrics.
    #[arg(long, env = "TEPHRA_LISTEN_ADDRESS", default_value = ":8080")]
    pub listen_address: String,
    /// `--healthz-address` was given.
    #[arg(skip)]
    healthz_address_given: bool,
}

/// Where the endpoints are served; `None`: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// `/healthz`, `/livez` and `/readyz`.
    pub health: Option<SocketAddr>,
    /// `/metrics`.
    pub metrics: Option<SocketAddr>,
}

impl EndpointFlags {
    /// Learns which of the flags were given.
    pub fn note_given(&mut self, matches: &ArgMatches) {
        self.healthz_address_given = given(matches, "healthz_address");
    }

    /// The addresses that the flags amount to.
    ///
    /// # Errors
    /// When an address that is to be used is malformed.
    pub fn addresses(&self) -> anyhow::Result<Addresses> {
        let health = self.enable_healthz || self.healthz_address_given;
        let address = |on: bool, text: &str, flag: &str| {
            on.then(|| go::address(text).with_context(|| format!("{flag} {text}"))).transpose()
        };
        Ok(Addresses {
            health: address(health, &self.healthz_address, "--healthz-address")?,
            metrics: address(self.enable_metrics, &self.listen_address, "--listen-address")?,
        })
    }
}
