//! The kernel: fit, copies and score of one class on 64 nodes at once. One body, compiled for several
//! instruction sets and chosen at run time; the scalar build is the twin that tests compare with. All
//! arithmetic is IEEE `f64`, every quotient correctly rounded, so every build gives the same bits (core.md 10).

use std::ops::Range;

use super::score::ClassHot;
use crate::planted::{Bug, planted};
use crate::state::nodes::{LANES, Nodes};
use crate::state::resource::{CPU, Dim, MEMORY};

/// Instruction set that the kernel runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// What the target offers at least.
    Scalar,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl Backend {
    /// The best one that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512dq")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
            {
                return Self::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
            {
                return Self::Avx2;
            }
        }
        Self::Scalar
    }

    /// Every backend that this machine has.
    pub fn available() -> Vec<Self> {
        let mut list = vec![Self::Scalar];
        match Self::detect() {
            Self::Scalar => {}
            Self::Avx2 => list.push(Self::Avx2),
            Self::Avx512 => list.extend([Self::Avx2, Self::Avx512]),
        }
        list
    }
}

/// What fits and how good it is, lane by lane.
#[derive(Clone, Debug)]
pub struct BlockResult {
    /// Copies of the class that fit on the node, 0 for none.
    pub copies: [f64; LANES],
    /// Dynamic score; meaningless where no copy fits.
    pub score: [f64; LANES],
}

impl Default for BlockResult {
    fn default() -> Self {
        Self { copies: [0.0; LANES], score: [0.0; LANES] }
    }
}

/// Which room counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Free now.
    Free,
    /// Free once releasing tasks are gone.
    Future,
    /// Any: best-effort pods need a place among the pods only.
    Any,
}

/// One question to the kernel: a class on a block.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The class.
    pub class: &'q ClassHot,
    /// Node columns.
    pub nodes: &'q Nodes,
    /// Block number.
    pub block: usize,
    /// Lanes that the static filters allow.
    pub mask: u64,
    /// Which room counts.
    pub room: Room,
    /// Score that each lane starts with: the static part, and for pods that depend on others their part.
    pub fixed: &'q [f64; LANES],
}

/// Answers a question on the given instruction set.
pub fn evaluate(backend: Backend, question: &Question<'_>, out: &mut BlockResult) {
    evaluate_lanes(backend, question, 0..LANES, out);
}

