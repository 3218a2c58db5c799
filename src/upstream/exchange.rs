//! One request and its answer: a POST, its headers, and the message that carries our id.

use super::beside::{Replies, Unfinished};
use super::body::Messages;
use super::breaker::Breaker;
use super::error::{Challenge, FailureStage, RpcFailure, UpstreamError};
use super::pool::Pool;
use super::resume::Resumptions;
use super::{Listening, wire};
use crate::budget::Reader;
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

/// What servers by custom answer for a session that they do not know.
const SESSION_NOT_FOUND: i64 = -32_001;

/// What is wrong with a body that answers somebody else.
const ANOTHER: &str = "it answers another request";

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
    /// Whose room the answer takes while it is read and for as long as it is needed.
    pub(super) reader: Option<&'a Reader>,
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
        let body = unfinished.body(body);
        let response = self.post(headers, body).await?;
        let status = response.status();
        if !status.is_success() {
            unfinished.finish();
        }
        if matches!(status.as_u16(), 401 | 403) {
            return Err(challenge(&response));
        }
        if status.is_redirection() || status == http::StatusCode::SWITCHING_PROTOCOLS {
            return Err(UpstreamError::Status(status.as_u16()));
        }
        let session = response.headers().get(names::SESSION_ID).cloned();
        let failed = !status.is_success();
        let bytes_max = if failed { ERROR_BYTES_MAX.min(request.bytes_max) } else { request.bytes_max };
        let answer = match Messages::new(response, bytes_max, request.reader) {
            Ok(messages) => self.answer(caller, &request, messages, &id, status).await,
            Err(_) if failed => Err(UpstreamError::Unclear(status.as_u16())),
            Err(error) => Err(error),
        };
        unfinished.finish();
        match answer {
            // That status was somebody else's too.
            Err(UpstreamError::OutOfStep) => Err(UpstreamError::OutOfStep),
            Err(error) if request.session.is_some() && is_lost_session(&error) => {
                Err(UpstreamError::SessionLost)
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
            let response = self.post(base_headers(caller, version, session), body.into()).await?;
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

    async fn post(
        &self,
        headers: HeaderMap,
        body: reqwest::Body,
    ) -> Result<reqwest::Response, UpstreamError> {
        self.attempt(self.pool.client().post(self.url.clone()).headers(headers).body(body)).await
    }

    /// Sends a request that somebody waits for, unless the upstream is left alone now.
    pub(super) async fn attempt(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, UpstreamError> {
        let attempt = self.breaker.attempt().ok_or(UpstreamError::NoConnection(LEFT_ALONE))?;
        let sent = request.send().await;
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
        let mut replies = Replies::default();
        loop {
            let text = match messages.next().await {
                Ok(Some(text)) => text,
                Ok(None) | Err(UpstreamError::Cut) if !failed => {
                    self.resume(caller, request, &mut messages, &mut resumptions).await?;
                    continue;
                }
                // No body at all is a plain refusal. A stream was begun, and of what can't be read nothing is known.
                Ok(None) if !messages.is_stream() => return Err(UpstreamError::Status(status.as_u16())),
                Ok(None) | Err(_) if failed => return Err(UpstreamError::Unclear(status.as_u16())),
                Ok(None) => return Err(UpstreamError::Cut),
                Err(error) => return Err(error),
            };
            let batch = batch(&text, request.version);
            let place = match (messages.is_stream(), failed && batch.is_none()) {
                (true, _) => Place::Stream,
                (false, may_be_unread) => Place::Body { may_be_unread },
            };
            let is_batch = batch.is_some();
            for text in batch.unwrap_or_else(|| vec![text]) {
                let message = parse(&text).map_err(|error| of_unreadable(error, place, &text, status))?;
                if let Some(answer) = judge(&message, &text, id, place, status) {
                    return answer;
                }
                if place != Place::Stream && !is_batch {
                    return Err(self.of_another_request(&message, status));
                }
                // A stream may hold notifications, and a legacy one requests.
                self.aside(caller, request, &message, &text, &mut replies).await;
            }
            if place != Place::Stream {
                return Err(UpstreamError::Invalid(ANOTHER));
            }
        }
    }

    /// The error of a body that does not answer our request. One with an id of its own means that the connection is out of
    /// step; but with an HTTP error, servers that could not read a request name it as they like, so that it must be an id
    /// like ours.
    fn of_another_request(&self, message: &Message<'_>, status: http::StatusCode) -> UpstreamError {
        let other = message.id.map(RawValue::get).filter(|id| *id != "null");
        if other.is_some_and(|id| status.is_success() || wire::is_like_ours(id)) {
            self.pool.replace();
            return UpstreamError::OutOfStep;
        }
        if status.is_success() {
            UpstreamError::Invalid(ANOTHER)
        } else {
            UpstreamError::Status(status.as_u16())
        }
    }

    /// Deals with a message that is not the answer.
    async fn aside(
        &self,
        caller: &Caller,
        request: &Request<'_>,
        message: &Message<'_>,
        text: &Bytes,
        replies: &mut Replies,
    ) {
        if let Some(listening) = request.listening.filter(|listening| is_wanted(message, listening)) {
            // Nobody listens any more when the client is gone; the call then ends by itself or with its task.
            let _gone = listening.notices.send(text.clone()).await;
        } else {
            replies.answer(self, caller, request, message);
        }
    }
}

/// Where a message stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Stream,
    /// One body. With an HTTP error an answer need not name the request that it could not read.
    Body {
        may_be_unread: bool,
    },
}

/// The messages of a batch, which 2025-03-26 alone has.
fn batch(text: &Bytes, version: ProtocolVersion) -> Option<Vec<Bytes>> {
    if version != ProtocolVersion::V2025_03_26 || text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    Some(messages.iter().map(|message| text.slice_ref(message.get().as_bytes())).collect())
}

/// The answer in a message; `None` when it is something else.
fn judge(
    message: &Message<'_>,
    text: &Bytes,
    id: &str,
    place: Place,
    status: http::StatusCode,
) -> Option<Result<Bytes, UpstreamError>> {
    let may_be_unread = place == Place::Body { may_be_unread: true };
    Some(match mcp::parse_answer(message, id, may_be_unread)? {
        // An error and a result at once: whichever is true, the call may have been executed.
        Answer::Result(_) if !status.is_success() => Err(UpstreamError::Unclear(status.as_u16())),
        Answer::Result(result) => Ok(text.slice_ref(result.get().as_bytes())),
        Answer::Error(error) => {
            let is_ours = message.id.is_some_and(|raw| raw.get() == id);
            Err(UpstreamError::Rpc(RpcFailure {
                http_status: status.as_u16(),
                code: error.code,
                // Without an id it may be of another request, so its words are nobody's.
                message: if is_ours { error.message.into_owned() } else { anonymous(status) },
                data: error.data.map(|data| data.get().to_owned()),
                stage: match (place, is_ours) {
                    (Place::Stream, _) => FailureStage::Begun,
                    (_, true) => FailureStage::Read,
                    (_, false) => FailureStage::Unread,
                },
            }))
        }
    })
}

/// The error of a message that can't be read. With an HTTP error, what is no JSON-RPC is a plain refusal; half a message
/// may have been of the call.
fn of_unreadable(error: UpstreamError, place: Place, text: &[u8], status: http::StatusCode) -> UpstreamError {
    let status_code = status.as_u16();
    match (error, place) {
        (error, _) if status.is_success() => error,
        (UpstreamError::Cut, Place::Body { .. }) if text.is_empty() => UpstreamError::Status(status_code),
        (UpstreamError::Invalid(_), Place::Body { .. }) => UpstreamError::Status(status_code),
        _ => UpstreamError::Unclear(status_code),
    }
}

/// Reads a message in one pass over it; only what is wrong with one is found out in another.
fn parse(text: &Bytes) -> Result<Message<'_>, UpstreamError> {
    let message = std::str::from_utf8(text).ok().and_then(|text| Message::from_text(text).ok());
    message.ok_or_else(|| unreadable(text))
}

