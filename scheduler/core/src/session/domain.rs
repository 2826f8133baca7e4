//! Gangs whose pods must be, or want to be, close to each other in the network. The waiting pods of a gang, or of each
//! of its sub-groups ([`super::sub_jobs`]), go into one hypernode: the lowest tier that has room, and there the
//! fullest. Which hypernodes have room is read off exact capacities ([`crate::index::capacity`]); only pods of several
//! classes, or pods that look at other pods, need a trial. While a trial runs, nothing outside its hypernode is seen.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Session;
use super::place::Outcome;
use super::worksheet::Worksheet;
use crate::decision::{Notice, NoticeKind};
use crate::event::ObjectKey;
use crate::index::capacity::{Capacity, future_copies};
use crate::index::kernel::Room;
use crate::plugin::DomainSearch;
use crate::session::Refusal;
use crate::state::classes::ClassId;
use crate::state::hyper_nodes::{DomainId, Limit, ROOT};
use crate::state::jobs::JobId;
use crate::state::nodes::LANES;
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::TaskId;

/// Hypernodes that are tried in one search. Pods of one class need one trial.
const MOST_TRIALS: usize = 32;

/// Room that is looked for.
struct Wanted {
    /// Waiting pods by class.
    classes: SmallVec<[(ClassId, u32); 2]>,
    /// So many must fit together.
    need: u32,
    /// So many wait.
    waiting: u32,
}

impl Wanted {
    /// Upper bound of the pods that a domain takes: exact for one class.
    fn fit(&self, copies: &[Vec<u64>], domain: DomainId) -> u64 {
        let each = self.classes.iter().zip(copies);
        each.map(|(&(_, count), copies)| u64::from(count).min(copies[domain as usize])).sum()
    }
}

