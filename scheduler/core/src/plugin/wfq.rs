//! Plugin `wfq`: start-time fair queueing between teams. Each queue of the tree has a tag, the service it has had by weight; at every level the
//! waiting queue with the smallest tag goes first, so that who got less so far comes first, not who has less at the moment (core.md 9).
//! `docs/fairness.md` tells the whole of it, [`turns`] has the arithmetic.
//!
//! | argument | default |
//! | --- | --- |
//! | `wfq.entry-charge` | `60s`: so much of a gang's run is charged when it starts |
//! | `wfq.store-interval` | `5s`: least time between two writes of a queue's tag to its object |
//! | `wfq.reclaim-lead` | `1m`: only from queues that are ahead by more than so much of the whole cluster's time a queue may reclaim that names no `deserved` |
//!
//! What else a team may set stands in its QueuePolicy: where its weight comes from, its credit, its burst, and how waiting counts against priority.
//! The plugin orders; limits and guarantees are the business of `capacity` and `proportion`.

mod leeway;
pub mod record;
#[cfg(test)]
mod tests;
pub mod turns;
mod weights;

use std::sync::Arc;

use tephra_api::conf::Arguments;

use super::{Delta, Evictor, Figures, Hooks, OrderKey, Plugin, QueueWord, Vote};
use crate::state::State;
use crate::state::fingerprint::mix;
use crate::state::jobs::{Job, JobId};
use crate::state::queue_tree::ROOT;
use crate::state::queues::QueueId;
use crate::state::resource::Ledger;
use crate::state::tasks::{NO_JOB, TaskId};
use crate::state::waiting::argument_ms;
use leeway::Leeway;
use record::Record;
use turns::{Turns, Waits};
use weights::dominant_share;

const ENTRY_CHARGE: &str = "wfq.entry-charge";
const STORE_INTERVAL: &str = "wfq.store-interval";
const RECLAIM_LEAD: &str = "wfq.reclaim-lead";
/// No more of a gang's work is given back (`features.md` 2.2, step 5).
const CREDIT_MS: i64 = 30 * 60_000;

/// The plugin.
#[derive(Debug)]
pub struct Wfq {
    entry_ms: i64,
    store_ms: i64,
    lead_ms: i64,
    /// A flow per queue, by its number.
    turns: Turns,
    notes: Vec<Note>,
    /// What each queue and those below it hold, pods placed in this session included.
    sums: Vec<Ledger>,
    opened_ms: Option<i64>,
    /// What tree and weights were derived from: `State::queue_epoch` and what nodes offer.
    derived_from: Option<(u64, Ledger)>,
    words: Vec<(QueueId, QueueWord)>,
    leeway: Leeway,
}

/// What is known of a queue's object.
#[derive(Clone, Debug, Default)]
struct Note {
    /// Uid of the object that the tag belongs to.
    uid: Option<Arc<str>>,
    /// Share and backlog that the object tells of: while they last, the tag at any time follows from them.
    told: (i128, bool),
    told_ms: Option<i64>,
    /// Something started since, so that entry charges were added.
    started: bool,
}

impl Default for Wfq {
    fn default() -> Self {
        Self {
            entry_ms: 60_000,
            store_ms: 5_000,
            lead_ms: 60_000,
            turns: Turns::default(),
            notes: Vec::new(),
            sums: Vec::new(),
            opened_ms: None,
            derived_from: None,
            words: Vec::new(),
            leeway: Leeway::default(),
        }
    }
}

/// The queue above; queues without a place in the tree count as the root's children.
fn above(state: &State, queue: QueueId) -> Option<QueueId> {
    let root = state.queue(ROOT).filter(|&root| root != queue)?;
    Some(state.queue_tree.parent(queue).unwrap_or(root))
}

/// When a job began to wait.
fn enqueued_ms(job: &Job) -> i64 {
    job.group.as_ref().map_or(0, |group| group.queued_ms)
}

/// What a job waits for.
fn waits(job: &Job) -> Waits {
    if !job.live || job.group.is_none() || job.is_foreign() {
        return Waits::Nothing;
    }
    let has_waiting_pods = !job.pending.same(&job.gated);
    match job.is_pending() || has_waiting_pods {
        true if job.held => Waits::Held,
        true => Waits::Room,
        false => Waits::Nothing,
    }
}

impl Wfq {
    /// Takes over tree, weights and credit, if a queue, a policy or the cluster changed.
    fn derive(&mut self, state: &State) {
        let fresh = self
            .derived_from
            .as_ref()
            .is_some_and(|(epoch, total)| *epoch == state.queue_epoch && total.same(&state.total));
        if fresh {
            return;
        }
        self.derived_from = Some((state.queue_epoch, state.total.clone()));
        self.turns.flows.resize_with(state.queues.len(), turns::Flow::default);
        self.notes.resize_with(state.queues.len(), Note::default);
        let weights = weights::weights(state, |queue| above(state, queue));
        for (queue, weight) in weights.into_iter().enumerate() {
            let flow = &mut self.turns.flows[queue];
            let queue = queue as QueueId;
            flow.parent = above(state, queue);
            flow.priority = state.queues[queue as usize].priority;
            flow.rank = state.queue_tree.rank(queue);
            flow.weight = weight;
            flow.credit_ms = state.queue_policy(queue).credit_window_ms;
        }
        self.turns.arrange();
    }

