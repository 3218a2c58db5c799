//! One request and its answer: a POST, its headers, and the message that carries our id.

use super::body::Messages;
use super::breaker::Breaker;
use super::error::{Challenge, RpcFailure, UpstreamError};
use super::pool::Pool;
use super::resume::Resumptions;
use super::{Listening, wire};
use crate::caller::Caller;
use crate::mcp::{self, Answer, Era, Message, ProtocolVersion, code, names};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Longest response text of a status code that is relayed as an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Why nothing is sent for a while.
const LEFT_ALONE: &str = "connecting failed again and again, so it is left alone for some seconds";

/// A request that is ready to be sent.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    /// A raw JSON object.
    pub(super) params: &'a str,
    pub(super) version: ProtocolVersion,
    pub(super) session: Option<&'a HeaderValue>,
    /// `Mcp-Name` and `Mcp-Param-*`.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) timeout: Duration,
    pub(super) bytes_max: usize,
    /// Who hears what is told before the answer.
    pub(super) listening: Option<Listening<'a>>,
}

/// What came back for a request that was answered.
#[derive(Debug)]
pub(super) struct Reply {
    /// The raw result.
    pub(super) result: Bytes,
    /// The session that the answer names.
    pub(super) session: Option<HeaderValue>,
}

/// The connection pool and where it leads. The only place that sends anything to the upstream.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) pool: Arc<Pool>,
    pub(super) url: Url,
    pub(super) breaker: Arc<Breaker>,
}

impl Wire {
    /// Sends one request and waits for its answer.
    pub(super) async fn send(&self, caller: &Caller, request: Request<'_>) -> Result<Reply, UpstreamError> {
        let timeout = request.timeout;
        tokio::time::timeout(timeout, self.send_unbounded(caller, request))
            .await
            .unwrap_or(Err(UpstreamError::TimedOut(timeout)))
    }

