//! Go's conventions on a command line: `_` for `-` in flag names, booleans, durations, addresses without host.

use std::ffi::OsString;
use std::time::Duration;

use jiff::SignedDuration;

use super::{ANY, SocketAddr};

/// `--some_flag=a_b` becomes `--some-flag=a_b`: only the name is changed.
pub(super) fn normalised(arg: OsString) -> OsString {
    let Some(text) = arg.to_str().filter(|text| text.starts_with("--")) else { return arg };
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let name = name.replace('_', "-");
    match value {
        Some(value) => format!("{name}={value}").into(),
        None => name.into(),
    }
}

/// `strconv.ParseBool`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// `time.ParseDuration`, not negative: `300ms`, `1m30s`, `1.5h`, `0`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: SignedDuration =
        text.parse().map_err(|_| "expected a duration like 300ms or 1m30s".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a duration must not be negative".to_owned())
}

/// `host:port`, `:port`.
pub(super) fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("{ANY}:{port}"),
        None => text.replacen("localhost:", "127.0.0.1:", 1),
    };
    Ok(full.parse()?)
}
