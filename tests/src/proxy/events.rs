//! Passes a watch on: each event is one line of JSON.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;

use super::rule::{Fault, Target};
use super::{Body, State, status};

/// How a watch goes on after a line.
enum Next {
    Pass(Bytes),
    /// Passed, and the last.
    End(Bytes),
    /// Passed, then the connection breaks.
    Break(Bytes),
}

/// Lines of a body, each with its line feed; what is left at the end is no event.
fn lines(
    frames: impl Stream<Item = anyhow::Result<Bytes>> + Send + Unpin + 'static,
) -> impl Stream<Item = anyhow::Result<Bytes>> + Send + Unpin {
    Box::pin(stream::try_unfold((frames, BytesMut::new()), async |(mut frames, mut kept)| {
        loop {
            if let Some(at) = kept.iter().position(|byte| *byte == b'\n') {
                let line = kept.split_to(at + 1).freeze();
                return Ok(Some((line, (frames, kept))));
            }
            match frames.next().await {
                None => return Ok(None),
                Some(frame) => kept.extend_from_slice(&frame?),
            }
        }
    }))
}

/// The body that the client sees.
pub(super) fn pass(
    state: Arc<State>,
    target: Target,
    frames: impl Stream<Item = anyhow::Result<Bytes>> + Send + Unpin + 'static,
) -> Body {
    let next = move |line: anyhow::Result<Bytes>| line.map(|line| strike(&state, &target, line));
    let told = lines(frames).map(next).flat_map(|next| {
        let (bytes, after) = match next {
            Ok(Next::Pass(bytes)) => (bytes, None),
            Ok(Next::End(bytes)) => (bytes, Some(Ok(None))),
            Ok(Next::Break(bytes)) => (bytes, Some(Err(anyhow::anyhow!("broken off by a rule")))),
            Err(error) => (Bytes::new(), Some(Err(error))),
        };
        stream::iter([Some(Ok(Some(bytes))), after].into_iter().flatten())
    });
    // `None` ends the stream in order.
    let told = told.take_while(|it| std::future::ready(!matches!(it, Ok(None))));
    let told = told.filter_map(|it| std::future::ready(it.transpose()));
    StreamBody::new(told.map(|bytes| bytes.map(Frame::data))).boxed_unsync()
}

fn strike(state: &State, target: &Target, line: Bytes) -> Next {
    let text = String::from_utf8_lossy(&line);
    // A bookmark tells of no object.
    let fault =
        if text.contains(r#""type":"BOOKMARK""#) { None } else { state.fault(true, target, &text) };
    match fault {
        Some(Fault::Cut) => Next::End(Bytes::new()),
        Some(Fault::Truncate) => Next::Break(line.slice(..line.len() / 2)),
        Some(Fault::Drop) => Next::Pass(Bytes::new()),
        Some(Fault::Duplicate) => Next::Pass([&*line, &*line].concat().into()),
        Some(Fault::Expire) => {
            let event = json!({"type": "ERROR", "object": status(410)});
            Next::End(format!("{event}\n").into())
        }
        _ => Next::Pass(line.clone()),
    }
}
