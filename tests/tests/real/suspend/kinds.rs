//! Every kind with a switch is stopped by that switch. The kinds are installed without their operators: what is looked at is
//! what the controller writes, with the rights that the chart gives it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use tephra_tests::rig::chart;
use tephra_tests::rig::patience::wait_until;

use super::*;

/// Group, version, kind, plural, and the pointer of the switch.
const KINDS: [(&str, &str, &str, &str, &str); 10] = [
    ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", "/spec/runPolicy/suspend"),
    ("kubeflow.org", "v1", "TFJob", "tfjobs", "/spec/runPolicy/suspend"),
    ("kubeflow.org", "v1", "MPIJob", "mpijobs", "/spec/runPolicy/suspend"),
    ("kubeflow.org", "v1", "XGBoostJob", "xgboostjobs", "/spec/runPolicy/suspend"),
    ("kubeflow.org", "v1", "PaddleJob", "paddlejobs", "/spec/runPolicy/suspend"),
    ("kubeflow.org", "v1", "JAXJob", "jaxjobs", "/spec/runPolicy/suspend"),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", "/spec/suspend"),
    ("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", "/spec/suspend"),
    ("ray.io", "v1", "RayJob", "rayjobs", "/spec/suspend"),
    ("ray.io", "v1", "RayCluster", "rayclusters", "/spec/suspend"),
];

/// A definition that takes any spec.
fn definition(group: &str, version: &str, kind: &str, plural: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    }))
    .expect("a definition")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_with_a_switch_is_stopped_by_it() {
    let Some(case) = Case::open("suspend-kinds", 1, cpus(16)).await else { return };
    let definitions: Api<CustomResourceDefinition> = Api::all(case.client.clone());
    let mut scheduler = case.scheduler(&[]);
    let mut owners = Vec::new();
    for (group, version, kind, plural, _) in KINDS {
        let definition = definition(group, version, kind, plural);
        chart::apply(&case.client, &[definition]).await.expect("installed");
        let name = format!("{plural}.{group}");
        wait_until(&format!("{name} is established"), PATIENCE, async || {
            let status = definitions.get(&name).await?.status;
            let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
            Ok(conditions.iter().any(|it| it.type_ == "Established" && it.status == "True"))
        })
        .await
        .expect("established");
        let resource = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&resource, plural);
        let api: Api<DynamicObject> =
            Api::namespaced_with(case.client.clone(), case.name, &resource);
        let owner = json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {"name": plural},
            "spec": {},
        });
        let owner = serde_json::from_value(owner).expect("an owner");
        let owner = api.create(&PostParams::default(), &owner).await.expect("created");
        owners.push((api, owner.metadata.uid.expect("a uid")));
    }
    let gangs = KINDS.map(|(.., plural, _)| case.gang(plural, 1, "1"));
    workload::create_pod_groups(&case.client, case.name, &gangs).await.expect("PodGroups");
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    for ((group, version, kind, plural, _), (_, uid)) in KINDS.iter().zip(&owners) {
        let pod = json!({
            "metadata": {
                "name": plural, "annotations": {"scheduling.k8s.io/group-name": plural},
                "ownerReferences": [{
                    "apiVersion": format!("{group}/{version}"), "kind": kind, "name": plural,
                    "uid": uid, "controller": true,
                }],
            },
            "spec": {
                "schedulerName": case.name, "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "registry.example/work:1",
                    "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
                }],
            },
        });
        let pod = serde_json::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("created");
    }
    for (.., plural, _) in KINDS {
        let runs = |group: &Value| group["status"]["running"] == 1;
        case.pod_group_where(plural, "runs", runs).await;
    }
    scheduler.kill();

    let groups = workload::pod_groups(&case.client, case.name);
    for (.., plural, _) in KINDS {
        let intent = json!({
            "id": "s-1", "by": "ns/big", "reason": "Preempt", "mode": "None",
            "deadline": Timestamp::now().to_string(),
        });
        let patch = json!({"metadata": {"annotations": {SUSPEND: intent.to_string()}}});
        let patch = Patch::Merge(&patch);
        groups.patch(plural, &PatchParams::default(), &patch).await.expect("patched");
    }
    for ((.., kind, plural, switch), (api, _)) in KINDS.iter().zip(&owners) {
        wait_for(&format!("the {kind} is suspended"), PATIENCE, async || {
            let owner = serde_json::to_value(api.get(plural).await?)?;
            let set = owner.pointer(switch) == Some(&Value::Bool(true));
            Ok(if set { Ok(()) } else { Err(owner.to_string()) })
        })
        .await
        .expect("its switch is set");
    }
}
