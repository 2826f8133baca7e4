//! The arithmetic of turns alone ([`Turns`]) on random trees, weights and loads: gangs of any size, the head of the picked queue blocks until it fits.

use tephra_core::plugin::wfq::turns::{Flow, Turns, WEIGHT_ONE, WHOLE, Waits};

use crate::judge::{Judge, Running};
use crate::{Noise, leaves, tree, up};

const SLOTS: i128 = 64;

/// A gang that waits.
#[derive(Clone, Copy, Debug)]
struct Gang {
    slots: i128,
    ms: i64,
}

struct Story {
    parents: Vec<Option<usize>>,
    turns: Turns,
    queued: Vec<Vec<Gang>>,
    running: Vec<Running>,
    now_ms: i64,
    entry_ms: i64,
}

fn share(slots: i128) -> i128 {
    slots * WHOLE / SLOTS
}

impl Story {
    fn new(parents: &[Option<usize>], weights: &[i128], entry_ms: i64) -> Self {
        let flow = |at: usize| Flow {
            parent: parents[at].map(|parent| parent as u32),
            weight: weights[at] * WEIGHT_ONE,
            rank: at as u32,
            ..Flow::default()
        };
        let mut turns = Turns::default();
        turns.flows = (0..parents.len()).map(flow).collect();
        turns.arrange();
        let queued = vec![Vec::new(); parents.len()];
        let parents = parents.to_vec();
        Self { parents, turns, queued, running: Vec::new(), now_ms: 0, entry_ms }
    }

    fn waits(&self, at: usize) -> bool {
        (0..self.parents.len())
            .any(|leaf| !self.queued[leaf].is_empty() && up(&self.parents, leaf).any(|up| up == at))
    }

    /// From the root down: of those that wait the smallest tag.
    fn pick(&self) -> Option<usize> {
        let mut at = 0;
        loop {
            let below = (0..self.parents.len())
                .filter(|&child| self.parents[child] == Some(at) && self.waits(child));
            match below.min_by_key(|&child| (self.turns.flows[child].tag(), child)) {
                Some(child) => at = child,
                None => return (at != 0).then_some(at),
            }
        }
    }

    /// Time passes until `now_ms`, when some gangs end.
    fn run(&mut self, now_ms: i64, judge: &mut Judge) {
        let ms = now_ms - self.now_ms;
        judge.run(&self.running, ms);
        self.turns.run(ms);
        self.now_ms = now_ms;
        let (ended, running): (Vec<Running>, _) =
            self.running.iter().partition(|gang| gang.ends_ms <= now_ms);
        self.running = running;
        for gang in ended {
            for at in up(&self.parents, gang.leaf) {
                self.turns.flows[at].rate -= share(gang.slots);
            }
        }
    }

    fn look(&mut self) {
        for at in 0..self.parents.len() {
            let waits = if self.waits(at) { Waits::Room } else { Waits::Nothing };
            self.turns.flows[at].waits = waits;
        }
    }

    /// Starts what fits, in order of turns.
    fn session(&mut self, judge: &mut Judge) {
        self.turns.flows.iter_mut().for_each(|flow| flow.refund(self.entry_ms));
        self.look();
        self.turns.settle();
        while let Some(leaf) = self.pick() {
            let gang = self.queued[leaf][0];
            let used: i128 = self.running.iter().map(|gang| gang.slots).sum();
            if used + gang.slots > SLOTS {
                break;
            }
            self.queued[leaf].remove(0);
            let ends_ms = self.now_ms + gang.ms;
            self.running.push(Running { leaf, slots: gang.slots, ends_ms });
            for at in up(&self.parents, leaf) {
                self.turns.flows[at].rate += share(gang.slots);
                self.turns.flows[at].enter(share(gang.slots), self.entry_ms);
            }
        }
        self.look();
        self.turns.close();
        let waiting: Vec<usize> =
            (0..self.parents.len()).filter(|&at| !self.queued[at].is_empty()).collect();
        judge.see(self.now_ms, &self.running, &waiting);
    }

    fn next_end(&self) -> Option<i64> {
        self.running.iter().map(|gang| gang.ends_ms).min()
    }
}

/// One random story; gives the number of pairs of siblings that waited together.
fn play(seed: u64) -> usize {
    let mut noise = Noise(seed);
    let parents = tree(&mut noise);
    let weights: Vec<i128> = parents.iter().map(|_| 1 + i128::from(noise.below(9))).collect();
    // A third of the stories run one gang at a time: there the bound is that of core.md 9.6.1 to the letter.
    let alone = noise.below(3) == 0;
    let entry_ms = if alone || noise.below(2) == 0 { 0 } else { noise.below(60_000) as i64 };
    let steady = noise.below(2) == 0;
    let leaves = leaves(&parents);
    let mut story = Story::new(&parents, &weights, entry_ms);
    let mut judge = Judge::new(&parents, &weights, SLOTS, entry_ms);
    for _ in 0..40 {
        for &leaf in &leaves {
            if steady || noise.below(4) == 0 {
                while story.queued[leaf].len() < 2 {
                    let slots = if alone { 33 + noise.below(32) } else { 1 + noise.below(64) };
                    let ms = 1 + noise.below(100_000) as i64;
                    story.queued[leaf].push(Gang { slots: slots.into(), ms });
                }
            }
        }
        story.session(&mut judge);
        let now_ms = story.now_ms;
        let pause = now_ms + 1 + noise.below(50_000) as i64;
        let next = story.next_end().map_or(pause, |end| if steady { end } else { end.min(pause) });
        story.run(next, &mut judge);
    }
    judge.assert_fair(&format!(
        "seed {seed} {parents:?} {weights:?} alone {alone} entry {entry_ms} steady {steady}"
    ))
}