    /// What each queue holds.
    fn measure(&mut self, state: &State) {
        self.sums.clear();
        self.sums.extend(state.queues.iter().map(|queue| queue.allocated.clone()));
        state.queue_tree.add_up(&mut self.sums, Ledger::add_all);
        for (flow, sum) in self.turns.flows.iter_mut().zip(&self.sums) {
            flow.rate = if sum.is_zero() { 0 } else { dominant_share(state, sum.iter()) };
            flow.refund(self.entry_ms);
        }
    }

    /// Queues that are new to this process get the tags that their objects carry, those that are gone lose theirs.
    fn load(&mut self, state: &State) {
        for (at, row) in state.queues.iter().enumerate() {
            let uid = row.exists.then_some(&row.uid);
            if self.notes[at].uid.as_ref() == uid {
                continue;
            }
            self.notes[at] = Note { uid: uid.cloned(), ..Note::default() };
            let flow = &mut self.turns.flows[at];
            (flow.service, flow.prepaid, flow.backlogged) = (0, 0, false);
            if row.fairness.is_empty() {
                continue;
            }
            let record = match Record::read(&row.fairness) {
                Ok(record) => record,
                Err(problem) => {
                    let message =
                        format!("annotation {} is ignored: {problem}", tephra_api::keys::FAIRNESS);
                    self.words.push((at as QueueId, QueueWord::Warning(message)));
                    continue;
                }
            };
            record.restore(flow, state.now_ms);
            flow.refund(self.entry_ms);
            self.notes[at].told = (flow.rate, record.waits);
            if let Some(parent) = flow.parent {
                let above = &mut self.turns.flows[parent as usize];
                above.virtual_time = above.virtual_time.max(record.virtual_time);
            }
        }
    }

    /// Gives back what queues were charged for work that was lost when a gang had to go for one of another queue, up to
    /// [`CREDIT_MS`] of it.
    fn credit(&mut self, state: &State) {
        for lost in &state.suspensions.lost {
            let share = dominant_share(state, lost.held.iter());
            for at in self.turns.parted(lost.queue, lost.to) {
                self.turns.flows[at as usize].credit(share, lost.ms.min(CREDIT_MS));
                self.notes[at as usize].started = true;
            }
        }
    }

    /// Says of each queue what it waits for.
    fn look(&mut self, state: &State) {
        self.turns.flows.iter_mut().for_each(|flow| flow.waits = Waits::Nothing);
        for &job in &state.active_jobs {
            let row = &state.jobs[job as usize];
            let waits = waits(row);
            let mut at = Some(row.queue);
            while let Some(queue) = at {
                let flow = &mut self.turns.flows[queue as usize];
                if flow.waits >= waits {
                    break;
                }
                flow.waits = waits;
                at = flow.parent;
            }
        }
    }
}

