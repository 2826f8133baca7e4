//! Request bodies in Kubernetes' protobuf encoding.
//!
//! The generators of kubectl (`create namespace`, `create job`, `drain`) and Go programs built on client-go send built-in
//! kinds this way and cannot be told not to. Bodies are turned into the JSON that the same client would have sent;
//! answers are JSON always, which these clients accept. Messages and field numbers stand in `protobuf.txt`.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::clock::timestamp;
use crate::resource::split_api_version;
use crate::status::Refusal;

/// Four bytes before every such body.
const MAGIC: &[u8] = b"k8s\0";
/// Messages may not nest deeper than this.
const MAX_DEPTH: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct Field {
    name: &'static str,
    kind: &'static str,
    optional: bool,
    always: bool,
    inline: bool,
}

#[derive(Debug, Default)]
struct Schema {
    /// `group/`, kind, message.
    roots: Vec<(&'static str, &'static str, &'static str)>,
    messages: FxHashMap<&'static str, FxHashMap<u64, Field>>,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = Schema::default();
        let mut message = "";
        for line in include_str!("protobuf.txt").lines() {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["=", group, kind, root] => schema.roots.push((group, kind, root)),
                ["#", name] => {
                    message = name;
                    schema.messages.entry(message).or_default();
                }
                [number, name, kind, flags @ ..] => {
                    let Ok(number) = number.parse() else { continue };
                    let has = |flag: char| flags.iter().any(|f| f.contains(flag));
                    let (optional, always, inline) = (has('?'), has('!'), has('^'));
                    let field = Field { name, kind, optional, always, inline };
                    schema.messages.entry(message).or_default().insert(number, field);
                }
                _ => {}
            }
        }
        schema
    })
}

