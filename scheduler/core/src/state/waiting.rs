//! Times that PodGroups carry in annotations: how long a gang may wait before it must go first, how long it is expected to
//! run, and when it was last said to start; and how durations are read, in arguments of plugins too.

use jiff::{SignedDuration, Timestamp};
use tephra_api::conf::Arguments;
use tephra_api::keys;

use crate::event::Labels;

/// No argument is longer: a day.
const LONGEST_MS: i64 = 24 * 3_600_000;

/// The waiting time that annotations of a PodGroup name, in milliseconds (core 2.5).
pub fn annotated(annotations: &Labels) -> Option<i64> {
    [keys::SLA_WAITING_TIME, keys::SLA_WAITING_TIME_LEGACY].into_iter().find_map(|key| {
        let (_, text) = annotations.iter().find(|(name, _)| name == key)?;
        positive_ms(text)
    })
}

/// How long each of its pods is expected to run, in milliseconds.
pub fn expected_runtime(annotations: &Labels) -> Option<i64> {
    let (_, text) = annotations.iter().find(|(name, _)| name == keys::EXPECTED_RUNTIME)?;
    positive_ms(text)
}

/// How long it takes to work on after a stop, in milliseconds.
pub fn restart_cost(annotations: &Labels) -> i64 {
    let told = annotations.iter().find(|(name, _)| name == keys::RESTART_COST);
    told.and_then(|(_, text)| positive_ms(text)).unwrap_or(0)
}

/// The start that was last predicted on it.
pub fn predicted_start(annotations: &Labels) -> Option<i64> {
    let (_, text) = annotations.iter().find(|(name, _)| name == keys::PREDICTED_START)?;
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A Go duration in milliseconds.
pub fn duration_ms(text: &str) -> Option<i64> {
    let duration: SignedDuration = text.parse().ok()?;
    i64::try_from(duration.as_millis()).ok()
}

/// A plugin's argument that is a duration, at most a day, in milliseconds. Anything else is a warning, and as if it was not given.
pub fn argument_ms(arguments: &Arguments, key: &str, warnings: &mut Vec<String>) -> Option<i64> {
    let text = arguments.string(key, warnings)?;
    let told = duration_ms(&text).filter(|ms| (0..=LONGEST_MS).contains(ms));
    if told.is_none() {
        warnings.push(format!(
            "argument {key} must be a duration from 0s to 24h, not {text:?}: ignored"
        ));
    }
    told
}

/// A positive Go duration in milliseconds.
pub fn positive_ms(text: &str) -> Option<i64> {
    duration_ms(text).filter(|&ms| ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(list: &[(&str, &str)]) -> Labels {
        list.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_newer_annotation_wins_and_what_is_no_positive_duration_is_absent() {
        let (new, old) = (keys::SLA_WAITING_TIME, keys::SLA_WAITING_TIME_LEGACY);
        let cases = [
            (annotations(&[(new, "1h30m")]), Some(5_400_000)),
            (annotations(&[(old, "2m"), (new, "300ms")]), Some(300)),
            (annotations(&[(old, "1.5s")]), Some(1_500)),
            (annotations(&[(new, "soon"), (old, "1s")]), Some(1_000)),
            (annotations(&[(new, "0s")]), None),
            (annotations(&[(new, "-3m")]), None),
            (annotations(&[(new, "90")]), None),
        ];
        for (list, waiting_ms) in cases {
            assert_eq!(annotated(&list), waiting_ms, "{list:?}");
        }
    }
}
