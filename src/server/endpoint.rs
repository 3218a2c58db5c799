//! The MCP endpoint: HTTP checks, one message in, one answer out.
//!
//! A modern client that closes its connection cancels its request; a legacy client's disconnect does not (rules M10
//! and L13). [`Running`] holds to that.
//! What the upstream tells before its answer turns the response into a stream.

use super::admission::Place;
use super::hangup::EndCancels;
use super::respond::{self, Answered, Rejection};
use super::running::{Connection, Running};
use super::{Server, era, stream};
use crate::caller::Caller;
use crate::dispatch::{Reply, ReplyBody, Request};
use crate::mcp::{
    Era, JsonFault, JsonLimits, Message, Payload, ProtocolVersion, RpcError, check_json, code, error_envelope,
};
use crate::telemetry::{Outcome, end_request, request_span};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

/// What a caller's JSON may not exceed.
const LIMITS: JsonLimits = JsonLimits { depth_max: 64, keys_max: 10_000 };
/// Most messages in a batch of the one version that has batches.
const BATCH_MAX: usize = 20;
/// Most bytes of a body over the limit that are read before it is refused.
const DISCARDED_BYTES_MAX: usize = 64 << 20;
/// What a client that declares nothing can do.
const NO_CAPABILITIES: &str = "{}";

pub(super) async fn endpoint(State(server): State<Arc<Server>>, request: axum::extract::Request) -> Response {
    let started = Instant::now();
    let (mut parts, body) = request.into_parts();
    let connection = Arc::new(Connection::on(parts.extensions.remove::<EndCancels>()));
    let read = match admit(&server, &parts) {
        Ok((caller, place)) => {
            read_body(&server, &parts.headers, body).await.map(|body| (caller, place, body))
        }
        Err(rejection) => Err(rejection),
    };
    let (caller, place, body) = match read {
        Ok(read) => read,
        Err(rejection) => {
            server.metrics.count_rejection(rejection.reason());
            record(&server, "other", "none", Outcome::InvalidRequest, started);
            return rejection.into_response();
        }
    };
    let (path, host) = (parts.uri.path().to_owned(), parts.headers.get(HOST).cloned());
    // A few messages wait here while the client reads slowly; then the upstream waits too.
    let (told, mut notices) = mpsc::channel(16);
    let listens = accepts(&parts.headers, &["text/event-stream", "*/*", "text/*"]);
    let exchange = Exchange {
        server: Arc::clone(&server),
        caller,
        started,
        connection: Arc::clone(&connection),
        notices: listens.then_some(told),
        _place: place,
    };
    let work = exchange.run(parts.headers, body).boxed();
    let mut running = Running::new(work, connection, server);
    tokio::select! {
        // First, so that nothing that was told is lost to an answer that comes right behind it.
        biased;
        Some(first) = notices.recv() => stream::response(first, notices, running),
        answered = running.finish() => match notices.try_recv() {
            Ok(first) => stream::response(first, notices, running.with(answered)),
            Err(_) => answered.into_response(|challenges| {
                running.server().options.public_url.own_challenges(challenges, host.as_ref(), &path)
            }),
        },
    }
}

/// HTTP checks that need no body.
fn admit(server: &Server, parts: &Parts) -> Result<(Caller, Place), Rejection> {
    server.options.origins.check(&parts.headers, parts.uri.authority()).map_err(Rejection::Origin)?;
    if parts.method != Method::POST {
        return Err(Rejection::Method);
    }
    if server.instance.has_sent(&parts.headers) {
        return Err(Rejection::Loop);
    }
    let has_token = |query: &str| {
        url::form_urlencoded::parse(query.as_bytes())
            .any(|(name, _)| name.eq_ignore_ascii_case("access_token"))
    };
    if parts.uri.query().is_some_and(has_token) {
        return Err(Rejection::TokenInQuery);
    }
    let caller =
        Caller::from_headers(&parts.headers, &server.salt).map_err(|_| Rejection::AmbiguousAuthorization)?;
    if !is_json(&parts.headers) {
        return Err(Rejection::ContentType);
    }
    let encoding = parts.headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Rejection::ContentEncoding);
    }
    if !accepts(&parts.headers, &["application/json", "text/event-stream", "*/*", "application/*", "text/*"])
    {
        return Err(Rejection::NotAcceptable);
    }
    let place = server.admission.enter(&caller).map_err(Rejection::Overloaded)?;
    Ok((caller, place))
}

