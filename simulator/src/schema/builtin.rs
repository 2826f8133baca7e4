//! Schemas of the built-in kinds, made from the types of k8s-openapi: one document per group and version.

use std::sync::{Arc, OnceLock};

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, autoscaling::v2 as autoscaling,
    batch::v1 as batch, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, networking::v1 as networking,
    node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource,
    scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

use crate::resource::split_api_version;

/// Where documents keep their schemas.
pub(crate) const SCHEMAS: &str = "#/components/schemas/";
/// Name of the schema of `metadata`.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schemas of one group and version.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// By name, with everything they refer to.
    pub(crate) schemas: Value,
    /// Schema name of each kind.
    roots: Vec<(&'static str, String)>,
}

impl Document {
    /// The schema of a kind.
    pub(crate) fn root(&self, kind: &str) -> Option<&Value> {
        let (_, name) = self.roots.iter().find(|(known, _)| *known == kind)?;
        self.schemas.get(name)
    }
}

struct Maker {
    generator: SchemaGenerator,
    roots: Vec<(&'static str, String)>,
}

impl Maker {
    fn add<K: Resource + JsonSchema>(&mut self) {
        self.generator.subschema_for::<K>();
        self.roots.push((K::KIND, K::schema_name().into_owned()));
    }
}

/// A reference to the schema of `metadata`, which every document has.
pub(crate) fn metadata() -> Value {
    json!({"$ref": format!("{SCHEMAS}{METADATA}")})
}

/// The document of an `apiVersion`; made once. Kinds that k8s-openapi does not have are missing in it.
pub(crate) fn document(api_version: &str) -> Arc<Document> {
    static MADE: OnceLock<Mutex<FxHashMap<String, Arc<Document>>>> = OnceLock::new();
    let mut made = MADE.get_or_init(Mutex::default).lock();
    let make = || Arc::new(make(api_version));
    Arc::clone(made.entry(api_version.to_owned()).or_insert_with(make))
}

fn make(api_version: &str) -> Document {
    let mut maker =
        Maker { generator: SchemaSettings::openapi3().into_generator(), roots: Vec::new() };
    maker.generator.subschema_for::<ObjectMeta>();
    add_kinds(&mut maker, api_version);
    let mut schemas = Value::Object(maker.generator.take_definitions(true));
    let (group, version) = split_api_version(api_version);
    for (kind, name) in &maker.roots {
        schemas[name]["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": kind}]);
    }
    Document { schemas, roots: maker.roots }
}

fn add_kinds(maker: &mut Maker, api_version: &str) {
    macro_rules! add {
        ($($kind:ty),+ $(,)?) => {{ $(maker.add::<$kind>();)+ }};
    }
    match api_version {
        "v1" => add!(
            core::Pod,
            core::Node,
            core::Namespace,
            core::Event,
            core::ConfigMap,
            core::Secret,
            core::Service,
            core::ServiceAccount,
            core::Endpoints,
            core::PersistentVolumeClaim,
            core::PersistentVolume,
            core::ResourceQuota,
            core::LimitRange,
            core::PodTemplate,
            core::ReplicationController,
        ),
        "apps/v1" => add!(
            apps::Deployment,
            apps::ReplicaSet,
            apps::StatefulSet,
            apps::DaemonSet,
            apps::ControllerRevision,
        ),
        "batch/v1" => add!(batch::Job, batch::CronJob),
        "scheduling.k8s.io/v1" => add!(scheduling::PriorityClass),
        "coordination.k8s.io/v1" => add!(coordination::Lease),
        "events.k8s.io/v1" => add!(events::Event),
        "policy/v1" => add!(policy::PodDisruptionBudget),
        "storage.k8s.io/v1" => add!(
            storage::StorageClass,
            storage::CSINode,
            storage::CSIDriver,
            storage::CSIStorageCapacity,
            storage::VolumeAttachment,
        ),
        "rbac.authorization.k8s.io/v1" => {
            add!(rbac::Role, rbac::RoleBinding, rbac::ClusterRole, rbac::ClusterRoleBinding);
        }
        "networking.k8s.io/v1" => add!(networking::NetworkPolicy, networking::Ingress),
        "discovery.k8s.io/v1" => add!(discovery::EndpointSlice),
        "node.k8s.io/v1" => add!(node::RuntimeClass),
        "autoscaling/v2" => add!(autoscaling::HorizontalPodAutoscaler),
        "admissionregistration.k8s.io/v1" => add!(
            admission::ValidatingWebhookConfiguration,
            admission::MutatingWebhookConfiguration,
            admission::ValidatingAdmissionPolicy,
            admission::ValidatingAdmissionPolicyBinding,
        ),
        "resource.k8s.io/v1" => add!(
            resource::ResourceClaim,
            resource::ResourceClaimTemplate,
            resource::ResourceSlice,
            resource::DeviceClass,
        ),
        // Definitions of custom resources nest without end; they are checked when they are read.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_schema_and_metadata_is_always_there() {
        let document = document("apps/v1");
        let deployment = document.root("Deployment").expect("known");
        let kind = json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
        assert_eq!(deployment["x-kubernetes-group-version-kind"], kind);
        assert!(document.root("Pod").is_none());
        assert!(
            super::document("example.com/v1").schemas[METADATA]["properties"]["labels"].is_object()
        );
    }
}
