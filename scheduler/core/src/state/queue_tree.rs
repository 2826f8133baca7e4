//! The tree of queues that `spec.parent` spans. It is derived when a session opens after a queue came, went or moved,
//! level by level and without recursion, so that it may be as deep as it likes. The queue `root` stands above all
//! queues that name no parent, also when no object of that name exists. A queue whose parents do not lead to the
//! root has no place in the tree: it and the queues below it are at fault, nobody else (P23).

use super::State;
use super::queues::{Queue, QueueId};

/// The queue that all others stand under.
pub const ROOT: &str = "root";

const NO_QUEUE: QueueId = QueueId::MAX;

/// Where the parents of a queue lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leads {
    /// The queue does not exist.
    #[default]
    Nowhere,
    /// To the root: the queue has its place.
    ToRoot,
    /// To a queue that names a parent which does not exist.
    ToMissing,
    /// Back to where they came from.
    InCircle,
}

/// One queue's place.
#[derive(Clone, Copy, Debug)]
struct Place {
    parent: QueueId,
    /// Number of queues above it.
    depth: u32,
    /// Queues directly below it.
    children: u32,
    /// Number by age, then name.
    rank: u32,
    leads: Leads,
}

/// The tree.
#[derive(Debug, Default)]
pub struct QueueTree {
    epoch: Option<u64>,
    places: Vec<Place>,
    order: Vec<QueueId>,
}

impl QueueTree {
    /// The queue directly above; `None` for the root and for queues that nobody stands above.
    pub fn parent(&self, queue: QueueId) -> Option<QueueId> {
        let parent = self.places.get(queue as usize)?.parent;
        (parent != NO_QUEUE).then_some(parent)
    }

    /// The queue and all above it, the root last.
    pub fn up(&self, queue: QueueId) -> impl Iterator<Item = QueueId> + '_ {
        std::iter::successors(Some(queue), |&at| self.parent(at))
    }

    /// True when the parents of the queue lead to the root.
    pub fn has_place(&self, queue: QueueId) -> bool {
        self.places.get(queue as usize).is_some_and(|place| place.leads == Leads::ToRoot)
    }

    /// True when queues stand below it.
    pub fn is_inner(&self, queue: QueueId) -> bool {
        self.places.get(queue as usize).is_some_and(|place| place.children > 0)
    }

    /// Number of queues above it, 0 for the root.
    pub fn depth(&self, queue: QueueId) -> u32 {
        self.places.get(queue as usize).map_or(0, |place| place.depth)
    }

    /// Number of the queue among all of them by age, then name.
    pub fn rank(&self, queue: QueueId) -> u32 {
        self.places.get(queue as usize).map_or(0, |place| place.rank)
    }

    /// Queues, each after those above it. Queues in circles are missing.
    pub fn downwards(&self) -> impl DoubleEndedIterator<Item = QueueId> + '_ {
        self.order.iter().copied()
    }

    /// Adds to the value of each queue those of all queues below it. A missing parent ends the chain, and nobody is above queues that
    /// stand in a circle (B35).
    pub fn add_up<T: Default>(&self, values: &mut [T], add: impl Fn(&mut T, &T)) {
        for queue in self.downwards().rev() {
            let Some(parent) = self.parent(queue) else { continue };
            let below = std::mem::take(&mut values[queue as usize]);
            add(&mut values[parent as usize], &below);
            values[queue as usize] = below;
        }
    }

    /// Depth of the lowest queue that is above both or is one of them; both have a place.
    pub fn common_depth(&self, a: QueueId, b: QueueId) -> u32 {
        let (mut a, mut b) = (a, b);
        while a != b {
            let (up_a, up_b) = (self.depth(a) >= self.depth(b), self.depth(b) >= self.depth(a));
            let above = |queue, up| if up { self.parent(queue) } else { Some(queue) };
            let (Some(next_a), Some(next_b)) = (above(a, up_a), above(b, up_b)) else { return 0 };
            (a, b) = (next_a, next_b);
        }
        self.depth(a)
    }
}

