//! Families of our own. Units are base units, counters end in `_total`, labels have few values.

use super::Kind::{Counter, Gauge};
use super::Server::{Controller, Scheduler};
use super::volcano::families;
use super::{Family, histogram, plain};

const QUEUE: &[&str] = &["queue_name"];

families! {
    SESSIONS = plain(Scheduler, Counter, "tephra_sessions_total", &[],
        "Scheduling sessions run");
    SESSION_SECONDS = histogram(Scheduler, "tephra_session_seconds", &[], (0.000_1, 52.428_8, 20),
        "Length of a session, decisions handed out included, in seconds");
    BINDS = plain(Scheduler, Counter, "tephra_binds_total", &["result"],
        "Binds settled: bound, failed, or abandoned because the lease was lost");
    BINDS_IN_FLIGHT = plain(Scheduler, Gauge, "tephra_binds_in_flight", &[],
        "Binds sent and not yet settled");
    EVICTIONS = plain(Scheduler, Counter, "tephra_evictions_total", &["action"],
        "Pods whose eviction was decided");
    SUSPENSIONS = plain(Scheduler, Counter, "tephra_suspensions_total", &["step"],
        "Gangs asked to make room (asked), no longer needed to (withdrawn), let back (resumed)");
    API_WRITES = plain(Scheduler, Counter, "tephra_api_writes_total", &["verb", "resource"],
        "Write requests sent to the API server");
    REJECTED_OBJECTS = plain(Scheduler, Counter, "tephra_rejected_objects_total", &["kind"],
        "Objects that could not be read");
    CACHE_DRIFT = plain(Scheduler, Counter, "tephra_cache_drift_total", &["kind"],
        "Changes that no watch event announced");
    RELISTS = plain(Scheduler, Counter, "tephra_relists_total", &["kind"],
        "Lists taken, the first one included");
    NOTICES_DROPPED = plain(Scheduler, Counter, "tephra_notices_dropped_total", &[],
        "Events that were not recorded, because of the rate limit or after errors");
    CONFIG_OK = plain(Scheduler, Gauge, "tephra_config_last_reload_success", &[],
        "1 when the last reading of the configuration file was good, else 0");
    CONFIG_ERRORS = plain(Scheduler, Counter, "tephra_config_reload_errors_total", &[],
        "Readings of the configuration file that failed");
    LEADING = plain(Scheduler, Gauge, "tephra_leading", &[],
        "1 while this scheduler holds the lease, else 0");
    NODES = plain(Scheduler, Gauge, "tephra_nodes", &[],
        "Nodes that are known");
    PODS = plain(Scheduler, Gauge, "tephra_pods", &[],
        "Pods that are known");
    QUEUE_WAITING_JOBS = plain(Scheduler, Gauge, "tephra_queue_waiting_jobs", QUEUE,
        "Gangs of the queue that wait for admission or room");
    QUEUE_OLDEST_WAIT = plain(Scheduler, Gauge, "tephra_queue_oldest_wait_seconds", QUEUE,
        "How long the oldest gang of the queue waits that nothing but room or order keeps back, in seconds; 0 without one");
    JOBS_WITHOUT_SERIES = plain(Scheduler, Gauge, "tephra_jobs_without_series", &[],
        "Jobs that have no series of their own, because so many others have");
    SCHEDULER_BUILD = plain(Scheduler, Gauge, "tephra_build_info", &["version"],
        "Always 1; the label says which version runs");
    RECONCILIATIONS = plain(Controller, Counter, "tephra_controller_reconciliations_total", &["controller", "result"],
        "Reconciliations ended: ok, conflict (somebody else was faster) or error");
    CONTROLLER_LEADING = plain(Controller, Gauge, "tephra_controller_leading", &[],
        "1 while this controller holds the lease, else 0");
    CONTROLLER_BUILD = plain(Controller, Gauge, "tephra_controller_build_info", &["version"],
        "Always 1; the label says which version runs");
}
