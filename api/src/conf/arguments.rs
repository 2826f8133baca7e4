//! Arguments of plugins and actions with Volcano's typing (spec 1.4): a value of the wrong type is reported and
//! the default stays, nothing ends the process.

use std::collections::BTreeMap;

use serde_json::Value;

/// Arguments by name, in order of the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// Arguments from pairs.
    pub fn new(pairs: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// Raw value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Names in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// No arguments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        warnings: &mut Vec<String>,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.0.get(key)?;
        let typed = read(value);
        if typed.is_none() {
            warnings.push(format!("argument {key} must be {expected}, not {value}: ignored"));
        }
        typed
    }

    /// A whole number; a quoted one does not count.
    pub fn int(&self, key: &str, warnings: &mut Vec<String>) -> Option<i64> {
        self.typed(key, "a whole number", warnings, Value::as_i64)
    }

    /// A number.
    pub fn float(&self, key: &str, warnings: &mut Vec<String>) -> Option<f64> {
        self.typed(key, "a number", warnings, Value::as_f64)
    }

    /// A boolean, or a text that Go reads as one.
    pub fn bool(&self, key: &str, warnings: &mut Vec<String>) -> Option<bool> {
        self.typed(key, "true or false", warnings, |value| match value {
            Value::Bool(on) => Some(*on),
            Value::String(text) => match text.as_str() {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
                _ => None,
            },
            _ => None,
        })
    }

    /// A text.
    pub fn string(&self, key: &str, warnings: &mut Vec<String>) -> Option<String> {
        self.typed(key, "a text", warnings, |value| value.as_str().map(str::to_owned))
    }
}
