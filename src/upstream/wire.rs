//! Writes our requests and reads the parts of results that we understand.

use super::error::UpstreamError;
use super::{Listening, ToolCall};
use crate::mcp::{TraceContext, from_object, keys};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// How the proxy names itself to upstreams.
pub(super) const CLIENT_INFO: &str =
    concat!(r#"{"name":"toolsearch-proxy","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The extension whose results a client could not follow up through this proxy.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How many ids one question to the operating system is good for.
const IDS_DRAWN: usize = 64;

/// A fresh, unguessable request id as a raw JSON string: 128 bits, so that no other answer can be taken for ours.
pub(super) fn fresh_id() -> String {
    thread_local! {
        /// Random bits of ids to come.
        static DRAWN: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
    }
    let bits = DRAWN.with_borrow_mut(|drawn| {
        drawn.pop().unwrap_or_else(|| {
            let mut bits = [[0; 16]; IDS_DRAWN];
            getrandom::fill(bits.as_flattened_mut()).expect("the operating system gives random bytes");
            drawn.extend_from_slice(&bits[1..]);
            bits[0]
        })
    });
    format!("\"{:032x}\"", u128::from_be_bytes(bits))
}

/// Whether a raw id could be one of ours.
pub(super) fn is_like_ours(id: &str) -> bool {
    id.len() == 34 && id[1..33].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A whole request; `params` is a raw JSON object.
pub(super) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The `_meta` of a modern request.
pub(super) fn modern_meta(
    version: &str,
    capabilities: &str,
    trace: &TraceContext<'_>,
    listening: Option<Listening<'_>>,
) -> String {
    let mut meta = format!(
        r#"{{"{}":"{version}","{}":{CLIENT_INFO},"{}":{capabilities}"#,
        keys::PROTOCOL_VERSION,
        keys::CLIENT_INFO,
        keys::CLIENT_CAPABILITIES,
    );
    push_trace(&mut meta, trace);
    push_member(&mut meta, "progressToken", listening.and_then(|listening| listening.progress_token));
    push_member(&mut meta, keys::LOG_LEVEL, listening.and_then(|listening| listening.log_level));
    meta.push('}');
    meta
}

/// The `_meta` of a legacy request: trace context and progress token, or nothing.
pub(super) fn legacy_meta(trace: &TraceContext<'_>, listening: Option<Listening<'_>>) -> Option<String> {
    let mut meta = String::from("{");
    push_trace(&mut meta, trace);
    push_member(&mut meta, "progressToken", listening.and_then(|listening| listening.progress_token));
    meta.push('}');
    (meta.len() > 2).then(|| meta.replacen("{,", "{", 1))
}

fn push_trace(meta: &mut String, trace: &TraceContext<'_>) {
    push_member(meta, "traceparent", trace.traceparent);
    push_member(meta, "tracestate", trace.tracestate);
    push_member(meta, "baggage", trace.baggage);
}

fn push_member(object: &mut String, key: &str, value: Option<&RawValue>) {
    if let Some(value) = value {
        write!(object, r#","{key}":{}"#, value.get()).expect("a string takes any text");
    }
}

/// The params of a `tools/call`: the caller's own bytes inside ours.
pub(super) fn call_params(call: &ToolCall<'_>, meta: Option<&str>) -> String {
    let name = serde_json::to_string(call.name).expect("text serialises");
    let mut params = format!(r#"{{"name":{name},"arguments":{}"#, call.arguments.get());
    let members = [
        ("inputResponses", call.input_responses.map(RawValue::get)),
        ("requestState", call.request_state.map(RawValue::get)),
        ("_meta", meta),
    ];
    for (key, value) in members {
        if let Some(value) = value {
            write!(params, r#","{key}":{value}"#).expect("a string takes any text");
        }
    }
    params.push('}');
    params
}

/// What the caller declared, less the tasks extension: its handles can't be followed up through this proxy. Keys may be
/// spelled with escapes, so they are compared as what they say.
pub(super) fn forwarded_capabilities(capabilities: &RawValue) -> Cow<'_, str> {
    type Members<'a> = BTreeMap<String, &'a RawValue>;
    let raw = capabilities.get();
    if !raw.contains("extensions") && !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let Ok(mut members) = from_object::<Members<'_>>(raw.as_bytes()) else { return Cow::Borrowed("{}") };
    let extensions = members.get("extensions").map(|extensions| extensions.get().as_bytes());
    // What is no object declares no extension.
    let Some(Ok(mut extensions)) = extensions.map(from_object::<Members<'_>>) else {
        return Cow::Borrowed(raw);
    };
    if extensions.remove(TASKS_EXTENSION).is_none() {
        return Cow::Borrowed(raw);
    }
    let extensions = serde_json::value::to_raw_value(&extensions).expect("raw members serialise");
    members.insert("extensions".to_owned(), &extensions);
    Cow::Owned(serde_json::to_string(&members).expect("raw members serialise"))
}

/// One page of a listing.
#[derive(Debug)]
pub struct Page {
    /// Each definition's bytes.
    pub tools: Vec<Bytes>,
    /// Present, even when empty, means that there is more.
    pub next_cursor: Option<String>,
    /// How long it stays fresh.
    pub ttl: Option<Duration>,
}

/// Most tools that one page may have: ten times what is usual for all of them. A page of a few bytes a tool would otherwise
/// take many times its size while it is read.
const PAGE_TOOLS_MAX: usize = 100_000;

/// Longest cursor, in bytes: it goes into a request.
const CURSOR_BYTES_MAX: usize = 64 * 1024;

/// The tools of a page; `None` when there are too many.
struct Tools<'a>(Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for Tools<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToolsVisitor;

        impl<'de> Visitor<'de> for ToolsVisitor {
            type Value = Tools<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tools")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut tools = Vec::new();
                while let Some(tool) = seq.next_element()? {
                    if tools.len() == PAGE_TOOLS_MAX {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Tools(None));
                    }
                    tools.push(tool);
                }
                Ok(Tools(Some(tools)))
            }
        }

        deserializer.deserialize_seq(ToolsVisitor)
    }
}

