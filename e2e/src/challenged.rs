//! The same login without a client: challenges and metadata as they stand in the answers, held against the upstream's.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::authority::{WELL_KNOWN, given};
use crate::checks::{Checked, ensure};
use crate::http::{self, Response};
use crate::login::Protected;
use crate::plain::Wire;

const PATHS: [&str; 3] = ["/mcp", "/mcp/search", "/"];
const READER: &str = "reader-token";
const FOREIGN: &str = "foreign-token";
/// What it takes to read notes.
const SCOPE: &str = "notes:read";

pub fn run(protected: &Protected) -> Vec<(&'static str, Checked)> {
    vec![
        ("the 401 is the upstream's but for resource_metadata", unauthorized(protected)),
        ("the 401 leads to metadata for the URL that was dialled", leads_to_metadata(protected)),
        ("metadata is the upstream's but for resource", metadata(protected)),
        ("the 403 is the upstream's with its scope", forbidden(protected)),
        ("a token that has expired is a 401, whatever was kept for it", expired(protected)),
        ("a token for the upstream's own URL is as good", own_token(protected)),
        ("no token is logged or measured", nothing_private_is_kept(protected)),
    ]
}

fn unauthorized(protected: &Protected) -> Checked {
    protected.authority.steer(&given(FOREIGN, "http://other.example/mcp", SCOPE))?;
    for token in [None, Some("nobody-token"), Some(FOREIGN)] {
        let expected = challenge(&direct(protected, token, "notes_find")?, 401)?;
        ensure(expected.contains("error=") == token.is_some(), || format!("the upstream said {expected}"))?;
        for path in PATHS {
            for is_modern in [true, false] {
                for (method, params) in requests(is_modern) {
                    let response = wire(protected, path, token, is_modern).post(method, &params)?;
                    let what = format!("{method} {params} with {token:?} at {path}, modern: {is_modern}");
                    same_challenge(protected, path, &expected, &challenge(&response, 401)?)
                        .map_err(|error| format!("{what}\n{error}"))?;
                }
            }
        }
    }
    Ok(())
}

/// Everything that needs the upstream, and so a token.
fn requests(is_modern: bool) -> Vec<(&'static str, Value)> {
    let note = json!({"name": "notes_find", "arguments": {"word": "milk"}});
    let first = if is_modern {
        ("server/discover", json!({}))
    } else {
        let hello = json!({"protocolVersion": crate::plain::LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}});
        ("initialize", hello)
    };
    let calls = [
        ("search_tools", json!({"query": "write a note"})),
        ("describe_tool", json!({"names": ["notes_find"]})),
        ("call_read_tool", note.clone()),
        ("call_read_tools", json!({"calls": [note, note]})),
        ("call_write_tool", json!({"name": "notes_add", "arguments": {"text": "x"}})),
    ];
    let calls = calls.map(|(tool, arguments)| ("tools/call", json!({"name": tool, "arguments": arguments})));
    std::iter::once(first).chain(calls).collect()
}

/// As a client does it: the URL in the challenge, and nothing else, tells where to look.
fn leads_to_metadata(protected: &Protected) -> Checked {
    for path in PATHS {
        let (method, params) = requests(true).remove(0);
        let found = challenge(&wire(protected, path, None, true).post(method, &params)?, 401)?;
        let url = named_metadata(&found).unwrap_or_default();
        let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
        let at = after_scheme.find('/').map_or("", |slash| &after_scheme[slash..]);
        let document = http::get(protected.proxy.listen, at)?.body;
        let parsed: Value = serde_json::from_str(&document).unwrap_or_default();
        ensure(parsed["resource"] == protected.resource(path), || {
            format!("{path} leads to {url}, and that is for another resource than {path}: {document}")
        })?;
    }
    Ok(())
}

fn metadata(protected: &Protected) -> Checked {
    let origin = http::get(protected.upstream.address, &format!("{WELL_KNOWN}/mcp"))?;
    for path in PATHS {
        let response =
            http::get(protected.proxy.listen, &format!("{WELL_KNOWN}{}", path.trim_end_matches('/')))?;
        ensure(
            response.status == 200 && response.header("content-type") == Some("application/json"),
            || format!("metadata for {path}: {response:?}"),
        )?;
        let mut expected = members(&origin.body)?;
        let resource = json!(protected.resource(path)).to_string();
        let resource: Box<RawValue> = serde_json::from_str(&resource).map_err(|error| error.to_string())?;
        expected.insert("resource".to_owned(), resource);
        let [found, expected] = [members(&response.body)?, expected].map(as_text);
        ensure(found == expected, || {
            format!("metadata for {path}\nfound:    {found:?}\nexpected: {expected:?}")
        })?;
    }
    Ok(())
}

fn forbidden(protected: &Protected) -> Checked {
    protected.authority.steer(&given(READER, &protected.upstream.url(), SCOPE))?;
    let expected = challenge(&direct(protected, Some(READER), "notes_add")?, 403)?;
    for part in [r#"error="insufficient_scope""#, r#"scope="notes:read notes:write""#] {
        ensure(expected.contains(part), || format!("the upstream's own challenge is {expected}"))?;
    }
    let add = json!({"name": "notes_add", "arguments": {"text": "not to be kept"}});
    for path in PATHS {
        for is_modern in [true, false] {
            let wire = wire(protected, path, Some(READER), is_modern);
            let response = wire.post("tools/call", &json!({"name": "call_write_tool", "arguments": add}))?;
            same_challenge(protected, path, &expected, &challenge(&response, 403)?)?;
        }
    }
    Ok(())
}

