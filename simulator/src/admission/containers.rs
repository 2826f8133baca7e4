//! What kube-apiserver demands of the containers of a new pod: names, and amounts of resources that are amounts.

use serde_json::Value;
use tephra_api::quantity::Quantity;

use crate::status::Refusal;

/// A field and what is wrong with it.
type Fault = (String, String);

/// Checks the containers of the pod `name`. Amounts that cannot be read are a bad request, since Kubernetes cannot even
/// decode such a pod; everything else is invalid and names its field.
pub(super) fn check(pod: &Value, name: &str) -> Result<(), Refusal> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        return Err(Refusal::invalid("", "Pod", name, "spec.containers", "Required value"));
    }
    let mut faults = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"][list].as_array();
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let field = format!("spec.{list}[{index}]");
            match container["name"].as_str().unwrap_or("") {
                "" => faults.push((format!("{field}.name"), "Required value".to_owned())),
                name if seen.contains(&name) => {
                    faults.push((format!("{field}.name"), format!("Duplicate value: \"{name}\"")));
                }
                name => seen.push(name),
            }
            resources(&container["resources"], &format!("{field}.resources"), &mut faults)?;
        }
    }
    resources(&pod["spec"]["resources"], "spec.resources", &mut faults)?;
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_fields("", "Pod", name, &faults)) }
}

fn resources(resources: &Value, field: &str, faults: &mut Vec<Fault>) -> Result<(), Refusal> {
    for list in ["limits", "requests"] {
        for (resource, amount) in resources[list].as_object().into_iter().flatten() {
            if read(amount)? < Quantity::ZERO {
                let amount = text(amount);
                let why =
                    format!("Invalid value: \"{amount}\": must be greater than or equal to 0");
                faults.push((format!("{field}.{list}[{resource}]"), why));
            }
        }
    }
    for (resource, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][resource];
        if !limit.is_null() && read(limit)? < read(request)? {
            let (request, limit) = (text(request), text(limit));
            let why = format!(
                "Invalid value: \"{request}\": must be less than or equal to {resource} limit of {limit}"
            );
            faults.push((format!("{field}.requests"), why));
        }
    }
    Ok(())
}

fn text(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

fn read(amount: &Value) -> Result<Quantity, Refusal> {
    Quantity::parse(&text(amount)).map_err(|error| {
        Refusal::bad_request(format!(
            "Pod in version \"v1\" cannot be handled as a Pod: {}: {error}",
            text(amount)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(containers: &Value) -> String {
        let pod = json!({"spec": {"containers": containers}});
        check(&pod, "p").map_or_else(|refusal| refusal.message, |()| "good".to_owned())
    }

    #[test]
    fn names_are_required_and_unique() {
        assert_eq!(message(&json!([{"name": "a"}, {"name": "b"}])), "good");
        let none = "Pod \"p\" is invalid: spec.containers: Required value";
        assert_eq!(message(&json!([])), none);
        let twice = "Pod \"p\" is invalid: spec.containers[1].name: Duplicate value: \"a\"";
        assert_eq!(message(&json!([{"name": "a"}, {"name": "a"}])), twice);
        let unnamed = "Pod \"p\" is invalid: spec.containers[0].name: Required value";
        assert_eq!(message(&json!([{}])), unnamed);
    }

    #[test]
    fn amounts_must_be_readable_not_negative_and_within_their_limit() {
        let of = |resources: Value| message(&json!([{"name": "a", "resources": resources}]));
        assert_eq!(of(json!({"requests": {"cpu": 1, "memory": "1e18"}})), "good");
        assert_eq!(of(json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1000m"}})), "good");
        let unreadable = of(json!({"requests": {"memory": "1Gib"}}));
        let starts =
            "Pod in version \"v1\" cannot be handled as a Pod: 1Gib: unknown suffix \"Gib\"";
        assert!(unreadable.starts_with(starts), "{unreadable}");
        assert_eq!(
            of(json!({"limits": {"cpu": -1}})),
            "Pod \"p\" is invalid: spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": must be greater \
             than or equal to 0"
        );
        assert_eq!(
            of(json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
            "Pod \"p\" is invalid: spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1"
        );
    }
}
