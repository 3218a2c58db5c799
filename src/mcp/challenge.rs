//! The `resource_metadata` parameter of a `WWW-Authenticate` challenge: where a client's login starts.
//!
//! Source: RFC 9728, section 5.1, and RFC 9110, section 11.6.1.

use super::json::string_end;
use http::HeaderValue;
use std::ops::Range;

const PARAMETER: &[u8] = b"resource_metadata";

/// The URL that the challenge names.
pub fn resource_metadata(challenge: &HeaderValue) -> Option<&str> {
    let bytes = challenge.as_bytes();
    let value = &bytes[value_range(bytes, 0)?];
    let value = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
    std::str::from_utf8(value).ok()
}

/// The challenge with another URL in its place, in each challenge of the line, and every other byte as it was. Without
/// the parameter it stays as it is, as it does when the URL fits in no header.
pub fn with_resource_metadata(challenge: &HeaderValue, url: &str) -> HeaderValue {
    let bytes = challenge.as_bytes();
    let (mut out, mut done) = (Vec::with_capacity(bytes.len() + url.len()), 0);
    while let Some(range) = value_range(bytes, done) {
        out.extend_from_slice(&bytes[done..range.start]);
        out.push(b'"');
        out.extend(url.bytes().filter(|byte| !matches!(byte, b'"' | b'\\')));
        out.push(b'"');
        done = range.end;
    }
    out.extend_from_slice(&bytes[done..]);
    HeaderValue::from_bytes(&out).unwrap_or_else(|_| challenge.clone())
}

/// Where the parameter's value next stands, its quotes included. Text inside of other quoted values is passed over.
fn value_range(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from;
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at = string_end(bytes, at);
            continue;
        }
        let starts_word = at == 0 || matches!(bytes[at - 1], b' ' | b',' | b'\t');
        if starts_word
            && bytes[at..].len() > PARAMETER.len()
            && bytes[at..][..PARAMETER.len()].eq_ignore_ascii_case(PARAMETER)
        {
            let rest = &bytes[at + PARAMETER.len()..];
            let spaces = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let before = spaces(rest);
            if rest.get(before) == Some(&b'=') {
                let start = at + PARAMETER.len() + before + 1;
                let start = start + spaces(&bytes[start..]);
                return Some(start..value_end(bytes, start));
            }
        }
        at += 1;
    }
    None
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start) == Some(&b'"') {
        return string_end(bytes, start);
    }
    let length = bytes[start..].iter().take_while(|byte| !matches!(byte, b',' | b' ' | b'\t')).count();
    start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c16_only_the_url_changes_wherever_it_stands() {
        for (challenge, url, changed) in [
            (
                r#"Bearer realm="a \" resource_metadata=x", resource_metadata="https://up/.well-known/a", scope="x y""#,
                Some("https://up/.well-known/a"),
                r#"Bearer realm="a \" resource_metadata=x", resource_metadata="https://me/m", scope="x y""#,
            ),
            (
                "Bearer resource_metadata=https://up/a",
                Some("https://up/a"),
                r#"Bearer resource_metadata="https://me/m""#,
            ),
            (
                r#"Bearer Resource_Metadata = "u",x=1"#,
                Some("u"),
                r#"Bearer Resource_Metadata = "https://me/m",x=1"#,
            ),
            (r#"Bearer error="invalid_token""#, None, r#"Bearer error="invalid_token""#),
            ("Bearer my_resource_metadata=x", None, "Bearer my_resource_metadata=x"),
            (
                r#"Bearer resource_metadata="u/a", DPoP resource_metadata=u/b, x=1"#,
                Some("u/a"),
                r#"Bearer resource_metadata="https://me/m", DPoP resource_metadata="https://me/m", x=1"#,
            ),
            ("Basic", None, "Basic"),
            ("Bearer resource_metadata=\"open", Some("\"open"), "Bearer resource_metadata=\"https://me/m\""),
        ] {
            let challenge = HeaderValue::from_str(challenge).unwrap();
            assert_eq!(resource_metadata(&challenge), url, "{challenge:?}");
            assert_eq!(with_resource_metadata(&challenge, "https://me/m"), changed);
        }
    }
}
