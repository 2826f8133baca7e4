//! The search for a packing: can so many pods of these kinds be put into these spaces at one time, and how? Plain
//! numbers in, plain numbers out. Kind by kind and space by space, most copies first, with everything cut off that
//! cannot reach what is needed: the first packing in that order is the answer, whatever is cut off.

/// Pods that are alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    /// What one takes of each dimension; 0 does not fit where something is owed.
    pub(super) request: Vec<i64>,
    /// How many there are.
    pub(super) count: u32,
    /// Which role they play, a position in [`Problem::roles`].
    pub(super) role: usize,
    /// For each space, whether they may go there.
    pub(super) allowed: Vec<bool>,
}

/// What is to be packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Problem {
    /// Kinds, in the order in which they are laid out.
    pub(super) kinds: Vec<Kind>,
    /// What is free of each dimension, by space.
    pub(super) free: Vec<Vec<i64>>,
    /// Pods needed, of whatever kind.
    pub(super) need: u32,
    /// Pods needed of each role.
    pub(super) roles: Vec<u32>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// By kind and space, how many go there.
    Found(Vec<Vec<u32>>),
    /// There is none.
    Impossible,
    /// Too many ways to try them all.
    Unknown,
}

/// Looks for a packing in at most so many steps.
pub(super) fn search(problem: Problem, steps: u32) -> Packing {
    let counts = vec![vec![0; problem.free.len()]; problem.kinds.len()];
    let mut search = Search { problem, counts, steps };
    let need = search.problem.need;
    if search.lay_out(0, need) {
        Packing::Found(search.counts)
    } else if search.steps == 0 {
        Packing::Unknown
    } else {
        Packing::Impossible
    }
}

struct Search {
    problem: Problem,
    counts: Vec<Vec<u32>>,
    steps: u32,
}

/// A kind that is being laid out.
struct Layer {
    kind: usize,
    /// Pods needed of this and all later kinds.
    need: u32,
    /// Fewest and most of the kind that can be part of a packing.
    least: u32,
    most: u32,
    /// Copies that this space and all later ones take.
    room: Vec<u32>,
    /// The space was like the one before it when the layer began: then it need not take more than that one.
    twin: Vec<bool>,
}

impl Search {
    /// Lays out a kind and all later ones.
    fn lay_out(&mut self, kind: usize, need: u32) -> bool {
        if kind == self.problem.kinds.len() {
            return need == 0 && self.roles_are_served();
        }
        let spaces = 0..self.problem.free.len();
        let mut room = vec![0_u32; spaces.len() + 1];
        for space in spaces.clone().rev() {
            room[space] = room[space + 1].saturating_add(self.fit(kind, space));
        }
        let (mut later, mut owed) = (0_u32, 0_u32);
        for other in kind + 1..self.problem.kinds.len() {
            let fit =
                spaces.clone().map(|space| self.fit(other, space)).fold(0, u32::saturating_add);
            later = later.saturating_add(fit.min(self.problem.kinds[other].count));
            owed = owed.saturating_add(self.owed_to(other));
        }
        let layer = Layer {
            kind,
            need,
            least: self.owed_to(kind).max(need.saturating_sub(later)),
            most: self.problem.kinds[kind].count.min(need.saturating_sub(owed)),
            room,
            twin: spaces.map(|space| space > 0 && self.are_twins(kind, space - 1, space)).collect(),
        };
        self.fill(&layer, 0, 0)
    }

    /// Fills the spaces from one on, with so many of the kind placed before it.
    fn fill(&mut self, layer: &Layer, space: usize, placed: u32) -> bool {
        if placed.saturating_add(layer.room[space]) < layer.least || self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        if placed == layer.most || space == self.problem.free.len() {
            return placed >= layer.least && self.lay_out(layer.kind + 1, layer.need - placed);
        }
        let mut most = self.fit(layer.kind, space).min(layer.most - placed);
        if layer.twin[space] {
            most = most.min(self.counts[layer.kind][space - 1]);
        }
        for count in (0..=most).rev() {
            self.put(layer.kind, space, count, -1);
            if self.fill(layer, space + 1, placed + count) {
                return true;
            }
            self.put(layer.kind, space, count, 1);
        }
        self.counts[layer.kind][space] = 0;
        false
    }

    /// Copies of a kind that fit into a space now.
    fn fit(&self, kind: usize, space: usize) -> u32 {
        let kind = &self.problem.kinds[kind];
        if !kind.allowed[space] {
            return 0;
        }
        let amounts = kind.request.iter().zip(&self.problem.free[space]);
        let copies = amounts.map(|(&amount, &free)| match (amount, free) {
            (_, ..0) => 0,
            (0, _) => i64::MAX,
            _ => free / amount,
        });
        copies.min().unwrap_or(0).min(i64::from(kind.count)) as u32
    }