/// Reads a `tools/list` result; definitions stay slices of it.
///
/// # Errors
/// When it is no object with a list of tools, or has too many of them or a cursor of no end.
pub fn parse_page(result: &Bytes) -> Result<Page, UpstreamError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw<'a> {
        #[serde(borrow)]
        tools: Tools<'a>,
        #[serde(default)]
        next_cursor: Option<String>,
        #[serde(borrow, default)]
        ttl_ms: Option<&'a RawValue>,
    }
    let raw: Raw<'_> = from_object(result)
        .map_err(|_| UpstreamError::Invalid("a tools/list result has no list of tools"))?;
    let Tools(Some(tools)) = raw.tools else {
        return Err(UpstreamError::Listing("has more than 100,000 tools on one page"));
    };
    if raw.next_cursor.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
        return Err(UpstreamError::Listing("has a cursor of more than 64 KiB"));
    }
    Ok(Page {
        tools: tools.iter().map(|tool| result.slice_ref(tool.get().as_bytes())).collect(),
        next_cursor: raw.next_cursor,
        // Zero, a negative number or nonsense leaves our own freshness in force.
        ttl: raw
            .ttl_ms
            .and_then(|ttl| ttl.get().parse().ok())
            .filter(|ttl| *ttl > 0)
            .map(Duration::from_millis),
    })
}