/// Why text is no message.
fn unreadable(text: &Bytes) -> UpstreamError {
    let starts = text.trim_ascii_start().first();
    if starts == Some(&b'<') {
        return UpstreamError::Invalid("it is HTML or XML, so the URL is probably not an MCP endpoint");
    }
    // JSON that stops in the middle was cut off; anything else was never JSON.
    if text.is_empty() || (starts == Some(&b'{') && !text.trim_ascii_end().ends_with(b"}")) {
        return UpstreamError::Cut;
    }
    UpstreamError::Invalid("it is not a JSON-RPC message")
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

/// Whether a failed request with a session certainly was not executed, since the upstream no longer knows the session.
/// The specification says 404; servers in the wild answer 400 with a general code, or with no JSON-RPC at all. What
/// names our request may come from the tool, unless its code is that of sessions.
fn is_lost_session(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Status(400 | 404) => true,
        UpstreamError::Rpc(failure) => match (failure.stage, failure.http_status) {
            (FailureStage::Unread, 404) => true,
            (FailureStage::Unread, 400) => {
                matches!(failure.code, SESSION_NOT_FOUND | -32_000 | code::INVALID_REQUEST)
            }
            (FailureStage::Read, 400 | 404) => failure.code == SESSION_NOT_FOUND,
            _ => false,
        },
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
