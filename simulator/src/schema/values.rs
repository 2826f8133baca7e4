//! One value against one schema. Messages are those of kube-apiserver.

use std::sync::OnceLock;

use parking_lot::Mutex;
use regex::Regex;
use rustc_hash::FxHashMap;
use serde_json::Value;
use tephra_api::quantity::Quantity;

use super::Fault;
use super::builtin::SCHEMAS;

/// What is wrong with `value`; references are looked up in `definitions`. The first [`MAX_FAULTS`] at most.
pub(super) fn faults(schema: &Value, definitions: &Value, value: &Value) -> Vec<Fault> {
    let mut walk = Walk { definitions, faults: Vec::new(), unknown: Vec::new() };
    walk.visit(schema, value, &mut String::new());
    walk.faults
}

/// Fields of `value` that the schema does not know.
pub(super) fn unknown(schema: &Value, definitions: &Value, value: &Value) -> Vec<String> {
    let mut walk = Walk { definitions, faults: Vec::new(), unknown: Vec::new() };
    walk.visit(schema, value, &mut String::new());
    walk.unknown
}

/// More say nothing new.
const MAX_FAULTS: usize = 10;

struct Walk<'s> {
    definitions: &'s Value,
    faults: Vec<Fault>,
    unknown: Vec<String>,
}

impl<'s> Walk<'s> {
    fn fault(&mut self, path: &str, why: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((path.to_owned(), why));
        }
    }

    /// Follows a reference, also one that is wrapped because it has siblings.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let target = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
        let name = target.and_then(Value::as_str).and_then(|it| it.strip_prefix(SCHEMAS));
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    fn visit(&mut self, schema: &'s Value, value: &Value, path: &mut String) {
        if is_quantity(schema) && !value.is_null() {
            self.check_quantity(value, path);
            return;
        }
        let schema = self.resolve(schema);
        if value.is_null() {
            // Go reads null as absent; definitions must allow it.
            let strict = self.definitions.is_null() && schema["nullable"] != true;
            if strict && let Some(wanted) = type_of(schema) {
                let why = format!(
                    "Invalid value: \"null\": {path} in body must be of type {wanted}: \"null\""
                );
                self.fault(path, why);
            }
            return;
        }
        if schema["x-kubernetes-int-or-string"] == true {
            if value.is_string() || value.is_i64() || value.is_u64() {
                self.check_text(schema, value, path);
            } else if !value.is_number() || self.definitions.is_null() {
                self.wrong_type("integer,string", value, path);
            }
            return;
        }
        if let Some(wanted) = type_of(schema)
            && !has_type(value, wanted)
        {
            self.wrong_type(wanted, value, path);
            return;
        }
        match value {
            Value::Object(fields) => self.visit_fields(schema, fields, path),
            Value::Array(items) => {
                if let Some(item_schema) = schema.get("items") {
                    let length = path.len();
                    for (index, item) in items.iter().enumerate() {
                        path.push_str(&format!("[{index}]"));
                        self.visit(item_schema, item, path);
                        path.truncate(length);
                    }
                }
                let least = schema["minItems"].as_u64().unwrap_or(0);
                if (items.len() as u64) < least {
                    let why = format!(
                        "Invalid value: {}: {path} in body should have at least {least} items",
                        items.len()
                    );
                    self.fault(path, why);
                }
            }
            Value::Number(number) => self.check_range(schema, number, path),
            Value::String(_) => self.check_text(schema, value, path),
            Value::Null | Value::Bool(_) => {}
        }
        self.check_enum(schema, value, path);
    }

    fn visit_fields(
        &mut self,
        schema: &'s Value,
        fields: &serde_json::Map<String, Value>,
        path: &mut String,
    ) {
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let free = keeps || (known.is_none() && others.is_none());
        // Definitions may leave out what every object has.
        let top = path.is_empty();
        let length = path.len();
        for (name, value) in fields {
            if !top {
                path.push('.');
            }
            path.push_str(name);
            if let Some(field) = known.and_then(|known| known.get(name)) {
                self.visit(field, value, path);
            } else if let Some(schema) = others.filter(|others| others.is_object()) {
                self.visit(schema, value, path);
            } else if !free
                && others.is_none_or(|others| *others == false)
                && !(top && matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
            {
                self.unknown.push(path.clone());
            }
            path.truncate(length);
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            // The types of built-in kinds require what Go fills in.
            if self.definitions.is_null() && !fields.contains_key(name) {
                let field = if top { name.to_owned() } else { format!("{path}.{name}") };
                self.fault(&field, "Required value".to_owned());
            }
        }
    }

    fn wrong_type(&mut self, wanted: &str, value: &Value, path: &str) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let why = format!(
            "Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\""
        );
        self.fault(path, why);
    }

    fn check_range(&mut self, schema: &Value, number: &serde_json::Number, path: &str) {
        let value = number.as_f64().unwrap_or(0.0);
        let (min, max) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        if let Some(min) = min.filter(|min| value < *min) {
            let why = format!(
                "Invalid value: {number}: {path} in body should be greater than or equal to {min}"
            );
            self.fault(path, why);
        }
        if let Some(max) = max.filter(|max| value > *max) {
            let why = format!(
                "Invalid value: {number}: {path} in body should be less than or equal to {max}"
            );
            self.fault(path, why);
        }
        let fits = match schema["format"].as_str() {
            Some("int32") => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
            Some("int64") => number.as_i64().is_some(),
            _ => true,
        };
        if !fits {
            let format = schema["format"].as_str().unwrap_or_default();
            let why = format!(
                "Invalid value: {number}: {path} in body must be of type {format}: \"{number}\""
            );
            self.fault(path, why);
        }
    }

    fn check_text(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(text) = value.as_str() else { return };
        if let Some(most) = schema["maxLength"].as_u64()
            && text.chars().count() as u64 > most
        {
            self.fault(path, format!("Too long: may not be more than {most} bytes"));
        }
        if let Some(least) = schema["minLength"].as_u64()
            && (text.chars().count() as u64) < least
        {
            let why = format!(
                "Invalid value: \"{text}\": {path} in body should be at least {least} chars long"
            );
            self.fault(path, why);
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && !matches(pattern, text)
        {
            self.fault(
                path,
                format!("Invalid value: \"{text}\": {path} in body should match '{pattern}'"),
            );
        }
    }

    fn check_quantity(&mut self, value: &Value, path: &str) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return self.wrong_type("string", value, path),
        };
        if let Err(error) = Quantity::parse(&text) {
            self.fault(path, format!("{path}: Invalid value: \"{text}\": {error}"));
        }
    }

    fn check_enum(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(allowed) = schema["enum"].as_array().filter(|all| !all.contains(value)) else {
            return;
        };
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let why = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        self.fault(path, why);
    }
}

