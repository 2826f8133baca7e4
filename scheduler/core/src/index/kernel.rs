//! The kernel: fit, copies and score of one class on 64 nodes at once. One body, compiled for several
//! instruction sets and chosen at run time; the scalar build is the twin that tests compare with. All
//! arithmetic is IEEE `f64` without contraction, so every build gives the same bits (core.md 10).

use super::score::ClassHot;
use crate::planted::{Bug, planted};
use crate::state::nodes::{LANES, Nodes};
use crate::state::resource::{CPU, MEMORY};

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
            {
                return Self::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
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
    match backend {
        Backend::Scalar => body(question, out),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX2 on this machine.
            unsafe {
                avx2(question, out);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX-512 F, DQ and VL on this machine.
            unsafe {
                avx512(question, out);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        _ => body(question, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(question: &Question<'_>, out: &mut BlockResult) {
    body(question, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
fn avx512(question: &Question<'_>, out: &mut BlockResult) {
    body(question, out);
}

type Lane = [f64; LANES];

/// A block of a column. Columns are padded to whole blocks, so the slice always has 64 entries.
#[inline(always)]
fn lanes(column: &[f64], block: usize) -> &Lane {
    let start = block * LANES;
    column[start..start + LANES].first_chunk().expect("invariant: columns hold whole blocks")
}

#[inline(always)]
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
fn body(question: &Question<'_>, out: &mut BlockResult) {
    let Question { class, nodes, block, mask, room, fixed } = *question;
    let copies = &mut out.copies;
    for (lane, copies) in copies.iter_mut().enumerate() {
        *copies = if mask >> lane & 1 == 1 { 1e9 } else { 0.0 };
    }
    let slack = if planted(Bug::LooseComparison) { 1.0 } else { 0.0 };
    for &(dim, request) in &class.fit {
        let column = &nodes.columns[dim as usize];
        if room == Room::Any && dim != crate::state::resource::PODS {
            continue;
        }
        let free = lanes(if room == Room::Free { &column.free } else { &column.future }, block);
        if request > 0.0 {
            for lane in 0..LANES {
                copies[lane] = smaller(copies[lane], ((free[lane] + slack) / request).floor());
            }
        } else {
            for lane in 0..LANES {
                copies[lane] = if free[lane] < 0.0 { 0.0 } else { copies[lane] };
            }
        }
    }
    for copies in copies.iter_mut() {
        *copies = if *copies < 0.0 { 0.0 } else { *copies };
    }
    score(class, nodes, block, fixed, out);
}

#[inline(always)]
fn score(class: &ClassHot, nodes: &Nodes, block: usize, fixed: &Lane, out: &mut BlockResult) {
    let cpu = &nodes.columns[CPU as usize];
    let memory = &nodes.columns[MEMORY as usize];
    let score = &mut out.score;
    *score = *fixed;
    let alloc = [lanes(&cpu.alloc, block), lanes(&memory.alloc, block)];
    if class.least != 0.0 || class.most != 0.0 {
        let requested = [lanes(&nodes.nonzero[0], block), lanes(&nodes.nonzero[1], block)];
        for lane in 0..LANES {
            let (mut least, mut most, mut count) = (0.0, 0.0, 0.0);
            for r in 0..2 {
                let alloc = alloc[r][lane];
                let request = requested[r][lane] + class.nonzero[r];
                let has = alloc > 0.0;
                let left =
                    if request > alloc { 0.0 } else { ((alloc - request) * 100.0 / alloc).floor() };
                let full = (smaller(request, alloc) * 100.0 / alloc).floor();
                least += if has { left } else { 0.0 };
                most += if has { full } else { 0.0 };
                count += if has { 1.0 } else { 0.0 };
            }
            let divisor = if count > 0.0 { count } else { 1.0 };
            score[lane] +=
                class.least * (least / divisor).floor() + class.most * (most / divisor).floor();
        }
    }
    if class.balanced != 0.0 {
        let used = [lanes(&cpu.used, block), lanes(&memory.used, block)];
        let promised = [lanes(&cpu.pipelined, block), lanes(&memory.pipelined, block)];
        let scalar = class.balanced_scalar.map(|(dim, request)| {
            let column = &nodes.columns[dim as usize];
            (
                lanes(&column.alloc, block),
                lanes(&column.used, block),
                lanes(&column.pipelined, block),
                request,
            )
        });
        for lane in 0..LANES {
            let mut f = [0.0; 3];
            let mut has = [0.0; 3];
            for r in 0..2 {
                let alloc = alloc[r][lane];
                let share =
                    smaller((used[r][lane] + promised[r][lane] + class.plain[r]) / alloc, 1.0);
                has[r] = if alloc > 0.0 { 1.0 } else { 0.0 };
                f[r] = if alloc > 0.0 { share } else { 0.0 };
            }
            if let Some((alloc, used, promised, request)) = scalar {
                let share = smaller((used[lane] + promised[lane] + request) / alloc[lane], 1.0);
                has[2] = if alloc[lane] > 0.0 { 1.0 } else { 0.0 };
                f[2] = if alloc[lane] > 0.0 { share } else { 0.0 };
            }
            score[lane] += class.balanced * ((1.0 - deviation(f, has)) * 100.0).floor();
        }
    }
    if !class.packed.is_empty() {
        packed(class, nodes, block, score);
    }
}

/// Standard deviation of two or three fractions, 0 of fewer; `has` is 1 where a fraction counts.
#[inline(always)]
fn deviation(f: [f64; 3], has: [f64; 3]) -> f64 {
    let count = has[0] + has[1] + has[2];
    let mean = (f[0] + f[1] + f[2]) / 3.0;
    let square = [
        (f[0] - mean) * (f[0] - mean),
        (f[1] - mean) * (f[1] - mean),
        (f[2] - mean) * (f[2] - mean),
    ];
    let three = ((square[0] + square[1] + square[2]) / 3.0).sqrt();
    // With two fractions the third one is absent: the pair is found by what is missing.
    let first = if has[0] > 0.0 { f[0] } else { f[1] };
    let second = if has[2] > 0.0 { f[2] } else { f[1] };
    let two = ((first - second) / 2.0).abs();
    if count > 2.0 {
        three
    } else if count > 1.0 {
        two
    } else {
        0.0
    }
}

#[inline(always)]
fn packed(class: &ClassHot, nodes: &Nodes, block: usize, score: &mut Lane) {
    let mut sum = [0.0; LANES];
    let mut full = [0.0; LANES];
    for dim in &class.packed {
        if dim.weight <= 0.0 {
            continue;
        }
        let column = &nodes.columns[dim.dim as usize];
        let (alloc, used) = (lanes(&column.alloc, block), lanes(&column.used, block));
        for lane in 0..LANES {
            let has = alloc[lane] > 0.0;
            let filled = dim.request + used[lane];
            full[lane] = if has && filled > alloc[lane] { 1.0 } else { full[lane] };
            let part = filled * dim.weight / alloc[lane];
            sum[lane] += if has { part } else { 0.0 };
        }
    }
    if class.packed_weights > 0.0 {
        for lane in 0..LANES {
            let value = sum[lane] / class.packed_weights * class.packed_scale;
            score[lane] += if full[lane] > 0.0 { 0.0 } else { value };
        }
    }
}