impl State {
    /// Derives the tree anew if a queue came, went or moved.
    pub fn refresh_queue_tree(&mut self) {
        self.queue_row(ROOT);
        if self.queue_tree.epoch != Some(self.queue_epoch) {
            self.queue_tree = self.derive_queue_tree();
        }
    }

    fn derive_queue_tree(&self) -> QueueTree {
        let root = self.queue(ROOT);
        let is_known = |&id: &QueueId| Some(id) == root || self.queues[id as usize].exists;
        let ids = || (0..self.queues.len() as QueueId).filter(is_known);
        let mut places =
            vec![
                Place { parent: NO_QUEUE, depth: 0, children: 0, rank: 0, leads: Leads::Nowhere };
                self.queues.len()
            ];
        let mut below: Vec<Vec<QueueId>> = vec![Vec::new(); self.queues.len()];
        let mut order: Vec<QueueId> = root.into_iter().collect();
        let mut orphans = Vec::new();
        for id in ids() {
            if Some(id) == root {
                places[id as usize].leads = Leads::ToRoot;
                continue;
            }
            let row = &self.queues[id as usize];
            places[id as usize].leads = Leads::InCircle;
            let named = if row.parent.is_empty() { root } else { self.queue(&row.parent) };
            match named.filter(is_known) {
                Some(parent) => {
                    places[id as usize].parent = parent;
                    places[parent as usize].children += 1;
                    below[parent as usize].push(id);
                }
                None => {
                    places[id as usize].leads = Leads::ToMissing;
                    orphans.push(id);
                }
            }
        }
        order.append(&mut orphans);
        let mut next = 0;
        while let Some(&above) = order.get(next) {
            next += 1;
            let Place { depth, leads, .. } = places[above as usize];
            for &id in &below[above as usize] {
                let place = &mut places[id as usize];
                (place.depth, place.leads) = (depth + 1, leads);
                order.push(id);
            }
        }
        for place in places.iter_mut().filter(|place| place.leads == Leads::InCircle) {
            place.parent = NO_QUEUE;
        }
        let mut by_age: Vec<QueueId> = ids().collect();
        let age =
            |&id: &QueueId| (self.queues[id as usize].created_ms, &self.queues[id as usize].name);
        by_age.sort_by(|a, b| age(a).cmp(&age(b)));
        for (rank, id) in by_age.into_iter().enumerate() {
            places[id as usize].rank = rank as u32;
        }
        QueueTree { epoch: Some(self.queue_epoch), places, order }
    }

