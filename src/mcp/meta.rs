//! Per-request metadata (`params._meta`), modern era.

use super::headers::names;
use super::jsonrpc::{RpcError, is_request_id, present};
use super::object::from_object;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The reserved keys of `_meta`.
pub mod keys {
    /// The version that the request speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do, as an object.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client is.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// From which level on the client wants log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who the server is, in results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// The levels of log messages, least severe first (RFC 5424).
pub const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The metadata that the proxy reads, each value raw and unchecked.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct RequestMeta<'a> {
    /// See [`keys::PROTOCOL_VERSION`].
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/protocolVersion"
    )]
    pub protocol_version: Option<&'a RawValue>,
    /// See [`keys::CLIENT_CAPABILITIES`].
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/clientCapabilities"
    )]
    pub client_capabilities: Option<&'a RawValue>,
    /// See [`keys::LOG_LEVEL`].
    #[serde(borrow, default, deserialize_with = "present", rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<&'a RawValue>,
    /// Names the request in notifications of its progress.
    #[serde(borrow, default, deserialize_with = "present", rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    /// W3C trace context, passed on.
    #[serde(borrow, default, deserialize_with = "present")]
    pub traceparent: Option<&'a RawValue>,
    /// W3C trace context, passed on.
    #[serde(borrow, default, deserialize_with = "present")]
    pub tracestate: Option<&'a RawValue>,
    /// W3C baggage, passed on.
    #[serde(borrow, default, deserialize_with = "present")]
    pub baggage: Option<&'a RawValue>,
}

/// The part of the caller's metadata that crosses to the upstream.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceContext<'a> {
    /// Raw JSON string.
    pub traceparent: Option<&'a RawValue>,
    /// Raw JSON string.
    pub tracestate: Option<&'a RawValue>,
    /// Raw JSON string.
    pub baggage: Option<&'a RawValue>,
    /// The header of that name; only one that is well-formed.
    pub traceparent_header: Option<&'a HeaderValue>,
    /// The header of that name; only beside a traceparent header.
    pub tracestate_header: Option<&'a HeaderValue>,
}

impl<'a> TraceContext<'a> {
    /// The caller's span, from the message or else from the header.
    pub fn parent(&self) -> Option<&'a str> {
        let meta = self.traceparent.map(|raw| raw.get().trim_matches('"'));
        meta.or_else(|| self.traceparent_header?.to_str().ok())
    }

    /// The same with the trace headers of a request.
    pub fn with_headers(mut self, headers: &'a HeaderMap) -> Self {
        self.traceparent_header =
            headers.get(names::TRACEPARENT).filter(|value| is_traceparent(value.as_bytes()));
        self.tracestate_header = headers
            .get(names::TRACESTATE)
            .filter(|value| self.traceparent_header.is_some() && value.len() <= TRACESTATE_BYTES_MAX);
        self
    }
}

/// Longest vendor part that is passed on; the W3C asks for 512 characters at least.
const TRACESTATE_BYTES_MAX: usize = 1024;

/// `version-trace-parent-flags` in lower hexadecimal digits (W3C Trace Context, section 3.2).
fn is_traceparent(value: &[u8]) -> bool {
    let lengths = value.split(|byte| *byte == b'-').map(<[u8]>::len);
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    lengths.eq([2, 32, 16, 2]) && value.iter().all(is_hex)
}

impl<'a> RequestMeta<'a> {
    /// The metadata inside `params`, if there is any and it is an object.
    pub fn of_params(params: Option<&'a RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
            meta: Option<&'a RawValue>,
        }
        let params: Params<'a> = from_object(params?.get().as_bytes()).ok()?;
        from_object(params.meta?.get().as_bytes()).ok()
    }

    /// The version claimed, when it is a string.
    pub fn protocol_version(&self) -> Option<String> {
        serde_json::from_str(self.protocol_version?.get()).ok()
    }

    /// The client's capabilities, when they are an object.
    pub fn client_capabilities(&self) -> Option<&'a RawValue> {
        self.client_capabilities.filter(|raw| raw.get().starts_with('{'))
    }

    /// The progress token, when it is a string or an integer.
    pub fn progress_token(&self) -> Option<&'a RawValue> {
        self.progress_token.filter(|raw| is_request_id(raw.get()))
    }

    /// The level from which log messages are wanted.
    ///
    /// # Errors
    /// -32602 when it is no level of RFC 5424.
    pub fn log_level(&self) -> Result<Option<&'a RawValue>, RpcError> {
        match self.log_level {
            Some(raw)
                if !LOG_LEVELS.contains(&raw.get().trim_matches('"')) || !raw.get().starts_with('"') =>
            {
                Err(RpcError::invalid_params("_meta.io.modelcontextprotocol/logLevel is not a log level"))
            }
            level => Ok(level),
        }
    }

    /// Trace context, of which only JSON strings are taken.
    pub fn trace_context(&self) -> TraceContext<'a> {
        let string = |raw: Option<&'a RawValue>| raw.filter(|raw| raw.get().starts_with('"'));
        TraceContext {
            traceparent: string(self.traceparent),
            tracestate: string(self.tracestate),
            baggage: string(self.baggage),
            ..TraceContext::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m19_only_well_formed_trace_headers_go_on() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (traceparent, passes) in
            [(good, true), ("", false), ("00-1", false), (&good.to_uppercase()[..], false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(names::TRACEPARENT, HeaderValue::from_str(traceparent).unwrap());
            headers.insert(names::TRACESTATE, HeaderValue::from_static("a=1"));
            let trace = TraceContext::default().with_headers(&headers);
            assert_eq!(
                (trace.traceparent_header.is_some(), trace.tracestate_header.is_some()),
                (passes, passes)
            );
        }
    }

    #[test]
    fn m13_metadata_is_read_from_params_and_null_or_wrong_types_do_not_count() {
        let raw: Box<RawValue> = serde_json::from_str(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null,"traceparent":"00-1","baggage":3}}"#,
        )
        .unwrap();
        let meta = RequestMeta::of_params(Some(&raw)).unwrap();
        assert_eq!(meta.protocol_version().as_deref(), Some("2026-07-28"));
        assert!(meta.client_capabilities().is_none());
        assert_eq!(meta.trace_context().traceparent.unwrap().get(), "\"00-1\"");
        assert!(meta.trace_context().baggage.is_none());
        for absent in ["[]", "{}", r#"{"_meta":1}"#] {
            let raw: Box<RawValue> = serde_json::from_str(absent).unwrap();
            assert!(RequestMeta::of_params(Some(&raw)).is_none(), "{absent}");
        }
    }
}
