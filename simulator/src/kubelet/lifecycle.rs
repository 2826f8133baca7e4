//! What happens to a bound pod next, and when. Pure.

use jiff::SignedDuration;

use super::{KubeletOptions, view::PodView};

/// A thing a kubelet does to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its containers run.
    Start,
    /// Its containers end.
    End,
    /// Its graceful deletion is completed.
    Remove,
}

/// The next step and its wall time in Unix milliseconds (possibly past); none when nothing is to happen.
///
/// `seen_ms` = when the pod was first seen bound, `started_ms` = when its containers started, if known better than the
/// pod's status says.
pub(super) fn next_step(
    pod: &PodView,
    seen_ms: i64,
    started_ms: Option<i64>,
    options: &KubeletOptions,
) -> Option<(Step, i64)> {
    if let Some(delete_at_ms) = pod.delete_at_ms {
        if pod.grace_ms == 0 {
            return None; // already completed, a finalizer holds the object
        }
        let due_ms = match options.termination_ms {
            Some(needed_ms) => delete_at_ms - pod.grace_ms + needed_ms.clamp(0, pod.grace_ms),
            None => delete_at_ms,
        };
        return Some((Step::Remove, due_ms));
    }
    match pod.phase.as_str() {
        "" | "Pending" => Some((Step::Start, seen_ms.saturating_add(options.start_delay_ms))),
        "Running" => {
            let run_ms = pod.run_for.as_deref().and_then(run_time_ms).or(options.default_run_ms)?;
            let started_ms = started_ms.or(pod.started_ms).unwrap_or(seen_ms);
            Some((Step::End, started_ms.saturating_add(run_ms)))
        }
        _ => None,
    }
}

/// A Go duration or a number of seconds in milliseconds; none for what is neither, or negative.
fn run_time_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let ms = match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => (seconds * 1000.0).round() as i64,
        Ok(_) => return None,
        Err(_) => {
            let duration: SignedDuration = text.parse().ok()?;
            i64::try_from(duration.as_millis()).ok()?
        }
    };
    (ms >= 0).then_some(ms)
}

/// Whether the pod fails at its end.
pub(super) fn fails(pod: &PodView) -> bool {
    match pod.end_phase.as_deref() {
        Some(phase) => phase == "Failed",
        None => pod.exit_code.is_some_and(|code| code != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    const SECOND: i64 = 1000;

    fn pod(change: impl FnOnce(&mut Value)) -> PodView {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": {}},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "startTime": "1970-01-01T00:00:10Z"},
        });
        change(&mut pod);
        PodView::of(serde_json::from_value::<Pod>(pod).unwrap()).unwrap()
    }

    fn options() -> KubeletOptions {
        KubeletOptions { start_delay_ms: 500, ..KubeletOptions::default() }
    }

    #[test]
    fn a_bound_pod_starts_after_the_delay() {
        let pending = pod(|pod| pod["status"] = json!({}));
        assert_eq!(next_step(&pending, 7 * SECOND, None, &options()), Some((Step::Start, 7500)));
    }

    #[test]
    fn a_running_pod_ends_after_its_time_counted_from_its_start() {
        let timed = pod(|pod| pod["metadata"]["annotations"]["rig/run-for"] = json!("1m30s"));
        assert_eq!(next_step(&timed, 0, None, &options()), Some((Step::End, 100 * SECOND)));
        assert_eq!(next_step(&timed, 0, Some(10_250), &options()), Some((Step::End, 100_250)));
    }

    #[test]
    fn without_a_run_time_a_pod_runs_for_the_default_or_for_ever() {
        let untimed = pod(|_| ());
        assert_eq!(next_step(&untimed, 0, None, &options()), None);
        let default = KubeletOptions { default_run_ms: Some(2000), ..options() };
        assert_eq!(next_step(&untimed, 0, None, &default), Some((Step::End, 12 * SECOND)));
    }

    #[test]
    fn a_deleted_pod_goes_at_the_end_of_its_grace_or_earlier_when_it_needs_less() {
        let deleted = pod(|pod| {
            pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:01:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        });
        let at = |termination_ms| {
            next_step(&deleted, 0, None, &KubeletOptions { termination_ms, ..options() })
        };
        assert_eq!(at(None), Some((Step::Remove, 60 * SECOND)));
        assert_eq!(at(Some(2000)), Some((Step::Remove, 32 * SECOND)));
        assert_eq!(at(Some(90 * SECOND)), Some((Step::Remove, 60 * SECOND)));
    }

    #[test]
    fn a_pod_that_only_a_finalizer_holds_and_one_that_ended_are_left_alone() {
        let held = pod(|pod| {
            pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:01:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        });
        assert_eq!(next_step(&held, 0, None, &options()), None);
        for phase in ["Succeeded", "Failed"] {
            let ended = pod(|pod| pod["status"]["phase"] = json!(phase));
            assert_eq!(next_step(&ended, 0, None, &options()), None);
        }
    }

    #[test]
    fn run_times_are_go_durations_or_seconds() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("1h2m3s", Some(3_723_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
            ("45", Some(45_000)),
            ("0.25", Some(250)),
            ("0", Some(0)),
            ("-5s", None),
            ("-5", None),
            ("soon", None),
            ("", None),
            ("NaN", None),
        ] {
            assert_eq!(run_time_ms(text), expected, "{text}");
        }
    }

    #[test]
    fn the_end_phase_decides_and_without_it_the_exit_code() {
        let ending =
            |annotations: Value| fails(&pod(|p| p["metadata"]["annotations"] = annotations));
        assert!(!ending(json!({})));
        assert!(ending(json!({"rig/end-phase": "Failed"})));
        assert!(ending(json!({"tephra.sh/exit-code": "137"})));
        assert!(!ending(json!({"rig/exit-code": "3", "rig/end-phase": "Succeeded"})));
    }
}