/// The proxy knows this caller's tools by then, and the call still meets the upstream's answer.
fn expired(protected: &Protected) -> Checked {
    let note = json!({"name": "notes_find", "arguments": {"word": "milk"}});
    let batch = json!({"calls": [note, note]});
    for (tool, arguments) in
        [("call_read_tool", &note), ("call_read_tools", &batch), ("call_write_tool", &note)]
    {
        for is_modern in [true, false] {
            protected.authority.steer(&given(READER, &protected.upstream.url(), SCOPE))?;
            let wire = wire(protected, "/mcp", Some(READER), is_modern);
            let call = json!({"name": tool, "arguments": arguments});
            let good = wire.post("tools/call", &call)?;
            ensure(good.status == 200 && good.body.contains("oat flakes"), || format!("{tool}: {good:?}"))?;
            protected.authority.steer(&json!({"expire": true}))?;
            let expected = challenge(&direct(protected, Some(READER), "notes_find")?, 401)?;
            let found = challenge(&wire.post("tools/call", &call)?, 401)?;
            same_challenge(protected, "/mcp", &expected, &found)
                .map_err(|error| format!("{tool}\n{error}"))?;
        }
    }
    Ok(())
}

fn own_token(protected: &Protected) -> Checked {
    protected.authority.steer(&given(READER, &protected.upstream.url(), SCOPE))?;
    let find = json!({"name": "notes_find", "arguments": {"word": "milk"}});
    for is_modern in [true, false] {
        let wire = wire(protected, "/mcp", Some(READER), is_modern);
        let response = wire.post("tools/call", &json!({"name": "call_read_tool", "arguments": find}))?;
        ensure(response.status == 200 && response.body.contains("oat flakes"), || format!("{response:?}"))?;
    }
    Ok(())
}

fn nothing_private_is_kept(protected: &Protected) -> Checked {
    let metrics = http::get(protected.proxy.admin, "/metrics")?.body;
    for (place, text) in [("the log", protected.proxy.log()), ("the metrics", metrics)] {
        for private in [READER, FOREIGN, "nobody-token", "client-"] {
            ensure(!text.contains(private), || format!("{private:?} stands in {place}"))?;
        }
    }
    Ok(())
}

fn wire(protected: &Protected, path: &'static str, token: Option<&'static str>, is_modern: bool) -> Wire {
    Wire { token, is_modern, ..Wire::modern(protected.proxy.listen, path) }
}

/// What the upstream itself says to a call of its tool. Its gate asks for no session.
fn direct(protected: &Protected, token: Option<&'static str>, tool: &str) -> Checked<Response> {
    let is_modern = protected.is_upstream_modern;
    let wire = Wire { token, is_modern, ..Wire::modern(protected.upstream.address, "/mcp") };
    wire.post("tools/call", &json!({"name": tool, "arguments": {"word": "x", "text": "x"}}))
}

/// The one challenge of an answer with this status.
fn challenge(response: &Response, status: u16) -> Checked<String> {
    let is_challenge = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("www-authenticate");
    let found: Vec<&str> =
        response.headers.iter().filter(is_challenge).map(|(_, value)| value.as_str()).collect();
    match found.as_slice() {
        [challenge] if response.status == status => Ok((*challenge).to_owned()),
        _ => Err(format!("expected {status} and one challenge: {response:?}")),
    }
}

fn same_challenge(protected: &Protected, path: &str, upstream: &str, found: &str) -> Checked {
    let theirs = format!("http://{}{WELL_KNOWN}/mcp", protected.upstream.address);
    ensure(upstream.contains(&theirs), || format!("the upstream does not name {theirs}: {upstream}"))?;
    let expected = upstream.replace(&theirs, &metadata_url(&protected.resource(path)));
    ensure(found == expected, || format!("found:    {found}\nexpected: {expected}"))
}

/// Between the authority of the resource's URL and its path, as RFC 9728 has it; a bare slash is no path.
fn metadata_url(resource: &str) -> String {
    let start = resource.find("://").map_or(0, |end| end + 3);
    let slash = resource[start..].find('/').map_or(resource.len(), |slash| start + slash);
    format!("{}{WELL_KNOWN}{}", &resource[..slash], resource[slash..].trim_end_matches('/'))
}

fn named_metadata(challenge: &str) -> Option<&str> {
    let (_, rest) = challenge.split_once(r#"resource_metadata=""#)?;
    rest.split('"').next()
}

/// With the bytes of each value as they stand.
fn members(document: &str) -> Checked<BTreeMap<String, Box<RawValue>>> {
    serde_json::from_str(document).map_err(|error| format!("{error}: {document}"))
}

fn as_text(members: BTreeMap<String, Box<RawValue>>) -> Vec<(String, String)> {
    members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_stands_between_authority_and_path() {
        for (resource, path) in
            [("https://a/mcp/search", "/mcp/search"), ("https://a/", ""), ("https://a", "")]
        {
            assert_eq!(metadata_url(resource), format!("https://a{WELL_KNOWN}{path}"));
        }
    }

    #[test]
    fn metadata_url_is_taken_from_the_challenge() {
        assert_eq!(named_metadata(r#"Bearer resource_metadata="http://a/b", x="c""#), Some("http://a/b"));
        assert_eq!(named_metadata("Bearer"), None);
    }
}