/// Decodes a body into the object it stands for.
pub(crate) fn decode(body: &Bytes) -> Result<Value, Refusal> {
    let faulty = || Refusal::bad_request("the body is not valid Kubernetes protobuf");
    let envelope = body.strip_prefix(MAGIC).ok_or_else(faulty)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for entry in Fields(envelope) {
        match entry.ok_or_else(faulty)? {
            (1, Wire::Bytes(type_meta)) => {
                for entry in Fields(type_meta) {
                    match entry.ok_or_else(faulty)? {
                        (1, Wire::Bytes(text)) => api_version = text_of(text),
                        (2, Wire::Bytes(text)) => kind = text_of(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, _) = split_api_version(&api_version);
    let root = schema()
        .roots
        .iter()
        .find(|(g, k, _)| *k == kind && (*g == "*/" || g.strip_suffix('/') == Some(group)));
    let Some((_, _, message)) = root else {
        return Err(Refusal::new(
            415,
            "UnsupportedMediaType",
            format!("kind {kind} of {api_version} is understood as application/json only"),
        ));
    };
    let mut object = decode_message(message, raw, 0).ok_or_else(faulty)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// 32 and 64 bit numbers, which no message here uses.
    Fixed,
}

/// The fields of a message in order; `None` once the bytes make no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn decode_message(message: &str, bytes: &[u8], depth: u32) -> Option<Map<String, Value>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fields = schema().messages.get(message)?;
    let mut object = Map::new();
    for entry in Fields(bytes) {
        let (number, wire) = entry?;
        // A field of a newer Kubernetes is skipped, as every protobuf reader does.
        let Some(field) = fields.get(&number) else { continue };
        if let Some(element) = field.kind.strip_prefix('*') {
            let item = decode_value(element, wire, depth)?;
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut()?.push(item);
        } else if let Some(element) = field.kind.strip_prefix('%') {
            let (key, value) = decode_entry(element, wire, depth)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut()?.insert(key, value);
        } else {
            let value = decode_value(field.kind, wire, depth)?;
            if field.inline {
                if let Value::Object(inner) = value {
                    object.extend(inner);
                }
            } else if !is_zero(&value) || field.optional || (field.always && !value.is_null()) {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Some(object)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn decode_entry(element: &str, wire: Wire<'_>, depth: u32) -> Option<(String, Value)> {
    let Wire::Bytes(bytes) = wire else { return None };
    let (mut key, mut value) = (String::new(), None);
    for entry in Fields(bytes) {
        match entry? {
            (1, Wire::Bytes(text)) => key = text_of(text),
            (2, wire) => value = Some(decode_value(element, wire, depth)?),
            _ => {}
        }
    }
    Some((key, value.or_else(|| decode_value(element, Wire::Bytes(&[]), depth))?))
}

fn decode_value(kind: &str, wire: Wire<'_>, depth: u32) -> Option<Value> {
    let bytes = match (kind, wire) {
        ("int", Wire::Varint(number)) => return Some(number.cast_signed().into()),
        ("bool", Wire::Varint(number)) => return Some((number != 0).into()),
        (_, Wire::Bytes(bytes)) => bytes,
        _ => return None,
    };
    Some(match kind {
        "string" => text_of(bytes).into(),
        "bytes" => STANDARD.encode(bytes).into(),
        "Time" | "MicroTime" => {
            let (seconds, nanos) = (number(bytes, 1)?, number(bytes, 2)?);
            if bytes.is_empty() {
                Value::Null
            } else if kind == "Time" {
                timestamp(seconds.saturating_mul(1000)).into()
            } else {
                let whole = timestamp(seconds.saturating_mul(1000));
                format!("{}.{:06}Z", whole.trim_end_matches('Z'), nanos / 1000).into()
            }
        }
        "Quantity" => text(bytes, 1)?.into(),
        "IntOrString" if number(bytes, 1)? == 0 => number(bytes, 2)?.into(),
        "IntOrString" => text(bytes, 3)?.into(),
        "Duration" => format!("{}ns", number(bytes, 1)?).into(),
        "FieldsV1" | "RawExtension" => serde_json::from_str(&text(bytes, 1)?).ok()?,
        message => Value::Object(decode_message(message, bytes, depth + 1)?),
    })
}

fn number(bytes: &[u8], wanted: u64) -> Option<i64> {
    let mut found = 0;
    for entry in Fields(bytes) {
        if let (field, Wire::Varint(number)) = entry?
            && field == wanted
        {
            found = number.cast_signed();
        }
    }
    Some(found)
}

fn text(bytes: &[u8], wanted: u64) -> Option<String> {
    let mut found = String::new();
    for entry in Fields(bytes) {
        if let (field, Wire::Bytes(text)) = entry?
            && field == wanted
        {
            found = text_of(text);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A length-delimited field.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).expect("short")];
        bytes.extend_from_slice(content);
        bytes
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
        let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        Bytes::from([MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat())
    }

    #[test]
    fn objects_become_the_json_their_client_would_have_sent() {
        let entry = [field(1, b"a"), field(2, b"b")].concat();
        // name, an empty generateName, an empty creationTimestamp, a label
        let meta = [field(1, b"n"), field(2, b""), field(8, b""), field(11, &entry)].concat();
        let zero_replicas = vec![1 << 3, 0];
        let deployment = [field(1, &meta), field(2, &zero_replicas)].concat();
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &deployment)).expect("decodes"),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "n", "labels": {"a": "b"}},
                "spec": {"replicas": 0},
            })
        );
    }

    #[test]
    fn broken_and_unknown_bodies_are_refused() {
        let cut = body("v1", "Namespace", &[10, 200]);
        assert_eq!(decode(&cut).expect_err("cut").code, 400);
        assert_eq!(decode(&Bytes::from_static(b"{}")).expect_err("json").code, 400);
        assert_eq!(decode(&body("x/v1", "Odd", b"")).expect_err("unknown").code, 415);
        assert!(decode(&body("policy/v1", "DeleteOptions", b"")).is_ok(), "any group has these");
    }
}