/// Answers a question for some lanes only; what `out` says of the others stays.
pub fn evaluate_lanes(
    backend: Backend,
    question: &Question<'_>,
    lanes: Range<usize>,
    out: &mut BlockResult,
) {
    match backend {
        Backend::Scalar => body::<false>(question, lanes, out),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX2 and FMA on this machine.
            unsafe {
                avx2(question, lanes, out);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX-512 F, DQ and VL, AVX2 and FMA on this machine.
            unsafe {
                avx512(question, lanes, out);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        _ => body::<false>(question, lanes, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(question: &Question<'_>, lanes: Range<usize>, out: &mut BlockResult) {
    body::<true>(question, lanes, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn avx512(question: &Question<'_>, lanes: Range<usize>, out: &mut BlockResult) {
    body::<true>(question, lanes, out);
}

#[inline(always)]
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// `a / b`, correctly rounded, given `inverse`, the rounded `1 / b`. A vector division costs as much as twenty
/// multiplications; with fused multiply-add two steps of Markstein's correction give the very same bits: the first
/// brings the quotient within one unit in the last place, the second rounds it correctly.
#[inline(always)]
fn quotient<const FMA: bool>(a: f64, b: f64, inverse: f64) -> f64 {
    if !FMA {
        return a / b;
    }
    let guess = a * inverse;
    let near = (-b).mul_add(guess, a).mul_add(inverse, guess);
    (-b).mul_add(near, a).mul_add(inverse, near)
}

#[inline(always)]
fn body<const FMA: bool>(question: &Question<'_>, lanes: Range<usize>, out: &mut BlockResult) {
    let Question { class, nodes, block, mask, room, fixed } = *question;
    let slots = block * LANES + lanes.start..block * LANES + lanes.end;
    let copies = &mut out.copies[lanes.clone()];
    for (copies, lane) in copies.iter_mut().zip(lanes.clone()) {
        *copies = if mask >> lane & 1 == 1 { 1e9 } else { 0.0 };
    }
    let slack = if planted(Bug::LooseComparison) { 1.0 } else { 0.0 };
    for &(dim, request) in &class.fit {
        let column = &nodes.columns[dim as usize];
        if room == Room::Any && dim != crate::state::resource::PODS {
            continue;
        }
        let free = if room == Room::Free { &column.free } else { &column.future };
        let free = &free[slots.clone()];
        if request > 0.0 {
            let inverse = 1.0 / request;
            for (copies, free) in copies.iter_mut().zip(free) {
                let most = quotient::<FMA>(free + slack, request, inverse).floor();
                *copies = smaller(*copies, most);
            }
        } else {
            for (copies, free) in copies.iter_mut().zip(free) {
                *copies = if *free < 0.0 { 0.0 } else { *copies };
            }
        }
    }
    for copies in copies.iter_mut() {
        *copies = if *copies < 0.0 { 0.0 } else { *copies };
    }
    let score = &mut out.score[lanes.clone()];
    score.copy_from_slice(&fixed[lanes]);
    let view = View { class, nodes, slots };
    if class.least != 0.0 {
        view.allocated::<FMA, true>(class.least, score);
    }
    if class.most != 0.0 {
        view.allocated::<FMA, false>(class.most, score);
    }
    if class.balanced != 0.0 {
        match class.balanced_scalar {
            None => view.balanced_two::<FMA>(score),
            Some((dim, request)) => view.balanced_three::<FMA>(dim, request, score),
        }
    }
    if !class.packed.is_empty() && class.packed_weights > 0.0 {
        view.packed::<FMA>(score);
    }
}

/// The lanes of a question, for the scores. Every list that a loop reads has the length of `slots`.
struct View<'q> {
    class: &'q ClassHot,
    nodes: &'q Nodes,
    slots: Range<usize>,
}

impl View<'_> {
    /// Adds the score for much (`LEAST`) or little room that is left of cpu and memory.
    #[inline(always)]
    fn allocated<const FMA: bool, const LEAST: bool>(&self, weight: f64, score: &mut [f64]) {
        let count = score.len();
        let of = |dim: Dim| {
            let column = &self.nodes.columns[dim as usize];
            let (alloc, inverse) =
                (&column.alloc[self.slots.clone()], &column.inverse[self.slots.clone()]);
            (&alloc[..count], &inverse[..count])
        };
        let requested = |r: usize| &self.nodes.nonzero[r][self.slots.clone()][..count];
        let part = |requested: f64, nonzero: f64, alloc: f64, inverse: f64| {
            let request = requested + nonzero;
            let amount = if LEAST { alloc - request } else { smaller(request, alloc) };
            let value = quotient::<FMA>(amount * 100.0, alloc, inverse).floor();
            if alloc > 0.0 && (!LEAST || request <= alloc) { value } else { 0.0 }
        };
        let ((cpu, cpu_inverse), (memory, memory_inverse)) = (of(CPU), of(MEMORY));
        let (used_cpu, used_memory) = (requested(0), requested(1));
        let [own_cpu, own_memory] = self.class.nonzero;
        for lane in 0..count {
            let sum = part(used_cpu[lane], own_cpu, cpu[lane], cpu_inverse[lane])
                + part(used_memory[lane], own_memory, memory[lane], memory_inverse[lane]);
            // The mean of what the node has at all.
            let both = cpu[lane] > 0.0 && memory[lane] > 0.0;
            score[lane] += weight * (sum * if both { 0.5 } else { 1.0 }).floor();
        }
    }

    /// What part of a dimension is asked for with one more copy, 0 of what the node lacks.
    #[inline(always)]
    fn fractions<const FMA: bool>(&self, dim: Dim, request: f64, out: &mut [f64]) {
        let column = &self.nodes.columns[dim as usize];
        let count = out.len();
        let alloc = &column.alloc[self.slots.clone()][..count];
        let inverse = &column.inverse[self.slots.clone()][..count];
        let used = &column.used[self.slots.clone()][..count];
        let promised = &column.pipelined[self.slots.clone()][..count];
        for lane in 0..count {
            let asked = used[lane] + promised[lane] + request;
            let share = smaller(quotient::<FMA>(asked, alloc[lane], inverse[lane]), 1.0);
            out[lane] = if alloc[lane] > 0.0 { share } else { 0.0 };
        }
    }

    #[inline(always)]
    fn allocatable(&self, dim: Dim) -> &[f64] {
        &self.nodes.columns[dim as usize].alloc[self.slots.clone()]
    }

    /// Adds the score for even use of cpu and memory.
    #[inline(always)]
    fn balanced_two<const FMA: bool>(&self, score: &mut [f64]) {
        let count = score.len();
        let (mut cpu, mut memory) = ([0.0; LANES], [0.0; LANES]);
        self.fractions::<FMA>(CPU, self.class.plain[0], &mut cpu[..count]);
        self.fractions::<FMA>(MEMORY, self.class.plain[1], &mut memory[..count]);
        let (has_cpu, has_memory) =
            (&self.allocatable(CPU)[..count], &self.allocatable(MEMORY)[..count]);
        for lane in 0..count {
            let spread = ((cpu[lane] - memory[lane]) * 0.5).abs();
            let both = has_cpu[lane] > 0.0 && has_memory[lane] > 0.0;
            let deviation = if both { spread } else { 0.0 };
            score[lane] += self.class.balanced * ((1.0 - deviation) * 100.0).floor();
        }
    }

    /// Adds the score for even use of cpu, memory and the scalar that the class asks for; resources that a node
    /// lacks do not count.
    #[inline(always)]
    fn balanced_three<const FMA: bool>(&self, scalar: Dim, request: f64, score: &mut [f64]) {
        let count = score.len();
        let (mut cpu, mut memory, mut third) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        self.fractions::<FMA>(CPU, self.class.plain[0], &mut cpu[..count]);
        self.fractions::<FMA>(MEMORY, self.class.plain[1], &mut memory[..count]);
        self.fractions::<FMA>(scalar, request, &mut third[..count]);
        let has = [CPU, MEMORY, scalar].map(|dim| &self.allocatable(dim)[..count]);
        for lane in 0..count {
            let f = [cpu[lane], memory[lane], third[lane]];
            let has = [has[0][lane] > 0.0, has[1][lane] > 0.0, has[2][lane] > 0.0];
            let mean = quotient::<FMA>(f[0] + f[1] + f[2], 3.0, 1.0 / 3.0);
            let square = [
                (f[0] - mean) * (f[0] - mean),
                (f[1] - mean) * (f[1] - mean),
                (f[2] - mean) * (f[2] - mean),
            ];
            let variance = quotient::<FMA>(square[0] + square[1] + square[2], 3.0, 1.0 / 3.0);
            let three = variance.sqrt();
            // With two resources the third one is absent: the pair is found by what is missing.
            let first = if has[0] { f[0] } else { f[1] };
            let second = if has[2] { f[2] } else { f[1] };
            let two = ((first - second) * 0.5).abs();
            let pair = has[0] && (has[1] || has[2]) || has[1] && has[2];
            let few = if pair { two } else { 0.0 };
            let deviation = if has[0] && has[1] && has[2] { three } else { few };
            score[lane] += self.class.balanced * ((1.0 - deviation) * 100.0).floor();
        }
    }

    /// Adds binpack's score; 0 on nodes where a counted resource would not fit.
    #[inline(always)]
    fn packed<const FMA: bool>(&self, score: &mut [f64]) {
        let count = score.len();
        let (mut sum, mut full) = ([0.0; LANES], [0.0; LANES]);
        let (sum, full) = (&mut sum[..count], &mut full[..count]);
        for dim in self.class.packed.iter().filter(|dim| dim.weight > 0.0) {
            let column = &self.nodes.columns[dim.dim as usize];
            let alloc = &column.alloc[self.slots.clone()][..count];
            let inverse = &column.inverse[self.slots.clone()][..count];
            let used = &column.used[self.slots.clone()][..count];
            for lane in 0..count {
                let has = alloc[lane] > 0.0;
                let filled = dim.request + used[lane];
                full[lane] = if has && filled > alloc[lane] { 1.0 } else { full[lane] };
                let part = quotient::<FMA>(filled * dim.weight, alloc[lane], inverse[lane]);
                sum[lane] += if has { part } else { 0.0 };
            }
        }
        let (weights, scale) = (self.class.packed_weights, self.class.packed_scale);
        let inverse = 1.0 / weights;
        for lane in 0..count {
            let value = quotient::<FMA>(sum[lane], weights, inverse) * scale;
            score[lane] += if full[lane] > 0.0 { 0.0 } else { value };
        }
    }
}
