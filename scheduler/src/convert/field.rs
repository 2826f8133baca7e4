//! Typed access to the fields of a JSON object by path, with errors that name the path.

use serde_json::{Map, Value};
use tephra_api::quantity::Quantity;
use tephra_api::resource;
use tephra_core::event::{Amounts, LabelSelector, Labels, ObjectKey, Quantities};

use super::{clamp, default_key};
use crate::decode::{self, DecodeError};

/// One object, or an object inside it.
pub(super) struct Object<'v> {
    kind: &'static str,
    /// Namespace, name and uid for error messages.
    identity: (&'v str, &'v str, &'v str),
    /// Path of this object inside its document, with a trailing dot; empty at the top.
    place: String,
    fields: &'v Map<String, Value>,
}

impl<'v> Object<'v> {
    /// A whole document; it must be an object with a name.
    pub(super) fn new(kind: &'static str, value: &'v Value) -> Result<Self, DecodeError> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let identity = (text("/metadata/namespace"), text("/metadata/name"), text("/metadata/uid"));
        let Value::Object(fields) = value else {
            return Err(DecodeError::at(kind, identity, ".", &value.to_string(), "is no object"));
        };
        let object = Self { kind, identity, place: String::new(), fields };
        if identity.1.is_empty() {
            let name = value.pointer("/metadata/name").unwrap_or(&Value::Null);
            return Err(object.error("metadata.name", name, "is missing"));
        }
        Ok(object)
    }

    pub(super) fn key(&self) -> ObjectKey {
        default_key(self.identity.0, self.identity.1)
    }

    /// An error about a field of this object.
    pub(super) fn error(
        &self,
        path: &str,
        value: &Value,
        problem: impl Into<String>,
    ) -> DecodeError {
        let path = format!("{}{path}", self.place);
        DecodeError::at(self.kind, self.identity, path, &value.to_string(), problem)
    }

    /// The value at a dotted path; `null` counts as absent.
    pub(super) fn get(&self, path: &str) -> Option<&'v Value> {
        let mut parts = path.split('.');
        let mut value = self.fields.get(parts.next()?)?;
        for part in parts {
            value = value.get(part)?;
        }
        (!value.is_null()).then_some(value)
    }

    /// A string, empty when absent.
    pub(super) fn text(&self, path: &str) -> Result<String, DecodeError> {
        match self.get(path) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.error(path, other, "is no string")),
        }
    }

    /// A whole number; beyond 32 bits it saturates.
    pub(super) fn int(&self, path: &str) -> Result<Option<i32>, DecodeError> {
        self.get(path).map(|value| self.number(value, path)).transpose()
    }

    /// The number that a value is.
    pub(super) fn number(&self, value: &Value, path: &str) -> Result<i32, DecodeError> {
        if let Some(number) = value.as_i64() {
            return Ok(clamp(number));
        }
        match value.as_f64() {
            Some(number) if number.fract() == 0.0 => Ok(clamp(number as i64)),
            _ => Err(self.error(path, value, "is no whole number")),
        }
    }

    /// A boolean.
    pub(super) fn flag(&self, path: &str) -> Result<Option<bool>, DecodeError> {
        match self.get(path) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.error(path, other, "is neither true nor false")),
        }
    }

    /// A time in milliseconds since the epoch, 0 when absent.
    pub(super) fn time(&self, path: &str) -> Result<i64, DecodeError> {
        let text = self.text(path)?;
        if text.is_empty() {
            return Ok(0);
        }
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(time.as_millisecond()),
            Err(_) => Err(self.error(path, &Value::from(text), "is no RFC 3339 time")),
        }
    }

    /// A duration in Go's notation in milliseconds, not negative; `None` when absent.
    pub(super) fn duration(&self, path: &str) -> Result<Option<i64>, DecodeError> {
        let text = self.text(path)?;
        if text.is_empty() {
            return Ok(None);
        }
        let duration = if text == "0" { Ok(jiff::SignedDuration::ZERO) } else { text.parse() };
        match duration.map(|duration: jiff::SignedDuration| duration.as_millis()) {
            Ok(ms @ 0..) => Ok(Some(i64::try_from(ms).unwrap_or(i64::MAX))),
            _ => Err(self.error(path, &Value::from(text), "is no duration like 90s or 1h30m")),
        }
    }

    /// What one of some words stands for; `None` when absent.
    pub(super) fn word<T: Copy>(
        &self,
        path: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, DecodeError> {
        let text = self.text(path)?;
        match words.iter().find(|(word, _)| *word == text) {
            Some(&(_, meaning)) => Ok(Some(meaning)),
            None if text.is_empty() => Ok(None),
            None => Err(self.error(path, &Value::from(text), "is none of its words")),
        }
    }

    /// Entries of a map.
    pub(super) fn entries(&self, path: &str) -> Result<Vec<(String, Value)>, DecodeError> {
        match self.get(path) {
            None => Ok(Vec::new()),
            Some(Value::Object(map)) => {
                Ok(map.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
            }
            Some(other) => Err(self.error(path, other, "is no map")),
        }
    }

    /// Objects of a list.
    pub(super) fn items(&self, path: &str) -> Result<Vec<Object<'v>>, DecodeError> {
        let items = match self.get(path) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(self.error(path, other, "is no list")),
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::Object(fields) => Ok(Object {
                    kind: self.kind,
                    identity: self.identity,
                    place: format!("{}{path}[{index}].", self.place),
                    fields,
                }),
                other => Err(self.error(&format!("{path}[{index}]"), other, "is no object")),
            })
            .collect()
    }

    /// The object at a path; an empty one counts as absent.
    pub(super) fn part(&self, path: &str) -> Result<Option<Object<'v>>, DecodeError> {
        match self.get(path) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok((!fields.is_empty()).then(|| Object {
                kind: self.kind,
                identity: self.identity,
                place: format!("{}{path}.", self.place),
                fields,
            })),
            Some(other) => Err(self.error(path, other, "is no object")),
        }
    }

    /// Strings of a list.
    pub(super) fn texts(&self, path: &str) -> Result<Vec<String>, DecodeError> {
        let items = match self.get(path) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(self.error(path, other, "is no list")),
        };
        let text = |item: &Value| match item {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.error(path, other, "is no string")),
        };
        items.iter().map(text).collect()
    }

    /// A label selector; `None` when absent.
    pub(super) fn selector(&self, path: &str) -> Result<Option<LabelSelector>, DecodeError> {
        let Some(value) = self.get(path) else { return Ok(None) };
        decode::selector(&value.to_string())
            .map(Some)
            .map_err(|error| self.error(path, value, error.to_string()))
    }

    /// Labels or annotations, sorted.
    pub(super) fn labels(&self, path: &str) -> Result<Labels, DecodeError> {
        let mut labels: Labels = self
            .entries(path)?
            .into_iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key, text)),
                Value::Null => Ok((key, String::new())),
                other => Err(self.error(&format!("{path}.{key}"), &other, "is no string")),
            })
            .collect::<Result<_, _>>()?;
        labels.sort();
        Ok(labels)
    }

    /// A resource list in stored units, sorted; `None` when absent.
    pub(super) fn amounts(&self, path: &str) -> Result<Option<Amounts>, DecodeError> {
        if self.get(path).is_none() {
            return Ok(None);
        }
        let mut amounts = Amounts::new();
        for (name, value) in self.entries(path)? {
            let place = format!("{path}.{name}");
            let quantity = self.quantity(&value, &place)?;
            if let Some(amount) = resource::stored_amount(&name, &quantity) {
                amounts.push((name, amount));
            }
        }
        amounts.sort();
        Ok(Some(amounts))
    }

    /// A resource list as written, sorted.
    pub(super) fn quantities(&self, path: &str) -> Result<Quantities, DecodeError> {
        let mut quantities = Quantities::new();
        for (name, value) in self.entries(path)? {
            let quantity = self.quantity(&value, &format!("{path}.{name}"))?;
            quantities.push((name, quantity));
        }
        quantities.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(quantities)
    }

    fn quantity(&self, value: &Value, path: &str) -> Result<Quantity, DecodeError> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => return Err(self.error(path, other, "is no quantity")),
        };
        let quantity = Quantity::parse(&text)
            .map_err(|error| self.error(path, value, format!("is no quantity ({error})")))?;
        if quantity.value() < 0 || quantity.milli_value() < 0 {
            return Err(self.error(path, value, "is negative"));
        }
        Ok(quantity)
    }
}