    /// Why a queue that exists has no place in the tree, in words that name it.
    pub fn queue_fault(&self, queue: QueueId) -> Option<String> {
        let name = &self.queues[queue as usize].name;
        let why = match self.queue_tree.places.get(queue as usize)?.leads {
            Leads::Nowhere | Leads::ToRoot => return None,
            Leads::InCircle => "its parents stand in a circle".to_owned(),
            Leads::ToMissing => {
                let top = self.queue_tree.up(queue).last()?;
                let Queue { name, parent, .. } = &self.queues[top as usize];
                if top == queue {
                    format!("its parent {parent} does not exist")
                } else {
                    format!("queue {name} above it names a parent {parent} that does not exist")
                }
            }
        };
        Some(format!("queue {name} has no place in the tree of queues: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, QueueObject};

    /// A state with queues that name parents, created in this order.
    fn state(queues: &[(&str, &str)]) -> State {
        let mut state = State::new("default");
        for (at, (name, parent)) in queues.iter().enumerate() {
            state.apply(queue(name, parent, at as i64));
        }
        state.refresh_queue_tree();
        state
    }

    fn queue(name: &str, parent: &str, created_ms: i64) -> Event {
        Event::Queue(QueueObject {
            name: name.to_owned(),
            parent: parent.to_owned(),
            created_ms,
            ..QueueObject::default()
        })
    }

    fn up(state: &State, name: &str) -> Vec<String> {
        let id = state.queue(name).unwrap();
        state.queue_tree.up(id).map(|id| state.queues[id as usize].name.to_string()).collect()
    }

    fn fault(state: &State, name: &str) -> Option<String> {
        state.queue_fault(state.queue(name).unwrap())
    }

    #[test]
    fn the_root_stands_above_everybody_whether_its_object_exists_or_not() {
        for queues in [&[("a", "b"), ("b", "")][..], &[("root", ""), ("a", "b"), ("b", "root")]] {
            let state = state(queues);
            assert_eq!(up(&state, "a"), ["a", "b", "root"]);
            let [a, b] = ["a", "b"].map(|name| state.queue(name).unwrap());
            assert!(state.queue_tree.is_inner(b) && !state.queue_tree.is_inner(a));
            assert_eq!((state.queue_tree.depth(a), state.queue_tree.depth(b)), (2, 1));
        }
    }

    #[test]
    fn a_missing_parent_harms_only_the_queues_below_it_and_heals_when_it_comes() {
        let mut state = state(&[("a", "gone"), ("a1", "a"), ("b", ""), ("root", "")]);
        assert_eq!(fault(&state, "b"), None);
        assert_eq!(
            fault(&state, "a").unwrap(),
            "queue a has no place in the tree of queues: its parent gone does not exist"
        );
        assert_eq!(
            fault(&state, "a1").unwrap(),
            "queue a1 has no place in the tree of queues: queue a above it names a parent gone that does not exist"
        );
        assert_eq!(up(&state, "a1"), ["a1", "a"]);
        state.apply(queue("gone", "", 9));
        state.refresh_queue_tree();
        assert_eq!(up(&state, "a1"), ["a1", "a", "gone", "root"]);
        assert_eq!(fault(&state, "a1"), None);
        state.apply(Event::QueueDeleted("gone".to_owned()));
        state.refresh_queue_tree();
        assert!(fault(&state, "a1").is_some());
    }

    #[test]
    fn circles_are_nobodys_children_and_harm_only_themselves_and_what_is_below() {
        let state = state(&[("own", "own"), ("a", "b"), ("b", "a"), ("a1", "a"), ("ok", "root")]);
        for name in ["own", "a", "b", "a1"] {
            assert_eq!(
                fault(&state, name).unwrap(),
                format!(
                    "queue {name} has no place in the tree of queues: its parents stand in a circle"
                )
            );
            assert_eq!(up(&state, name), [name]);
        }
        assert_eq!(fault(&state, "ok"), None);
    }

    #[test]
    fn a_tree_may_be_deeper_than_any_stack() {
        let names: Vec<String> = (0..100_000).map(|at| format!("q{at}")).collect();
        let mut state = State::new("default");
        for (at, name) in names.iter().enumerate() {
            let parent = at.checked_sub(1).map_or("", |above| &names[above]);
            state.apply(queue(name, parent, 0));
        }
        state.refresh_queue_tree();
        let [last, other] = ["q99999", "q70000"].map(|name| state.queue(name).unwrap());
        assert_eq!(state.queue_tree.depth(last), 100_000);
        assert_eq!(state.queue_tree.common_depth(last, other), 70_001);
    }

    #[test]
    fn queues_meet_at_their_lowest_common_ancestor() {
        let state =
            state(&[("A", ""), ("B", ""), ("a1", "A"), ("a2", "A"), ("a11", "a1"), ("b1", "B")]);
        let common = |a: &str, b: &str| {
            state.queue_tree.common_depth(state.queue(a).unwrap(), state.queue(b).unwrap())
        };
        assert_eq!(common("a11", "a2"), 1);
        assert_eq!(common("a2", "a11"), 1);
        assert_eq!(common("a11", "a1"), 2);
        assert_eq!(common("a11", "b1"), 0);
        assert_eq!(common("a11", "a11"), 3);
    }
}