    fn put(&mut self, kind: usize, space: usize, count: u32, sign: i64) {
        self.counts[kind][space] = count;
        let request = &self.problem.kinds[kind].request;
        for (free, amount) in self.problem.free[space].iter_mut().zip(request) {
            *free += sign * amount * i64::from(count);
        }
    }

    /// Two spaces offer the same to a kind and all later ones.
    fn are_twins(&self, kind: usize, a: usize, b: usize) -> bool {
        let Problem { kinds, free, .. } = &self.problem;
        free[a] == free[b] && kinds[kind..].iter().all(|kind| kind.allowed[a] == kind.allowed[b])
    }

    /// What a kind must give because nobody else has its role.
    fn owed_to(&self, kind: usize) -> u32 {
        let Problem { kinds, roles, .. } = &self.problem;
        let role = kinds[kind].role;
        let alone = kinds.iter().filter(|kind| kind.role == role).count() == 1;
        if alone { roles[role] } else { 0 }
    }

    fn roles_are_served(&self) -> bool {
        let Problem { kinds, roles, .. } = &self.problem;
        roles.iter().enumerate().all(|(role, &least)| {
            let of_role = kinds.iter().zip(&self.counts).filter(|(kind, _)| kind.role == role);
            of_role.map(|(_, counts)| counts.iter().sum::<u32>()).sum::<u32>() >= least
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(request: &[i64], count: u32, spaces: usize) -> Kind {
        Kind { request: request.to_vec(), count, role: 0, allowed: vec![true; spaces] }
    }

    /// The same search without cutting anything off: goes through all layouts in the same order.
    fn naive(problem: &mut Problem, kind: usize, space: usize, counts: &mut Vec<Vec<u32>>) -> bool {
        let placed = |of: &dyn Fn(&Kind) -> bool, counts: &[Vec<u32>]| -> u32 {
            let rows = problem.kinds.iter().zip(counts).filter(|(kind, _)| of(kind));
            rows.map(|(_, row)| row.iter().sum::<u32>()).sum()
        };
        if kind == problem.kinds.len() {
            let roles = problem.roles.iter().enumerate();
            return placed(&|_| true, counts) == problem.need
                && roles.fold(true, |served, (role, &least)| {
                    served && placed(&|kind| kind.role == role, counts) >= least
                });
        }
        if space == problem.free.len() {
            return naive(problem, kind + 1, 0, counts);
        }
        let row = problem.kinds[kind].clone();
        for count in (0..=row.count).rev() {
            let left: Vec<i64> = (problem.free[space].iter().zip(&row.request))
                .map(|(free, amount)| free - amount * i64::from(count))
                .collect();
            let fits = count == 0 || row.allowed[space] && left.iter().all(|&left| left >= 0);
            counts[kind][space] = count;
            if !fits || counts[kind].iter().sum::<u32>() > row.count {
                continue;
            }
            let before = std::mem::replace(&mut problem.free[space], left);
            let found = naive(problem, kind, space + 1, counts);
            problem.free[space] = before;
            if found {
                return true;
            }
        }
        counts[kind][space] = 0;
        false
    }

    prop_compose! {
        fn problems()(spaces in 1_usize..4, kinds in 1_usize..4)(
            free in prop::collection::vec(prop::collection::vec(-1_i64..8, 2), spaces),
            kinds in prop::collection::vec(
                (
                    prop::collection::vec(0_i64..5, 2),
                    1_u32..4,
                    0_usize..2,
                    prop::collection::vec(prop::bool::weighted(0.9), spaces),
                ),
                kinds,
            ),
            need in 1_u32..7,
            roles in prop::collection::vec(0_u32..3, 2),
        ) -> Problem {
            let kinds = kinds.into_iter().map(|(request, count, role, allowed)| {
                Kind { request, count, role, allowed }
            });
            Problem { kinds: kinds.collect(), free, need, roles }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_first_packing_of_all_layouts_is_found_and_none_only_where_there_is_none(
            problem in problems(),
        ) {
            let mut counts = vec![vec![0; problem.free.len()]; problem.kinds.len()];
            let found = naive(&mut problem.clone(), 0, 0, &mut counts);
            let expected = if found { Packing::Found(counts) } else { Packing::Impossible };
            prop_assert_eq!(search(problem, 100_000), expected);
        }
    }

    #[test]
    fn what_is_cut_off_makes_a_hopeless_search_short() {
        // Twelve equal spaces, each too small for one of both: 7 + 12 pods do not fit.
        let problem = Problem {
            kinds: vec![kind(&[3], 7, 12), kind(&[2], 12, 12)],
            free: vec![vec![4]; 12],
            need: 19,
            roles: vec![0],
        };
        assert_eq!(search(problem.clone(), 100), Packing::Impossible);
        assert_eq!(search(problem, 3), Packing::Unknown);
    }
}
