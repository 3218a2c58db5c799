//! Which protocol version a request speaks, decided for each request by itself.
//!
//! The body decides and the headers are checked against it; the earliest failure wins, in the order of rule M27:
//! duplicate headers, metadata, header against body, version, method, name.

use crate::dispatch::Dispatcher;
use crate::mcp::{
    Era, Message, ProtocolVersion, RequestMeta, RpcError, TraceContext, code, decode_header_text,
    from_object, names,
};
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A request's version and what its metadata says.
#[derive(Debug)]
pub(super) struct Spoken<'a> {
    pub(super) version: ProtocolVersion,
    /// A raw JSON object; `None` where nothing was declared.
    pub(super) client_capabilities: Option<&'a RawValue>,
    pub(super) trace: TraceContext<'a>,
    /// Raw; where present, the client wants to hear of progress.
    pub(super) progress_token: Option<&'a RawValue>,
    /// Raw; where present, the client wants log messages of this level and above.
    pub(super) log_level: Option<&'a RawValue>,
}

/// The version that a body without metadata speaks, by its header alone.
///
/// # Errors
/// When the header is doubled or names a version that is not served.
pub(super) fn header_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, RpcError> {
    let Some(text) = single(headers, &names::PROTOCOL_VERSION)? else { return Ok(None) };
    ProtocolVersion::parse(&text).map(Some).ok_or_else(|| unsupported(&text))
}

/// Decides the version of one request.
///
/// # Errors
/// The first failure in the order above; all of them are HTTP 400 but -32601, which is 404.
pub(super) fn decide<'a>(
    headers: &'a HeaderMap,
    message: &Message<'a>,
    method: &str,
) -> Result<Spoken<'a>, RpcError> {
    let meta = RequestMeta::of_params(message.params);
    match meta.filter(|meta| meta.protocol_version.is_some() || meta.client_capabilities.is_some()) {
        Some(meta) => modern(headers, message, method, &meta),
        None => legacy(headers, message, method, meta.as_ref()),
    }
}

fn modern<'a>(
    headers: &'a HeaderMap,
    message: &Message<'a>,
    method: &str,
    meta: &RequestMeta<'a>,
) -> Result<Spoken<'a>, RpcError> {
    let version_header = single(headers, &names::PROTOCOL_VERSION)?;
    let method_header = single(headers, &names::METHOD)?;
    let name_header = single(headers, &names::NAME)?;
    let version = meta.protocol_version().ok_or_else(|| {
        RpcError::invalid_params("_meta.io.modelcontextprotocol/protocolVersion must be a string")
    })?;
    let capabilities = meta.client_capabilities().ok_or_else(|| {
        RpcError::invalid_params(
            "_meta.io.modelcontextprotocol/clientCapabilities must be an object; {} is enough",
        )
    })?;
    must_equal(version_header.as_deref(), &version, "MCP-Protocol-Version must equal the version in _meta")?;
    must_equal(method_header.as_deref(), method, "Mcp-Method must equal the request's method")?;
    let spoken = ProtocolVersion::parse(&version)
        .filter(|version| version.era() == Era::Modern)
        .ok_or_else(|| unsupported(&version))?;
    if !Dispatcher::knows(spoken, method) {
        return Err(method_not_found());
    }
    if method == "tools/call" {
        check_name(name_header.as_deref(), message.params)?;
    }
    Ok(Spoken {
        version: spoken,
        client_capabilities: Some(capabilities),
        trace: meta.trace_context().with_headers(headers),
        progress_token: meta.progress_token(),
        log_level: meta.log_level()?,
    })
}

fn legacy<'a>(
    headers: &'a HeaderMap,
    message: &Message<'a>,
    method: &str,
    meta: Option<&RequestMeta<'a>>,
) -> Result<Spoken<'a>, RpcError> {
    let version = match header_version(headers)? {
        Some(version) if version.era() == Era::Modern && method == "initialize" => {
            return Err(mismatch("initialize belongs to older versions than MCP-Protocol-Version says"));
        }
        Some(version) if version.era() == Era::Modern => {
            return Err(RpcError::invalid_params(
                "params._meta must hold io.modelcontextprotocol/protocolVersion and /clientCapabilities in this \
                 version",
            ));
        }
        // A handshake says its version in the body.
        _ if method == "initialize" => handshake_version(message.params),
        Some(version) => version,
        None => ProtocolVersion::ASSUMED,
    };
    Ok(Spoken {
        version,
        client_capabilities: None,
        trace: meta.map(RequestMeta::trace_context).unwrap_or_default().with_headers(headers),
        progress_token: meta.and_then(RequestMeta::progress_token),
        // An older client sets its level with a request that this server does not have.
        log_level: None,
    })
}

fn handshake_version(params: Option<&RawValue>) -> ProtocolVersion {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        protocol_version: Cow<'a, str>,
    }
    params
        .and_then(|params| from_object::<Params<'_>>(params.get().as_bytes()).ok())
        .and_then(|params| ProtocolVersion::parse(&params.protocol_version))
        .filter(|version| version.era() == Era::Legacy)
        .unwrap_or(ProtocolVersion::LATEST_LEGACY)
}

