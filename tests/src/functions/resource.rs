//! Arithmetic and comparisons of resource vectors (spec 2.1).

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tephra_api::quantity::Quantity;
use tephra_api::resource::{DimensionDefault, Resource};

use super::{Answer, Call, Counterpart};

pub(super) const COUNTERPARTS: &[(&str, Counterpart)] = &[
    ("api.NewResource", new),
    ("api.EmptyResource", |_| returned(&Resource::default())),
    ("api.InfiniteResource", |_| returned(&Resource::infinite())),
    ("api.Resource.Get", |call| value(receiver(call)?.get(name(call, "rn")?))),
    ("api.Resource.IsEmpty", |call| value(receiver(call)?.is_empty())),
    ("api.Resource.IsZero", |call| value(receiver(call)?.is_zero(name(call, "rn")?))),
    ("api.Resource.AddScalar", |call| {
        let mut vector = receiver(call)?;
        let quantity = call.args["quantity"].as_f64().context("no quantity")?;
        vector.add_scalar(name(call, "name")?, quantity);
        Ok(Answer { receiver: written(&vector), ..Answer::default() })
    }),
    ("api.Resource.SetMaxResource", |call| {
        let mut vector = receiver(call)?;
        vector.set_max(&read(&call.args["rr"])?);
        Ok(Answer { receiver: written(&vector), ..Answer::default() })
    }),
    ("api.Resource.Add", |call| {
        let mut vector = receiver(call)?;
        vector.add(&read(&call.args["rr"])?);
        changed(&vector)
    }),
    ("api.Resource.Sub", |call| {
        let mut vector = receiver(call)?;
        if let Err(names) = vector.checked_subtract(&read(&call.args["rr"])?) {
            bail!("not enough {names:?}");
        }
        changed(&vector)
    }),
    ("api.Resource.MinDimensionResource", |call| {
        let mut vector = receiver(call)?;
        vector.min_dimension(&read(&call.args["rr"])?, default(call)?);
        changed(&vector)
    }),
    ("api.Resource.Diff", |call| {
        let (more, less) = receiver(call)?.diff(&read(&call.args["rr"])?, default(call)?);
        value(json!([written(&more), written(&less)]))
    }),
    ("helpers.Max", |call| returned(&read(&call.args["l"])?.max(&read(&call.args["r"])?))),
    ("api.Resource.Equal", |call| value(receiver(call)?.equal(&read(&call.args["rr"])?))),
    ("api.Resource.LessEqual", |call| {
        value(receiver(call)?.less_equal(&read(&call.args["rr"])?, default(call)?))
    }),
    ("api.Resource.LessPartly", |call| {
        value(receiver(call)?.less_partly(&read(&call.args["rr"])?, default(call)?))
    }),
    ("api.Resource.LessEqualPartly", |call| {
        value(receiver(call)?.less_equal_partly(&read(&call.args["rr"])?, default(call)?))
    }),
    ("api.Resource.LessEqualWithResourcesName", |call| {
        let limit = read(&call.args["rr"])?;
        value(receiver(call)?.less_equal_with_resources_name(&limit, default(call)?))
    }),
    ("api.Resource.GreaterPartly", |call| {
        value(receiver(call)?.greater_partly(&read(&call.args["rr"])?, default(call)?))
    }),
    ("api.Resource.LessEqualWithDimensionAndResourcesName", |call| {
        dimensioned(call, Resource::less_equal_with_dimension_and_resources_name)
    }),
    ("api.Resource.LessEqualPartlyWithDimension", |call| {
        dimensioned(call, Resource::less_equal_partly_with_dimension)
    }),
    ("api.Resource.LessEqualPartlyWithDimensionZeroFiltered", |call| {
        dimensioned(call, Resource::less_equal_partly_with_dimension_zero_filtered)
    }),
    ("api.Resource.GreaterPartlyWithDimension", |call| {
        dimensioned(call, Resource::greater_partly_with_dimension)
    }),
    ("api.Resource.GreaterPartlyWithRelevantDimensions", |call| {
        dimensioned(call, Resource::greater_partly_with_relevant_dimensions)
    }),
    ("api.Intersection", |call| {
        value(read(&call.args["r1"])?.intersection(&read(&call.args["r2"])?))
    }),
    ("api.IntersectionWithIgnoredScalarResources", |call| {
        value(read(&call.args["r1"])?.intersection_without_pods(&read(&call.args["r2"])?))
    }),
];

/// A vector as Go prints it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    #[serde(rename = "MilliCPU")]
    milli_cpu: f64,
    memory: f64,
    scalar_resources: Option<std::collections::BTreeMap<String, f64>>,
    max_task_num: i64,
}

fn read(printed: &Value) -> anyhow::Result<Resource> {
    let printed: Printed = Printed::deserialize(printed).context("not a vector")?;
    Ok(Resource {
        milli_cpu: printed.milli_cpu,
        memory: printed.memory,
        scalars: printed.scalar_resources,
        max_tasks: printed.max_task_num,
    })
}

fn read_if_there(printed: &Value) -> anyhow::Result<Option<Resource>> {
    if printed.is_null() { Ok(None) } else { read(printed).map(Some) }
}

fn written(vector: &Resource) -> Value {
    json!({
        "MilliCPU": vector.milli_cpu, "Memory": vector.memory,
        "ScalarResources": vector.scalars, "MaxTaskNum": vector.max_tasks,
    })
}

fn receiver(call: &Call) -> anyhow::Result<Resource> {
    read(&call.args["receiver"])
}

fn name<'c>(call: &'c Call, argument: &str) -> anyhow::Result<&'c str> {
    call.args[argument].as_str().with_context(|| format!("no {argument}"))
}

fn default(call: &Call) -> anyhow::Result<DimensionDefault> {
    match call.args["defaultValue"].as_i64() {
        Some(0) => Ok(DimensionDefault::Zero),
        Some(-1) => Ok(DimensionDefault::Infinity),
        other => bail!("no default for absent dimensions: {other:?}"),
    }
}

fn value(result: impl serde::Serialize) -> anyhow::Result<Answer> {
    Ok(Answer { result: serde_json::to_value(result)?, ..Answer::default() })
}

fn returned(vector: &Resource) -> anyhow::Result<Answer> {
    value(written(vector))
}

/// The receiver is changed and returned.
fn changed(vector: &Resource) -> anyhow::Result<Answer> {
    Ok(Answer { result: written(vector), receiver: written(vector), ..Answer::default() })
}

fn new(call: &Call) -> anyhow::Result<Answer> {
    let mut list = Vec::new();
    for (name, quantity) in call.args["rl"].as_object().into_iter().flatten() {
        let text = quantity.as_str().with_context(|| format!("{name}: no text"))?;
        list.push((name.as_str(), Quantity::parse(text)?));
    }
    returned(&Resource::from_list(list))
}

/// A comparison in the dimensions of a request.
type Compare = fn(&Resource, Option<&Resource>, Option<&Resource>) -> (bool, Vec<String>);

fn dimensioned(call: &Call, compare: Compare) -> anyhow::Result<Answer> {
    let other = read_if_there(&call.args["rr"])?;
    let request = read_if_there(&call.args["req"])?;
    value(compare(&receiver(call)?, other.as_ref(), request.as_ref()))
}
