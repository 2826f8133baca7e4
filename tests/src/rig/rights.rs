//! Rights: what the chart grants to each component, and what its programs made use of, by the audit log. A right that no
//! case of the real suite uses is one that an intruder has for nothing; `bin/rights` lists them all and refuses those.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};

use super::audit_log::Record;
use super::chart::kind;

/// One verb on one kind, with its subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Right {
    /// API group, empty for the core one.
    pub group: String,
    /// Plural, or plural/subresource.
    pub resource: String,
    /// E.g. `patch`.
    pub verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)
    }
}

/// Rights by service account.
pub type Rights = BTreeMap<String, BTreeSet<Right>>;

/// Folder that every case of the real suite leaves its [`used`] rights in, when it is set.
pub const FOLDER: &str = "TEPHRA_RIGHTS";

/// What rendered objects grant to each service account.
///
/// # Errors
/// When an access rule cannot be read, or a binding names a role that is not among the objects.
pub fn granted(objects: &[DynamicObject]) -> anyhow::Result<Rights> {
    let mut roles: BTreeMap<(String, String), Vec<PolicyRule>> = BTreeMap::new();
    let mut bindings = Vec::new();
    for object in objects {
        let name = object.metadata.name.clone().unwrap_or_default();
        let value = serde_json::to_value(object)?;
        let reading = || format!("{} {name}", kind(object));
        match kind(object) {
            "ClusterRole" => {
                let role: ClusterRole = serde_json::from_value(value).with_context(reading)?;
                roles.insert(("ClusterRole".into(), name), role.rules.unwrap_or_default());
            }
            "Role" => {
                let role: Role = serde_json::from_value(value).with_context(reading)?;
                roles.insert(("Role".into(), name), role.rules.unwrap_or_default());
            }
            "ClusterRoleBinding" => {
                let it: ClusterRoleBinding = serde_json::from_value(value).with_context(reading)?;
                bindings.push((it.role_ref, it.subjects));
            }
            "RoleBinding" => {
                let it: RoleBinding = serde_json::from_value(value).with_context(reading)?;
                bindings.push((it.role_ref, it.subjects));
            }
            _ => {}
        }
    }
    let mut rights = Rights::new();
    for (role, subjects) in bindings {
        let rules = roles
            .get(&(role.kind.clone(), role.name.clone()))
            .with_context(|| format!("no {} {}", role.kind, role.name))?;
        for subject in subjects.into_iter().flatten().filter(|it| it.kind == "ServiceAccount") {
            rights.entry(subject.name).or_default().extend(rules.iter().flat_map(rights_of));
        }
    }
    Ok(rights)
}

fn rights_of(rule: &PolicyRule) -> impl Iterator<Item = Right> + '_ {
    let groups = rule.api_groups.iter().flatten();
    groups.flat_map(move |group| {
        rule.resources.iter().flatten().flat_map(move |resource| {
            rule.verbs.iter().map(move |verb| Right {
                group: group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
            })
        })
    })
}

/// What service accounts made use of: requests that were not refused for want of a right.
pub fn used(records: &[Record]) -> Rights {
    let mut rights = Rights::new();
    for record in records.iter().filter(|record| !matches!(record.code(), Some(401 | 403))) {
        if let Some((account, right)) = asked(record) {
            rights.entry(account).or_default().insert(right);
        }
    }
    rights
}

/// Requests of service accounts that were refused for want of a right that they were never granted. An API server that has
/// just started refuses what it has not yet read that it grants.
pub fn refused(records: &[Record]) -> Vec<&Record> {
    let granted = used(records);
    let lacks = |record: &&Record| {
        asked(record).is_some_and(|(account, right)| {
            !granted.get(&account).is_some_and(|rights| rights.contains(&right))
        })
    };
    records.iter().filter(|record| record.code() == Some(403)).filter(lacks).collect()
}

/// The service account that made a request, and the right that it needed.
fn asked(record: &Record) -> Option<(String, Right)> {
    let account = record.user().strip_prefix("system:serviceaccount:volcano-system:")?;
    let object = record.object_ref.as_ref()?;
    let (resource, verb) = (record.resource(), record.verb.clone());
    Some((account.to_owned(), Right { group: object.api_group.clone(), resource, verb }))
}

/// Writes what a case used into a folder, over what an earlier run of it left there.
///
/// # Errors
/// When the file cannot be written.
pub fn save(folder: &Path, case: &str, used: &Rights) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(format!("{case}.json"));
    std::fs::write(&path, serde_json::to_vec(used)?).with_context(|| path.display().to_string())
}

/// Reads what the cases left in a folder, by case.
///
/// # Errors
/// When a file cannot be read.
pub fn load(folder: &Path) -> anyhow::Result<BTreeMap<String, Rights>> {
    let mut cases = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let case = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let used = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        cases.insert(case, used);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn objects(list: Value) -> Vec<DynamicObject> {
        serde_json::from_value(list).unwrap()
    }

    fn texts(rights: &Rights, account: &str) -> Vec<String> {
        rights.get(account).into_iter().flatten().map(Right::to_string).collect()
    }

    #[test]
    fn an_account_has_the_rights_of_all_roles_bound_to_it() {
        let binding = |kind: &str, role: &str| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
                "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "n"}]})
        };
        let role = |kind: &str, name: &str, rule: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": {"name": name}, "rules": [rule]})
        };
        let pods =
            json!({"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["patch"]});
        let leases = json!({"apiGroups": ["c"], "resources": ["leases"], "verbs": ["get"]});
        let all = objects(json!([
            role("ClusterRole", "wide", pods.clone()),
            binding("ClusterRole", "wide"),
            role("Role", "narrow", leases),
            binding("Role", "narrow"),
            role("ClusterRole", "nobody", pods),
        ]));
        let rights = granted(&all).unwrap();
        assert_eq!(rights.len(), 1);
        assert_eq!(texts(&rights, "a"), ["patch pods", "patch pods/status", "get leases.c"]);
        let error = granted(&objects(json!([binding("Role", "lost")]))).unwrap_err();
        assert_eq!(error.to_string(), "no Role lost");
    }

    #[test]
    fn what_was_refused_for_want_of_a_right_is_not_used() {
        let record = |user: &str, code: u16| -> Record {
            serde_json::from_value(json!({
                "verb": "patch", "user": {"username": user},
                "objectRef": {"apiGroup": "g", "resource": "queues", "subresource": "status"},
                "responseStatus": {"code": code},
                "requestReceivedTimestamp": "2026-12-02T05:00:00Z",
                "stageTimestamp": "2026-12-02T05:00:00Z",
            }))
            .unwrap()
        };
        let account = "system:serviceaccount:volcano-system:a";
        let records = [record(account, 409), record("admin", 200)];
        assert_eq!(texts(&used(&records), "a"), ["patch queues/status.g"]);
        assert_eq!(used(&records).len(), 1);
        assert_eq!(used(&[record(account, 403)]), Rights::new());
        assert_eq!(refused(&[record(account, 403), record("admin", 403)]).len(), 1);
        assert_eq!(refused(&[record(account, 403), record(account, 200)]).len(), 0);
    }
}
