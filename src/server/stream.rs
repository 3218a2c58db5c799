//! An answer as a stream of events: what the upstream tells while a call runs, as it comes, then the answer itself.
//!
//! Used only where the upstream has something to tell before its answer and the client asked to be told; otherwise an
//! answer is plain JSON.

use super::respond;
use super::running::Running;
use crate::mcp::Payload;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a stream is silent before a comment keeps proxies from closing it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where a running call tells of itself; each message is a whole JSON-RPC notification.
pub(super) type Notices = mpsc::Receiver<Bytes>;

/// The response that starts with `first` and goes on until the request's task ends. Dropping its body is the client's
/// disconnect.
pub(super) fn response(first: Bytes, notices: Notices, running: Running) -> Response {
    let events = stream::once(async move { event(Payload::from(first)) }).chain(rest(notices, running));
    let frames = events.flat_map(|event| {
        stream::iter(event.into_pieces()).map(|piece| Ok::<_, Infallible>(http_body::Frame::data(piece)))
    });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Events until the task's end, then its answer.
fn rest(notices: Notices, running: Running) -> impl Stream<Item = Payload> {
    stream::unfold(Some((notices, running)), async |state| {
        let (mut notices, mut running) = state?;
        match tokio::time::timeout(KEEP_ALIVE, notices.recv()).await {
            Ok(Some(notice)) => Some((event(Payload::from(notice)), Some((notices, running)))),
            Err(_) => Some((Payload::from(&b":\n\n"[..]), Some((notices, running)))),
            // The task dropped its sender, so its answer is there or about to be.
            Ok(None) => {
                let answered = running.finish().await;
                Some((event(respond::message_of(answered)), None))
            }
        }
    })
}

/// A message as one event. JSON may span lines, and each line of it becomes a line of data.
fn event(message: Payload) -> Payload {
    let mut out = Payload::from(&b"event: message\ndata: "[..]);
    for piece in message.into_pieces() {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            out.push(rest.split_to(end));
            out.push(&b"\ndata: "[..]);
            let _line_end = rest.split_to(1);
        }
        out.push(rest);
    }
    out.push(&b"\n\n"[..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::SseDecoder;

    #[test]
    fn m9_json_of_several_lines_is_one_event_with_the_same_value() {
        let mut message = Payload::from("{\"a\":\r\n [1,\n");
        message.push("2],\"b\":\"x\\ny\"}\n");
        let mut events = Vec::new();
        SseDecoder::new(1000).push(&event(message).into_bytes(), &mut events).unwrap();
        let [event] = events.as_slice() else { panic!("{} events", events.len()) };
        let value: serde_json::Value = serde_json::from_slice(event).unwrap();
        assert_eq!(value, serde_json::json!({"a": [1, 2], "b": "x\ny"}));
    }
}
