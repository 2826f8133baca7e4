//! The nodes that become available first for a gang. Per domain (the cluster, or each hypernode that a hard topology allows)
//! the ends of the pods there are sorted, and the earliest time at which the gang fits is found by bisection: a time
//! is tried by putting the gang's pods, the largest first, into what is free then. For p pods in the domain that is
//! O(p log p).

use smallvec::SmallVec;

use super::forecast::{Amounts, Outlook, amounts};
use crate::session::Session;
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::hyper_nodes::{DomainId, Limit, ROOT};
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::reservations::{Claim, Demand, Reservation, When};
use crate::state::resource::Dim;

/// A node that some pods of the gang may use.
struct Space {
    node: NodeId,
    /// For each class of the demand, whether it may go there.
    allowed: SmallVec<[bool; 2]>,
    /// By dimension of the demand.
    outlook: Outlook,
}

/// A demand in numbers.
struct Wanted<'d> {
    demand: &'d Demand,
    dims: SmallVec<[Dim; 5]>,
    /// By class: what one pod asks for of each dimension.
    requests: SmallVec<[Amounts; 2]>,
}

impl Session<'_> {
    /// What a gang needs to start; `None` when that cannot be placed whatever ends.
    pub(super) fn demand(&self, job: JobId) -> Option<Demand> {
        let sheet = self.worksheet(job);
        let row = &self.state.jobs[job as usize];
        let mut of_roles: Vec<(u32, u32)> = Vec::new();
        for role in &row.roles {
            of_roles.push((role.role, row.lacks_of_role(role.role)));
        }
        let mut open = row.lacks().saturating_sub(of_roles.iter().map(|(_, lacks)| lacks).sum());
        let mut demand = Demand::default();
        for &task in &sheet.tasks {
            let task = &self.state.tasks[task];
            let of_role =
                of_roles.iter_mut().find(|(role, lacks)| *role == task.role && *lacks > 0);
            match of_role {
                Some((_, lacks)) => *lacks -= 1,
                None if open > 0 => open -= 1,
                None => continue,
            }
            let class = &self.state.classes.list[task.class as usize];
            if class.key == NO_KEY || class.impossible.is_some() {
                return None;
            }
            match demand.classes.iter_mut().find(|(class, _)| *class == task.class) {
                Some((_, count)) => *count += 1,
                None => demand.classes.push((task.class, 1)),
            }
        }
        let lacks = open > 0 || of_roles.iter().any(|&(_, lacks)| lacks > 0);
        // Large pods have the fewest choices.
        demand.classes.sort_by_key(|&(class, _)| (-self.weight(class), class));
        (!lacks && !demand.classes.is_empty()).then_some(demand)
    }

    /// When all that is reserved is free.
    pub(super) fn ready(&self, reservation: &Reservation) -> When {
        let ready = reservation.claims.iter().map(|claim| {
            let known = self.state.nodes.identity[claim.node as usize].known;
            if !known || !claim.classes.iter().all(|&class| self.allows(class, claim.node)) {
                return When::Never;
            }
            let dims: SmallVec<[Dim; 5]> = claim.request.iter().map(|&(dim, _)| dim).collect();
            let outlook = self.outlook(claim.node, &dims);
            let fits = |when: When| {
                let room = outlook.room_at(when);
                room.iter().zip(&claim.request).all(|(room, (_, asked))| room >= asked)
            };
            let mut ends: Vec<When> = outlook.ends.iter().map(|&(end, _)| end).collect();
            ends.push(When::At(self.state.now_ms));
            ends.sort_unstable();
            ends.dedup();
            let at = ends.partition_point(|&end| !fits(end));
            ends.get(at).copied().unwrap_or(When::Never)
        });
        ready.max().unwrap_or(When::Never)
    }

    /// Where a gang could start first, and when; `None` where it never could, and where room for it is there already, so that
    /// something else must keep it from starting.
    pub(super) fn search(&self, job: JobId, demand: &Demand) -> Option<(When, Vec<Claim>)> {
        let wanted = self.in_numbers(demand);
        let mut best: Option<(When, Vec<Claim>)> = None;
        for domain in self.domains_of(job) {
            let mut spaces = self.spaces(job, &wanted, domain);
            let limit = best.as_ref().map(|(when, _)| *when);
            if let Some(found) = wanted.earliest(&mut spaces, self.state.now_ms, limit) {
                best = Some(found);
            }
        }
        let there = When::At(self.state.now_ms);
        best.filter(|&(when, _)| when > there || self.state.releasing > 0)
    }

    /// Hypernodes that may hold the gang; for one that has no hard limit the cluster alone.
    fn domains_of(&self, job: JobId) -> Vec<DomainId> {
        let limit =
            self.state.hyper_nodes.tree().limit(self.state.jobs[job as usize].topology.as_ref());
        match limit {
            Limit::UpTo { soft: false, .. } => self.domains(job),
            _ => vec![ROOT],
        }
    }

    fn allows(&self, class: ClassId, node: NodeId) -> bool {
        let key = self.state.classes.list[class as usize].key;
        key != NO_KEY && self.state.classes.keys[key as usize].allows(node)
    }

    fn in_numbers<'d>(&self, demand: &'d Demand) -> Wanted<'d> {
        let request = |class: ClassId| &self.state.classes.list[class as usize].request;
        let mut dims: SmallVec<[Dim; 5]> = SmallVec::new();
        for &(class, _) in &demand.classes {
            dims.extend(request(class).iter().map(|&(dim, _)| dim));
        }
        dims.sort_unstable();
        dims.dedup();
        let classes = demand.classes.iter();
        let requests = classes.map(|&(class, _)| amounts(request(class), &dims)).collect();
        Wanted { demand, dims, requests }
    }

    /// Nodes of a domain that nobody else has reserved and that some pods of the gang may use.
    fn spaces(&self, job: JobId, wanted: &Wanted<'_>, domain: DomainId) -> Vec<Space> {
        let nodes: Vec<NodeId> = match domain {
            ROOT => self.state.nodes.known().collect(),
            _ => self.state.hyper_nodes.tree()[domain].nodes.clone(),
        };
        let others = self.state.reservations.held.iter();
        let taken: rustc_hash::FxHashSet<NodeId> = others
            .filter(|held| held.job != job)
            .flat_map(|held| held.claims.iter().map(|claim| claim.node))
            .collect();
        let space = |node: NodeId| {
            let classes = wanted.demand.classes.iter();
            let allowed: SmallVec<[bool; 2]> =
                classes.map(|&(class, _)| self.allows(class, node)).collect();
            if taken.contains(&node) || !allowed.contains(&true) {
                return None;
            }
            Some(Space { node, allowed, outlook: self.outlook(node, &wanted.dims) })
        };
        nodes.into_iter().filter_map(space).collect()
    }
}

