//! The arithmetic of turns (core.md 9.2), free of queues and sessions. Each place of a tree is a [`Flow`] with a start tag: the service that it
//! and all below it have had, by weight. Of flows side by side the one with the smallest tag goes first. Tags are integers, so equal histories
//! give equal tags on every machine.
//!
//! Units. A share is a part of the cluster, [`WHOLE`] for all of it. Service is share × milliseconds; a tag is service by weight, where a weight of
//! [`WEIGHT_ONE`] divides by one. With shares up to 2^50 and 2^40 ms at a time no product reaches 2^127.

/// The share of whoever has the whole cluster.
pub const WHOLE: i128 = 1 << 40;
/// The weight by which service counts as it is.
pub const WEIGHT_ONE: i128 = 1 << 30;
/// Longest time that is charged at once: 34 years.
const LONGEST_MS: i64 = 1 << 40;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// It has nothing that waits.
    #[default]
    Nothing,
    /// Something waits for what turns cannot give: a limit that somebody set, members that do not come.
    Held,
    /// Something waits for its turn: the flow is backlogged.
    Room,
}

/// One place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The flow above; `None` for those that have no siblings.
    pub parent: Option<u32>,
    /// Flows of higher priority go first, whatever the tags say.
    pub priority: i32,
    /// Decides between equal tags.
    pub rank: u32,
    /// Its weight among its siblings, at least 1.
    pub weight: i128,
    /// What it may save up while idle (b): milliseconds of the whole cluster.
    pub credit_ms: i64,
    /// The share that it holds now.
    pub rate: i128,
    /// What it waits for now.
    pub waits: Waits,
    /// It was backlogged at the latest [`Turns::settle`].
    pub backlogged: bool,
    /// Service so far by weight, or what it was raised to when it became backlogged.
    pub service: i128,
    /// Entry charges by weight that its running charge has not caught up with.
    pub prepaid: i128,
    /// Entry charges of this session, share × ms; below 0 while more leaves than comes.
    pub entering: i128,
    /// The share that started in this session; below 0 while more leaves than comes.
    pub started: i128,
    /// Virtual time of the flows below it.
    pub virtual_time: i128,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            parent: None,
            priority: 0,
            rank: 0,
            weight: WEIGHT_ONE,
            credit_ms: 0,
            rate: 0,
            waits: Waits::Nothing,
            backlogged: false,
            service: 0,
            prepaid: 0,
            entering: 0,
            started: 0,
            virtual_time: 0,
        }
    }
}

impl Flow {
    /// The start tag (S).
    pub fn tag(&self) -> i128 {
        self.service + self.prepaid + self.by_weight(self.entering.max(0))
    }

    /// Service (share × ms) as tags count it.
    pub fn by_weight(&self, service: i128) -> i128 {
        service * WEIGHT_ONE / self.weight.max(1)
    }

    /// What tags count for that much of the whole cluster's time.
    fn of_whole(&self, ms: i64) -> i128 {
        self.by_weight(WHOLE * i128::from(ms.clamp(0, LONGEST_MS)))
    }

    /// Something of this share starts now: its first `entry_ms` are charged at once. A negative share takes that back.
    pub fn enter(&mut self, share: i128, entry_ms: i64) {
        self.entering += share * i128::from(entry_ms);
        self.started += share;
    }

    /// Charges what it holds for a time. What was paid on entry is used up first.
    pub fn run(&mut self, ms: i64) {
        self.prepaid = self.tag() - self.service;
        (self.entering, self.started) = (0, 0);
        let charge = self.by_weight(self.rate * i128::from(ms.clamp(0, LONGEST_MS)));
        self.service += charge;
        self.prepaid = (self.prepaid - charge).max(0);
    }

    /// Gives back entry charges of what has ended: no more stays paid than all that it holds would pay.
    pub fn refund(&mut self, entry_ms: i64) {
        self.prepaid = self.prepaid.min(self.by_weight(self.rate * i128::from(entry_ms)));
    }

    /// Work of this share and time was lost through no fault of its own: it counts as if it had never been done.
    pub fn credit(&mut self, share: i128, ms: i64) {
        self.service -= self.by_weight(share * i128::from(ms.clamp(0, LONGEST_MS)));
    }

    /// It becomes backlogged: whatever it did not use is gone, but for its credit.
    fn join(&mut self, virtual_time: i128) {
        self.service += (virtual_time - self.of_whole(self.credit_ms) - self.tag()).max(0);
    }

    fn turn(&self) -> (i64, i128, u32) {
        (-i64::from(self.priority), self.tag(), self.rank)
    }
}

/// A tree of flows. Those that are nobody's children have no siblings either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// The flows; a flow's number is its place here.
    pub flows: Vec<Flow>,
    children: Vec<Vec<u32>>,
}

impl Turns {
    /// Takes note of who stands below whom; call it when a parent has changed.
    pub fn arrange(&mut self) {
        self.children = vec![Vec::new(); self.flows.len()];
        for (at, flow) in self.flows.iter().enumerate() {
            if let Some(parent) = flow.parent {
                self.children[parent as usize].push(at as u32);
            }
        }
    }

