//! What kube-apiserver adds to and demands of objects of particular kinds: defaults, admission, immutable fields.
//!
//! Only what a scheduler, its controllers and kubectl notice is here. Quotas, limit ranges and webhooks are not
//! enforced.

mod containers;

use serde_json::{Map, Value, json};

use crate::builtin::{CRD_GROUP, CRD_KIND, NAMESPACES, PODS};
use crate::context::Context;
use crate::resource::Route;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{meta_str, metadata, object};

/// Completes and checks an object that is about to be created.
pub(crate) fn on_create(
    store: &Store,
    cx: &Context,
    route: &Route,
    value: &mut Value,
) -> Result<(), Refusal> {
    let ty = &route.ty;
    let keeps = cx.trusts_status || ty.keeps_status_on_create;
    if route.has_status()
        && !keeps
        && let Some(map) = value.as_object_mut()
    {
        map.remove("status");
    }
    match (ty.group.as_str(), ty.kind.as_str()) {
        ("", "Pod") => create_pod(store, cx, value),
        ("", "Namespace") => {
            let name = meta_str(value, "name").to_owned();
            object(&mut value["metadata"], "labels")
                .insert("kubernetes.io/metadata.name".to_owned(), name.into());
            object(value, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
            object(value, "status").insert("phase".to_owned(), json!("Active"));
            Ok(())
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
            object(value, "spec").entry("replicas").or_insert_with(|| json!(1));
            Ok(())
        }
        ("batch", "Job") => {
            let spec = object(value, "spec");
            for (field, default) in [("parallelism", 1), ("completions", 1), ("backoffLimit", 6)] {
                spec.entry(field).or_insert_with(|| json!(default));
            }
            Ok(())
        }
        ("", "PersistentVolumeClaim" | "PersistentVolume") => {
            object(value, "status").entry("phase").or_insert_with(|| json!("Pending"));
            Ok(())
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            value
                .as_object_mut()
                .map(|m| m.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority")));
            Ok(())
        }
        (CRD_GROUP, CRD_KIND) => {
            let ty = crate::custom::resource_type(value)?;
            crate::custom::establish(value, &ty, &cx.now);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn create_pod(store: &Store, cx: &Context, pod: &mut Value) -> Result<(), Refusal> {
    let name = meta_str(pod, "name").to_owned();
    // Fixtures may be as faulty as objects of an older or differently built server.
    if !cx.trusts_status {
        containers::check(pod, &name)?;
    }
    let priority = priority(store, pod, &name)?;
    let spec = object(pod, "spec");
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_requests(container);
        }
    }
    for (field, default) in [
        ("schedulerName", json!("default-scheduler")),
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("enableServiceLinks", json!(true)),
    ] {
        spec.entry(field).or_insert(default);
    }
    spec.entry("priority").or_insert(json!(priority.0));
    if let Some(policy) = priority.1 {
        spec.entry("preemptionPolicy").or_insert(policy);
    }
    let gated =
        spec.get("schedulingGates").and_then(Value::as_array).is_some_and(|g| !g.is_empty());
    let qos = qos_class(spec);
    let status = object(pod, "status");
    status.entry("phase").or_insert(json!("Pending"));
    status.entry("qosClass").or_insert(json!(qos));
    if gated && !status.contains_key("conditions") {
        status.insert(
            "conditions".to_owned(),
            json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": cx.now,
            }]),
        );
    }
    Ok(())
}