impl Session<'_> {
    /// Hypernodes in which a gang may be placed as a whole, in the order in which they are tried: lowest tier first,
    /// those around its running members before others. For a gang that may go anywhere that is the root alone.
    pub fn domains(&self, job: JobId) -> Vec<DomainId> {
        self.pipeline.domains(self.state, &self.search_of(job, None, ROOT)).concat()
    }

    /// Says once of each hypernode that contradicts others what is wrong with it.
    pub(super) fn tell_hyper_node_problems(&mut self) {
        for problem in self.state.hyper_nodes.untold_problems() {
            self.notices.push(Notice {
                kind: NoticeKind::HyperNode,
                object: ObjectKey::new("", &*problem.name),
                uid: problem.uid,
                warning: true,
                reason: tephra_api::reasons::INVALID_OBJECT,
                message: format!("not used: {}", problem.message),
            });
        }
    }

    /// One turn of a gang with a topology or sub-groups.
    pub(super) fn turn_in_domains(&mut self, job: JobId, sheet: &mut Worksheet) -> Outcome {
        let was_ready = self.pipeline.job_ready(self.state, job);
        let outcome = if self.state.jobs[job as usize].sub_jobs.is_some() {
            let search = self.search_of(job, None, ROOT);
            self.look_for(job, sheet, &search, &mut |session, sheet, domain| {
                session.place_sub_jobs(job, sheet, domain)
            })
        } else {
            self.place_unit(job, sheet, ROOT)
        };
        match outcome {
            Outcome::Refused { refusal, .. } if was_ready => {
                self.refusals.entry(job).or_insert(refusal);
                Outcome::Nothing
            }
            outcome => outcome,
        }
    }

    /// Places the waiting pods of a sheet, all of which belong together, in one hypernode within another.
    pub(super) fn place_unit(
        &mut self,
        job: JobId,
        sheet: &mut Worksheet,
        within: DomainId,
    ) -> Outcome {
        let search = self.search_of(job, sheet.sub_job, within);
        let lasting = self.order_is_irrelevant(sheet);
        self.look_for(job, sheet, &search, &mut |session, sheet, domain| {
            let domains = match search.limit {
                Limit::Anywhere => vec![domain],
                Limit::UpTo { .. } => session.closest(job, sheet, domain, search.allocated),
            };
            session.seeing_only(&domains, |session| session.attempt(job, sheet, lasting))
        })
    }

    /// What a gang, or one of its sub-groups, asks for.
    fn search_of(&self, job: JobId, sub_job: Option<SubJobId>, within: DomainId) -> DomainSearch {
        let row = &self.state.jobs[job as usize];
        let tree = self.state.hyper_nodes.tree();
        let of_job = tree.limit(row.topology.as_ref());
        let limit = match (sub_job, &row.sub_jobs) {
            (Some(sub_job), Some(sub_jobs)) => {
                match (tree.limit(sub_jobs.topology(sub_job, row.topology.as_ref())), of_job) {
                    // A soft sub-group stays where its gang must be (3.2 step 8).
                    (Limit::UpTo { soft: true, .. }, Limit::UpTo { tier, .. }) => {
                        Limit::UpTo { tier, soft: true }
                    }
                    (limit, _) => limit,
                }
            }
            _ => of_job,
        };
        let running = row.tasks.iter().filter_map(|&task| {
            let task = &self.state.tasks[task];
            let counts =
                task.status.is_allocated() && sub_job.is_none_or(|sub_job| task.sub_job == sub_job);
            counts.then_some(task.node)
        });
        let allocated = match limit {
            Limit::Anywhere => None,
            // A sub-group is where its pods are, whatever is said of its gang.
            Limit::UpTo { .. } => {
                tree.home(row.named_home().filter(|_| sub_job.is_none()), running)
            }
        };
        DomainSearch { limit, within, allocated }
    }

    /// Tries the hypernodes that have room until one trial succeeds: on free room, then on room that is being freed.
    fn look_for(
        &mut self,
        job: JobId,
        sheet: &mut Worksheet,
        search: &DomainSearch,
        attempt: &mut dyn FnMut(&mut Self, &mut Worksheet, DomainId) -> Outcome,
    ) -> Outcome {
        let Limit::UpTo { soft, .. } = search.limit else {
            return attempt(self, sheet, search.within);
        };
        let wanted = self.wanted(job, sheet);
        let groups = self.pipeline.domains(self.state, search);
        let lasting = self.order_is_irrelevant(sheet);
        // A gang with sub-groups is asked about as a whole here; each of them looks for a hypernode of its own inside.
        let is_frame = sheet.sub_job.is_none() && self.state.jobs[job as usize].sub_jobs.is_some();
        let mut inner = None;
        let mut trials = 0;
        let mut best = 0;
        for room in [Room::Free, Room::Future] {
            if room == Room::Future && self.state.releasing == 0 {
                break;
            }
            let copies: Vec<Vec<u64>> = wanted
                .classes
                .iter()
                .map(|&(class, _)| self.copies_by_domain(class, room))
                .collect();
            // Pods that start must find room for all that wait with them, as far as sums tell (4.2.9); soft ones only
            // if they can.
            let strictness: &[bool] = match (search.allocated.is_some() || is_frame, soft) {
                (true, _) => &[false],
                (false, true) => &[true, false],
                (false, false) => &[true],
            };
            for (group, &strict) in
                strictness.iter().flat_map(|s| groups.iter().map(move |g| (g, s)))
            {
                for domain in self.with_room(job, sheet.sub_job, &wanted, &copies, group, strict) {
                    if trials == MOST_TRIALS {
                        break;
                    }
                    trials += 1;
                    let from = self.journal.savepoint();
                    let mut trial = sheet.clone();
                    let outcome = attempt(self, &mut trial, domain);
                    let done = match outcome {
                        Outcome::Ready { .. } => true,
                        Outcome::Pipelined { .. } => room == Room::Future,
                        Outcome::Refused { .. } | Outcome::Nothing => false,
                    };
                    if let Outcome::Refused { refusal, .. } = &outcome {
                        let lacks_room = matches!(refusal, Refusal::Room { .. } | Refusal::Members);
                        inner = Some(refusal.clone()).filter(|_| is_frame || !lacks_room).or(inner);
                    }
                    if done {
                        *sheet = trial;
                        return outcome;
                    }
                    self.rollback(from);
                }
            }
            let fits = groups.iter().flatten().map(|&domain| wanted.fit(&copies, domain));
            best = best.max(fits.max().unwrap_or(0));
        }
        if let Some(refusal) = inner {
            return Outcome::Refused { refusal, lasting: false };
        }
        let task = sheet.tasks[sheet.next];
        let text = self.no_domain(job, sheet.sub_job, search, &wanted, &groups, best);
        self.trial_reasons.insert(task, text);
        let placed = best.min(u64::from(wanted.need)) as u32;
        Outcome::Refused { refusal: Refusal::Room { task, placed }, lasting }
    }

    fn wanted(&self, job: JobId, sheet: &Worksheet) -> Wanted {
        let mut classes: SmallVec<[(ClassId, u32); 2]> = SmallVec::new();
        let mut waiting = 0;
        for run in sheet.left() {
            let count = (run.end - run.start) as u32;
            waiting += count;
            match classes.iter_mut().find(|(class, _)| *class == run.class) {
                Some((_, sum)) => *sum += count,
                None => classes.push((run.class, count)),
            }
        }
        let row = &self.state.jobs[job as usize];
        let lacks = match (sheet.sub_job, &row.sub_jobs) {
            (Some(sub_job), Some(sub_jobs)) => sub_jobs.list[sub_job as usize].lacks(),
            _ => row.lacks(),
        };
        let need = if self.is_ready(job, sheet) { 1 } else { lacks.max(1) };
        Wanted { classes, need, waiting }
    }

    /// Copies of a class that fit, by domain.
    fn copies_by_domain(&mut self, class: ClassId, room: Room) -> Vec<u64> {
        let tree = self.state.hyper_nodes.tree();
        let none = vec![0; tree.len()];
        let Some(index) = self.detach_index(class) else { return none };
        let (tree, nodes) = (self.state.hyper_nodes.tree(), &self.state.nodes);
        let key = &self.state.classes.keys[index.key as usize];
        let copies = if room == Room::Free {
            let mut capacity: Box<Capacity> =
                self.state.classes.list[class as usize].capacity.take().unwrap_or_default();
            capacity.refresh(&index.hot, key, nodes, tree, self.backend);
            let copies = capacity.by_domain().to_vec();
            self.state.classes.list[class as usize].capacity = Some(capacity);
            copies
        } else {
            future_copies(&index.hot, key, nodes, tree, self.backend)
        };
        self.state.classes.list[class as usize].index = Some(index);
        copies
    }

    /// Those of a group that have room: best first by the plugins' order, then the one that has least to spare.
    fn with_room(
        &mut self,
        job: JobId,
        sub_job: Option<SubJobId>,
        wanted: &Wanted,
        copies: &[Vec<u64>],
        group: &[DomainId],
        strict: bool,
    ) -> Vec<DomainId> {
        let mut roomy: Vec<DomainId> = group.to_vec();
        roomy.retain(|&domain| {
            let fit = wanted.fit(copies, domain);
            fit >= u64::from(wanted.need)
                && (!strict
                    || fit >= u64::from(wanted.waiting)
                    || self.sums_suffice(wanted, domain))
        });
        if roomy.len() < 2 {
            return roomy;
        }
        let scores = self.pipeline.hyper_node_order(self.state, job, sub_job, &roomy);
        let mut ranked: Vec<_> = roomy
            .into_iter()
            .zip(scores)
            .map(|(domain, score)| {
                let partial = wanted.fit(copies, domain) < u64::from(wanted.waiting);
                let total: u64 = copies.iter().map(|copies| copies[domain as usize]).sum();
                (partial, score, total, domain)
            })
            .collect();
        ranked.sort_by(|a, b| {
            a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3))
        });
        ranked.into_iter().map(|(.., domain)| domain).collect()
    }

    /// What is idle in a domain, or will be, adds up to what all waiting pods ask for.
    fn sums_suffice(&self, wanted: &Wanted, domain: DomainId) -> bool {
        let mut asked = crate::state::resource::Ledger::default();
        for &(class, count) in &wanted.classes {
            asked.add_request(&self.state.classes.list[class as usize].request, i64::from(count));
        }
        let nodes = &self.state.nodes;
        let suffices = |idle: &dyn Fn(usize, usize) -> f64| {
            asked.iter().filter(|&(_, amount)| amount > 0).all(|(dim, amount)| {
                let of = |slot: usize| idle(dim as usize, slot);
                let sum: f64 = match domain {
                    ROOT => nodes.known().map(|slot| of(slot as usize)).sum(),
                    _ => {
                        let held = &self.state.hyper_nodes.tree()[domain].nodes;
                        held.iter().map(|&slot| of(slot as usize)).sum()
                    }
                };
                sum >= amount as f64
            })
        };
        let columns = &nodes.columns;
        suffices(&|dim, slot| columns[dim].alloc[slot] - columns[dim].used[slot])
            || suffices(&|dim, slot| columns[dim].future[slot])
    }

    /// The part of a domain where pods of one class are closest to each other: as few of its children as hold them all,
    /// those with running members first, then the roomiest, and of those that hold the rest the fullest.
    fn closest(
        &mut self,
        job: JobId,
        sheet: &Worksheet,
        domain: DomainId,
        allocated: Option<DomainId>,
    ) -> Vec<DomainId> {
        let whole = vec![domain];
        if self.state.hyper_nodes.tree()[domain].children.len() < 2
            || !self.order_is_irrelevant(sheet)
        {
            return whole;
        }
        let wanted = self.wanted(job, sheet);
        let copies = self.copies_by_domain(wanted.classes[0].0, Room::Free);
        let mut left = u64::from(wanted.waiting).min(copies[domain as usize]);
        let tree = self.state.hyper_nodes.tree();
        let is_home = |child| allocated.is_some_and(|home| tree.is_within(home, child));
        let mut children = tree[domain].children.clone();
        children.retain(|&child| copies[child as usize] > 0);
        children.sort_by_key(|&child| {
            (!is_home(child), std::cmp::Reverse(copies[child as usize]), child)
        });
        let mut chosen = Vec::new();
        while left > 0 && !children.is_empty() {
            let mut at = 0;
            if !is_home(children[0]) {
                // The last one that holds all that is left is the fullest of those.
                let enough = children.iter().rposition(|&child| copies[child as usize] >= left);
                at = enough.unwrap_or(0);
            }
            let child = children.remove(at);
            left = left.saturating_sub(copies[child as usize]);
            chosen.push(child);
        }
        if left > 0 { whole } else { chosen }
    }

    /// Runs something that sees no node outside some domains.
    pub(super) fn seeing_only<T>(
        &mut self,
        domains: &[DomainId],
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let scope = (!domains.contains(&ROOT)).then(|| {
            let mut bits = vec![0_u64; self.state.nodes.blocks()];
            for &domain in domains {
                for &node in &self.state.hyper_nodes.tree()[domain].nodes {
                    bits[node as usize / LANES] |= 1 << (node as usize % LANES);
                }
            }
            Arc::<[u64]>::from(bits)
        });
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = run(self);
        self.scope = outer;
        result
    }

    /// Places one pod of a gang where its topology allows it, without regard to its gang.
    pub fn place_member(&mut self, task: TaskId) -> bool {
        let job = self.state.tasks[task].job;
        let row = &self.state.jobs[job as usize];
        if !row.is_structured() {
            return self.place_alone(task);
        }
        let sub_job = row.sub_jobs.is_some().then_some(self.state.tasks[task].sub_job);
        let of_job = self.pipeline.domains(self.state, &self.search_of(job, None, ROOT)).concat();
        let tops = of_job.iter().flat_map(|&within| {
            self.pipeline.domains(self.state, &self.search_of(job, sub_job, within)).concat()
        });
        let mut domains: Vec<DomainId> = tops.collect();
        domains.sort_unstable();
        domains.dedup();
        self.seeing_only(&domains, |session| session.place_alone(task))
    }

    /// Why there is no hypernode for a gang or sub-group, for a person.
    fn no_domain(
        &self,
        job: JobId,
        sub_job: Option<SubJobId>,
        search: &DomainSearch,
        wanted: &Wanted,
        groups: &[Vec<DomainId>],
        best: u64,
    ) -> String {
        let row = &self.state.jobs[job as usize];
        let tree = self.state.hyper_nodes.tree();
        let who = match (sub_job, &row.sub_jobs) {
            (Some(sub_job), Some(sub_jobs)) => format!("sub-group {}: ", sub_jobs.name(sub_job)),
            _ => String::new(),
        };
        let Limit::UpTo { tier, .. } = search.limit else { return who };
        let count: usize = groups.iter().map(Vec::len).sum();
        let around = search.allocated.map_or_else(String::new, |home| {
            format!(" around {} (tier {}), where members run", tree[home].name, tree[home].tier)
        });
        if count == 0 {
            return format!("{who}there is no hypernode of tier {tier} or lower{around}");
        }
        let pods = if best < u64::from(wanted.need) { wanted.need } else { wanted.waiting };
        format!(
            "{who}0/{count} hypernodes up to tier {tier}{around} have room for {pods} pods together: the roomiest takes {best}"
        )
    }
}
