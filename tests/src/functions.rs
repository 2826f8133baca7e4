//! Calls of single functions of the real Volcano, recorded with arguments and result (`../shared/conformance/functions`),
//! answered by the functions here that do the same. Names that nobody here answers stand in
//! `tests/no-counterpart.txt`, each with the reason, so that nothing is left out silently.

mod plugin;
mod pod;
mod resource;
mod share;
mod topology;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use tephra::scenario::corpus::ExpectedFailures;
use tephra::scenario::file::files_below;
pub use tephra::scenario::schema::Call;

/// One recorded call and where Volcano's tests make it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// File of the recording, test and line.
    pub place: String,
    /// The call.
    pub call: Call,
}

/// What a function here makes of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its result; null for none.
    pub result: Value,
    /// The receiver afterwards; null when it does not change.
    pub receiver: Value,
    /// Its arguments afterwards; null when they do not change.
    pub arguments: Value,
}

/// A function here that does what one of Volcano does.
type Counterpart = fn(&Call) -> anyhow::Result<Answer>;

/// All counterparts by Volcano's name.
pub fn counterparts() -> BTreeMap<&'static str, Counterpart> {
    let all = [
        resource::COUNTERPARTS,
        pod::COUNTERPARTS,
        plugin::COUNTERPARTS,
        share::COUNTERPARTS,
        topology::COUNTERPARTS,
    ];
    all.concat().into_iter().collect()
}

/// Recorded calls; `None` when the recordings are not there.
///
/// # Errors
/// When a file cannot be read.
pub fn recorded() -> anyhow::Result<Option<Vec<Recorded>>> {
    #[derive(Deserialize)]
    struct File {
        calls: Vec<Value>,
    }
    let Some(folder) = crate::conformance::shared_folder("conformance/functions") else {
        return Ok(None);
    };
    let mut calls = Vec::new();
    // Beside the folders lies only a summary.
    let files = files_below(&folder, &["json"])?;
    for path in files.into_iter().filter(|path| path.parent() != Some(&folder)) {
        let text = std::fs::read_to_string(&path)?;
        let file: File = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for mut call in file.calls {
            let place = format!("{}, {}:{}", path.display(), call["test"], call["line"]);
            if let Some(fields) = call.as_object_mut() {
                fields.retain(|name, _| name != "test" && name != "line");
            }
            let call = serde_json::from_value(call).with_context(|| place.clone())?;
            calls.push(Recorded { place, call });
        }
    }
    Ok(Some(calls))
}

/// Functions without a counterpart here, with the reasons: names, or prefixes with a star, in a list of the form of `not-yet.txt`.
///
/// # Errors
/// When the list cannot be read, or a line of it has no reason.
pub fn without_counterpart() -> anyhow::Result<ExpectedFailures> {
    ExpectedFailures::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("no-counterpart.txt"))
}

/// The entry of the list that a name falls under.
pub fn entry_for<'l>(list: &'l ExpectedFailures, name: &str) -> Option<&'l str> {
    let covers =
        |entry: &&str| entry.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix));
    list.names().find(|entry| *entry == name).or_else(|| list.names().find(covers))
}

/// What is wrong with the answer to a call, if something is.
pub fn difference(call: &Call, answer: &anyhow::Result<Answer>) -> Option<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(format!("{error:#}")),
    };
    if !are_alike(&call.result, &answer.result) {
        return Some(format!("returns {}, recorded {}", answer.result, call.result));
    }
    // What did not change is not recorded again.
    let recorded = if call.args_after.is_null() { &call.args } else { &call.args_after };
    if !answer.arguments.is_null() && !are_alike(recorded, &answer.arguments) {
        return Some(format!("leaves {}, recorded {recorded}", answer.arguments));
    }
    let after = call.args_after.get("receiver").unwrap_or(&Value::Null);
    let recorded = if after.is_null() { &call.args["receiver"] } else { after };
    let changed = answer.receiver.is_null() || are_alike(recorded, &answer.receiver);
    (!changed).then(|| format!("leaves {}, recorded {recorded}", answer.receiver))
}

/// Equal as numbers, whatever their form; absent, null and empty are the same, and names are sets: Go's maps have no order.
fn are_alike(a: &Value, b: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) if a.iter().chain(b).all(Value::is_string) => {
            let sorted = |list: &[Value]| {
                let mut names: Vec<String> = list.iter().map(ToString::to_string).collect();
                names.sort();
                names
            };
            sorted(a) == sorted(b)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let names = || a.keys().chain(b.keys());
            let field = |map: &serde_json::Map<String, Value>, name: &String| {
                map.get(name).cloned().unwrap_or_default()
            };
            names().all(|name| are_alike(&field(a, name), &field(b, name)))
        }
        _ => a == b || is_nothing(a) && is_nothing(b),
    }
}