#[test]
fn of_siblings_that_wait_none_gets_further_ahead_than_what_it_has_under_way() {
    let pairs: usize = (0..100_000).map(play).sum();
    assert!(pairs > 200_000, "stories in which nobody waits prove nothing: {pairs}");
}

/// Two queues of one slot-sized gang after the other; `credit_ms` is what the second may save up while the first has all. Gives the service that each
/// had from the time that both wait.
fn after_idling(credit_ms: i64) -> (i128, i128) {
    let parents = [None, Some(0), Some(0)];
    let mut story = Story::new(&parents, &[1, 1, 1], 0);
    story.turns.flows[2].credit_ms = credit_ms;
    let mut judge = Judge::new(&parents, &[1, 1, 1], SLOTS, 0);
    let (mut before, second_comes) = (0, 1_000_000);
    while story.now_ms < 1_400_000 {
        let waiting: &[usize] = if story.now_ms < second_comes { &[1] } else { &[1, 2] };
        for &at in waiting {
            while story.queued[at].len() < 2 {
                story.queued[at].push(Gang { slots: SLOTS, ms: 1000 });
            }
        }
        story.session(&mut judge);
        if story.now_ms <= second_comes {
            before = judge.served(1);
        }
        let end = story.next_end().unwrap();
        story.run(end, &mut judge);
    }
    let slots = judge.slots();
    ((judge.served(1) - before) / slots, judge.served(2) / slots)
}

#[test]
fn an_idle_queue_saves_up_its_credit_and_nothing_more() {
    assert_eq!(after_idling(0), (200_000, 200_000));
    // A minute of the whole cluster ahead, then turn by turn.
    assert_eq!(after_idling(60_000), (170_000, 230_000));
}

#[test]
fn an_entry_charge_is_given_back_when_the_gang_ends_or_has_run_as_long() {
    let mut flow = Flow { weight: 2 * WEIGHT_ONE, ..Flow::default() };
    let half = WHOLE / 2;
    let tag = |flow: &Flow| flow.tag() / WHOLE;
    flow.enter(half, 60_000);
    flow.rate = half;
    assert_eq!(tag(&flow), 15_000);
    flow.run(40_000);
    assert_eq!(tag(&flow), 15_000);
    let mut ended = flow.clone();
    ended.rate = 0;
    ended.refund(60_000);
    assert_eq!(tag(&ended), 10_000);
    flow.run(40_000);
    assert_eq!(tag(&flow), 20_000);
    // What is taken back in the same session leaves no trace.
    let before = flow.clone();
    flow.enter(half, 60_000);
    flow.enter(-half, 60_000);
    assert_eq!(flow, before);
}

#[test]
fn who_comes_beside_short_jobs_starts_level_with_what_they_have_used() {
    let parents = [None, Some(0), Some(0)];
    let mut turns = Story::new(&parents, &[1, 3, 1], 0).turns;
    // Short jobs fill the cluster and more of them wait; far more was paid on entry than they use.
    let busy = &mut turns.flows[1];
    busy.waits = Waits::Room;
    busy.enter(WHOLE, 60_000);
    busy.rate = WHOLE;
    turns.settle();
    turns.close();
    turns.run(3_000);
    turns.flows[2].waits = Waits::Room;
    turns.settle();
    let used = 1_000 * WHOLE;
    assert_eq!((turns.flows[1].tag(), turns.flows[2].tag()), (20_000 * WHOLE, used));
    turns.flows[1].rate = 0;
    turns.flows[1].refund(60_000);
    assert_eq!(turns.flows[1].tag(), used, "neither is behind the other when they end");
}

#[test]
fn a_flow_that_is_held_back_by_a_limit_saves_nothing_up() {
    let parents = [None, Some(0), Some(0)];
    let mut story = Story::new(&parents, &[1, 1, 1], 0);
    story.turns.flows[1].rate = WHOLE;
    for waits in [Waits::Held, Waits::Room] {
        story.turns.run(10_000);
        story.turns.flows[1].waits = Waits::Room;
        story.turns.flows[2].waits = waits;
        story.turns.settle();
    }
    assert_eq!(story.turns.flows[2].tag(), story.turns.flows[1].tag());
}