/// The header's one value with white space around it trimmed.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<Cow<'h, str>>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(mismatch(format!("the header {name} must be sent once")));
    }
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| mismatch(format!("the header {name} is not text")))?;
    Ok(Some(Cow::Borrowed(text.trim_matches([' ', '\t']))))
}

fn must_equal(header: Option<&str>, expected: &str, rule: &'static str) -> Result<(), RpcError> {
    if header == Some(expected) { Ok(()) } else { Err(mismatch(rule)) }
}

/// `Mcp-Name` must say what the body says. A body without a name is left to the method, which knows what to say.
fn check_name(header: Option<&str>, params: Option<&RawValue>) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let Some(header) = header else { return Err(mismatch("Mcp-Name is missing: send params.name in it")) };
    let header =
        decode_header_text(header.as_bytes()).map_err(|error| mismatch(format!("Mcp-Name: {error}")))?;
    let params = params.and_then(|params| from_object::<Params<'_>>(params.get().as_bytes()).ok());
    match params {
        Some(params) if params.name != header => Err(mismatch("Mcp-Name must equal params.name")),
        _ => Ok(()),
    }
}

fn mismatch(message: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

pub(super) fn method_not_found() -> RpcError {
    RpcError::new(
        code::METHOD_NOT_FOUND,
        "this server has no such method: it serves server/discover, tools/list and tools/call",
    )
}

fn unsupported(requested: &str) -> RpcError {
    let supported: Vec<&str> = ProtocolVersion::ALL.iter().map(|version| version.as_str()).collect();
    RpcError {
        code: code::UNSUPPORTED_VERSION,
        message: Cow::Borrowed("the protocol version is not supported"),
        data: Some(serde_json::json!({ "supported": supported, "requested": requested })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn decided(headers: &[(&str, &str)], body: &str) -> Result<ProtocolVersion, i64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let message = Message::parse(serde_json::from_str(body).unwrap()).unwrap();
        let method = message.method_name().unwrap();
        decide(&map, &message, &method).map(|spoken| spoken.version).map_err(|error| error.code)
    }

    fn call(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#)
    }

    const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");
    const METHOD: (&str, &str) = ("Mcp-Method", "tools/call");
    const NAME: (&str, &str) = ("Mcp-Name", "search_tools");

    #[test]
    fn m22_m24_m27_t_r10_modern_headers_must_say_what_the_body_says() {
        let body = call(&format!(r#""name":"search_tools",{META}"#));
        let modern = Ok(ProtocolVersion::V2026_07_28);
        assert_eq!(decided(&[VERSION, METHOD, NAME], &body), modern);
        assert_eq!(decided(&[VERSION, METHOD, ("mcp-name", " =?base64?c2VhcmNoX3Rvb2xz?= ")], &body), modern);
        let wrong: &[&[(&str, &str)]] = &[
            &[METHOD, NAME],
            &[VERSION, NAME],
            &[VERSION, METHOD],
            &[VERSION, VERSION, METHOD, NAME],
            &[VERSION, METHOD, METHOD, NAME],
            &[VERSION, METHOD, NAME, NAME],
            &[("MCP-Protocol-Version", "2025-11-25"), METHOD, NAME],
            &[VERSION, ("Mcp-Method", "TOOLS/CALL"), NAME],
            &[VERSION, METHOD, ("Mcp-Name", "Search_tools")],
            &[VERSION, METHOD, ("Mcp-Name", "=?base64?!?=")],
        ];
        for headers in wrong {
            assert_eq!(decided(headers, &body), Err(code::HEADER_MISMATCH), "{headers:?}");
        }
    }

    #[test]
    fn m14_m26_d2_metadata_comes_before_headers_and_versions() {
        for meta in [
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#,
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}"#,
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
        ] {
            assert_eq!(decided(&[], &call(meta)), Err(code::INVALID_PARAMS), "{meta}");
        }
        assert_eq!(decided(&[VERSION], &call(r#""name":"x""#)), Err(code::INVALID_PARAMS));
        let future = call(&META.replace("2026-07-28", "2031-01-01"));
        assert_eq!(
            decided(&[("mcp-protocol-version", "2031-01-01"), METHOD], &future),
            Err(code::UNSUPPORTED_VERSION)
        );
    }

    #[test]
    fn m11_d3_methods_that_the_version_does_not_have_are_unknown() {
        for method in ["ping", "initialize", "logging/setLevel", "resources/subscribe", "x"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}}}}}"#);
            assert_eq!(
                decided(&[VERSION, ("Mcp-Method", method)], &body),
                Err(code::METHOD_NOT_FOUND),
                "{method}"
            );
        }
        let handshake =
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(decided(&[VERSION], handshake), Err(code::HEADER_MISMATCH));
        assert_eq!(decided(&[], handshake), Ok(ProtocolVersion::V2025_06_18));
    }

    #[test]
    fn d4_d5_l9_a_request_without_a_claim_is_legacy_by_its_header() {
        let body = call(r#""name":"x","_meta":{"progressToken":1}"#);
        assert_eq!(decided(&[], &body), Ok(ProtocolVersion::V2025_03_26));
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let decided = decided(&[("mcp-protocol-version", version)], &body);
            assert_eq!(decided, Ok(ProtocolVersion::parse(version).unwrap()));
        }
        assert_eq!(decided(&[("mcp-protocol-version", "1999-01-01")], &body), Err(code::UNSUPPORTED_VERSION));
    }
}
