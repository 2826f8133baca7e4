//! How much a copy of a class lacks on 64 nodes at once: the second kernel, for searches that make others leave. As the
//! first one it is compiled for several instruction sets and gives the same bits on all of them.

use super::kernel::Backend;
use crate::state::nodes::LANES;

/// One resource of a question.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'q> {
    /// What a copy asks for.
    pub amount: f64,
    /// Weight of a unit that is missing.
    pub weight: f64,
    /// Room that is there without anybody leaving, by lane.
    pub now: &'q [f64; LANES],
    /// Room that would be there if everybody left who may.
    pub then: &'q [f64; LANES],
}

/// Weighted sum of what is missing now; [`f64::INFINITY`] where a copy would not fit even then.
pub fn lacks(backend: Backend, demands: &[Demand<'_>]) -> [f64; LANES] {
    match backend {
        Backend::Scalar => body(demands),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX2 on this machine.
            unsafe {
                avx2(demands)
            }
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => {
            #[expect(unsafe_code, reason = "calls a function compiled for a detected feature")]
            // SAFETY: `Backend::detect` found AVX-512 F, DQ and VL on this machine.
            unsafe {
                avx512(demands)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        _ => body(demands),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(demands: &[Demand<'_>]) -> [f64; LANES] {
    body(demands)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn avx512(demands: &[Demand<'_>]) -> [f64; LANES] {
    body(demands)
}

#[inline(always)]
fn body(demands: &[Demand<'_>]) -> [f64; LANES] {
    let mut lacks = [0.0; LANES];
    for &Demand { amount, weight, now, then } in demands {
        for lane in 0..LANES {
            let short = amount - now[lane];
            let lack = if short > 0.0 { short * weight } else { 0.0 };
            lacks[lane] += if amount <= then[lane] { lack } else { f64::INFINITY };
        }
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_finds_the_same_lack() {
        let now: [f64; LANES] = std::array::from_fn(|lane| lane as f64 * 0.7);
        let then: [f64; LANES] = std::array::from_fn(|lane| 60.0 - lane as f64);
        let demands = [
            Demand { amount: 20.0, weight: 0.3, now: &now, then: &then },
            Demand { amount: 0.0, weight: 9.0, now: &then, then: &now },
        ];
        let scalar = lacks(Backend::Scalar, &demands);
        assert_eq!((scalar[0], scalar[30], scalar[50]), (6.0, 0.0, f64::INFINITY));
        for backend in Backend::available() {
            assert_eq!(lacks(backend, &demands), scalar, "{backend:?}");
        }
    }
}