impl Space {
    /// Part of the node, in the dimension where it is largest, that is held by pods of whom nobody knows when they end.
    fn unknown_work(&self) -> i64 {
        let outlook = &self.outlook;
        let mut held: Amounts = SmallVec::from_elem(0, outlook.free.len());
        for (_, amounts) in outlook.ends.iter().filter(|(end, _)| *end == When::Someday) {
            held.iter_mut().zip(amounts).for_each(|(held, amount)| *held += amount);
        }
        let room = outlook.room_at(When::Someday);
        let part = |(held, room): (&i64, &i64)| {
            (i128::from(*held) * 1_000_000 / i128::from((*room).max(1))) as i64
        };
        held.iter().zip(&room).map(part).max().unwrap_or(0)
    }
}

impl Wanted<'_> {
    /// The earliest time at which the demand fits, if that is before the limit.
    fn earliest(
        &self,
        spaces: &mut [Space],
        now_ms: i64,
        limit: Option<When>,
    ) -> Option<(When, Vec<Claim>)> {
        let mut times: Vec<When> = spaces
            .iter()
            .flat_map(|space| space.outlook.ends.iter().map(|(end, _)| *end))
            .collect();
        times.push(When::At(now_ms));
        times.retain(|&time| limit.is_none_or(|limit| time < limit));
        times.sort_unstable();
        times.dedup();
        if times.last() == Some(&When::Someday) {
            times.pop();
            let at = times.partition_point(|&time| self.fit(spaces, time).is_none());
            if at == times.len() {
                // Where the least is held for nobody knows how long, the gang can start first.
                spaces.sort_by_key(|space| (space.unknown_work(), space.node));
                return Some((When::Someday, self.fit(spaces, When::Someday)?));
            }
            return Some((times[at], self.fit(spaces, times[at])?));
        }
        let at = times.partition_point(|&time| self.fit(spaces, time).is_none());
        let &time = times.get(at)?;
        Some((time, self.fit(spaces, time)?))
    }

    /// Puts the demand into what is free then.
    fn fit(&self, spaces: &[Space], when: When) -> Option<Vec<Claim>> {
        let mut left: SmallVec<[u32; 2]> =
            self.demand.classes.iter().map(|&(_, count)| count).collect();
        let mut claims = Vec::new();
        for space in spaces {
            let mut room = space.outlook.room_at(when);
            let mut claim = Claim {
                node: space.node,
                classes: SmallVec::new(),
                request: self.dims.iter().map(|&dim| (dim, 0)).collect(),
            };
            for (at, request) in self.requests.iter().enumerate() {
                if !space.allowed[at] {
                    continue;
                }
                let copies = room.iter().zip(request).map(|(&room, &asked)| match asked {
                    0 => i64::MAX,
                    _ => room.max(0) / asked,
                });
                let copies = copies.min().unwrap_or(0).min(i64::from(left[at]));
                if copies == 0 {
                    continue;
                }
                left[at] -= copies as u32;
                claim.classes.push(self.demand.classes[at].0);
                for (dim, &asked) in request.iter().enumerate() {
                    room[dim] -= copies * asked;
                    claim.request[dim].1 += copies * asked;
                }
            }
            if !claim.classes.is_empty() {
                claims.push(claim);
            }
            if left.iter().all(|&left| left == 0) {
                return Some(claims);
            }
        }
        None
    }
}