/// The parts of a `server/discover` or `initialize` result that we use.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerFacts {
    #[serde(default)]
    pub(super) supported_versions: Vec<String>,
    #[serde(default)]
    pub(super) protocol_version: Option<String>,
    #[serde(default)]
    pub(super) instructions: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ids_are_strings_of_128_bits_and_never_the_same() {
        let ids: std::collections::HashSet<String> = (0..3 * IDS_DRAWN).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 3 * IDS_DRAWN);
        assert!(ids.iter().all(|id| id.len() == 34 && is_like_ours(id)));
    }

    #[test]
    fn c3_c10_a_call_carries_the_callers_bytes_and_our_metadata() {
        let trace = TraceContext { traceparent: Some(raw("\"00-a\"")), ..TraceContext::default() };
        let call = ToolCall {
            name: "a\"b",
            arguments: raw(r#"{ "n": 123456789012345678901234567890 }"#),
            param_headers: &[],
            client_capabilities: raw("{}"),
            trace,
            listening: None,
            input_responses: Some(raw(r#"{"q":1}"#)),
            request_state: Some(raw("\"opaque\"")),
        };
        insta::assert_snapshot!(call_params(&call, legacy_meta(&trace, None).as_deref()), @r#"{"name":"a\"b","arguments":{ "n": 123456789012345678901234567890 },"inputResponses":{"q":1},"requestState":"opaque","_meta":{"traceparent":"00-a"}}"#);
        let meta = modern_meta("2026-07-28", "{}", &trace, None).replace(env!("CARGO_PKG_VERSION"), "0");
        insta::assert_snapshot!(meta, @r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"toolsearch-proxy","version":"0"},"io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-a"}"#);
        assert_eq!(legacy_meta(&TraceContext::default(), None), None);
    }

    #[test]
    fn c11_the_tasks_extension_is_not_forwarded() {
        let declared = raw(r#"{"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{}}}"#);
        assert_eq!(forwarded_capabilities(declared), r#"{"extensions":{"x/y":{}},"sampling":{}}"#);
        for spelling in [r"io.modelcontextprotocol\/tasks", r"io.modelcontextprotocol/task\u0073"] {
            for extensions in ["extensions", r"\u0065xtensions"] {
                let declared = format!(r#"{{"{extensions}":{{"{spelling}":{{}},"x/y":{{ "n": 1e400 }}}}}}"#);
                let forwarded = forwarded_capabilities(raw(&declared)).into_owned();
                assert_eq!(forwarded, r#"{"extensions":{"x/y":{ "n": 1e400 }}}"#, "{declared}");
            }
        }
        let without = r#"{"sampling":{},"extensions":{"x\/y":{}}}"#;
        assert_eq!(forwarded_capabilities(raw(without)), without);
        assert!(matches!(forwarded_capabilities(raw("{\"a\":1}")), Cow::Borrowed("{\"a\":1}")));
    }

    #[test]
    fn c9_an_empty_cursor_is_a_cursor_and_ttl_counts_above_zero() {
        let page = |text: &'static str| parse_page(&Bytes::from(text)).unwrap();
        assert_eq!(page(r#"{"tools":[],"nextCursor":""}"#).next_cursor.as_deref(), Some(""));
        assert_eq!(page(r#"{"tools":[],"nextCursor":null}"#).next_cursor, None);
        assert_eq!(page(r#"{"tools":[],"ttlMs":5}"#).ttl, Some(Duration::from_millis(5)));
        for ttl in ["0", "-1", "null", "\"5\"", "1.5", "[]"] {
            let text = format!(r#"{{"tools":[],"ttlMs":{ttl}}}"#);
            assert_eq!(parse_page(&Bytes::from(text)).unwrap().ttl, None, "{ttl}");
        }
        let cursor =
            |bytes: usize| Bytes::from(format!(r#"{{"tools":[],"nextCursor":"{}"}}"#, "x".repeat(bytes)));
        assert!(parse_page(&cursor(CURSOR_BYTES_MAX)).is_ok());
        assert!(matches!(parse_page(&cursor(CURSOR_BYTES_MAX + 1)), Err(UpstreamError::Listing(_))));
        let result = Bytes::from_static(br#"{"tools":[{"name": "a" }]}"#);
        let page = parse_page(&result).unwrap();
        assert_eq!(page.tools, [&br#"{"name": "a" }"#[..]]);
        assert_eq!(page.tools[0].as_ptr(), result[10..].as_ptr());
    }

    #[test]
    fn a_page_of_tiny_tools_ends_at_its_limit() {
        let page = |tools: usize| {
            Bytes::from(format!(r#"{{"tools":[{}1],"nextCursor":"a"}}"#, "1,".repeat(tools - 1)))
        };
        assert_eq!(parse_page(&page(PAGE_TOOLS_MAX)).unwrap().tools.len(), PAGE_TOOLS_MAX);
        assert!(matches!(parse_page(&page(PAGE_TOOLS_MAX + 1)), Err(UpstreamError::Listing(_))));
        assert!(matches!(
            parse_page(&Bytes::from_static(br#"{"tools":{}}"#)),
            Err(UpstreamError::Invalid(_))
        ));
    }
}
