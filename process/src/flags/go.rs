//! Go's conventions on a command line: `_` for `-` in flag names, one dash for two, booleans, durations, addresses
//! without host.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use jiff::SignedDuration;

/// Every local address, of both families ([`crate::serve`] makes do with IPv4 where there is no IPv6).
const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Rewrites the arguments of a process, its name first, into clap's syntax: `--some_flag=a_b` becomes
/// `--some-flag=a_b` and `-logtostderr` becomes `--logtostderr`. Only names are changed, and nothing after `--`.
pub fn normalised(args: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
    let mut flags = true;
    let rewrite = |(at, arg): (usize, OsString)| {
        flags &= arg != "--";
        let text = arg.to_str().filter(|_| flags && at > 0);
        text.and_then(flag).map_or(arg, OsString::from)
    };
    args.into_iter().map(Into::into).enumerate().map(rewrite).collect()
}

fn flag(text: &str) -> Option<String> {
    let bare = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    if !bare.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None; // a negative number or a lone dash
    }
    let (name, value) = match bare.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (bare, None),
    };
    if !text.starts_with("--") && is_short(name) {
        return None;
    }
    let name = name.replace('_', "-");
    Some(match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    })
}

/// `v`, `v3`: one letter, perhaps with its number.
fn is_short(name: &str) -> bool {
    name.chars().skip(1).all(|rest| rest.is_ascii_digit())
}

/// `strconv.ParseBool`.
///
/// # Errors
/// Anything else than its words.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// `time.ParseDuration`, not negative: `300ms`, `1m30s`, `1.5h`, `0`.
///
/// # Errors
/// What is malformed or negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: SignedDuration =
        text.parse().map_err(|_| "expected a duration like 300ms or 1m30s".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a duration must not be negative".to_owned())
}

/// `host:port` or `:port`, which means every local address.
///
/// # Errors
/// What is malformed, and names of hosts other than `localhost`.
pub fn address(text: &str) -> anyhow::Result<SocketAddr> {
    if let Some(port) = text.strip_prefix(':') {
        return Ok(SocketAddr::new(ANY, port.parse()?));
    }
    Ok(text.replacen("localhost:", "127.0.0.1:", 1).parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(args: &[&str]) -> Vec<String> {
        let all = normalised(args).into_iter();
        all.map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn single_dash_long_names_and_underscores_are_rewritten() {
        assert_eq!(
            rewritten(&["a_b", "-logtostderr", "--log_dir=/a_b", "-v=3", "-v3", "-h"]),
            ["a_b", "--logtostderr", "--log-dir=/a_b", "-v=3", "-v3", "-h"]
        );
    }

    #[test]
    fn values_and_what_follows_a_double_dash_are_left_alone() {
        assert_eq!(
            rewritten(&["c", "--max_requeue_num", "-1", "--", "-some_file"]),
            ["c", "--max-requeue-num", "-1", "--", "-some_file"]
        );
    }

    #[test]
    fn an_address_without_host_means_every_local_address() {
        assert_eq!(address(":80").unwrap(), "[::]:80".parse().unwrap());
        assert_eq!(address("localhost:80").unwrap(), "127.0.0.1:80".parse().unwrap());
        assert_eq!(address("10.0.0.1:80").unwrap(), "10.0.0.1:80".parse().unwrap());
        assert!(address("nowhere").is_err() && address(":http").is_err());
    }
}
