//! The HTTP headers of the protocol, and the encoding of text in them.
//!
//! `Mcp-Name` and `Mcp-Param-*` carry any text: printable ASCII as it is, everything else as
//! `=?base64?<base64 of UTF-8>?=`.
//!
//! Source: the specification's page on streamable HTTP, "Value Encoding".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// Header names, in the lower case that HTTP libraries want.
pub mod names {
    use http::HeaderName;

    /// The protocol version of a request.
    pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    /// The JSON-RPC method of a request.
    pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
    /// The tool's name in a `tools/call`.
    pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
    /// A legacy server's session.
    pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
    /// Where a broken stream is to go on.
    pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
    /// W3C trace context.
    pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
    /// W3C trace context, vendors' part.
    pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// A header's text can't be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the header's value is neither printable ASCII nor valid =?base64?…?= text")]
pub struct HeaderValueError;

/// Text as a header value: as it is where that is unambiguous, else base64.
pub fn encode_header_text(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let edge_space = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    if printable && !edge_space && !looks_encoded && !text.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text)))
}

/// The text of a header value, white space around it trimmed and base64 decoded.
///
/// # Errors
/// When the value is marked as base64 and is not, or is not UTF-8.
pub fn decode_header_text(value: &[u8]) -> Result<Cow<'_, str>, HeaderValueError> {
    let text = std::str::from_utf8(value).map_err(|_| HeaderValueError)?.trim_matches([' ', '\t']);
    let Some(encoded) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| HeaderValueError)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderValueError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c4_plain_text_goes_verbatim_and_the_rest_as_base64() {
        for (text, value) in [
            ("get_weather", "get_weather"),
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("žiūrėti", "=?base64?xb5pxatyxJd0aQ==?="),
            ("a\r\nb", "=?base64?YQ0KYg==?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
            ("", "=?base64??="),
        ] {
            assert_eq!(encode_header_text(text), value);
            assert_eq!(decode_header_text(value.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn m24_bad_base64_is_refused_and_the_markers_are_exact() {
        for value in [
            "=?base64?a?=",
            "=?base64?eA=?=",
            "=?base64?e===?=",
            "=?base64?eB==?=",
            "=?base64?/w==?=",
            "=?base64?e A=?=",
        ] {
            assert_eq!(decode_header_text(value.as_bytes()), Err(HeaderValueError), "{value}");
        }
        assert_eq!(decode_header_text(b"=?BASE64?eA==?=").unwrap(), "=?BASE64?eA==?=");
        assert_eq!(decode_header_text(b" \tx ").unwrap(), "x");
    }

    proptest! {
        #[test]
        fn f2_any_text_survives_the_header_and_never_breaks_it(text in ".*") {
            let value = encode_header_text(&text);
            prop_assert!(http::HeaderValue::from_str(&value).is_ok());
            let decoded = decode_header_text(value.as_bytes()).unwrap();
            prop_assert_eq!(decoded, text.as_str());
        }
    }
}