/// Whether the body is JSON, by the one media type that the headers name. Anything more than one could be read by a
/// browser as a type that pages may send without asking.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let media_type = value.to_str().ok().and_then(|value| value.split(';').next());
    media_type.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether the client takes one of these media types; a client that does not say takes JSON.
fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    if !headers.contains_key(ACCEPT) {
        return wanted.contains(&"application/json");
    }
    media_types(headers, &ACCEPT).any(|media| wanted.iter().any(|wanted| media.eq_ignore_ascii_case(wanted)))
}

/// The media types of a header, without parameters; those of weight 0 are not wanted.
fn media_types<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .filter(|media| !media.split(';').skip(1).any(is_weight_zero))
        .map(|media| media.split(';').next().unwrap_or_default().trim())
}

/// Whether a parameter is `q=0`, however many zeros it has.
fn is_weight_zero(parameter: &str) -> bool {
    let weight =
        parameter.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
    weight.is_some_and(|weight| weight.trim().parse() == Ok(0.0_f32))
}

/// The whole body within its limit and its deadline.
async fn read_body(server: &Server, headers: &HeaderMap, body: Body) -> Result<Bytes, Rejection> {
    let max = server.options.body_bytes_max;
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let timeout = server.options.body_timeout;
    if announced.is_some_and(|length| length > max) {
        // A client that asks first is told before it sends anything.
        if !headers.contains_key(EXPECT) {
            let _cut_or_late = tokio::time::timeout(timeout, discard(body, 0)).await;
        }
        return Err(Rejection::BodyTooLarge(max));
    }
    tokio::time::timeout(timeout, collect(body, max)).await.unwrap_or(Err(Rejection::BodyTooSlow))
}

async fn collect(mut body: Body, max: usize) -> Result<Bytes, Rejection> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Rejection::BodyCut)?.into_data() else { continue };
        let length = whole.len() + data.len();
        if length > max {
            discard(body, length).await;
            return Err(Rejection::BodyTooLarge(max));
        }
        if whole.is_empty() {
            whole = BytesMut::from(data);
        } else {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}

/// Reads on and forgets, up to a bound: most clients write their whole body before they read an answer, and a connection
/// that is closed under them is no clear answer.
async fn discard(mut body: Body, already: usize) {
    let mut read = already;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DISCARDED_BYTES_MAX {
            break;
        }
    }
}

/// One HTTP exchange whose body is here.
struct Exchange {
    server: Arc<Server>,
    caller: Caller,
    started: Instant,
    connection: Arc<Connection>,
    /// For what the upstream tells while a call runs; `None` when the client takes no stream.
    notices: Option<mpsc::Sender<Bytes>>,
    _place: Place,
}

impl Exchange {
    async fn run(self, headers: HeaderMap, body: Bytes) -> Answered {
        let value = match check_json(&body, LIMITS) {
            Ok(value) => value,
            Err(fault) => return rejected(&self.server, Rejection::Message(of_fault(&fault)), self.started),
        };
        let answered = if value.get().starts_with('[') {
            self.batch(&headers, value).await
        } else {
            self.message(&headers, value).await
        };
        answered.unwrap_or_else(|error| rejected(&self.server, Rejection::Message(error), self.started))
    }