    /// The flow and all above it but the topmost, which has no siblings.
    pub fn up(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        let above = |at: &u32| self.flows[*at as usize].parent;
        let has_siblings = move |at: &u32| above(at).is_some();
        std::iter::successors(Some(at), above).take_while(has_siblings)
    }

    /// The same from the top down.
    pub fn down(&self, at: u32) -> Vec<u32> {
        let mut path: Vec<u32> = self.up(at).collect();
        path.reverse();
        path
    }

    /// The session is over, and [`Flow::waits`] tells what is left. A flow with nothing left is backlogged no more, and virtual times have come up to
    /// the service of flows below them that started something.
    pub fn close(&mut self) {
        for at in 0..self.flows.len() {
            let flow = &mut self.flows[at];
            flow.backlogged &= flow.waits == Waits::Room;
            let service = flow.service;
            if let Some(parent) = flow.parent.filter(|_| flow.started > 0) {
                let above = &mut self.flows[parent as usize];
                above.virtual_time = above.virtual_time.max(service);
            }
        }
    }

    /// Charges a time to all flows.
    pub fn run(&mut self, ms: i64) {
        self.flows.iter_mut().for_each(|flow| flow.run(ms));
    }

    /// Brings virtual times and backlogs up to date with what each flow waits for. A flow that has waited all the time keeps its tag; one that comes,
    /// or that something else than its turn held back, starts at the virtual time.
    pub fn settle(&mut self) {
        self.follow(|flow| flow.backlogged && flow.waits == Waits::Room);
        for at in 0..self.flows.len() {
            let Some(parent) = self.flows[at].parent else { continue };
            let virtual_time = self.flows[parent as usize].virtual_time;
            let flow = &mut self.flows[at];
            if flow.waits != Waits::Nothing && !flow.backlogged {
                flow.join(virtual_time);
            }
            flow.backlogged = flow.waits == Waits::Room;
        }
        self.follow(|flow| flow.backlogged);
    }

    /// Moves each virtual time (V) up to the service of the flow below that goes first. What that has paid on entry does not count: much of it is given
    /// back when jobs are short, and whoever came meanwhile would have to wait until it is used up.
    fn follow(&mut self, counts: impl Fn(&Flow) -> bool) {
        for parent in 0..self.children.len() {
            let below = self.children[parent].iter().map(|&at| &self.flows[at as usize]);
            let first = below.filter(|flow| counts(flow)).min_by_key(|flow| flow.turn());
            if let Some(service) = first.map(|flow| flow.service) {
                let flow = &mut self.flows[parent];
                flow.virtual_time = flow.virtual_time.max(service);
            }
        }
    }

    /// The flow is further ahead of a backlogged sibling than that much of the whole cluster's time. Siblings of lower priority do not count.
    pub fn is_ahead(&self, at: u32, burst_ms: i64) -> bool {
        let flow = &self.flows[at as usize];
        let Some(parent) = flow.parent else { return false };
        let siblings = self.children[parent as usize].iter().filter(|&&other| other != at);
        let least = siblings
            .map(|&other| &self.flows[other as usize])
            .filter(|other| other.backlogged && other.priority >= flow.priority)
            .map(Flow::tag)
            .min();
        least.is_some_and(|least| flow.tag() - least > flow.of_whole(burst_ms))
    }

    /// Where the paths of two flows part, how much further the first is ahead of the second than that much of the whole cluster's time:
    /// above 0 it is ahead by more. `None` where they do not part.
    pub fn beyond_lead(&self, one: u32, other: u32, ms: i64) -> Option<i128> {
        let (one, other) = (self.parted(one, other), self.parted(other, one));
        let (&one, &other) = one.first().zip(other.first())?;
        let (one, other) = (&self.flows[one as usize], &self.flows[other as usize]);
        Some(one.tag() - other.tag() - one.of_whole(ms))
    }

    /// The path to a flow from the top down, from where it parts from the path to another.
    pub fn parted(&self, from: u32, other: u32) -> Vec<u32> {
        let (mut path, other) = (self.down(from), self.down(other));
        let common = path.iter().zip(&other).take_while(|(a, b)| a == b).count();
        path.split_off(common)
    }

    /// How far each flow on a victim's path is ahead, from where it parts from the path of whoever needs room: first of the two that stand side by
    /// side there, then against the virtual time of its level.
    pub fn leads(&self, preemptor: u32, victim: u32) -> Vec<i128> {
        let (ours, theirs) = (self.parted(preemptor, victim), self.parted(victim, preemptor));
        let tag = |at: u32| self.flows[at as usize].tag();
        let virtual_time = |at: u32| {
            let parent = self.flows[at as usize].parent;
            parent.map_or(0, |parent| self.flows[parent as usize].virtual_time)
        };
        let mut rival = ours.first().map(|&at| tag(at));
        theirs
            .iter()
            .map(|&at| tag(at) - rival.take().unwrap_or_else(|| virtual_time(at)))
            .collect()
    }
}
