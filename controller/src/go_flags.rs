//! Go's flag syntax on the way to clap.
//!
//! Volcano's manifests write `-v=3`, `--log_dir=/x`, `--enable-healthz=false`. clap knows `--name=value` and
//! `--name value`; what differs is rewritten here before parsing: single-dash long names get their second dash, `_` in a
//! name becomes `-`. Values are never touched.

use std::ffi::OsString;

/// Rewrites the arguments of a process (program name first) into clap's syntax.
pub(crate) fn normalize(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut rewritten: Vec<OsString> = arguments.next().into_iter().collect();
    let mut flags = true;
    for argument in arguments {
        match argument.to_str() {
            Some("--") => flags = false,
            Some(text) if flags => {
                rewritten.push(flag(text).map_or(argument, OsString::from));
                continue;
            }
            _ => {}
        }
        rewritten.push(argument);
    }
    rewritten
}

fn flag(text: &str) -> Option<String> {
    let bare = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    if !bare.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None; // a negative number, or a lone dash
    }
    let (name, value) = match bare.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (bare, None),
    };
    let name = name.replace('_', "-");
    // `-h` and `-V` stay clap's own.
    let dashes = if name.len() == 1 && !text.starts_with("--") { "-" } else { "--" };
    Some(match value {
        Some(value) => format!("{dashes}{name}={value}"),
        None => format!("{dashes}{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(arguments: &[&str]) -> Vec<String> {
        normalize(arguments.iter().map(OsString::from))
            .into_iter()
            .map(|argument| argument.into_string().unwrap())
            .collect()
    }

    #[test]
    fn single_dash_long_names_and_underscores_are_rewritten() {
        assert_eq!(
            normalized(&["c", "-logtostderr", "--log_dir=/a_b", "-v=3", "-h"]),
            ["c", "--logtostderr", "--log-dir=/a_b", "-v=3", "-h"]
        );
    }

    #[test]
    fn values_and_what_follows_a_double_dash_are_left_alone() {
        assert_eq!(
            normalized(&["c", "--max-requeue-num", "-1", "--", "-some_file"]),
            ["c", "--max-requeue-num", "-1", "--", "-some_file"]
        );
    }
}
