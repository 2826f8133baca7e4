//! Recorded session-level calls, asked of an open session of the core: is a job enqueueable, which of two
//! jobs comes first, does a pod pass a node's filters, how does a node score, which pods would shuffle evict. What cannot be asked here is
//! skipped, never passed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;
use tephra_api::keys;
use tephra_core::Probe;
use tephra_core::event::ObjectKey;

use super::expect::placement::pod_id;
use super::schema::Call;
use super::store::{ObjectId, Store};
use super::verdict::Judgement;
use super::world::World;

/// A call with its arguments found in the world, and the answer it must get.
enum Question {
    /// A step of the recorded test that has no result; the next call shows its effect.
    JobEnqueued(ObjectKey),
    JobEnqueueable(ObjectKey, bool),
    JobOrder(ObjectKey, ObjectKey, bool),
    /// What plugins say of the order of two jobs, before age decides.
    JobOrderCompare(ObjectKey, ObjectKey, i64),
    /// How many pods of each PodGroup action shuffle would evict: which ones, Volcano leaves to the order of a Go map.
    VictimTasks(BTreeMap<String, usize>),
    Predicate {
        task: Pod,
        node: String,
        reasons: Option<Vec<String>>,
    },
    NodeOrder {
        task: Pod,
        node: String,
        score: f64,
    },
    /// One score a node, over all given nodes.
    BatchNodeOrder {
        task: Pod,
        scores: Vec<(String, f64)>,
    },
    /// One score a hypernode, over all given ones.
    HyperNodeOrder {
        job: ObjectKey,
        sub_job: Option<String>,
        scores: Vec<(String, f64)>,
    },
}

/// A pod as the call names it, and its uid.
struct Pod {
    name: String,
    uid: String,
}

/// Judges all calls that can be asked, in their order, in one session.
pub fn judge(calls: &[Call], world: &mut World, judgement: &mut Judgement) {
    let mut questions = Vec::new();
    for call in calls {
        match question(call, world.store()) {
            Some(question) => questions.push(question),
            None => judgement.skip(format!("call {}", call.function)),
        }
    }
    let mut probe = world.probe();
    for question in &questions {
        ask(question, &mut probe, judgement);
    }
}

/// Reads one call; `None` when it is not known here or names objects that the world does not have.
fn question(call: &Call, store: &Store) -> Option<Question> {
    let name = call.function.strip_prefix("framework.Session.")?;
    Some(match name {
        "JobEnqueued" => Question::JobEnqueued(job(call, "obj", store)?),
        "JobEnqueueable" => {
            Question::JobEnqueueable(job(call, "obj", store)?, call.result.as_bool()?)
        }
        "JobOrderFn" => {
            let (left, right) = (job(call, "l", store)?, job(call, "r", store)?);
            Question::JobOrder(left, right, call.result.as_bool()?)
        }
        "JobOrderCompareFn" => {
            let (left, right) = (job(call, "l", store)?, job(call, "r", store)?);
            Question::JobOrderCompare(left, right, call.result.as_i64()?)
        }
        "VictimTasks" => {
            let names = call.result.as_object()?.keys();
            let groups: Option<Vec<String>> = names.map(|name| group(name, store)).collect();
            Question::VictimTasks(count(groups?))
        }
        "PredicateFn" => {
            let (task, node) = (task(call, store)?, text(call, "node")?.to_owned());
            Question::Predicate { task, node, reasons: reasons(&call.result) }
        }
        "NodeOrderFn" => {
            let (task, node) = (task(call, store)?, text(call, "node")?.to_owned());
            Question::NodeOrder { task, node, score: call.result.get(0)?.as_f64()? }
        }
        "BatchNodeOrderFn" => {
            let scores = call.result.get(0)?.as_object()?;
            let nodes = call.args.get("nodes")?.as_array()?.iter().filter_map(Value::as_str);
            let score = |node: &str| scores.get(node).and_then(Value::as_f64).unwrap_or(0.0);
            let scores = nodes.map(|node| (node.to_owned(), score(node))).collect();
            Question::BatchNodeOrder { task: task(call, store)?, scores }
        }
        "HyperNodeOrderMapFn" => {
            let by_plugin = call.result.get(0)?.as_object()?;
            let mut scores: BTreeMap<&String, f64> = BTreeMap::new();
            for (name, score) in by_plugin.values().filter_map(Value::as_object).flatten() {
                *scores.entry(name).or_default() += score.as_f64()?;
            }
            let mut parts = text(call, "subJob")?.splitn(3, '/');
            let job = ObjectKey::new(parts.next()?, parts.next()?);
            let sub_job = parts.next().map(ToOwned::to_owned);
            let scores = scores.into_iter().map(|(name, score)| (name.clone(), score)).collect();
            Question::HyperNodeOrder { job, sub_job, scores }
        }
        _ => return None,
    })
}