    async fn send_unbounded(&self, caller: &Caller, request: Request<'_>) -> Result<Reply, UpstreamError> {
        let id = wire::fresh_id();
        let body = wire::request(&id, request.method, request.params);
        let mut headers = base_headers(caller, request.version, request.session);
        if request.version.era() == Era::Modern {
            headers.insert(names::METHOD, HeaderValue::from_static(request.method));
        }
        headers.extend(request.headers.iter().cloned());
        let mut unfinished = Unfinished::new(self, caller, &request, &id);
        let response = self.post(headers, body).await?;
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            unfinished.finish();
            return Err(challenge(&response));
        }
        if status.is_redirection() || status == http::StatusCode::SWITCHING_PROTOCOLS {
            return Err(UpstreamError::Status(status.as_u16()));
        }
        let session = response.headers().get(names::SESSION_ID).cloned();
        let failed = !status.is_success();
        let bytes_max = if failed { ERROR_BYTES_MAX.min(request.bytes_max) } else { request.bytes_max };
        let messages = Messages::new(response, bytes_max);
        let answer = match messages {
            Ok(messages) => self.answer(caller, &request, messages, &id, status).await,
            Err(error) => Err(error),
        };
        unfinished.finish();
        match answer {
            // That status was somebody else's too.
            Err(UpstreamError::OutOfStep) => Err(UpstreamError::OutOfStep),
            Err(error) if request.session.is_some() && is_lost_session(&error, status.as_u16()) => {
                Err(UpstreamError::SessionLost)
            }
            // Whatever was wrong with the body, the status says more.
            Err(UpstreamError::Cut | UpstreamError::Invalid(_) | UpstreamError::TooLarge(_)) if failed => {
                Err(UpstreamError::Status(status.as_u16()))
            }
            answer => answer.map(|result| Reply { result, session }),
        }
    }

    /// Posts something that has no answer, and looks only at whether it was refused.
    pub(super) async fn notify(
        &self,
        caller: &Caller,
        version: ProtocolVersion,
        session: Option<&HeaderValue>,
        body: String,
        timeout: Duration,
    ) -> Result<(), UpstreamError> {
        let send = async {
            let response = self.post(base_headers(caller, version, session), body).await?;
            match response.status().as_u16() {
                401 | 403 => Err(challenge(&response)),
                _ => Ok(()),
            }
        };
        tokio::time::timeout(timeout, send).await.unwrap_or(Err(UpstreamError::TimedOut(timeout)))
    }

    /// Ends a legacy session. Best effort: a server may not allow it.
    pub(super) async fn delete_session(
        &self,
        caller: &Caller,
        version: ProtocolVersion,
        session: &HeaderValue,
    ) {
        let headers = base_headers(caller, version, Some(session));
        let request = self.pool.client().delete(self.url.clone()).headers(headers).send();
        let _outcome = tokio::time::timeout(Duration::from_secs(5), request).await;
    }

    async fn post(&self, headers: HeaderMap, body: String) -> Result<reqwest::Response, UpstreamError> {
        let attempt = self.breaker.attempt().ok_or(UpstreamError::NoConnection(LEFT_ALONE))?;
        let sent = self.pool.client().post(self.url.clone()).headers(headers).body(body).send().await;
        attempt.end(!sent.as_ref().is_err_and(reqwest::Error::is_connect));
        sent.map_err(|error| UpstreamError::of_request(&error))
    }

    /// Reads messages until the one that answers `id`.
    async fn answer(
        &self,
        caller: &Caller,
        request: &Request<'_>,
        mut messages: Messages,
        id: &str,
        status: http::StatusCode,
    ) -> Result<Bytes, UpstreamError> {
        let failed = !status.is_success();
        let mut resumptions = Resumptions::of(request);
        loop {
            let text = match messages.next().await {
                Ok(Some(text)) => text,
                Ok(None) | Err(UpstreamError::Cut) if !failed => {
                    self.resume(caller, request, &mut messages, &mut resumptions).await?;
                    continue;
                }
                Ok(None) => return Err(UpstreamError::Cut),
                Err(error) => return Err(error),
            };
            let message = parse(&text)?;
            match mcp::parse_answer(&message, id, failed && !messages.is_stream()) {
                Some(Answer::Result(result)) => return Ok(text.slice_ref(result.get().as_bytes())),
                Some(Answer::Error(error)) => {
                    // Without an id it may be of another request, so its words are nobody's.
                    let is_ours = message.id.is_some_and(|raw| raw.get() == id);
                    return Err(UpstreamError::Rpc(RpcFailure {
                        http_status: status.as_u16(),
                        code: error.code,
                        message: if is_ours { error.message.into_owned() } else { anonymous(status) },
                        data: error.data.map(|data| data.get().to_owned()),
                    }));
                }
                // A stream may hold notifications, and a legacy one requests.
                None if messages.is_stream() => self.aside(caller, request, &message, &text).await,
                // One body holds one answer, and an answer to somebody else means that the connection is out of step.
                None if message.id.is_some_and(|other| other.get() != "null" && other.get() != id) => {
                    self.pool.replace();
                    return Err(UpstreamError::OutOfStep);
                }
                None => return Err(UpstreamError::Invalid("it answers another request")),
            }
        }
    }

    /// Deals with a message of a stream that is not the answer.
    async fn aside(&self, caller: &Caller, request: &Request<'_>, message: &Message<'_>, text: &Bytes) {
        if let Some(listening) = request.listening.filter(|listening| is_wanted(message, listening)) {
            // Nobody listens any more when the client is gone; the call then ends by itself or with its task.
            let _gone = listening.notices.send(text.clone()).await;
        } else if request.version.era() == Era::Legacy
            && let Some(reply) = reply_to_server_request(message)
        {
            self.reply_in_background(caller, request.version, request.session, reply);
        }
    }

    /// Posts an answer to the server's own request, or a notification, beside the call that it belongs to.
    fn reply_in_background(
        &self,
        caller: &Caller,
        version: ProtocolVersion,
        session: Option<&HeaderValue>,
        reply: String,
    ) {
        let (wire, caller, session) = (self.clone(), caller.clone(), session.cloned());
        // At the very end of the process there is nothing left to spawn on.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let sent = wire.notify(&caller, version, session.as_ref(), reply, Duration::from_secs(5)).await;
            if let Err(error) = sent {
                tracing::debug!(error = error.kind(), "a message beside a call could not be sent");
            }
        });
    }
}

