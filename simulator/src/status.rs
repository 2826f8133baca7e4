//! Refusals: what the server answers when it does not do what was asked, as `metav1.Status` bodies.
//!
//! Reasons, codes, message forms and details are those of kube-apiserver, because clients branch on them.

use serde_json::{Value, json};

/// A refused request; becomes a `Status` object with HTTP code `code`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refusal {
    /// HTTP code.
    pub code: u16,
    /// Machine-readable reason (`NotFound`, `Conflict`, ...).
    pub reason: &'static str,
    /// Text for people.
    pub message: String,
    /// `details` of the Status (name, group, kind, causes, retryAfterSeconds); null when there is nothing to say.
    pub details: Value,
}

impl Refusal {
    /// A refusal without details.
    #[must_use]
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    pub(crate) fn about(mut self, group: &str, plural: &str, name: &str) -> Self {
        let mut details = json!({ "name": name, "kind": plural });
        if !group.is_empty() {
            details["group"] = group.into();
        }
        self.details = details;
        self
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(group, plural)))
            .about(group, plural, name)
    }

    /// The answer to a path that names no resource the server has.
    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        // kubectl reads the details without asking whether there are any.
        Self { details: json!({}), ..Self::new(404, "NotFound", message) }
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, plural));
        Self::new(409, "AlreadyExists", message).about(group, plural, name)
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            qualified(group, plural)
        );
        Self::new(409, "Conflict", message).about(group, plural, name)
    }

    pub(crate) fn modified(group: &str, plural: &str, name: &str) -> Self {
        Self::conflict(
            group,
            plural,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", qualified(group, plural));
        Self::new(403, "Forbidden", message).about(group, plural, name)
    }

    /// 422 for one faulty field.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, field: &str, why: &str) -> Self {
        Self::invalid_fields(group, kind, name, &[(field.to_owned(), why.to_owned())])
    }

    /// 422 for faulty fields (at least one), in the form of `field.ErrorList`.
    pub(crate) fn invalid_fields(
        group: &str,
        kind: &str,
        name: &str,
        faults: &[(String, String)],
    ) -> Self {
        let full = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let texts: Vec<String> =
            faults.iter().map(|(field, why)| format!("{field}: {why}")).collect();
        let text = match texts.as_slice() {
            [text] => text.clone(),
            texts => format!("[{}]", texts.join(", ")),
        };
        let mut refusal =
            Self::new(422, "Invalid", format!("{full} \"{name}\" is invalid: {text}"))
                .about(group, kind, name);
        let cause = |(field, why): &(String, String)| {
            let reason = match why.split_whitespace().next() {
                Some("Required") => "FieldValueRequired",
                Some("Forbidden:") => "FieldValueForbidden",
                Some("Unsupported") => "FieldValueNotSupported",
                Some("Too") => "FieldValueTooLong",
                _ => "FieldValueInvalid",
            };
            json!({ "reason": reason, "message": why, "field": field })
        };
        refusal.details["causes"] = faults.iter().map(cause).collect();
        refusal
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// 410: the resourceVersion or continue token lies before the kept window.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let mut refusal = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        );
        refusal.details = json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        });
        refusal
    }

    /// An injected failure of any code, with the reason that kube-apiserver gives that code.
    #[must_use]
    pub fn injected(code: u16, retry_after: Option<u32>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        let mut refusal = Self::new(code, reason, format!("injected failure {code}"));
        if let Some(seconds) = retry_after {
            refusal.details = json!({ "retryAfterSeconds": seconds });
        }
        refusal
    }

    /// Seconds for the `Retry-After` header, if any.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// The `Status` object of a success that has no object to return.
pub(crate) fn success(code: u16, group: &str, plural: &str, name: &str, uid: &str) -> Value {
    let mut details = json!({ "name": name, "kind": plural });
    if !group.is_empty() {
        details["group"] = group.into();
    }
    if !uid.is_empty() {
        details["uid"] = uid.into();
    }
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    });
    if code != 200 {
        status["code"] = code.into();
    }
    status
}

fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_carry_the_texts_clients_branch_on() {
        let gone = Refusal::not_found("scheduling.volcano.sh", "queues", "q").to_value();
        assert_eq!(gone["message"], "queues.scheduling.volcano.sh \"q\" not found");
        assert_eq!(gone["reason"], "NotFound");
        assert_eq!(gone["code"], 404);
        assert_eq!(
            gone["details"],
            json!({"name": "q", "kind": "queues", "group": "scheduling.volcano.sh"})
        );
        let invalid =
            Refusal::invalid("", "Pod", "p", "spec.containers", "Required value").to_value();
        assert_eq!(invalid["message"], "Pod \"p\" is invalid: spec.containers: Required value");
        assert_eq!(invalid["details"]["causes"][0]["reason"], "FieldValueRequired");
        assert_eq!(Refusal::injected(429, Some(3)).retry_after(), Some(3));
    }
}