fn ask(question: &Question, probe: &mut Probe<'_>, judgement: &mut Judgement) {
    match question {
        Question::JobEnqueued(job) => probe.job_enqueued(job),
        Question::JobEnqueueable(job, wanted) => {
            let got = probe.job_enqueueable(job);
            judgement.expect(got == *wanted, format!("JobEnqueueable {job}"), wanted, got);
        }
        Question::JobOrder(left, right, wanted) => {
            let got = probe.job_order(left, right) == Ordering::Less;
            judgement.expect(got == *wanted, format!("JobOrderFn {left} {right}"), wanted, got);
        }
        Question::JobOrderCompare(left, right, wanted) => {
            let got = probe.job_order_of_plugins(left, right) as i64;
            let what = format!("JobOrderCompareFn {left} {right}");
            judgement.expect(got == wanted.signum(), what, wanted, got);
        }
        Question::VictimTasks(wanted) => {
            let got = count(probe.victim_tasks().into_iter().map(|job| job.to_string()));
            let told = |groups: &BTreeMap<String, usize>| format!("{groups:?}");
            judgement.expect(got == *wanted, "VictimTasks", told(wanted), told(&got));
        }
        Question::Predicate { task, node, reasons } => {
            let got = probe.predicate(&task.uid, node).err();
            let told = |reasons: Option<&Vec<String>>| {
                reasons
                    .map_or_else(|| "passes".to_owned(), |all| format!("fails: {}", all.join(", ")))
            };
            let same = match (reasons, &got) {
                // The recording does not always keep the words.
                (Some(wanted), Some(_)) if wanted.is_empty() => true,
                (wanted, got) => wanted == got,
            };
            let what = format!("PredicateFn {} on {node}", task.name);
            judgement.expect(same, what, told(reasons.as_ref()), told(got.as_ref()));
        }
        Question::NodeOrder { task, node, score } => {
            node_order(task, node, *score, probe, judgement);
        }
        Question::BatchNodeOrder { task, scores } => {
            let nodes: Vec<String> = scores.iter().map(|(node, _)| node.clone()).collect();
            let what = format!("score for {}", task.name);
            all_scores(&what, probe.batch_node_order(&task.uid, &nodes), scores, judgement);
        }
        Question::HyperNodeOrder { job, sub_job, scores } => {
            let names: Vec<String> = scores.iter().map(|(name, _)| name.clone()).collect();
            let got = probe.hyper_node_order(job, sub_job.as_deref(), &names);
            all_scores(&format!("score for {job}"), got, scores, judgement);
        }
    }
}

fn node_order(
    task: &Pod,
    node: &str,
    wanted: f64,
    probe: &mut Probe<'_>,
    judgement: &mut Judgement,
) {
    let what = format!("score of {node} for {}", task.name);
    match probe.node_order(&task.uid, node) {
        Some(got) => judgement.expect(close(wanted, got), what, wanted, got),
        None => judgement.skip(what),
    }
}

fn all_scores(
    what: &str,
    got: Option<Vec<f64>>,
    wanted: &[(String, f64)],
    judgement: &mut Judgement,
) {
    let Some(got) = got else { return judgement.skip(what.to_owned()) };
    for ((name, wanted), got) in wanted.iter().zip(got) {
        judgement.expect(close(*wanted, got), format!("{what} of {name}"), wanted, got);
    }
}

/// Reasons of a failing filter; `None` when the filter passes.
fn reasons(result: &Value) -> Option<Vec<String>> {
    if result.is_null() {
        return None;
    }
    let statuses = result.pointer("/error/Status").and_then(Value::as_array);
    let texts = statuses.into_iter().flatten().filter_map(|status| status["Reason"].as_str());
    Some(texts.map(ToOwned::to_owned).collect())
}

fn text<'a>(call: &'a Call, key: &str) -> Option<&'a str> {
    call.args.get(key)?.as_str()
}

/// The pod in argument `task`, when the world has it.
fn task(call: &Call, store: &Store) -> Option<Pod> {
    let name = text(call, "task")?;
    let uid = store.get(&pod_id(name))?.pointer("/metadata/uid")?.as_str()?;
    Some(Pod { name: name.to_owned(), uid: uid.to_owned() })
}

/// PodGroup of a pod, `namespace/name`.
fn group(pod: &str, store: &Store) -> Option<String> {
    let id = pod_id(pod);
    let annotations = store.get(&id)?.pointer("/metadata/annotations")?;
    Some(format!("{}/{}", id.namespace, annotations.get(keys::GROUP_NAME)?.as_str()?))
}

fn count(groups: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    groups.into_iter().for_each(|group| *counts.entry(group).or_default() += 1);
    counts
}

/// Key of the PodGroup in an argument, when the world has it.
fn job(call: &Call, key: &str, store: &Store) -> Option<ObjectKey> {
    let (namespace, name) = text(call, key)?.split_once('/')?;
    store.get(&ObjectId::new("PodGroup", Some(namespace), name))?;
    Some(ObjectKey::new(namespace, name))
}

/// Scores are sums of floats whose order of addition is free.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}