fn parse(text: &Bytes) -> Result<Message<'_>, UpstreamError> {
    let invalid = if text.trim_ascii_start().starts_with(b"<") {
        UpstreamError::Invalid("it is HTML or XML, so the URL is probably not an MCP endpoint")
    } else {
        UpstreamError::Invalid("it is not a JSON-RPC message")
    };
    let raw = serde_json::from_slice(text).map_err(|_| {
        // JSON that stops in the middle was cut off; anything else was never JSON.
        let starts = text.trim_ascii_start().first();
        if text.is_empty() || (starts == Some(&b'{') && !text.trim_ascii_end().ends_with(b"}")) {
            UpstreamError::Cut
        } else {
            invalid.clone()
        }
    })?;
    Message::parse(raw).map_err(|_| invalid)
}

/// The headers of every request: of the caller's only `Authorization`, the rest is ours.
pub(super) fn base_headers(
    caller: &Caller,
    version: ProtocolVersion,
    session: Option<&HeaderValue>,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(names::PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    if let Some(authorization) = caller.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    if let Some(session) = session {
        headers.insert(names::SESSION_ID, session.clone());
    }
    headers
}

/// Our words for an error that names no request.
fn anonymous(status: http::StatusCode) -> String {
    format!("HTTP {} without a word for this request", status.as_u16())
}

fn challenge(response: &reqwest::Response) -> UpstreamError {
    UpstreamError::Unauthorized(Challenge {
        status: response.status().as_u16(),
        www_authenticate: response.headers().get_all(WWW_AUTHENTICATE).iter().cloned().collect(),
    })
}

/// Whether a failed request with a session means that the upstream no longer knows it. The specification says 404;
/// servers in the wild answer 400 with a general code, or with no JSON-RPC at all.
fn is_lost_session(error: &UpstreamError, status: u16) -> bool {
    match (status, error) {
        (404, _) => true,
        (400, UpstreamError::Rpc(failure)) => {
            matches!(failure.code, -32_001 | -32_000 | code::INVALID_REQUEST)
        }
        (400, UpstreamError::Cut | UpstreamError::Invalid(_)) => true,
        _ => false,
    }
}

/// Whether a message is a notification that the client asked for: progress under its token, or a log message of its
/// level or above. Servers escape strings in different ways, so tokens are compared by value.
fn is_wanted(message: &Message<'_>, listening: &Listening<'_>) -> bool {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "progressToken")]
        token: Option<&'a RawValue>,
        #[serde(borrow, default)]
        level: Option<&'a RawValue>,
    }
    let params =
        message.params.and_then(|params| mcp::from_object::<Params<'_>>(params.get().as_bytes()).ok());
    let (None, Some(params)) = (message.id, params) else { return false };
    match message.method_name().as_deref() {
        Some("notifications/message") => match (params.level, listening.log_level) {
            (Some(level), Some(wanted)) => log_severity(level) >= log_severity(wanted),
            _ => false,
        },
        Some("notifications/progress") => match (params.token, listening.progress_token) {
            (Some(token), Some(ours)) => token.get() == ours.get() || is_same_string(token, ours),
            _ => false,
        },
        _ => false,
    }
}

fn is_same_string(one: &RawValue, other: &RawValue) -> bool {
    let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
    text(one).is_some_and(|one| Some(one) == text(other))
}

/// From 0, debug, to 7, emergency; unknown levels are passed on with the most severe.
fn log_severity(level: &RawValue) -> usize {
    let level = level.get().trim_matches('"');
    mcp::LOG_LEVELS.iter().position(|known| *known == level).unwrap_or(mcp::LOG_LEVELS.len())
}

/// A tool call that is cancelled when it is dropped before its end. A modern upstream takes the closed connection for
/// that; a legacy one has to be told.
struct Unfinished<'a> {
    wire: &'a Wire,
    caller: &'a Caller,
    version: ProtocolVersion,
    session: Option<&'a HeaderValue>,
    /// The id to cancel; `None` when there is nothing to tell.
    id: Option<&'a str>,
}

impl<'a> Unfinished<'a> {
    fn new(wire: &'a Wire, caller: &'a Caller, request: &Request<'a>, id: &'a str) -> Self {
        let tells = request.method == "tools/call" && request.version.era() == Era::Legacy;
        let (version, session) = (request.version, request.session);
        Self { wire, caller, version, session, id: tells.then_some(id) }
    }

    fn finish(&mut self) {
        self.id = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let cancelled = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the caller is gone or the time is up"}}}}"#
            );
            self.wire.reply_in_background(self.caller, self.version, self.session, cancelled);
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
