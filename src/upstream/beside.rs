//! What is sent beside a call: answers to what a legacy server asks in between, and the word that a call is given up.
//!
//! Nobody waits for it, so it may cost nobody anything: **each call has one queue, one message of it is under way at a
//! time, and what does not fit is dropped**, however much the server asks. Nothing is sent while the upstream is left
//! alone, and whether it arrives tells the breaker nothing.

use super::error::UpstreamError;
use super::exchange::{Request, Wire, base_headers};
use crate::caller::Caller;
use crate::mcp::{Era, Message, ProtocolVersion};
use bytes::Bytes;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// Most messages of one call that wait.
const WAITING_MAX: usize = 8;
/// How long one of them may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The answers to a server's requests in one call.
#[derive(Default)]
pub(super) struct Replies(Option<mpsc::Sender<String>>);

impl Replies {
    /// Answers, if the message is a request of a legacy server, and there is room.
    pub(super) fn answer(
        &mut self,
        wire: &Wire,
        caller: &Caller,
        request: &Request<'_>,
        message: &Message<'_>,
    ) {
        if request.version.era() != Era::Legacy {
            return;
        }
        let Some(reply) = reply_to_server_request(message) else { return };
        let queue = self.0.get_or_insert_with(|| {
            let (queue, mut waiting) = mpsc::channel(WAITING_MAX);
            let (wire, caller, session) = (wire.clone(), caller.clone(), request.session.cloned());
            let version = request.version;
            tokio::spawn(async move {
                while let Some(reply) = waiting.recv().await {
                    // Where one does not arrive, the others would only wait for the same.
                    if wire.tell(&caller, version, session.as_ref(), reply).await.is_err() {
                        return;
                    }
                }
            });
            queue
        });
        if queue.try_send(reply).is_err() {
            tracing::debug!("an answer to a request of the server was dropped");
        }
    }
}

/// The answer to a request of a legacy server: a ping gets its pong, and nothing else was offered.
fn reply_to_server_request(message: &Message<'_>) -> Option<String> {
    let id = message.valid_id()?.get();
    let method = message.method_name()?;
    Some(if method == "ping" {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
    } else {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"this client declared no such capability"}}}}"#
        )
    })
}

impl Wire {
    /// Posts a message that nobody waits for.
    async fn tell(
        &self,
        caller: &Caller,
        version: ProtocolVersion,
        session: Option<&HeaderValue>,
        message: String,
    ) -> Result<(), UpstreamError> {
        if self.breaker.is_open() {
            return Err(UpstreamError::Unreachable);
        }
        let request =
            self.pool.client().post(self.url.clone()).headers(base_headers(caller, version, session));
        let told = tokio::time::timeout(TIMEOUT, request.body(message).send()).await;
        match told {
            Ok(Ok(_)) => Ok(()),
            _ => {
                tracing::debug!("a message beside a call could not be sent");
                Err(UpstreamError::Unreachable)
            }
        }
    }
}

/// A tool call that is cancelled when it is dropped between its sending and its answer. A modern upstream takes the
/// closed connection for that; a legacy one has to be told.
pub(super) struct Unfinished<'a> {
    wire: &'a Wire,
    caller: &'a Caller,
    version: ProtocolVersion,
    session: Option<&'a HeaderValue>,
    /// The id to cancel; `None` when there is nothing to tell.
    id: Option<&'a str>,
    is_sent: Arc<AtomicBool>,
}

impl<'a> Unfinished<'a> {
    pub(super) fn new(wire: &'a Wire, caller: &'a Caller, request: &Request<'a>, id: &'a str) -> Self {
        let tells = request.method == "tools/call" && request.version.era() == Era::Legacy;
        let (version, session) = (request.version, request.session);
        Self { wire, caller, version, session, id: tells.then_some(id), is_sent: Arc::default() }
    }

    /// The body of the request, which notes when it leaves.
    pub(super) fn body(&self, body: String) -> reqwest::Body {
        reqwest::Body::wrap(NotedBody { bytes: Some(body.into()), is_sent: Arc::clone(&self.is_sent) })
    }

    pub(super) fn finish(&mut self) {
        self.id = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // At the very end of the process there is nothing left to spawn on.
        let (Some(id), Ok(runtime)) = (self.id, tokio::runtime::Handle::try_current()) else { return };
        if !self.is_sent.load(Ordering::Relaxed) {
            return;
        }
        let cancelled = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the caller is gone or the time is up"}}}}"#
        );
        let (wire, caller, session) = (self.wire.clone(), self.caller.clone(), self.session.cloned());
        let version = self.version;
        runtime.spawn(async move {
            let _best_effort = wire.tell(&caller, version, session.as_ref(), cancelled).await;
        });
    }
}

/// A body of one piece. It is asked for when there is a connection to put it on.
struct NotedBody {
    bytes: Option<Bytes>,
    is_sent: Arc<AtomicBool>,
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.is_sent.store(true, Ordering::Relaxed);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Salt;
    use crate::upstream::breaker::Breaker;
    use crate::upstream::pool::Pool;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    fn wire(listener: &TcpListener) -> Wire {
        let client =
            crate::outbound::client(&crate::outbound::Tls::default(), &[], TIMEOUT).unwrap().build().unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let pool = Arc::new(Pool::new(client, || None));
        Wire { pool, url, breaker: Arc::new(Breaker::new(TIMEOUT)) }
    }

    /// The body of the next request that comes.
    async fn posted(listener: &TcpListener) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"}}") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        String::from_utf8(read).unwrap()
    }

    async fn send(mut body: reqwest::Body) {
        while std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {}
    }

    #[tokio::test]
    async fn only_a_call_that_was_sent_and_has_no_answer_is_cancelled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (wire, caller) =
            (wire(&listener), Caller::from_headers(&http::HeaderMap::new(), &Salt::random()));
        let caller = caller.unwrap();
        let request = |method, version| Request {
            method,
            params: "{}",
            version,
            session: None,
            headers: Vec::new(),
            timeout: TIMEOUT,
            bytes_max: 1024,
            listening: None,
            reader: None,
        };
        let legacy = ProtocolVersion::V2025_11_25;
        // Given up while there was no connection yet: its body was made, and nobody asked for it.
        let waiting = Unfinished::new(&wire, &caller, &request("tools/call", legacy), "\"waiting\"");
        let _never_asked_for = waiting.body("{}".to_owned());
        drop(waiting);
        for (method, version, is_answered, id) in [
            ("tools/call", legacy, true, "\"answered\""),
            ("tools/list", legacy, false, "\"no call\""),
            ("tools/call", ProtocolVersion::V2026_07_28, false, "\"modern\""),
            ("tools/call", legacy, false, "\"sent\""),
        ] {
            let mut unfinished = Unfinished::new(&wire, &caller, &request(method, version), id);
            send(unfinished.body("{}".to_owned())).await;
            if is_answered {
                unfinished.finish();
            }
        }
        // What is told is told in order, so that this one is the first means that it is the only one.
        let told = tokio::time::timeout(Duration::from_secs(10), posted(&listener)).await;
        let told = told.expect("something is told");
        assert!(told.contains("notifications/cancelled") && told.contains(r#""requestId":"sent""#), "{told}");
    }
}
