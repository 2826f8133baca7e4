//! Printer columns of custom resources: the subset of JSONPath that CustomResourceDefinitions use.

use serde_json::Value;

/// One `additionalPrinterColumns` entry.
#[derive(Debug, Clone)]
pub(crate) struct CustomColumn {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) kind: String,
    pub(crate) description: String,
    /// Columns above 0 show with `-o wide` only.
    pub(crate) priority: i64,
    path: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    Every,
    /// `[?(@.field=="value")]`
    Where(String, String),
}

impl CustomColumn {
    pub(crate) fn from_crd(spec: &Value) -> Self {
        let text = |field: &str| spec[field].as_str().unwrap_or("").to_owned();
        Self {
            name: text("name"),
            kind: text("type"),
            description: text("description"),
            priority: spec["priority"].as_i64().unwrap_or(0),
            path: parse(spec["jsonPath"].as_str().unwrap_or("")),
        }
    }

    /// The cell of an object; null when the path leads nowhere.
    pub(crate) fn cell(&self, object: &Value, now_ms: i64) -> Value {
        let mut found = vec![object];
        for step in &self.path {
            found = found.into_iter().flat_map(|value| take(step, value)).collect();
        }
        match (found.as_slice(), self.kind.as_str()) {
            ([], _) | ([Value::Null], _) => Value::Null,
            ([value], "date") => crate::handler::table::age(value.as_str().unwrap_or(""), now_ms),
            ([value], "string") if !value.is_string() => value.to_string().into(),
            ([value], _) => (*value).clone(),
            (many, _) => {
                let words: Vec<String> = many
                    .iter()
                    .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                    .collect();
                words.join(",").into()
            }
        }
    }
}

fn take<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => value.get(index).into_iter().collect(),
        Step::Every => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        },
        Step::Where(field, wanted) => value
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| match item.get(field) {
                Some(Value::String(text)) => text == wanted,
                Some(other) => &other.to_string() == wanted,
                None => false,
            })
            .collect(),
    }
}

/// Parses `.a.b`, `.a\.b`, `['a']`, `[0]`, `[*]` and `[?(@.a=="b")]`; what it does not understand matches nothing.
fn parse(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut chars = path.trim_start_matches('{').trim_end_matches('}').chars().peekable();
    while let Some(c) = chars.next() {
        if c == '[' {
            let mut inner = String::new();
            let mut quote = None;
            for c in chars.by_ref() {
                match (c, quote) {
                    (']', None) => break,
                    ('"' | '\'', None) => quote = Some(c),
                    (c, Some(q)) if c == q => quote = None,
                    _ => {}
                }
                inner.push(c);
            }
            steps.push(bracket(&inner));
            continue;
        }
        let mut name = String::new();
        if c != '.' {
            name.push(c);
        }
        while let Some(&c) = chars.peek() {
            if c == '.' || c == '[' {
                break;
            }
            chars.next();
            name.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
        }
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::Every),
            _ => steps.push(Step::Field(name)),
        }
    }
    steps
}

fn bracket(inner: &str) -> Step {
    let inner = inner.trim();
    if inner == "*" {
        return Step::Every;
    }
    if let Ok(index) = inner.parse() {
        return Step::Index(index);
    }
    let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(test) = inner.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        if let Some((field, wanted)) = test.split_once("==") {
            let field = field.trim().trim_start_matches("@.");
            return Step::Where(field.to_owned(), unquoted(wanted));
        }
        return Step::Index(usize::MAX);
    }
    Step::Field(unquoted(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(kind: &str, path: &str, object: &Value) -> Value {
        CustomColumn::from_crd(&json!({"name": "X", "type": kind, "jsonPath": path}))
            .cell(object, 90_000)
    }

    #[test]
    fn paths_of_real_crds_are_read() {
        let object = json!({
            "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z", "labels": {"a.b/c": "x"}},
            "spec": {"minMember": 3, "tasks": [{"name": "p"}, {"name": "q"}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]},
        });
        assert_eq!(cell("integer", ".spec.minMember", &object), json!(3));
        assert_eq!(cell("string", ".spec.tasks[*].name", &object), json!("p,q"));
        assert_eq!(cell("string", ".spec.tasks[1].name", &object), json!("q"));
        assert_eq!(
            cell("string", r#".status.conditions[?(@.type=="B")].status"#, &object),
            json!("True")
        );
        assert_eq!(cell("string", r".metadata.labels.a\.b/c", &object), json!("x"));
        assert_eq!(cell("string", ".metadata.labels['a.b/c']", &object), json!("x"));
        assert_eq!(cell("date", ".metadata.creationTimestamp", &object), json!("90s"));
        assert_eq!(cell("string", ".status.none", &object), Value::Null);
    }
}
