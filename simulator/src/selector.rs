//! Label and field selectors, parsed once per request and evaluated on stored objects.

use serde_json::Value;

use crate::status::Refusal;

/// Which objects a list, watch or deletecollection is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelTest>,
    fields: Vec<FieldTest>,
}

#[derive(Debug, Clone, PartialEq)]
struct LabelTest {
    key: String,
    op: LabelOp,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelOp {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldTest {
    path: Vec<String>,
    equal: bool,
    value: String,
}

/// Field labels beyond `metadata.name` and `metadata.namespace`, by plural.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("nodes", &["spec.unschedulable"]),
    ("namespaces", &["status.phase"]),
    ("secrets", &["type"]),
    ("jobs", &["status.successful"]),
    ("replicasets", &["status.replicas"]),
    ("replicationcontrollers", &["status.replicas"]),
    ("resourceslices", &["spec.nodeName", "spec.driver"]),
];

impl Selector {
    /// Parses the two query parameters. Unknown field labels are refused, as kube-apiserver does.
    pub(crate) fn parse(plural: &str, labels: &str, fields: &str) -> Result<Self, Refusal> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(plural, fields)? })
    }

    /// Reads a `metav1.LabelSelector` (matchLabels, matchExpressions).
    pub(crate) fn from_label_selector(selector: &Value) -> Self {
        let mut labels = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let op = LabelOp::In(vec![value.as_str().unwrap_or("").to_owned()]);
            labels.push(LabelTest { key: key.clone(), op });
        }
        for test in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = test["values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect();
            let op = match test["operator"].as_str() {
                Some("In") => LabelOp::In(values),
                Some("NotIn") => LabelOp::NotIn(values),
                Some("DoesNotExist") => LabelOp::Absent,
                _ => LabelOp::Exists,
            };
            labels.push(LabelTest { key: test["key"].as_str().unwrap_or("").to_owned(), op });
        }
        Self { labels, fields: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.fields.iter().all(|test| test.holds(object))
            && (self.labels.is_empty() || {
                let labels = object.get("metadata").and_then(|m| m.get("labels"));
                self.labels.iter().all(|test| test.holds(labels))
            })
    }
}

impl LabelTest {
    fn holds(&self, labels: Option<&Value>) -> bool {
        let found = labels.and_then(|l| l.get(&self.key)).and_then(Value::as_str);
        match &self.op {
            LabelOp::Exists => found.is_some(),
            LabelOp::Absent => found.is_none(),
            LabelOp::In(values) => found.is_some_and(|f| values.iter().any(|v| v == f)),
            LabelOp::NotIn(values) => found.is_none_or(|f| values.iter().all(|v| v != f)),
        }
    }
}

impl FieldTest {
    fn holds(&self, object: &Value) -> bool {
        let mut at = Some(object);
        for step in &self.path {
            at = at.and_then(|v| v.get(step));
        }
        let same = match at {
            Some(Value::String(text)) => *text == self.value,
            None | Some(Value::Null) => {
                self.value.is_empty() || (self.value == "false" && self.is_flag())
            }
            Some(other) => {
                let text = other.to_string();
                text == self.value
            }
        };
        same == self.equal
    }

    fn is_flag(&self) -> bool {
        matches!(self.path.last().map(String::as_str), Some("unschedulable" | "hostNetwork"))
    }
}

fn parse_labels(text: &str) -> Result<Vec<LabelTest>, Refusal> {
    let mut tests = Vec::new();
    for part in split_outside_parentheses(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        tests.push(parse_label(part).ok_or_else(|| {
            Refusal::bad_request(format!("unable to parse requirement: \"{part}\""))
        })?);
    }
    Ok(tests)
}

fn parse_label(part: &str) -> Option<LabelTest> {
    let make = |key: &str, op: LabelOp| {
        let key = key.trim();
        let sound = !key.is_empty() && !key.contains([' ', '(', ')', '!', '=']);
        sound.then(|| LabelTest { key: key.to_owned(), op })
    };
    if let Some(key) = part.strip_prefix('!') {
        return make(key, LabelOp::Absent);
    }
    if let Some((key, value)) = part.split_once("!=") {
        return make(key, LabelOp::NotIn(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return make(key, LabelOp::In(vec![value.trim().to_owned()]));
    }
    if let Some((head, set)) = part.split_once('(') {
        let values: Vec<String> =
            set.strip_suffix(')')?.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        return match operator {
            "in" => make(key, LabelOp::In(values)),
            "notin" => make(key, LabelOp::NotIn(values)),
            _ => None,
        };
    }
    make(part, LabelOp::Exists)
}

fn split_outside_parentheses(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

fn parse_fields(plural: &str, text: &str) -> Result<Vec<FieldTest>, Refusal> {
    let mut tests = Vec::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (field, equal, value) = if let Some((field, value)) = part.split_once("!=") {
            (field, false, value)
        } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('='))
        {
            (field, true, value)
        } else {
            let message = format!("invalid field selector: \"{part}\": can't understand");
            return Err(Refusal::bad_request(message));
        };
        let field = field.trim();
        let known = matches!(field, "metadata.name" | "metadata.namespace")
            || FIELDS.iter().any(|(p, fields)| *p == plural && fields.contains(&field))
            || (plural == "events" && field.starts_with("regarding."));
        if !known {
            let message = format!("field label not supported: {field}");
            return Err(Refusal::bad_request(message));
        }
        let field = match field {
            "source" => "source.component".to_owned(),
            "status.successful" => "status.succeeded".to_owned(),
            other => match other.strip_prefix("regarding.") {
                Some(rest) => format!("involvedObject.{rest}"),
                None => other.to_owned(),
            },
        };
        let path = field.split('.').map(str::to_owned).collect();
        tests.push(FieldTest { path, equal, value: value.trim().to_owned() });
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(labels: &str, fields: &str) -> bool {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "d", "labels": {"app": "x", "tier": "1"}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running"},
        });
        Selector::parse("pods", labels, fields).expect("parses").matches(&pod)
    }

    #[test]
    fn label_operators_follow_kubernetes() {
        for (text, wanted) in [
            ("", true),
            ("app=x", true),
            ("app==x,tier=1", true),
            ("app!=x", false),
            ("missing!=x", true),
            ("app in (y, x),tier", true),
            ("app notin (x)", false),
            ("!app", false),
            ("!missing", true),
            ("missing", false),
        ] {
            assert_eq!(matches(text, ""), wanted, "{text}");
        }
        assert_eq!(Selector::parse("pods", "app in x", "").expect_err("faulty").code, 400);
    }

    #[test]
    fn field_selectors_know_their_fields_and_treat_absence_as_empty() {
        assert!(matches("", "spec.nodeName=n1,status.phase!=Pending"));
        assert!(!matches("", "spec.nodeName="));
        assert!(matches("", "spec.schedulerName="));
        let error = Selector::parse("pods", "", "spec.color=red").expect_err("unknown");
        assert_eq!(
            (error.code, error.message.as_str()),
            (400, "field label not supported: spec.color")
        );
        let node = Selector::parse("nodes", "", "spec.unschedulable=false").expect("parses");
        assert!(node.matches(&json!({"spec": {}})));
        assert!(!node.matches(&json!({"spec": {"unschedulable": true}})));
    }
}