    /// A batch, which only 2025-03-26 has.
    async fn batch(&self, headers: &HeaderMap, value: &RawValue) -> Result<Answered, RpcError> {
        let version = era::header_version(headers)?.unwrap_or(ProtocolVersion::ASSUMED);
        let invalid = |text: &'static str| RpcError::new(code::INVALID_REQUEST, text);
        if version != ProtocolVersion::V2025_03_26 {
            return Err(invalid("batches belong to version 2025-03-26 alone: send one message"));
        }
        let messages: Vec<&RawValue> =
            serde_json::from_str(value.get()).map_err(|_| invalid("the body is not a list of messages"))?;
        if messages.is_empty() || messages.len() > BATCH_MAX {
            return Err(invalid("a batch holds 1 to 20 messages"));
        }
        let answers = messages.into_iter().map(async |message| {
            let parsed = Message::parse(message).ok();
            let method = parsed.as_ref().and_then(Message::method_name);
            let answer = match &parsed {
                Some(handshake) if method.as_deref() == Some("initialize") => {
                    self.invalid(handshake, "initialize must not be part of a batch")
                }
                _ => self.message(headers, message).await,
            };
            (method.as_deref() == Some("tools/call"), answer)
        });
        let answers = futures_util::future::join_all(answers).await;
        // The whole batch is refused only where no call of it was made: a client that logs in sends all of it again.
        let was_called = answers
            .iter()
            .any(|(is_call, answer)| *is_call && matches!(answer, Ok(Answered::Message { .. })));
        let mut body = Payload::new();
        for (_, answer) in answers {
            let message = match answer {
                Ok(Answered::Nothing) => continue,
                Ok(Answered::Message { body, .. }) => body,
                Ok(Answered::Challenge(_, body)) if was_called => body,
                Ok(whole @ (Answered::Challenge(..) | Answered::Rejected(_))) => return Ok(whole),
                Err(error) => Payload::from(error_envelope(None, &error)),
            };
            body.push(if body.is_empty() { "[" } else { "," });
            body.append(message);
        }
        if body.is_empty() {
            return Ok(Answered::Nothing);
        }
        body.push("]");
        Ok(Answered::Message { status: StatusCode::OK, body })
    }

    /// The answer to what is no request. A readable id is named, so that a client which waits for it learns of it.
    fn invalid(&self, message: &Message<'_>, problem: &'static str) -> Result<Answered, RpcError> {
        let error = RpcError::new(code::INVALID_REQUEST, problem);
        let Some(id) = message.valid_id().filter(|_| !message.is_response()) else { return Err(error) };
        record(&self.server, "other", "none", Outcome::InvalidRequest, self.started);
        let body = Payload::from(error_envelope(Some(id), &error));
        Ok(Answered::Message { status: StatusCode::BAD_REQUEST, body })
    }

    /// One message.
    ///
    /// # Errors
    /// When it is no message at all, so that there is no id to answer to.
    async fn message(&self, headers: &HeaderMap, value: &RawValue) -> Result<Answered, RpcError> {
        let message = Message::parse(value)?;
        if !message.is_version_2() {
            return self.invalid(&message, "the message must have \"jsonrpc\": \"2.0\"");
        }
        if message.is_response() {
            return response_of_client(headers);
        }
        let Some(method) = message.method_name() else {
            return self.invalid(&message, "the method must be a string");
        };
        if message.result.is_some() || message.error.is_some() {
            return self.invalid(&message, "a message has a method or a result, not both");
        }
        if message.params.is_some_and(|params| !params.get().starts_with('{')) {
            return self.invalid(&message, "the params must be an object");
        }
        let Some(id) = message.id else {
            let _known = era::header_version(headers)?;
            record(&self.server, "notification", "none", Outcome::Ok, self.started);
            return Ok(Answered::Nothing);
        };
        if message.valid_id().is_none() {
            return Err(RpcError::new(code::INVALID_REQUEST, "the id must be a string or an integer"));
        }
        let (reply, is_modern) = self.request(headers, &message, &method).await;
        let tool = reply.tool.map_or("none", crate::tools::ToolKind::name);
        record(&self.server, method_label(&method), tool, reply.outcome, self.started);
        let status = match &reply.body {
            ReplyBody::Result(_) => StatusCode::OK,
            // Malformed metadata is told by the status as well; other wrong params are told in the answer alone.
            ReplyBody::Error(error) if is_modern.is_none() && error.code == code::INVALID_PARAMS => {
                StatusCode::BAD_REQUEST
            }
            ReplyBody::Error(error) => respond::error_status(error, is_modern != Some(false)),
            ReplyBody::Unauthorized(challenge) => {
                let challenge = challenge.clone();
                return Ok(Answered::Challenge(challenge, respond::envelope(id, reply.body)));
            }
        };
        Ok(Answered::Message { status, body: respond::envelope(id, reply.body) })
    }

