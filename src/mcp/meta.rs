//! Per-request metadata (`params._meta`), modern era.

use super::jsonrpc::present;
use super::object::from_object;
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
    /// Who the server is, in results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

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

    /// Trace context, of which only JSON strings are taken.
    pub fn trace_context(&self) -> TraceContext<'a> {
        let string = |raw: Option<&'a RawValue>| raw.filter(|raw| raw.get().starts_with('"'));
        TraceContext {
            traceparent: string(self.traceparent),
            tracestate: string(self.tracestate),
            baggage: string(self.baggage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