impl Plugin for Wfq {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ORDER
            | Hooks::QUEUE_ORDER
            | Hooks::VICTIM_QUEUE_ORDER
            | Hooks::OVERUSED
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::SHIELD
            | Hooks::ACCOUNT
            | Hooks::OPEN
            | Hooks::QUEUE_WORDS
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        for (key, value) in [
            (ENTRY_CHARGE, &mut self.entry_ms),
            (STORE_INTERVAL, &mut self.store_ms),
            (RECLAIM_LEAD, &mut self.lead_ms),
        ] {
            *value = argument_ms(arguments, key, warnings).unwrap_or(*value);
        }
    }

    /// Time stands still inside a session: what ran since the last one is charged here.
    fn open(&mut self, state: &State) {
        let before_ms = self.opened_ms.replace(state.now_ms).unwrap_or(state.now_ms);
        self.turns.run(state.now_ms.saturating_sub(before_ms));
        self.derive(state);
        self.measure(state);
        self.load(state);
        self.credit(state);
        self.look(state);
        self.turns.settle();
    }

    /// Tags move with time and count in comparisons only. What was paid on entry in this session lies on top of them.
    fn figures(&self, _: &State) -> Option<Figures> {
        let flows = &self.turns.flows;
        let entering = flows.iter().flat_map(|flow| {
            let entering = flow.entering as u128;
            [entering as u64, (entering >> 64) as u64]
        });
        let tags = |flow: &turns::Flow| [flow.service + flow.prepaid, flow.virtual_time];
        Some(Figures { exact: mix(entering), drifting: flows.iter().flat_map(tags).collect() })
    }

    fn begin_search(&mut self) {
        self.leeway = Leeway::default();
    }

    fn leeway(&self) -> i128 {
        self.leeway.least()
    }

    fn account(&mut self, state: &State, delta: &Delta) {
        self.leeway.tags_moved();
        let request = &state.classes.list[delta.class as usize].request;
        let amounts = request.iter().map(|&(dim, amount)| (dim, i128::from(amount)));
        let share = dominant_share(state, amounts) * i128::from(delta.count);
        let mut at = Some(delta.queue);
        while let Some(queue) = at {
            let Some(flow) = self.turns.flows.get_mut(queue as usize) else { return };
            let sum = &mut self.sums[queue as usize];
            sum.add_request(request, delta.count);
            flow.rate = dominant_share(state, sum.iter());
            flow.enter(share, self.entry_ms);
            at = flow.parent;
        }
    }

    /// Where waiting counts against priority, the order of a queue's jobs is when they came, each step of priority so much earlier. Two jobs age
    /// alike, so their order never changes.
    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        let row = &state.jobs[job as usize];
        key.push(state.queue_policy(row.queue).wait_priority_ms.map_or(0, |step_ms| {
            let head_start = step_ms.saturating_mul(i64::from(row.priority));
            enqueued_ms(row).saturating_sub(head_start)
        }));
    }

    /// From the top down: priority, then tag. Between branches with equal tags age decides, between leaves the next plugin.
    fn queue_order(&self, _: &State, queue: QueueId, key: &mut OrderKey) {
        if self.turns.flows.len() <= queue as usize {
            return;
        }
        for at in self.turns.down(queue) {
            let flow = &self.turns.flows[at as usize];
            key.push(-i64::from(flow.priority));
            key.push_wide(flow.tag());
            key.push(if at == queue { 0 } else { 1 + i64::from(flow.rank) });
        }
    }

    /// Who is furthest ahead gives first.
    fn victim_queue_order(
        &self,
        _: &State,
        preemptor: QueueId,
        victim: QueueId,
        key: &mut OrderKey,
    ) {
        let known = self.turns.flows.len();
        if known > preemptor as usize && known > victim as usize {
            self.turns.leads(preemptor, victim).iter().for_each(|&lead| key.push_wide(-lead));
            self.leeway.compare(&self.turns, preemptor, victim);
        }
    }

    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        if !evictor.why.is_reclaim() {
            return Vote::Abstain;
        }
        let taker = state.jobs[evictor.job as usize].queue;
        // Candidates come by queue.
        let mut latest: Option<(QueueId, bool)> = None;
        keep.retain(|&task| {
            let job = state.tasks[task].job;
            let giver = if job == NO_JOB { taker } else { state.jobs[job as usize].queue };
            if let Some((_, spared)) = latest.filter(|(queue, _)| *queue == giver) {
                return !spared;
            }
            let spared = self.spares(state, evictor, giver);
            latest = Some((giver, spared));
            !spared
        });
        Vote::Permit
    }

    /// A queue that shares by weight takes back only from those who had more than their turn so far: who has more at the
    /// moment to make up for what it missed keeps it. What a queue names as deserved it gets back in any case.
    fn spares(&self, state: &State, evictor: &Evictor, giver: QueueId) -> bool {
        let taker = state.jobs[evictor.job as usize].queue;
        let known = self.turns.flows.len();
        if !evictor.why.is_reclaim()
            || known <= taker as usize
            || state.queues[taker as usize].deserved.is_some()
        {
            return false;
        }
        let giver = Some(giver).filter(|&giver| known > giver as usize);
        let beyond = giver.and_then(|giver| self.turns.beyond_lead(giver, taker, self.lead_ms));
        beyond.is_none_or(|beyond| {
            self.leeway.see_beyond(beyond);
            beyond <= 0
        })
    }

    /// The queue or one above it is ahead of siblings that wait, by more than its policy lets it.
    fn overused(&self, state: &State, queue: QueueId) -> bool {
        self.turns.flows.len() > queue as usize
            && self.turns.up(queue).any(|at| {
                let burst_ms = state.queue_policy(at).burst_ms;
                burst_ms.is_some_and(|burst_ms| self.turns.is_ahead(at, burst_ms))
            })
    }

    /// The tags of queues in which something started, ended or began or ceased to wait since they were last told.
    fn queue_words(&mut self, state: &State) -> Vec<(QueueId, QueueWord)> {
        self.look(state);
        self.turns.close();
        let mut words = std::mem::take(&mut self.words);
        for (at, (flow, note)) in self.turns.flows.iter().zip(&mut self.notes).enumerate() {
            note.started |= flow.started > 0;
            let told_ms = note.told_ms;
            let early = told_ms.is_some_and(|told| state.now_ms - told < self.store_ms);
            let Some(parent) = flow.parent.filter(|_| note.uid.is_some() && !early) else {
                continue;
            };
            if note.told == (flow.rate, flow.backlogged) && !note.started {
                continue;
            }
            note.started = false;
            note.told = (flow.rate, flow.backlogged);
            note.told_ms = Some(state.now_ms);
            let virtual_time = self.turns.flows[parent as usize].virtual_time;
            let record = Record::of(flow, virtual_time, state.now_ms);
            words.push((at as QueueId, QueueWord::Fairness(record.text())));
        }
        words
    }
}