    /// Answers a request, and tells whether it was a modern one; `None` when its version could not be decided.
    async fn request(
        &self,
        headers: &HeaderMap,
        message: &Message<'_>,
        method: &str,
    ) -> (Reply, Option<bool>) {
        let spoken = match era::decide(headers, message, method) {
            Ok(spoken) => spoken,
            Err(error) => {
                let body = ReplyBody::Error(error);
                return (Reply { body, tool: None, outcome: Outcome::InvalidRequest }, None);
            }
        };
        let is_modern = spoken.version.era() == Era::Modern;
        if !self.connection.decide(spoken.version.era()) {
            // Nobody is there to read this.
            let body = ReplyBody::Error(RpcError::new(code::INTERNAL_ERROR, "the client has disconnected"));
            return (Reply { body, tool: None, outcome: Outcome::InvalidRequest }, Some(true));
        }
        let none: &RawValue = serde_json::from_str(NO_CAPABILITIES).expect("an empty object is JSON");
        let request = Request {
            version: spoken.version,
            method,
            params: message.params,
            client_capabilities: spoken.client_capabilities.unwrap_or(none),
            trace: spoken.trace,
            progress_token: spoken.progress_token,
            log_level: spoken.log_level,
            notices: self.notices.as_ref(),
        };
        let name = method_label(method);
        let span = request_span(name, spoken.version.as_str(), spoken.trace.parent());
        let reply = self.server.dispatcher.handle(&self.caller, &request).instrument(span.clone()).await;
        end_request(&span, name, reply.tool.map(crate::tools::ToolKind::name), reply.outcome);
        (reply, Some(is_modern))
    }
}

/// A client posts a response only to answer a request of the server. This server makes none: an older client's is
/// taken and dropped, in the modern era there is no such message.
fn response_of_client(headers: &HeaderMap) -> Result<Answered, RpcError> {
    match era::header_version(headers)? {
        Some(version) if version.era() == Era::Modern => Err(RpcError::new(
            code::INVALID_REQUEST,
            "this server sends no requests, so there is nothing to respond to",
        )),
        _ => Ok(Answered::Nothing),
    }
}

fn of_fault(fault: &JsonFault) -> RpcError {
    let code = match fault {
        JsonFault::Syntax(_) => code::PARSE_ERROR,
        JsonFault::DuplicateKey | JsonFault::TooDeep(_) | JsonFault::TooManyKeys(_) => code::INVALID_REQUEST,
    };
    RpcError::new(code, fault.to_string())
}

fn rejected(server: &Server, rejection: Rejection, started: Instant) -> Answered {
    server.metrics.count_rejection(rejection.reason());
    record(server, "other", "none", Outcome::InvalidRequest, started);
    Answered::Rejected(rejection)
}

/// The method for logs and metrics: ours, or a word for all others.
fn method_label(method: &str) -> &'static str {
    let known = ["tools/call", "tools/list", "server/discover", "initialize", "ping"];
    known.into_iter().find(|name| *name == method).unwrap_or("other")
}

/// The one log line and the counters of a request.
pub(super) fn record(
    server: &Server,
    method: &'static str,
    tool: &'static str,
    outcome: Outcome,
    started: Instant,
) {
    let took = started.elapsed();
    server.metrics.count_request(method, tool, outcome, took);
    let (outcome, ms) = (outcome.as_str(), took.as_micros() as f64 / 1000.0);
    tracing::info!(method, tool, outcome, ms, "{method} {tool} {outcome} {ms} ms");
}
