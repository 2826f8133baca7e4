//! Defaults of custom resources: what a definition gives to fields that a client left out.

use serde_json::Value;

/// Fills in the defaults of `schema` wherever their parent is present. A null takes the default too, unless the schema
/// says that null is a value of its own.
pub(super) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                let Some(default) = schema.get("default") else { continue };
                let absent = match fields.get(name) {
                    None => true,
                    Some(found) => found.is_null() && schema["nullable"] != true,
                };
                if absent {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                let field = schema["properties"].get(name);
                if let Some(schema) = field.or_else(|| schema.get("additionalProperties")) {
                    fill(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(schema, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_and_null_fields_take_their_default_where_the_parent_is_present() {
        let mode = json!({"type": "object", "properties": {
            "mode": {"type": "string", "default": "hard"},
            "tier": {"type": "integer", "default": 1, "nullable": true},
        }});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "queue": {"type": "string", "default": "default"},
            "topology": mode,
            "groups": {"type": "array", "items": mode},
            "by_name": {"type": "object", "additionalProperties": mode},
        }}}});
        let mut bare = json!({"metadata": {}});
        fill(&schema, &mut bare);
        assert_eq!(bare, json!({"metadata": {}}));
        let mut object = json!({"spec": {
            "topology": {"mode": null, "tier": null}, "groups": [{"mode": "soft"}, {}],
            "by_name": {"a": {}}, "other": 1}});
        fill(&schema, &mut object);
        assert_eq!(
            object,
            json!({"spec": {
                "queue": "default", "topology": {"mode": "hard", "tier": null},
                "groups": [{"mode": "soft", "tier": 1}, {"mode": "hard", "tier": 1}],
                "by_name": {"a": {"mode": "hard", "tier": 1}}, "other": 1}})
        );
    }
}
