//! From an HTTP request line to what is asked: paths and query parameters of the Kubernetes API.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::status::Refusal;

/// What a path addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/api/v1/...` or `/apis/<group>/<version>/...`
    Resource(ResourcePath),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`
    Resources(String, String),
    Version,
    Health,
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3` and what stands after it
    OpenApiV3(String),
    Unknown,
}

/// A path below a group and version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for cluster-scoped resources and requests over all namespaces.
    pub(crate) namespace: String,
    /// Empty for collections.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

/// Query parameters the server knows; others are ignored, as kube-apiserver does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) resource_version: Option<String>,
    pub(crate) resource_version_match: String,
    pub(crate) limit: Option<u64>,
    pub(crate) continue_token: String,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: bool,
    pub(crate) strict: bool,
    pub(crate) field_manager: String,
    pub(crate) force: bool,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: Option<String>,
}

/// Reads a path.
pub(crate) fn target(path: &str) -> Target {
    let segments: Vec<Cow<'_, str>> = path
        .split('/')
        .filter(|s| !s.is_empty())
        .map(|s| percent_decode_str(s).decode_utf8_lossy())
        .collect();
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    match segments.as_slice() {
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Target::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        ["version"] => Target::Version,
        ["healthz" | "readyz" | "livez", ..] => Target::Health,
        ["openapi", "v2"] => Target::OpenApiV2,
        ["openapi", "v3", rest @ ..] => Target::OpenApiV3(rest.join("/")),
        _ => Target::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Target {
    let (namespace, rest) = match rest {
        // A namespace object and its own subresources, not something inside it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", String::new()),
        [plural, name] => (*plural, *name, String::new()),
        [plural, name, sub @ ..] => (*plural, *name, sub.join("/")),
        [] => return Target::Unknown,
    };
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource,
    })
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Refusal> {
        let mut parsed = Self::default();
        let Some(query) = query else { return Ok(parsed) };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let number = || {
                value.parse::<i64>().map_err(|_| {
                    Refusal::bad_request(format!(
                        "unable to decode query parameter {key}: \"{value}\" is not an integer"
                    ))
                })
            };
            let flag = || matches!(value.as_ref(), "true" | "1" | "");
            match key.as_ref() {
                "labelSelector" => parsed.label_selector = value.into_owned(),
                "fieldSelector" => parsed.field_selector = value.into_owned(),
                "resourceVersion" if !value.is_empty() => {
                    parsed.resource_version = Some(value.into_owned());
                }
                "resourceVersionMatch" => parsed.resource_version_match = value.into_owned(),
                "limit" => parsed.limit = u64::try_from(number()?).ok().filter(|&n| n > 0),
                "continue" => parsed.continue_token = value.into_owned(),
                "watch" => parsed.watch = flag(),
                "allowWatchBookmarks" => parsed.bookmarks = flag(),
                "sendInitialEvents" => parsed.send_initial_events = Some(flag()),
                "timeoutSeconds" => {
                    parsed.timeout_seconds = u64::try_from(number()?).ok().filter(|&n| n > 0);
                }
                "dryRun" => parsed.dry_run = value == "All",
                "fieldValidation" => parsed.strict = value == "Strict",
                "fieldManager" => parsed.field_manager = value.into_owned(),
                "force" => parsed.force = flag(),
                "gracePeriodSeconds" => parsed.grace_period_seconds = Some(number()?),
                "propagationPolicy" => parsed.propagation_policy = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// The asked resourceVersion as a number; "0" is `Some(0)`.
    pub(crate) fn revision(&self) -> Result<Option<u64>, Refusal> {
        self.resource_version.as_deref().map(revision).transpose()
    }
}

/// Parses a resourceVersion.
pub(crate) fn revision(text: &str) -> Result<u64, Refusal> {
    text.parse().map_err(|_| {
        Refusal::bad_request(format!("invalid resource version \"{text}\": not a number"))
    })
}

/// The verb as audit logs and RBAC name it.
pub(crate) fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Option<&'static str> {
    let collection = path.name.is_empty();
    match *method {
        Method::GET | Method::HEAD if query.watch => Some("watch"),
        Method::GET | Method::HEAD if collection => Some("list"),
        Method::GET | Method::HEAD => Some("get"),
        Method::POST if collection || !path.subresource.is_empty() => Some("create"),
        Method::PUT if !collection => Some("update"),
        Method::PATCH if !collection => Some("patch"),
        Method::DELETE if collection => Some("deletecollection"),
        Method::DELETE => Some("delete"),
        _ => None,
    }
}

/// Whether a verb changes anything.
pub(crate) fn is_write(verb: &str) -> bool {
    !matches!(verb, "get" | "list" | "watch")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> (String, String, String, String, String) {
        match target(text) {
            Target::Resource(p) => (p.group, p.plural, p.namespace, p.name, p.subresource),
            other => panic!("{text} is {other:?}"),
        }
    }

    fn parts(
        g: &str,
        p: &str,
        ns: &str,
        n: &str,
        s: &str,
    ) -> (String, String, String, String, String) {
        (g.into(), p.into(), ns.into(), n.into(), s.into())
    }

    #[test]
    fn paths_split_into_resource_namespace_name_and_subresource() {
        assert_eq!(path("/api/v1/nodes/n1/status"), parts("", "nodes", "", "n1", "status"));
        assert_eq!(
            path("/api/v1/namespaces/d/pods/p/binding"),
            parts("", "pods", "d", "p", "binding")
        );
        assert_eq!(path("/api/v1/namespaces/d"), parts("", "namespaces", "", "d", ""));
        assert_eq!(path("/api/v1/namespaces/d/status"), parts("", "namespaces", "", "d", "status"));
        assert_eq!(path("/api/v1/namespaces/d/pods"), parts("", "pods", "d", "", ""));
        assert_eq!(
            path("/apis/scheduling.volcano.sh/v1beta1/queues/a%20b"),
            parts("scheduling.volcano.sh", "queues", "", "a b", "")
        );
        assert_eq!(target("/apis/apps"), Target::Group("apps".into()));
        assert_eq!(target("/nonsense"), Target::Unknown);
    }

    #[test]
    fn query_parameters_are_decoded_and_faulty_numbers_refused() {
        let query = Query::parse(Some("labelSelector=a+in+%28b%29&limit=5&watch=1&junk=x"))
            .expect("parses");
        assert_eq!(query.label_selector, "a in (b)");
        assert_eq!((query.limit, query.watch), (Some(5), true));
        assert_eq!(Query::parse(Some("limit=many")).expect_err("not a number").code, 400);
    }
}
