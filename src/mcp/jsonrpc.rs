//! JSON-RPC 2.0 messages as this proxy reads and writes them.
//!
//! Ids, params and results are borrowed as raw bytes: a caller's id comes back as it was sent, whatever its
//! spelling, and a result is never taken apart.

use super::object::{Object, from_object};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Error codes, from JSON-RPC 2.0 and the MCP schema of 2026-07-28.
pub mod code {
    /// Not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Wrong params, an unknown tool included.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Nothing that the client can repair.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// An HTTP header is missing, doubled, or says something else than the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version is not served.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// One message as it came in. Absent members are `None`; a member that is `null` is present.
#[derive(Debug, Deserialize)]
pub struct Message<'a> {
    /// `"2.0"` in every valid message.
    #[serde(borrow, default, deserialize_with = "present")]
    pub jsonrpc: Option<&'a RawValue>,
    /// The request's id as raw bytes.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// The method; absent in a response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub method: Option<&'a RawValue>,
    /// The params, whatever they hold.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    /// Present in a response to a request.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// Present in an error response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// Reads a member as raw JSON and tells `null` from absent, which `Option` alone does not.
///
/// # Errors
/// Those of the deserializer.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    /// Reads one message.
    ///
    /// # Errors
    /// -32600 when the value is no object or repeats a member.
    pub fn parse(value: &'a RawValue) -> Result<Self, RpcError> {
        from_object(value.get().as_bytes()).map_err(|_| {
            RpcError::new(code::INVALID_REQUEST, "the body is not a JSON-RPC 2.0 message: send one object")
        })
    }

    /// Reads one message from a text of which nothing is known, in one pass.
    ///
    /// # Errors
    /// When it is not one JSON object, or repeats a member of a message.
    pub fn from_text(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str::<Object<Self>>(text).map(|object| object.0)
    }

    /// The id, when it is a string or an integer.
    pub fn valid_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| is_request_id(id.get()))
    }

    /// Whether `jsonrpc` is `"2.0"`.
    pub fn is_version_2(&self) -> bool {
        self.jsonrpc.is_some_and(|version| version.get() == "\"2.0\"")
    }

    /// The method's name, when it is a string.
    pub fn method_name(&self) -> Option<Cow<'a, str>> {
        text(self.method?)
    }

    /// Whether this is a response, which a client posts only to answer a request of the server.
    pub fn is_response(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }
}

/// A JSON string's text, borrowed where it has no escapes; `None` for any other value.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(value.get()).ok().map(|text| text.0)
}

/// Whether raw JSON is a string or an integer, of any length.
pub(super) fn is_request_id(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    raw.starts_with('"') || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An error for the MCP client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RpcError {
    /// One of [`code`], or an upstream's.
    pub code: i64,
    /// What is wrong and what to do about it.
    pub message: Cow<'static, str>,
    /// More, in the form that the code's definition asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Wrong params.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// The whole error response. The id is left out where the request's could not be read: `null` does not fit the
/// schema of 2026-07-28.
pub fn error_envelope(id: Option<&RawValue>, error: &RpcError) -> String {
    let error = serde_json::to_string(error).expect("an error of strings and numbers serialises");
    match id {
        Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get()),
        None => format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#),
    }
}

/// An upstream's answer to one of our requests.
#[derive(Debug)]
pub enum Answer<'a> {
    /// The result, raw.
    Result(&'a RawValue),
    /// The error.
    Error(AnswerError<'a>),
}

/// An error as an upstream gave it.
#[derive(Clone, Debug, Deserialize)]
pub struct AnswerError<'a> {
    /// The code.
    pub code: i64,
    /// The message, which is the upstream's text: for the model, never for a log.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
    /// The data, raw.
    #[serde(borrow, default, deserialize_with = "present")]
    pub data: Option<&'a RawValue>,
}

/// Reads a message as the answer to the request `id` (raw JSON, a string). `None` when it is something else: another
/// id, a notification, a request.
///
/// An error whose id could not be read by the upstream (absent or `null`) counts as the answer only when
/// `anonymous_errors` says that nothing else can have been meant: a plain HTTP error response.
pub fn parse_answer<'a>(message: &Message<'a>, id: &str, anonymous_errors: bool) -> Option<Answer<'a>> {
    let answered = message.id.map(RawValue::get);
    let ours = answered == Some(id);
    let anonymous = matches!(answered, None | Some("null"));
    match (message.result, message.error) {
        (Some(result), None) if ours => Some(Answer::Result(result)),
        (None, Some(error)) if ours || (anonymous && anonymous_errors) => {
            from_object(error.get().as_bytes()).ok().map(Answer::Error)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message<'_> {
        Message::parse(serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn m12_ids_are_strings_or_integers_of_any_length_and_nothing_else() {
        for id in ["\"a\"", "0", "-7", "123456789012345678901234567890", "\"\\u0061\""] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(message(&text).valid_id().unwrap().get(), id);
        }
        for id in ["null", "1.5", "1e3", "true", "[]", "{}"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!(message(&text).id.is_some() && message(&text).valid_id().is_none(), "{id}");
        }
    }

    #[test]
    fn repeated_members_and_non_objects_are_invalid_requests() {
        for text in [r#"{"id":1,"id":2}"#, "[]", "1", "null", "\"x\""] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(Message::parse(raw).unwrap_err().code, code::INVALID_REQUEST, "{text}");
        }
    }

    #[test]
    fn only_the_answer_with_our_id_is_ours() {
        let id = "\"n1\"";
        let ours = message(r#"{"jsonrpc":"2.0","id":"n1","result":{"x":1}}"#);
        assert!(
            matches!(parse_answer(&ours, id, false), Some(Answer::Result(raw)) if raw.get() == "{\"x\":1}")
        );
        for other in [
            r#"{"jsonrpc":"2.0","id":"n2","result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"n1","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"n1","result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
        ] {
            assert!(parse_answer(&message(other), id, false).is_none(), "{other}");
        }
        let anonymous = message(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#);
        assert!(
            matches!(parse_answer(&anonymous, id, true), Some(Answer::Error(error)) if error.code == -32600)
        );
    }

    #[test]
    fn m5_an_unreadable_id_is_left_out_of_the_error() {
        let error = RpcError::new(code::PARSE_ERROR, "no");
        assert_eq!(
            error_envelope(None, &error),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#
        );
        let id: &RawValue = serde_json::from_str("12345678901234567890123").unwrap();
        assert!(error_envelope(Some(id), &error).contains(r#""id":12345678901234567890123,"#));
    }
}
