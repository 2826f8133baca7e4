//! Series of queues and jobs, derived from the core's figures for one answer.

use tephra_core::overview::{JobOverview, Named, Overview, QueueOverview};
use tephra_telemetry::metric::page::Page;
use tephra_telemetry::metric::volcano::*;
use tephra_telemetry::metric::{Family, tephra};

/// Adds everything.
pub(super) fn fill(page: &mut Page, overview: &Overview) {
    page.add(&tephra::NODES, &[], overview.nodes as f64);
    page.add(&tephra::PODS, &[], overview.pods as f64);
    page.add(&tephra::JOBS_WITHOUT_SERIES, &[], overview.jobs_left_out as f64);
    page.add(&UNSCHEDULE_JOB_COUNT, &[], overview.jobs_below as f64);
    for (name, share) in &overview.namespaces {
        page.add(&NAMESPACE_SHARE, &[name], *share);
        page.add(&NAMESPACE_WEIGHT, &[name], 1.0);
        page.add(&NAMESPACE_WEIGHTED_SHARE, &[name], *share);
    }
    overview.queues.iter().for_each(|queue| add_queue(page, queue));
    add_jobs(page, &overview.jobs);
}

/// Families of a queue's amounts: cpu, memory, everything else.
type Amounts = [&'static Family; 3];

const ALLOCATED: Amounts = [&QUEUE_ALLOCATED_CPU, &QUEUE_ALLOCATED_MEMORY, &QUEUE_ALLOCATED_SCALAR];
const REQUEST: Amounts = [&QUEUE_REQUEST_CPU, &QUEUE_REQUEST_MEMORY, &QUEUE_REQUEST_SCALAR];
const DESERVED: Amounts = [&QUEUE_DESERVED_CPU, &QUEUE_DESERVED_MEMORY, &QUEUE_DESERVED_SCALAR];
const CAPACITY: Amounts = [&QUEUE_CAPACITY_CPU, &QUEUE_CAPACITY_MEMORY, &QUEUE_CAPACITY_SCALAR];
const REAL_CAPACITY: Amounts =
    [&QUEUE_REAL_CAPACITY_CPU, &QUEUE_REAL_CAPACITY_MEMORY, &QUEUE_REAL_CAPACITY_SCALAR];

fn add_queue(page: &mut Page, queue: &QueueOverview) {
    let name = &*queue.name;
    let mut add = |families, amounts| add_amounts(page, families, name, amounts);
    add(ALLOCATED, &queue.allocated);
    add(REQUEST, &queue.request);
    if let Some(capability) = &queue.capability {
        add(CAPACITY, capability);
    }
    // A queue that nobody uses deserves nothing yet.
    if let Some(share) = queue.share.as_ref().filter(|_| queue.has_jobs) {
        add(DESERVED, &share.deserved);
        add(REAL_CAPACITY, &share.real_capability);
        page.add(&QUEUE_SHARE, &[name], share.share);
        page.add(&QUEUE_OVERUSED, &[name], f64::from(u8::from(share.overused)));
    }
    page.add(&QUEUE_WEIGHT, &[name], f64::from(queue.weight));
    page.add(&tephra::QUEUE_WAITING_JOBS, &[name], queue.waiting as f64);
    page.add(&tephra::QUEUE_OLDEST_WAIT, &[name], queue.oldest_wait_ms as f64 / 1000.0);
}

fn add_amounts(page: &mut Page, [cpu, memory, scalar]: Amounts, queue: &str, amounts: &Named) {
    let of = |name: &str| amounts.iter().find(|(of, _)| &**of == name).map_or(0.0, |it| it.1);
    page.add(cpu, &[queue], of("cpu"));
    page.add(memory, &[queue], of("memory"));
    for (name, amount) in amounts {
        if !matches!(&**name, "cpu" | "memory") {
            page.add(scalar, &[queue, name], *amount);
        }
    }
}

/// `job_id` has no namespace: where two jobs have one name, the first is told, for a series may stand there only once.
fn add_jobs(page: &mut Page, jobs: &[JobOverview]) {
    let mut named = std::collections::HashSet::new();
    for job in jobs {
        let labels = [&*job.name, &*job.queue, &*job.namespace];
        page.add(&E2E_JOB_SCHEDULING_START_TIME, &labels, job.created_ms as f64 / 1000.0);
        if let Some(placed_ms) = job.placed_ms {
            let took_ms = (placed_ms - job.created_ms) as f64;
            page.add(&E2E_JOB_SCHEDULING_DURATION, &labels, took_ms);
            page.add(&E2E_JOB_SCHEDULING_LAST_TIME, &labels, placed_ms as f64 / 1000.0);
        }
        if job.ended {
            continue;
        }
        page.add(&JOB_SHARE, &[&job.namespace, &job.name], job.share);
        if job.has_pods && named.insert(&*job.name) {
            page.add(&UNSCHEDULE_TASK_COUNT, &[&job.name], f64::from(job.missing));
            page.add(&JOB_RETRY_COUNTS, &[&job.name], job.sessions_below as f64);
        }
    }
}