/// Whether a schema of a built-in kind stands for an amount.
fn is_quantity(schema: &Value) -> bool {
    let target = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    target.and_then(Value::as_str).is_some_and(|it| it.ends_with(".pkg.api.resource.Quantity"))
}

fn type_of(schema: &Value) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => {
            let whole = |number: f64| number.fract() == 0.0;
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(whole)
        }
        _ => true,
    }
}

/// Whether a pattern matches; one that cannot be read refuses nothing.
fn matches(pattern: &str, text: &str) -> bool {
    static READ: OnceLock<Mutex<FxHashMap<String, Option<Regex>>>> = OnceLock::new();
    let mut read = READ.get_or_init(Mutex::default).lock();
    if !read.contains_key(pattern) {
        read.insert(pattern.to_owned(), Regex::new(pattern).ok());
    }
    read.get(pattern).and_then(Option::as_ref).is_none_or(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["mode"], "properties": {
                "count": {"type": "integer", "format": "int32", "minimum": 0.0, "nullable": true},
                "mode": {"type": "string", "enum": ["hard", "soft"]},
                "queue": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "size": {"type": "object", "additionalProperties": {
                    "x-kubernetes-int-or-string": true, "pattern": "^[0-9]+$"}},
            }},
        }})
    }

    fn found(spec: Value) -> Vec<String> {
        let faults = faults(&schema(), &Value::Null, &json!({"kind": "X", "spec": spec}));
        faults.into_iter().map(|(field, why)| format!("{field}: {why}")).collect()
    }

    #[test]
    fn what_fits_is_accepted() {
        let none: Vec<String> = Vec::new();
        assert_eq!(
            found(json!({"mode": "hard", "count": 2_147_483_647, "queue": "abc",
                                "size": {"cpu": 1, "memory": "2"}})),
            none
        );
        assert_eq!(found(json!({"mode": "soft", "count": null})), none);
    }

    #[test]
    fn each_fault_names_its_field_in_the_words_of_an_api_server() {
        assert_eq!(found(json!({})), ["spec.mode: Required value"]);
        assert_eq!(
            found(json!({"mode": "hard", "count": "3"})),
            [
                r#"spec.count: Invalid value: "string": spec.count in body must be of type integer: "string""#
            ]
        );
        assert_eq!(
            found(json!({"mode": "hard", "count": -1})),
            [
                "spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0"
            ]
        );
        assert_eq!(
            found(json!({"mode": "x", "queue": "A"})),
            [
                r#"spec.mode: Unsupported value: "x": supported values: "hard", "soft""#,
                "spec.queue: Invalid value: \"A\": spec.queue in body should match '^[a-z]+$'",
            ]
        );
        assert_eq!(found(json!({"mode": "hard", "count": 2_147_483_648_u64})).len(), 1);
        assert_eq!(
            found(json!({"mode": "hard", "queue": "abcdef"})),
            ["spec.queue: Too long: may not be more than 5 bytes"]
        );
        assert_eq!(found(json!({"mode": "hard", "size": {"cpu": true}})).len(), 1);
        assert_eq!(found(json!({"mode": "hard", "size": {"cpu": "1Gib"}})).len(), 1);
        assert_eq!(found(json!({"mode": null})).len(), 1);
    }

    #[test]
    fn unknown_fields_are_told_with_their_path() {
        let value = json!({"kind": "X", "metadata": {}, "extra": 1,
                           "spec": {"mode": "hard", "list": [{"a": "1"}, {"b": 2}]}});
        assert_eq!(unknown(&schema(), &Value::Null, &value), ["extra", "spec.list[1].b"]);
    }
}
