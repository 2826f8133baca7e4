//! The audit: every ledger is recomputed from the tasks and compared (I7), and no node may hold more than it
//! offers unless somebody else put it there (I2).

use crate::scheduler::Audit;
use crate::state::State;
use crate::state::fingerprint::{Fingerprint, of_placed};
use crate::state::nodes::{NO_NODE, NodeId};
use crate::state::resource::Ledger;
use crate::state::status::{Counts, Status};
use crate::state::tasks::NO_JOB;

/// Findings, empty when all is well.
pub(crate) fn audit(state: &State) -> Vec<Audit> {
    let mut findings = Vec::new();
    nodes(state, &mut findings);
    jobs(state, &mut findings);
    totals(state, &mut findings);
    placed(state, &mut findings);
    findings
}

fn placed(state: &State, findings: &mut Vec<Audit>) {
    let mut placed = Fingerprint::default();
    for (id, task) in state.tasks.live().filter(|(_, task)| task.status != Status::Pending) {
        placed.add(of_placed(id, task), 1);
    }
    if placed != state.placed {
        findings.push(Audit("the fingerprint of placed pods differs from them".to_owned()));
    }
}

fn nodes(state: &State, findings: &mut Vec<Audit>) {
    let dims = state.dims.len();
    let slots = state.nodes.len();
    let mut used = vec![vec![0_i64; slots]; dims];
    let mut releasing = vec![vec![0_i64; slots]; dims];
    let mut pipelined = vec![vec![0_i64; slots]; dims];
    let mut chained = vec![0_u32; slots];
    for (_, task) in state.tasks.live() {
        if task.node == NO_NODE || !task.status.occupies() {
            continue;
        }
        let node = task.node as usize;
        chained[node] += 1;
        for &(dim, amount) in &state.classes.list[task.class as usize].request {
            if task.status == Status::Pipelined {
                pipelined[dim as usize][node] += amount;
            } else {
                used[dim as usize][node] += amount;
                if task.status == Status::Releasing {
                    releasing[dim as usize][node] += amount;
                }
            }
        }
    }
    for node in 0..slots {
        let name = &state.nodes.identity[node].name;
        if state.nodes.tasks[node] != chained[node]
            || state.tasks_on(node as NodeId).count() as u32 != chained[node]
        {
            findings
                .push(Audit(format!("node {name}: its chain of pods differs from the pods on it")));
        }
        for dim in 0..dims {
            let column = &state.nodes.columns[dim];
            let same = column.used[node] as i64 == used[dim][node]
                && column.releasing[node] as i64 == releasing[dim][node]
                && column.pipelined[node] as i64 == pipelined[dim][node];
            if !same {
                findings.push(Audit(format!(
                    "node {name}: {} in use is {}, recomputed {}",
                    state.dims.name(dim as u16),
                    column.used[node],
                    used[dim][node]
                )));
            }
        }
    }
}

fn jobs(state: &State, findings: &mut Vec<Audit>) {
    let mut queue_allocated = vec![Ledger::default(); state.queues.len()];
    let mut queue_request = vec![Ledger::default(); state.queues.len()];
    for job in state.jobs.iter().filter(|job| job.live) {
        let mut counts = Counts::default();
        let mut allocated = Ledger::default();
        let mut pending = Ledger::default();
        for &task in &job.tasks {
            let task = &state.tasks[task];
            counts.enter(task.status);
            let request = &state.classes.list[task.class as usize].request;
            if task.status.is_charged() {
                allocated.add_request(request, 1);
            } else if task.status == Status::Pending {
                pending.add_request(request, 1);
            }
        }
        for (at, sub_job) in
            job.sub_jobs.iter().flat_map(|sub_jobs| sub_jobs.list.iter().enumerate())
        {
            let mut counts = Counts::default();
            let own = job.tasks.iter().map(|&task| &state.tasks[task]);
            own.filter(|task| task.sub_job == at as u32).for_each(|task| counts.enter(task.status));
            if counts != sub_job.counts {
                findings.push(Audit(format!(
                    "job {}: counters of sub-group {} differ from its pods",
                    job.key, sub_job.values
                )));
            }
        }
        if counts != job.counts {
            findings.push(Audit(format!("job {}: counters differ from its pods", job.key)));
        }
        if !allocated.same(&job.allocated) || !pending.same(&job.pending) {
            findings.push(Audit(format!("job {}: sums differ from its pods", job.key)));
        }
        if job.group.is_some() {
            for (dim, amount) in allocated.iter() {
                queue_allocated[job.queue as usize].add(dim, amount);
                queue_request[job.queue as usize].add(dim, amount);
            }
            for (dim, amount) in pending.iter() {
                queue_request[job.queue as usize].add(dim, amount);
            }
        }
    }
    for (at, queue) in state.queues.iter().enumerate() {
        if !queue.allocated.same(&queue_allocated[at]) || !queue.request.same(&queue_request[at]) {
            findings.push(Audit(format!("queue {}: sums differ from its jobs", queue.name)));
        }
    }
}

fn totals(state: &State, findings: &mut Vec<Audit>) {
    let mut total = Ledger::default();
    let mut used = Ledger::default();
    for node in state.nodes.known() {
        if !state.nodes.identity[node as usize].is_open() {
            continue;
        }
        for dim in 0..state.dims.len() as u16 {
            total.add(dim, i128::from(state.nodes.allocatable(node, dim)));
        }
    }
    let mut releasing = 0;
    for (_, task) in state.tasks.live() {
        if task.node != NO_NODE && task.status.occupies() && task.status != Status::Pipelined {
            if state.nodes.identity[task.node as usize].is_open() {
                used.add_request(&state.classes.list[task.class as usize].request, 1);
            }
            releasing += u32::from(task.status == Status::Releasing);
        }
        if task.job != NO_JOB && state.jobs[task.job as usize].tasks.get(task.at as usize).is_none()
        {
            findings.push(Audit(format!("pod {}: not in the list of its job", task.pod.name)));
        }
    }
    if !total.same(&state.total) || !used.same(&state.used) || releasing != state.releasing {
        findings.push(Audit("cluster: sums differ from nodes and pods".to_owned()));
    }
}
