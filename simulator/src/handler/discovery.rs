//! Discovery documents: which groups, versions and resources there are, in the old form and the aggregated one.

use serde_json::{Value, json};

use crate::resource::Route;
use crate::status::Refusal;
use crate::store::Store;

/// The version the server claims, that of the Kubernetes Tephra is tested with.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "35",
        "emulationMajor": "1",
        "emulationMinor": "35",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34",
        "gitVersion": "v1.35.3",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "simulated",
    })
}

/// Content type of aggregated discovery, also the mark by which clients ask for it.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether an Accept header asks for aggregated discovery.
pub(crate) fn wants_aggregated(accept: &str) -> bool {
    accept.split(',').any(|part| {
        let has = |word: &str| part.split(';').any(|p| p.trim() == word);
        has("g=apidiscovery.k8s.io") && has("v=v2") && has("as=APIGroupDiscoveryList")
    })
}

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Group names and their versions, the preferred version first.
fn groups(store: &Store) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for route in store.routes().filter(|r| !r.ty.group.is_empty()) {
        let version = route.version().name.clone();
        match groups.last_mut() {
            Some((group, versions)) if *group == route.ty.group => {
                if !versions.contains(&version) {
                    versions.push(version);
                }
            }
            _ => groups.push((route.ty.group.clone(), vec![version])),
        }
    }
    for (group, versions) in &mut groups {
        let stored = store
            .routes()
            .filter(|r| r.ty.group == *group)
            .map(|r| r.ty.versions[0].name.clone())
            .next()
            .unwrap_or_default();
        versions.sort_by_key(|v| *v != stored);
    }
    // Kubernetes names its own groups before those of custom resources.
    groups.sort_by_key(|(group, _)| group.contains('.') && !group.ends_with(".k8s.io"));
    groups
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|v| json!({"groupVersion": format!("{group}/{v}"), "version": v}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions[0]})
}

/// `/apis`
pub(crate) fn group_list(store: &Store) -> Value {
    let groups: Vec<Value> = groups(store).iter().map(|(g, v)| group_value(g, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`
pub(crate) fn group(store: &Store, name: &str) -> Result<Value, Refusal> {
    let groups = groups(store);
    let found = groups.iter().find(|(g, _)| g == name).ok_or_else(Refusal::no_such_resource)?;
    let mut value = group_value(&found.0, &found.1);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Ok(value)
}

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A subresource: its name, kind, `group/version` of the kind if not the resource's own, verbs.
type Subresource = (&'static str, String, Option<&'static str>, &'static [&'static str]);

fn subresources(route: &Route) -> Vec<Subresource> {
    let ty = &route.ty;
    let mut found: Vec<Subresource> = Vec::new();
    if route.has_status() {
        found.push(("status", ty.kind.clone(), None, &["get", "patch", "update"]));
    }
    if route.version().scale.is_some() {
        let verbs = &["get", "patch", "update"];
        found.push(("scale", "Scale".to_owned(), Some("autoscaling/v1"), verbs));
    }
    if ty.group.is_empty() && ty.kind == "Pod" {
        found.push(("binding", "Binding".to_owned(), Some("v1"), &["create"]));
        found.push(("eviction", "Eviction".to_owned(), Some("policy/v1"), &["create"]));
        found.push(("resize", "Pod".to_owned(), None, &["get", "patch", "update"]));
    }
    found
}

/// `/api/v1` and `/apis/<group>/<version>`
pub(crate) fn resources(store: &Store, group: &str, version: &str) -> Result<Value, Refusal> {
    let api_version = crate::resource::api_version(group, version);
    let mut list = Vec::new();
    for route in store.routes().filter(|r| r.ty.group == group && r.version().name == version) {
        let ty = &route.ty;
        list.push(json!({
            "name": ty.plural,
            "singularName": ty.singular,
            "namespaced": ty.namespaced,
            "kind": ty.kind,
            "verbs": VERBS,
            "shortNames": ty.short_names,
            "categories": ty.categories,
        }));
        for (name, kind, own, verbs) in subresources(route) {
            let mut value = json!({
                "name": format!("{}/{name}", ty.plural),
                "singularName": "",
                "namespaced": ty.namespaced,
                "kind": kind,
                "verbs": verbs,
            });
            if let Some((group, version)) = own.map(crate::resource::split_api_version) {
                value["group"] = group.into();
                value["version"] = version.into();
            }
            list.push(value);
        }
    }
    if list.is_empty() {
        return Err(Refusal::no_such_resource());
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": list,
    }))
}

/// Aggregated discovery of the core group (`/api`) or of all others (`/apis`).
pub(crate) fn aggregated(store: &Store, core: bool) -> Value {
    let groups = if core { vec![(String::new(), vec!["v1".to_owned()])] } else { groups(store) };
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = store
                        .routes()
                        .filter(|r| r.ty.group == *group && r.version().name == *version)
                        .map(aggregated_resource)
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({
                "metadata": {"name": group, "creationTimestamp": null},
                "versions": versions,
            })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(route: &Route) -> Value {
    let ty = &route.ty;
    let kind = |kind: &str, api_version: &str| {
        let (group, version) = crate::resource::split_api_version(api_version);
        json!({"group": group, "version": version, "kind": kind})
    };
    let subresources: Vec<Value> = subresources(route)
        .into_iter()
        .map(|(name, k, own, verbs)| {
            json!({
                "subresource": name,
                "responseKind": kind(&k, own.unwrap_or_else(|| route.api_version())),
                "verbs": verbs,
            })
        })
        .collect();
    let mut value = json!({
        "resource": ty.plural,
        "responseKind": kind(&ty.kind, route.api_version()),
        "scope": if ty.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": ty.singular,
        "verbs": VERBS,
        "shortNames": ty.short_names,
        "categories": ty.categories,
    });
    if !subresources.is_empty() {
        value["subresources"] = Value::Array(subresources);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_discovery_know_the_same_resources() {
        let store = Store::new(0, 1);
        let old = resources(&store, "batch", "v1").expect("served");
        let names: Vec<&str> = old["resources"]
            .as_array()
            .expect("list")
            .iter()
            .filter_map(|r| r["name"].as_str())
            .collect();
        assert_eq!(names, ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]);
        let new = aggregated(&store, false);
        let batch = new["items"]
            .as_array()
            .expect("groups")
            .iter()
            .find(|g| g["metadata"]["name"] == "batch")
            .expect("batch");
        assert_eq!(batch["versions"][0]["resources"][1]["resource"], "jobs");
        assert!(wants_aggregated(AGGREGATED));
        assert!(!wants_aggregated("application/json"));
        assert_eq!(resources(&store, "none", "v1").expect_err("absent").code, 404);
    }
}