/// Limits stand in for missing requests.
fn default_requests(container: &mut Value) {
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned()
    else {
        return;
    };
    let requests = object(&mut container["resources"], "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// The Priority admission plugin: value and preemption policy of the pod's class or of the global default.
fn priority(store: &Store, pod: &Value, name: &str) -> Result<(i64, Option<Value>), Refusal> {
    let class = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or("");
    let Some(route) = store.route("scheduling.k8s.io", "v1", "priorityclasses") else {
        return Ok((0, None));
    };
    let found = if class.is_empty() {
        store
            .range(route.table, "")
            .map(|(_, s)| &s.value)
            .filter(|c| c["globalDefault"] == true)
            .min_by_key(|c| c["value"].as_i64())
    } else {
        let key = format!("/{class}");
        let Some(found) = store.get(route.table, &key) else {
            let why = format!("no PriorityClass with name {class} was found");
            return Err(Refusal::forbidden("", "pods", name, &why));
        };
        Some(&found.value)
    };
    Ok(match found {
        Some(c) => (c["value"].as_i64().unwrap_or(0), c.get("preemptionPolicy").cloned()),
        None => (0, Some(json!("PreemptLowerPriority"))),
    })
}

fn qos_class(spec: &Map<String, Value>) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let containers = ["containers", "initContainers"].iter().filter_map(|l| spec.get(*l));
    for container in containers.filter_map(Value::as_array).flatten() {
        for resource in ["cpu", "memory"] {
            let request = container.pointer(&format!("/resources/requests/{resource}"));
            let limit = container.pointer(&format!("/resources/limits/{resource}"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Checks an update of the object itself (not of a subresource) and completes the new version.
pub(crate) fn on_update(
    cx: &Context,
    route: &Route,
    old: &Value,
    new: &mut Value,
) -> Result<(), Refusal> {
    if route.table == PODS {
        return update_pod(old, new);
    }
    if route.ty.kind == CRD_KIND && route.ty.group == CRD_GROUP {
        let ty = crate::custom::resource_type(new)?;
        if old.pointer("/spec/group") != new.pointer("/spec/group")
            || old.pointer("/spec/scope") != new.pointer("/spec/scope")
        {
            let name = meta_str(new, "name");
            return Err(Refusal::invalid(
                CRD_GROUP,
                CRD_KIND,
                name,
                "spec",
                "Invalid value: field is immutable",
            ));
        }
        crate::custom::establish(new, &ty, &cx.now);
        // An unchanged definition keeps its transition times.
        if old["spec"] == new["spec"] {
            new["status"] = old["status"].clone();
        }
    }
    if route.table == NAMESPACES && old.get("spec") != new.get("spec") {
        new["spec"] = old["spec"].clone();
    }
    Ok(())
}

/// Fields of a pod's spec that may change after creation.
fn update_pod(old: &Value, new: &mut Value) -> Result<(), Refusal> {
    let (Some(before), Some(after)) = (old.get("spec"), new.get("spec")) else {
        let name = meta_str(new, "name");
        return Err(Refusal::invalid("", "Pod", name, "spec", "Required value"));
    };
    if before == after {
        return Ok(());
    }
    let gates = |spec: &Value| spec["schedulingGates"].as_array().cloned().unwrap_or_default();
    let (old_gates, new_gates) = (gates(before), gates(after));
    let name = meta_str(new, "name");
    if new_gates.iter().any(|g| !old_gates.contains(g)) {
        let why = "Forbidden: only deletion is allowed, but found new scheduling gate";
        return Err(Refusal::invalid("", "Pod", name, "spec.schedulingGates", why));
    }
    let gated = !old_gates.is_empty();
    if strip_mutable(before.clone(), gated) == strip_mutable(after.clone(), gated) {
        return Ok(());
    }
    let why = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,\
        `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
        tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    Err(Refusal::invalid("", "Pod", name, "spec", why))
}

fn strip_mutable(mut spec: Value, gated: bool) -> Value {
    let Some(map) = spec.as_object_mut() else { return spec };
    for field in
        ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
    {
        map.remove(field);
    }
    if gated {
        map.remove("nodeSelector");
        map.remove("affinity");
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    spec
}

/// Whether `name` may name an object of this kind; the refusal names the rule.
pub(crate) fn check_name(route: &Route, name: &str) -> Result<(), Refusal> {
    let ty = &route.ty;
    let invalid = |why: &str| {
        let why = format!("Invalid value: \"{name}\": {why}");
        Err(Refusal::invalid(&ty.group, &ty.kind, name, "metadata.name", &why))
    };
    if ty.group == "rbac.authorization.k8s.io" {
        let bad = matches!(name, "." | "..") || name.contains(['/', '%']);
        return if bad { invalid("may not contain '/' or '%'") } else { Ok(()) };
    }
    let is_label = ty.group.is_empty() && matches!(ty.kind.as_str(), "Namespace" | "Service");
    let longest = if is_label { 63 } else { 253 };
    if name.len() > longest {
        return invalid(&format!("must be no more than {longest} characters"));
    }
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let sound = |label: &str| {
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if is_label {
        if !sound(name) {
            return invalid(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
            );
        }
    } else if !name.split('.').all(sound) {
        return invalid(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
        );
    }
    Ok(())
}

/// Names of `metadata` that an update never changes, whatever the client sends.
pub(crate) fn keep_system_fields(old: &Value, new: &mut Value) {
    let old_meta = old.get("metadata").and_then(Value::as_object);
    let new_meta = metadata(new);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        match old_meta.and_then(|m| m.get(field)) {
            Some(value) => {
                new_meta.insert(field.to_owned(), value.clone());
            }
            None => {
                new_meta.remove(field);
            }
        }
    }
    new_meta.remove("selfLink");
    if !new_meta.contains_key("managedFields")
        && let Some(fields) = old_meta.and_then(|m| m.get("managedFields"))
    {
        new_meta.insert("managedFields".to_owned(), fields.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> (Store, Route) {
        let store = Store::new(0, 8);
        let route = store.route("", "v1", "pods").expect("served").clone();
        (store, route)
    }

    #[test]
    fn pods_get_the_defaults_schedulers_read() {
        let (store, route) = pods();
        let cx = Context::at(0, true);
        let mut pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}, "spec": {
            "schedulingGates": [{"name": "g"}],
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
        }});
        on_create(&store, &cx, &route, &mut pod).expect("valid");
        assert_eq!(pod["spec"]["schedulerName"], "default-scheduler");
        assert_eq!(pod["spec"]["priority"], 0);
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
        assert_eq!(pod["status"]["phase"], "Pending", "a client cannot create a running pod");
        assert_eq!(pod["status"]["qosClass"], "Guaranteed");
        assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
    }

    #[test]
    fn faulty_pods_are_refused_with_the_field() {
        let (store, route) = pods();
        let cx = Context::at(0, true);
        let mut empty = json!({"metadata": {"name": "p"}, "spec": {}});
        let refusal = on_create(&store, &cx, &route, &mut empty).expect_err("no containers");
        assert_eq!(refusal.code, 422);
        let mut pod = json!({"metadata": {"name": "p"},
            "spec": {"priorityClassName": "none", "containers": [{"name": "c"}]}});
        let refusal = on_create(&store, &cx, &route, &mut pod).expect_err("no class");
        assert_eq!(
            refusal.message,
            "pods \"p\" is forbidden: no PriorityClass with name none was found"
        );
    }

    #[test]
    fn pod_specs_are_immutable_save_a_few_fields() {
        let cx = Context::at(0, true);
        let (_, route) = pods();
        let old = json!({"spec": {"nodeName": "n", "schedulingGates": [{"name": "g"}], "containers": [{"name": "c", "image": "1"}]}});
        let mut new = old.clone();
        new["spec"]["containers"][0]["image"] = json!("2");
        new["spec"]["schedulingGates"] = json!([]);
        assert!(on_update(&cx, &route, &old, &mut new).is_ok());
        let mut moved = old.clone();
        moved["spec"]["nodeName"] = json!("other");
        assert_eq!(on_update(&cx, &route, &old, &mut moved).expect_err("moved").code, 422);
        let mut gated = old.clone();
        gated["spec"]["schedulingGates"] = json!([{"name": "g"}, {"name": "h"}]);
        assert_eq!(on_update(&cx, &route, &old, &mut gated).expect_err("gated").code, 422);
    }

    #[test]
    fn names_follow_dns_rules() {
        let (_, route) = pods();
        for good in ["a", "a.b-c", "1"] {
            assert!(check_name(&route, good).is_ok(), "{good}");
        }
        for bad in ["A", "-a", "a_b", "a..b", "ä", &"x".repeat(254)] {
            assert_eq!(check_name(&route, bad).expect_err("bad name").code, 422);
        }
    }
}
