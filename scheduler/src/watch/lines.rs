//! Splits a watch stream into lines, in one buffer that is used again and again, and takes a line apart into the
//! kind of change and the object's bytes without parsing the object.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Collects chunks and yields complete lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    start: usize,
}

impl Lines {
    /// Appends what was received; lines handed out before are gone.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete line without its end; empty lines are skipped.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = self.buffer.get(self.start..)?;
            let length = memchr::memchr(b'\n', rest)?;
            let from = self.start;
            self.start += length + 1;
            if length > 0 {
                return self.buffer.get(from..from + length);
            }
        }
    }
}

/// What a line of a watch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// `ADDED` or `MODIFIED`.
    Set,
    /// `DELETED`.
    Deleted,
    /// `BOOKMARK`: only the resource version counts.
    Bookmark,
    /// `ERROR`: the object is a Status.
    Error,
}

/// Takes a line apart. `None` when it is no watch event.
pub(super) fn parse(line: &[u8]) -> Option<(Change, &[u8])> {
    let (kind, object) = plain(line).or_else(|| any(line))?;
    let change = match kind {
        b"ADDED" | b"MODIFIED" => Change::Set,
        b"DELETED" => Change::Deleted,
        b"BOOKMARK" => Change::Bookmark,
        b"ERROR" => Change::Error,
        _ => return None,
    };
    Some((change, object))
}

/// The form that API servers write: `{"type":"X","object":{...}}`. Nothing is parsed.
fn plain(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = memchr::memchr(b'"', rest)?;
    let (kind, rest) = rest.split_at(end);
    let object = rest.strip_prefix(br#"","object":"#)?;
    let object = object.trim_ascii_end().strip_suffix(b"}")?;
    Some((kind, object))
}

/// Any other arrangement of the same JSON.
fn any(line: &[u8]) -> Option<(&[u8], &[u8])> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    Some((envelope.kind.as_bytes(), envelope.object.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_chunks_cut_anywhere() {
        let text = b"first\n\nsecond \xc3\xa4\nthird\n";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for chunk in [&text[..cut], &text[cut..]] {
                lines.push(chunk);
                while let Some(line) = lines.next() {
                    found.push(line.to_vec());
                }
            }
            assert_eq!(found, [&b"first"[..], b"second \xc3\xa4", b"third"]);
        }
    }

    #[test]
    fn a_line_without_its_end_is_not_handed_out() {
        let mut lines = Lines::default();
        lines.push(b"half");
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn events_are_taken_apart_in_the_usual_and_in_any_other_arrangement() {
        let object = br#"{"metadata":{"name":"a}"}}"#;
        let usual = [&br#"{"type":"ADDED","object":"#[..], object, b"}"].concat();
        assert_eq!(parse(&usual), Some((Change::Set, &object[..])));
        let other = [&br#"{ "object" : "#[..], object, br#", "type": "DELETED" }"#].concat();
        assert_eq!(parse(&other), Some((Change::Deleted, &object[..])));
        assert_eq!(parse(b"<html>"), None);
    }
}
