//! Recorded session-level calls, asked of an open session of the core: is a job enqueueable, which of two
//! jobs comes first, does a pod pass a node's filters, how does a node score. What cannot be asked here is
//! skipped, never passed.

use std::cmp::Ordering;

use serde_json::Value;
use tephra_core::event::ObjectKey;

use super::expect::placement::pod_id;
use super::schema::Call;
use super::store::ObjectId;
use super::verdict::Judgement;
use super::world::World;

/// Judges all calls that can be asked, in their order.
pub fn judge(calls: &[Call], world: &mut World, judgement: &mut Judgement) {
    for call in calls {
        if call_one(call, world, judgement).is_none() {
            judgement.skip(format!("call {}", call.function));
        }
    }
}

/// Judges one call; `None` when it cannot be asked.
fn call_one(call: &Call, world: &mut World, judgement: &mut Judgement) -> Option<()> {
    let name = call.function.strip_prefix("framework.Session.")?;
    match name {
        // A step of the recorded test that has no result; the next call shows its effect.
        "JobEnqueued" => {
            let job = job(call, "obj", world)?;
            world.core().probe().job_enqueued(&job);
        }
        "JobEnqueueable" => {
            let (job, wanted) = (job(call, "obj", world)?, call.result.as_bool()?);
            let got = world.core().probe().job_enqueueable(&job);
            judgement.expect(got == wanted, format!("JobEnqueueable {job}"), wanted, got);
        }
        "JobOrderFn" => {
            let (left, right) = (job(call, "l", world)?, job(call, "r", world)?);
            let wanted = call.result.as_bool()?;
            let got = world.core().probe().job_order(&left, &right) == Ordering::Less;
            judgement.expect(got == wanted, format!("JobOrderFn {left} {right}"), wanted, got);
        }
        "PredicateFn" => {
            let (uid, node) = (task(call, world)?, text(call, "node")?);
            let got = world.core().probe().predicate(&uid, node);
            predicate(call, node, &got, judgement);
        }
        "NodeOrderFn" => {
            let (uid, node) = (task(call, world)?, text(call, "node")?);
            let wanted = call.result.get(0)?.as_f64()?;
            let got = world.core().probe().node_order(&uid, node)?;
            let what = format!("NodeOrderFn {} on {node}", text(call, "task")?);
            judgement.expect(close(wanted, got), what, wanted, got);
        }
        "BatchNodeOrderFn" => {
            let uid = task(call, world)?;
            let wanted = call.result.get(0)?.as_object()?.clone();
            let nodes: Vec<&str> =
                call.args.get("nodes")?.as_array()?.iter().filter_map(Value::as_str).collect();
            let got = world.core().probe().batch_node_order(&uid, &nodes)?;
            for (node, got) in nodes.iter().zip(got) {
                let wanted = wanted.get(*node).and_then(Value::as_f64).unwrap_or(0.0);
                let what = format!("BatchNodeOrderFn {} on {node}", text(call, "task")?);
                judgement.expect(close(wanted, got), what, wanted, got);
            }
        }
        _ => return None,
    }
    Some(())
}

fn predicate(call: &Call, node: &str, got: &Result<(), Vec<String>>, judgement: &mut Judgement) {
    let task = text(call, "task").unwrap_or_default();
    let what = format!("PredicateFn {task} on {node}");
    let statuses = call.result.pointer("/error/Status").and_then(Value::as_array);
    let wanted: Vec<&str> =
        statuses.into_iter().flatten().filter_map(|status| status["Reason"].as_str()).collect();
    let found = match got {
        Ok(()) => "passes".to_owned(),
        Err(reasons) => format!("fails: {}", reasons.join(", ")),
    };
    match (call.result.is_null(), got) {
        (true, _) => judgement.expect(got.is_ok(), what, "passes", found),
        (false, Err(reasons)) if !wanted.is_empty() => {
            let same = reasons.iter().map(String::as_str).eq(wanted.iter().copied());
            judgement.expect(same, what, format!("fails: {}", wanted.join(", ")), found);
        }
        (false, _) => judgement.expect(got.is_err(), what, "fails", found),
    }
}

fn text<'a>(call: &'a Call, key: &str) -> Option<&'a str> {
    call.args.get(key)?.as_str()
}

/// Uid of the pod in argument `task`, when the world has it.
fn task(call: &Call, world: &World) -> Option<String> {
    let object = world.store().get(&pod_id(text(call, "task")?))?;
    object.pointer("/metadata/uid")?.as_str().map(ToOwned::to_owned)
}

/// Key of the PodGroup in an argument, when the world has it.
fn job(call: &Call, key: &str, world: &World) -> Option<ObjectKey> {
    let (namespace, name) = text(call, key)?.split_once('/')?;
    world.store().get(&ObjectId::new("PodGroup", Some(namespace), name))?;
    Some(ObjectKey::new(namespace, name))
}

/// Scores are sums of floats whose order of addition is free.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}
