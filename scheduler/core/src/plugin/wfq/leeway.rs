//! How far tags may move before a search for victims would get another answer. Every comparison of tags that the search makes is
//! noted with its distance from coming out the other way. Inside a session tags move by the same charges whenever the same is
//! placed and evicted, so a later session in which all tags have moved alike, or by less than the least distance, answers the same.

use std::cell::{Cell, RefCell};

use super::turns::Turns;

/// With more queues among the victims than this all is taken to hang by a thread: comparing each with each would take longer than
/// repeating the search.
const MOST: usize = 64;

/// What the search that began last leaves.
#[derive(Debug)]
pub(super) struct Leeway {
    least: Cell<i128>,
    /// Queues that were put in order since tags last moved: who takes, who gives.
    ordered: RefCell<Vec<(u32, u32)>>,
}

impl Default for Leeway {
    fn default() -> Self {
        Self { least: Cell::new(i128::MAX), ordered: RefCell::default() }
    }
}

impl Leeway {
    /// Tags may move against each other by less than this.
    pub(super) fn least(&self) -> i128 {
        self.least.get()
    }

    /// Something was placed or evicted: what is put in order from now on stands in no comparison with what was before.
    pub(super) fn tags_moved(&mut self) {
        self.ordered.get_mut().clear();
    }

    /// A flow is ahead by so much more than it must be; at 0 and below it is not.
    pub(super) fn see_beyond(&self, beyond: i128) {
        self.see(if beyond > 0 { beyond } else { 1 - beyond });
    }

    /// A queue is put in order with the others that may give.
    pub(super) fn compare(&self, turns: &Turns, taker: u32, giver: u32) {
        let mut ordered = self.ordered.borrow_mut();
        if ordered.contains(&(taker, giver)) {
            return;
        }
        if ordered.len() == MOST {
            return self.see(0);
        }
        for &(_, other) in ordered.iter().filter(|(by, _)| *by == taker) {
            if let Some(distance) = distance(turns, taker, giver, other) {
                self.see(distance);
            }
        }
        ordered.push((taker, giver));
    }

    fn see(&self, distance: i128) {
        self.least.set(self.least.get().min(distance));
    }
}

/// How far tags may move until two queues change places among those that give; `None` where tags do not decide between them.
fn distance(turns: &Turns, taker: u32, one: u32, other: u32) -> Option<i128> {
    let ours = turns.down(taker);
    let parts = |at: u32| {
        let theirs = turns.down(at);
        let common = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        (common, theirs)
    };
    let ((common_one, one_down), (common_other, other_down)) = (parts(one), parts(other));
    let leads = turns.leads(taker, one).into_iter().zip(turns.leads(taker, other));
    let flows = one_down[common_one..].iter().zip(&other_down[common_other..]);
    let ((lead_one, lead_other), _) = leads.zip(flows).find(|(_, (a, b))| a != b)?;
    let apart = (lead_one - lead_other).abs();
    // Where each parts from the taker at a level of its own, two tags on either side may move.
    Some(if common_one == common_other { apart } else { (apart + 1) / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::wfq::turns::Flow;

    /// A root with teams of these tags.
    fn turns(tags: &[i128]) -> Turns {
        let flow = |parent, service| Flow { parent, service, ..Flow::default() };
        let teams = tags.iter().map(|&tag| flow(Some(0), tag));
        let mut turns = Turns::default();
        turns.flows.push(flow(None, 0));
        turns.flows.extend(teams);
        turns.arrange();
        turns
    }

    #[test]
    fn the_closest_two_of_those_that_are_put_in_order_decide() {
        let turns = turns(&[0, 100, 70, 500]);
        let mut leeway = Leeway::default();
        for giver in [2, 4, 3, 4] {
            leeway.compare(&turns, 1, giver);
        }
        assert_eq!(leeway.least(), 30);
        leeway.tags_moved();
        leeway.see_beyond(0);
        assert_eq!(leeway.least(), 1, "it is ahead as soon as it moves");
    }

    #[test]
    fn a_lead_that_is_more_than_enough_may_shrink_by_less_than_what_is_beyond() {
        let leeway = Leeway::default();
        leeway.see_beyond(40);
        leeway.see_beyond(-50);
        assert_eq!(leeway.least(), 40);
    }

    #[test]
    fn equal_tags_and_too_many_queues_leave_none() {
        let leeway = Leeway::default();
        leeway.compare(&turns(&[0, 5, 5]), 1, 2);
        assert_eq!(leeway.least(), i128::MAX, "there is nobody to compare with");
        leeway.compare(&turns(&[0, 5, 5]), 1, 3);
        assert_eq!(leeway.least(), 0);

        let many: Vec<i128> = (0..70).map(|tag| tag * 1_000).collect();
        let (turns, leeway) = (turns(&many), Leeway::default());
        (2..66).for_each(|giver| leeway.compare(&turns, 1, giver));
        assert_eq!(leeway.least(), 1_000);
        leeway.compare(&turns, 1, 66);
        assert_eq!(leeway.least(), 0);
    }
}
