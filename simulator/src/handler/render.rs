//! How answers look: plain objects, metadata only, or tables for kubectl; lists put together from stored bytes.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::table;
use crate::form;
use crate::resource::Route;
use crate::status::Refusal;
use crate::store::object::{Stored, to_bytes};

/// The shape a client asked for in its Accept header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Table,
    Metadata,
}

impl Shape {
    /// Reads an Accept header. Whatever else a client would like (protobuf, CBOR, YAML), it gets JSON.
    pub(crate) fn accepted(accept: &str) -> Self {
        for part in accept.split(',') {
            let mut parameters = part.split(';').map(str::trim);
            if parameters.next() != Some("application/json") {
                continue;
            }
            for parameter in parameters {
                match parameter {
                    "as=Table" => return Self::Table,
                    "as=PartialObjectMetadata" | "as=PartialObjectMetadataList" => {
                        return Self::Metadata;
                    }
                    _ => {}
                }
            }
            return Self::Object;
        }
        Self::Object
    }
}

/// Parses a JSON request body; the message names the place of the fault.
pub(crate) fn parse_json(body: &Bytes) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|e| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized: couldn't parse JSON: {e}"
        ))
    })
}

/// One object in the asked shape.
pub(crate) fn object(route: &Route, shape: Shape, stored: &Stored, now_ms: i64) -> Bytes {
    match shape {
        Shape::Object => form::shown_json(route, stored),
        Shape::Metadata => to_bytes(&partial(&stored.value)),
        Shape::Table => {
            let rv = stored.rv.to_string();
            to_bytes(&table::table(route, std::iter::once(stored), &rv, "", None, now_ms))
        }
    }
}

fn partial(value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": value["metadata"],
    })
}

/// The metadata of a list answer.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) rv: u64,
    /// Empty on the last page.
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<usize>,
}

/// A list in the asked shape.
pub(crate) fn list<'a>(
    route: &Route,
    shape: Shape,
    items: impl Iterator<Item = &'a Stored>,
    meta: &ListMeta,
    now_ms: i64,
) -> Bytes {
    let rv = meta.rv.to_string();
    let (kind, api_version) = match shape {
        Shape::Table => {
            let table =
                table::table(route, items, &rv, &meta.continue_token, meta.remaining, now_ms);
            return to_bytes(&table);
        }
        Shape::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1"),
        Shape::Object => (route.ty.list_kind.as_str(), route.api_version()),
    };
    let mut list_meta = json!({ "resourceVersion": rv });
    if !meta.continue_token.is_empty() {
        list_meta["continue"] = meta.continue_token.as_str().into();
        if let Some(remaining) = meta.remaining {
            list_meta["remainingItemCount"] = remaining.into();
        }
    }
    let head = json!({ "kind": kind, "apiVersion": api_version, "metadata": list_meta });
    let mut out = BytesMut::with_capacity(4096);
    let head = to_bytes(&head);
    // The head without its closing brace; items follow inside it.
    out.put(head.slice(..head.len().saturating_sub(1)));
    out.put_slice(b",\"items\":[");
    for (i, stored) in items.enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        match shape {
            Shape::Metadata => out.put(to_bytes(&partial(&stored.value))),
            _ => out.put(form::shown_json(route, stored)),
        }
    }
    out.put_slice(b"]}");
    out.freeze()
}

/// A line of a watch stream.
pub(crate) fn watch_line(out: &mut BytesMut, word: &str, object: &[u8]) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(word.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers_of_real_clients_are_understood() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(Shape::accepted(kubectl), Shape::Table);
        assert_eq!(
            Shape::accepted("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Shape::Metadata
        );
        assert_eq!(
            Shape::accepted("application/vnd.kubernetes.protobuf,application/json"),
            Shape::Object
        );
        assert_eq!(Shape::accepted(""), Shape::Object);
    }
}
