//! Every instruction set that this machine has gives the same bits as the scalar build.

use proptest::collection::vec;
use proptest::prelude::*;
use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::index::kernel::{Backend, BlockResult, Question, Room, evaluate};
use tephra_core::index::score::{ClassHot, PackedDim};
use tephra_core::state::nodes::{LANES, Nodes};
use tephra_core::state::resource::{CPU, MEMORY, PODS};
use tephra_core::state::status::Status;
use tephra_core::{Core, Options};

use crate::lockstep::Lockstep;
use crate::story::stories;
use tephra_core::workload::bench_workload;

const GPU: u16 = 3;

/// Amounts of one lane: allocatable, used, releasing, pipelined of four dimensions.
type Lane = [(i64, i64); 4];

fn nodes(lanes: &[Lane]) -> Nodes {
    let mut nodes = Nodes::default();
    nodes.ensure_dimensions(4);
    for (number, lane) in lanes.iter().enumerate() {
        let id = nodes.slot(&format!("n{number}"));
        for (dim, &(allocatable, used)) in lane.iter().enumerate() {
            let dim = dim as u16;
            nodes.set_allocatable(id, dim, allocatable);
            let request = std::iter::once((dim, used)).collect();
            let status = match number % 3 {
                0 => Status::Running,
                1 => Status::Releasing,
                _ => Status::Pipelined,
            };
            nodes.account(id, &request, [used, used / 2], status, 1);
        }
    }
    nodes
}

fn class() -> impl Strategy<Value = ClassHot> {
    (0..3_000_i64, 0..9_i64 << 30, 0..3_i64, 0..3_u8, 0..3_u8, 0..3_u8, any::<bool>()).prop_map(
        |(cpu, memory, gpus, least, most, balanced, packs)| {
            let (cpu, memory, gpus) = (cpu as f64, memory as f64, (gpus * 1000) as f64);
            let packed: Vec<PackedDim> = [(CPU, cpu), (MEMORY, memory), (GPU, gpus)]
                .into_iter()
                .filter(|&(_, request)| packs && request > 0.0)
                .map(|(dim, request)| PackedDim { dim, request, weight: 1.0 + f64::from(dim) })
                .collect();
            ClassHot {
                fit: [(CPU, cpu), (MEMORY, memory), (PODS, 1.0), (GPU, gpus)].into_iter().collect(),
                nonzero: [cpu.max(100.0), memory.max(1e8)],
                plain: [cpu, memory],
                balanced_scalar: (gpus > 0.0).then_some((GPU, gpus)),
                least: f64::from(least),
                most: f64::from(most),
                balanced: f64::from(balanced),
                packed_weights: packed.iter().map(|dim| dim.weight).sum(),
                packed_scale: 100.0,
                packed: packed.into_iter().collect(),
            }
        },
    )
}

fn lane() -> impl Strategy<Value = Lane> {
    let dim = |most: i64| (prop_oneof![1 => Just(0), 9 => 0..most], 0..most);
    [dim(64_000).boxed(), dim(512 << 30).boxed(), dim(110).boxed(), dim(8_000).boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn vector_builds_equal_the_scalar_twin_bit_by_bit(
        lanes in vec(lane(), 1..130),
        class in class(),
        mask in any::<u64>(),
        fixed in 0..700_i32,
    ) {
        let nodes = nodes(&lanes);
        let fixed = [f64::from(fixed); LANES];
        for room in [Room::Free, Room::Future, Room::Any] {
            for block in 0..nodes.blocks() {
                let question = Question { class: &class, nodes: &nodes, block, mask, room, fixed: &fixed };
                let ask = |backend| {
                    let mut out = BlockResult::default();
                    evaluate(backend, &question, &mut out);
                    (out.copies.map(f64::to_bits), out.score.map(f64::to_bits))
                };
                let scalar = ask(Backend::Scalar);
                for backend in Backend::available() {
                    prop_assert_eq!(ask(backend), scalar, "{:?}", backend);
                }
            }
        }
    }
}

fn binds(backend: Backend) -> Vec<(String, String)> {
    let mut core = Core::new(Options::default(), &SchedulerConf::volcano()).with_backend(backend);
    let workload = bench_workload(300, 3_000, 4, 7);
    workload.residents(&mut |event| core.apply(event));
    workload.waiting(&mut |event| core.apply(event));
    let mut binds = Vec::new();
    for decision in core.session(1_000).decisions {
        if let Decision::Bind(gang) = decision {
            binds.extend(
                gang.binds.iter().map(|(pod, node)| (pod.uid.to_string(), node.to_string())),
            );
        }
    }
    binds
}

#[test]
fn every_instruction_set_takes_the_same_decisions() {
    let scalar = binds(Backend::Scalar);
    assert!(scalar.len() > 300, "{}", scalar.len());
    for backend in Backend::available() {
        assert_eq!(binds(backend), scalar, "{backend:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A story that is played twice ends the same: nothing depends on addresses, hashes or time.
    #[test]
    fn a_story_that_is_played_again_ends_the_same(story in stories(12)) {
        if let (Ok(one), Ok(two)) = (Lockstep::play(&story), Lockstep::play(&story)) {
            prop_assert_eq!(one.binds, two.binds);
        }
    }
}
