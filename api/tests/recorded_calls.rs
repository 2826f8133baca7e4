//! Replays the calls that were recorded from the real Volcano, when the recordings are there.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code: a panic is the failure report"
)]

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use tephra_api::quantity::Quantity;
use tephra_api::resource::{DimensionDefault, Resource};

fn calls(file: &str) -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/conformance/functions/api")
        .join(file);
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: no recorded calls at {}", path.display());
        return None;
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    Some(recorded["calls"].as_array().unwrap().clone())
}

fn resource(value: &Value) -> Option<Resource> {
    let fields = value.as_object()?;
    let scalars = fields.get("ScalarResources").and_then(Value::as_object);
    Some(Resource {
        milli_cpu: fields["MilliCPU"].as_f64().unwrap(),
        memory: fields["Memory"].as_f64().unwrap(),
        scalars: scalars.map(|scalars| {
            scalars.iter().map(|(name, amount)| (name.clone(), amount.as_f64().unwrap())).collect()
        }),
        max_tasks: fields["MaxTaskNum"].as_i64().unwrap(),
    })
}

/// The recorder does not tell a nil map from an empty one.
fn same(left: &Resource, right: &Resource) -> bool {
    let plain = |resource: &Resource| Resource {
        scalars: resource.scalars.clone().filter(|scalars| !scalars.is_empty()),
        ..resource.clone()
    };
    plain(left) == plain(right)
}

fn named(value: &Value) -> (bool, Vec<String>) {
    (value[0].as_bool().unwrap(), texts(&value[1]))
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    let mut texts: Vec<String> = texts.map(|text| text.as_str().unwrap().to_owned()).collect();
    texts.sort(); // Go's map order is random
    texts
}

/// Runs one recorded call. `None`: this function has no counterpart here.
fn replay(call: &Value) -> Option<bool> {
    let args = &call["args"];
    let result = &call["result"];
    let get = |name: &str| resource(&args[name]);
    let default = match args["defaultValue"].as_i64() {
        Some(-1) => DimensionDefault::Infinity,
        _ => DimensionDefault::Zero,
    };
    let function = call["fn"].as_str().unwrap().trim_start_matches("api.");
    let (left, right, request) = (get("receiver"), get("rr"), get("req"));
    let (right, request) = (right.as_ref(), request.as_ref());
    let yes = || result.as_bool().unwrap();
    let sorted = |(holds, mut names): (bool, Vec<String>)| {
        names.sort();
        (holds, names)
    };
    // What a method left in its receiver; unrecorded when it did not change.
    let after = resource(&call["argsAfter"]["receiver"]).or_else(|| get("receiver"));
    Some(match function.trim_start_matches("Resource.") {
        "NewResource" => {
            let list = args["rl"].as_object().unwrap();
            let list = list.iter().map(|(name, text)| {
                (name.as_str(), Quantity::parse(text.as_str().unwrap()).unwrap())
            });
            same(&Resource::from_list(list), &resource(result).unwrap())
        }
        "InfiniteResource" => same(&Resource::infinite(), &resource(result).unwrap()),
        "AddScalar" => {
            let mut left = left?;
            left.add_scalar(args["name"].as_str()?, args["quantity"].as_f64()?);
            same(&left, &after?)
        }
        "SetMaxResource" => {
            let mut left = left?;
            left.set_max(right?);
            same(&left, &after?)
        }
        "IsZero" => left?.is_zero(args["rn"].as_str()?) == yes(),
        "Add" => {
            let mut left = left?;
            left.add(right?);
            same(&left, &resource(result)?)
        }
        "Sub" => {
            let mut left = left?;
            left.checked_subtract(right?).unwrap();
            same(&left, &resource(result)?)
        }
        "Diff" => {
            let (more, less) = left?.diff(right?, default);
            same(&more, &resource(&result[0])?) && same(&less, &resource(&result[1])?)
        }
        "LessEqual" => left?.less_equal(right?, default) == yes(),
        "Less" => left?.less(right?, default) == yes(),
        "LessPartly" => left?.less_partly(right?, default) == yes(),
        "LessEqualPartly" => left?.less_equal_partly(right?, default) == yes(),
        "Equal" => left?.equal(right?) == yes(),
        "MinDimensionResource" => {
            let mut left = left?;
            left.min_dimension(right?, default);
            same(&left, &resource(result)?)
        }
        "LessEqualWithResourcesName" => {
            sorted(left?.less_equal_with_resources_name(right?, default)) == named(result)
        }
        "GreaterPartly" => sorted(left?.greater_partly(right?, default)) == named(result),
        "LessEqualWithDimensionAndResourcesName" => {
            let got = left?.less_equal_with_dimension_and_resources_name(right, request);
            sorted(got) == named(result)
        }
        "LessEqualPartlyWithDimension" => {
            sorted(left?.less_equal_partly_with_dimension(right, request)) == named(result)
        }
        "LessEqualPartlyWithDimensionZeroFiltered" => {
            let got = left?.less_equal_partly_with_dimension_zero_filtered(right, request);
            sorted(got) == named(result)
        }
        "GreaterPartlyWithDimension" => {
            sorted(left?.greater_partly_with_dimension(right, request)) == named(result)
        }
        "GreaterPartlyWithRelevantDimensions" => {
            sorted(left?.greater_partly_with_relevant_dimensions(right, request)) == named(result)
        }
        "Intersection" => get("r1")?.intersection(&get("r2")?) == texts(result),
        "IntersectionWithIgnoredScalarResources" => {
            get("r1")?.intersection_without_pods(&get("r2")?) == texts(result)
        }
        "helpers.Max" => same(&get("l")?.max(&get("r")?), &resource(result)?),
        _ => return None,
    })
}

#[test]
fn every_recorded_call_gives_what_volcano_gave() {
    let mut replayed = 0;
    for (file, expected) in [("resource_info.json", 128), ("helpers/helpers.json", 1)] {
        let Some(calls) = calls(file) else { return };
        for call in &calls {
            let outcome = replay(call).unwrap_or_else(|| panic!("{file}: no counterpart: {call}"));
            assert!(outcome, "{file}: {call}");
            replayed += 1;
        }
        assert!(calls.len() >= expected, "{file} has only {} calls", calls.len());
    }
    println!("{replayed} recorded calls replayed");
}
