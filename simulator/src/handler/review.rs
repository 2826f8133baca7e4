//! Questions about the asker: who am I, what may I do. Nobody logs in here and everything is allowed.

use serde_json::{Value, json};

use crate::request::ResourcePath;

/// The answer to a review; `None` if the request is for anything else.
pub(crate) fn answer(verb: &str, path: &ResourcePath) -> Option<Value> {
    if verb != "create" {
        return None;
    }
    let (kind, status) = match (path.group.as_str(), path.plural.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            ("SelfSubjectAccessReview", json!({"allowed": true}))
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            let resources = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
            let others = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
            let status = json!({"incomplete": false, "resourceRules": resources,
                                "nonResourceRules": others});
            ("SelfSubjectRulesReview", status)
        }
        ("authentication.k8s.io", "selfsubjectreviews") => {
            let user = json!({"username": "tephra", "groups": ["system:masters"]});
            ("SelfSubjectReview", json!({"userInfo": user}))
        }
        _ => return None,
    };
    let api_version = format!("{}/{}", path.group, path.version);
    Some(json!({"kind": kind, "apiVersion": api_version, "metadata": {}, "spec": {},
                "status": status}))
}
