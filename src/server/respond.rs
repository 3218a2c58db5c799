//! From a reply or a rejection to an HTTP response: the only place where responses are made.

use super::admission::Full;
use super::origin::OriginFault;
use crate::dispatch::ReplyBody;
use crate::mcp::{Payload, RpcError, code, error_envelope};
use crate::upstream::Challenge;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use http_body_util::StreamBody;
use serde_json::value::RawValue;
use std::convert::Infallible;

/// Why a request is turned away before it is understood. The HTTP client can repair it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rejection {
    Method,
    Origin(OriginFault),
    ContentType,
    ContentEncoding,
    NotAcceptable,
    AmbiguousAuthorization,
    TokenInQuery,
    /// The request was sent by this very process.
    Loop,
    BodyTooLarge(usize),
    BodyTooSlow,
    BodyCut,
    /// There is no room for another request.
    Overloaded(Full),
    /// The body is no message.
    Message(RpcError),
}

impl Rejection {
    /// The label's value for the metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Origin(OriginFault::Host) => "host",
            Self::Origin(OriginFault::Origin) => "origin",
            Self::ContentType => "content_type",
            Self::ContentEncoding => "content_encoding",
            Self::NotAcceptable => "not_acceptable",
            Self::AmbiguousAuthorization => "ambiguous_authorization",
            Self::TokenInQuery => "token_in_query",
            Self::Loop => "loop",
            Self::BodyTooLarge(_) => "body_too_large",
            Self::BodyTooSlow => "body_too_slow",
            Self::BodyCut => "body_cut",
            Self::Overloaded(Full::All) => "overloaded",
            Self::Overloaded(Full::OfCaller) => "caller_overloaded",
            Self::Message(_) => "message",
        }
    }

    fn status_and_text(&self) -> (StatusCode, String) {
        let text = |text: &str| text.to_owned();
        match self {
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                text(
                    "send MCP messages with POST; this server keeps no sessions and offers no stream to GET",
                ),
            ),
            Self::Origin(OriginFault::Host) => (
                StatusCode::FORBIDDEN,
                text("the Host header is not accepted; the operator can allow it with --allowed-hosts"),
            ),
            Self::Origin(OriginFault::Origin) => (
                StatusCode::FORBIDDEN,
                text("the Origin header is not accepted; the operator can allow it with --allowed-origins"),
            ),
            Self::ContentType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, text("send Content-Type: application/json"))
            }
            Self::ContentEncoding => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, text("send the body without Content-Encoding"))
            }
            Self::NotAcceptable => {
                (StatusCode::NOT_ACCEPTABLE, text("send Accept: application/json, text/event-stream"))
            }
            Self::AmbiguousAuthorization => {
                (StatusCode::BAD_REQUEST, text("send exactly one Authorization header with one value"))
            }
            Self::TokenInQuery => {
                (StatusCode::BAD_REQUEST, text("send the token in the Authorization header, not in the URL"))
            }
            Self::Loop => (
                StatusCode::LOOP_DETECTED,
                text(
                    "this request was sent by this proxy itself: the operator's --upstream leads back to it",
                ),
            ),
            Self::BodyTooLarge(max) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {max} bytes; the operator can raise --max-request-bytes"),
            ),
            Self::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, text("the body took too long to arrive")),
            Self::Overloaded(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                text("too many requests are in flight; try again in a second"),
            ),
            Self::BodyCut => (StatusCode::BAD_REQUEST, text("the body ended before it was complete")),
            Self::Message(error) => (StatusCode::BAD_REQUEST, error.message.clone().into_owned()),
        }
    }

    /// A JSON-RPC error without an id, which every MCP client can read.
    pub(super) fn into_response(self) -> Response {
        let (status, text) = self.status_and_text();
        let error = match &self {
            Self::Message(error) => error.clone(),
            _ => RpcError::new(code::INVALID_REQUEST, text),
        };
        let mut response = json(status, Payload::from(error_envelope(None, &error)));
        match self {
            Self::Method => {
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
            Self::Overloaded(_) => {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // What is left of the body is not read, so the connection can't be used again.
            Self::BodyTooLarge(_) | Self::BodyTooSlow | Self::BodyCut => {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// A request's answer, not yet a response.
#[derive(Debug)]
pub(super) enum Answered {
    /// Nothing to say: a notification, or a response that nobody waits for.
    Nothing,
    /// A JSON-RPC message or a batch of them.
    Message { status: StatusCode, body: Payload },
    /// The caller has to log in.
    Challenge(Challenge, Payload),
    /// No message at all.
    Rejected(Rejection),
}

impl Answered {
    /// `own_challenges` turns the upstream's challenges into ones that lead to this server.
    pub(super) fn into_response(
        self,
        own_challenges: impl FnOnce(&[HeaderValue]) -> Vec<HeaderValue>,
    ) -> Response {
        match self {
            Self::Nothing => accepted(),
            Self::Message { status, body } => json(status, body),
            Self::Challenge(challenge, body) => {
                challenge_response(challenge.status, own_challenges(&challenge.www_authenticate), body)
            }
            Self::Rejected(rejection) => rejection.into_response(),
        }
    }
}

/// The JSON-RPC message of an answer whose stream has begun: its status can no longer be told.
pub(super) fn message_of(answered: Answered) -> Payload {
    match answered {
        Answered::Message { body, .. } | Answered::Challenge(_, body) => body,
        // Only a request whose call was under way has a stream.
        Answered::Nothing | Answered::Rejected(_) => Payload::from(error_envelope(
            None,
            &RpcError::new(code::INTERNAL_ERROR, "the call ended without an answer"),
        )),
    }
}

/// The HTTP status of a JSON-RPC error of ours. `is_modern` since the legacy era knows only 200 for a request that
/// was understood.
pub(super) fn error_status(error: &RpcError, is_modern: bool) -> StatusCode {
    match error.code {
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION => {
            StatusCode::BAD_REQUEST
        }
        code::METHOD_NOT_FOUND if is_modern => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// The JSON-RPC message for a reply, its id as it came.
pub(super) fn envelope(id: &RawValue, body: ReplyBody) -> Payload {
    match body {
        ReplyBody::Result(result) => {
            let mut payload = Payload::from(format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.get()));
            payload.append(result);
            payload.push(&b"}"[..]);
            payload
        }
        ReplyBody::Error(error) => Payload::from(error_envelope(Some(id), &error)),
        ReplyBody::Unauthorized(challenge) => {
            // Codes of our own lie outside of JSON-RPC's reserved range; the status says the same.
            let error = RpcError::new(
                challenge.status.into(),
                "the upstream refused the credentials of this request",
            );
            Payload::from(error_envelope(Some(id), &error))
        }
    }
}

/// A challenge relayed: the upstream's status and its `WWW-Authenticate` values.
fn challenge_response(status: u16, challenges: Vec<HeaderValue>, body: Payload) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut response = json(status, body);
    for value in challenges {
        response.headers_mut().append(WWW_AUTHENTICATE, value);
    }
    response
}

/// A notification was taken.
fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A JSON body in one or more pieces, of known length.
fn json(status: StatusCode, payload: Payload) -> Response {
    let length = payload.len();
    let mut pieces = payload.into_pieces();
    let body = if pieces.len() == 1 {
        Body::from(pieces.pop_front().unwrap_or_default())
    } else {
        let frames =
            pieces.into_iter().map(|piece: Bytes| Ok::<_, Infallible>(http_body::Frame::data(piece)));
        Body::new(StreamBody::new(futures_util::stream::iter(frames)))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m28_l14_statuses_of_errors_follow_the_table() {
        for (code, modern, legacy) in [
            (code::METHOD_NOT_FOUND, 404, 200),
            (code::HEADER_MISMATCH, 400, 400),
            (code::MISSING_CAPABILITY, 400, 400),
            (code::UNSUPPORTED_VERSION, 400, 400),
            (code::INVALID_PARAMS, 200, 200),
            (code::INTERNAL_ERROR, 200, 200),
        ] {
            let error = RpcError::new(code, "");
            assert_eq!(
                (error_status(&error, true).as_u16(), error_status(&error, false).as_u16()),
                (modern, legacy)
            );
        }
    }

    #[test]
    fn every_rejection_says_what_to_do() {
        for (rejection, status) in [
            (Rejection::Method, 405),
            (Rejection::Origin(OriginFault::Host), 403),
            (Rejection::Origin(OriginFault::Origin), 403),
            (Rejection::ContentType, 415),
            (Rejection::ContentEncoding, 415),
            (Rejection::NotAcceptable, 406),
            (Rejection::AmbiguousAuthorization, 400),
            (Rejection::TokenInQuery, 400),
            (Rejection::BodyTooLarge(5), 413),
            (Rejection::BodyTooSlow, 408),
            (Rejection::BodyCut, 400),
            (Rejection::Overloaded(Full::All), 503),
            (Rejection::Message(RpcError::new(code::PARSE_ERROR, "no JSON")), 400),
        ] {
            let response = rejection.clone().into_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().contains_key(ALLOW), status == 405);
        }
    }
}
