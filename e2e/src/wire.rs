//! What no SDK shows: the HTTP answers to a bad token, the bytes as they stand, and what the proxy writes down.

use std::net::SocketAddr;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::checks::{Checked, answer, ensure, five_tools, same};
use crate::fixtures::Fixture;
use crate::http::{self, Response};
use crate::upstream::{Kind, Stack};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const PATHS: [&str; 3] = ["/mcp", "/mcp/search", "/"];
/// Found nowhere in what the proxy logs or measures, though all clients before sent them.
const PRIVATE: [&str; 7] =
    ["alice-token", "bob-token", "nobody-token", "palūkan", "žalias", "Žemaitija", "py-mcp-auto"];

/// A server at the end of a wire, spoken to in one era.
struct Wire {
    address: SocketAddr,
    path: &'static str,
    token: Option<&'static str>,
    is_modern: bool,
    session: Option<String>,
}

pub fn run(kind: Kind, stack: &Stack, fixture: &Fixture) -> Vec<(&'static str, Checked)> {
    let mut outcomes = vec![
        ("each path serves the five tools, in both eras", each_path_serves(stack)),
        ("definitions keep their bytes", definitions_keep_bytes(kind, stack, fixture)),
        ("results keep their bytes", results_keep_bytes(kind, stack, fixture)),
    ];
    if fixture.hidden.is_some() {
        outcomes.push((
            "no token or a bad one is a 401 with the upstream's challenge",
            challenge_is_relayed(kind, stack),
        ));
    }
    outcomes.push(("nothing private is logged or measured", nothing_private_is_kept(stack)));
    outcomes
}

impl Wire {
    fn modern(address: SocketAddr, path: &'static str) -> Self {
        Self { address, path, token: Some("alice-token"), is_modern: true, session: None }
    }

    /// Shakes hands, and keeps the session if it is given one.
    fn legacy(address: SocketAddr, path: &'static str) -> Checked<Self> {
        let mut wire = Self { address, path, token: Some("alice-token"), is_modern: false, session: None };
        let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}});
        let response = wire.post("initialize", &hello)?;
        result_of(&response)?;
        wire.session = response.header("mcp-session-id").map(str::to_owned);
        wire.send(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "notifications/initialized",
            None,
        )?;
        Ok(wire)
    }

    fn open(kind: Kind, address: SocketAddr) -> Checked<Self> {
        if kind.is_modern() { Ok(Self::modern(address, "/mcp")) } else { Self::legacy(address, "/mcp") }
    }

    fn post(&self, method: &str, params: &Value) -> Checked<Response> {
        let mut params = params.clone();
        if self.is_modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.send(&body, method, name.as_deref())
    }

    fn send(&self, body: &str, method: &str, name: Option<&str>) -> Checked<Response> {
        let mut headers =
            vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let token = self.token.map(|token| format!("Bearer {token}"));
        headers.extend(token.as_deref().map(|token| ("Authorization", token)));
        headers.extend(self.session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        if self.is_modern {
            headers.extend([("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)]);
            headers.extend(name.map(|name| ("Mcp-Name", name)));
        } else if method != "initialize" {
            headers.push(("MCP-Protocol-Version", LEGACY));
        }
        http::post(self.address, self.path, &headers, body)
    }

    /// The `result` of a call, as it stands in the answer.
    fn result(&self, method: &str, params: &Value) -> Checked<Box<RawValue>> {
        result_of(&self.post(method, params)?)
    }
}

/// The JSON-RPC message in an answer of either content type.
fn message_of(response: &Response) -> Checked<String> {
    let is_stream = response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream {
        return Ok(response.body.clone());
    }
    let mut data = response.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let last = data.rfind(|data| data.contains("\"result\"") || data.contains("\"error\""));
    last.map(str::to_owned).ok_or_else(|| format!("no message in the stream: {}", response.body))
}

fn result_of(response: &Response) -> Checked<Box<RawValue>> {
    let message = message_of(response)?;
    let unreadable = || format!("no result, status {}: {message}", response.status);
    let fields: std::collections::HashMap<&str, &RawValue> =
        serde_json::from_str(&message).map_err(|_| unreadable())?;
    fields.get("result").map(|&result| result.to_owned()).ok_or_else(unreadable)
}

fn parsed(raw: &RawValue) -> Checked<Value> {
    serde_json::from_str(raw.get()).map_err(|error| format!("{error}: {raw}"))
}

fn each_path_serves(stack: &Stack) -> Checked {
    for path in PATHS {
        for wire in [Wire::modern(stack.proxy, path), Wire::legacy(stack.proxy, path)?] {
            let listed = parsed(&wire.result("tools/list", &json!({}))?)?;
            let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
            five_tools(tools).map_err(|error| format!("{path}: {error}"))?;
            ensure(wire.session.is_none(), || format!("{path} gave a session"))?;
        }
    }
    Ok(())
}

fn definitions_keep_bytes(kind: Kind, stack: &Stack, fixture: &Fixture) -> Checked {
    let listed = Wire::open(kind, stack.upstream)?.result("tools/list", &json!({}))?;
    let fields: std::collections::HashMap<&str, &RawValue> =
        serde_json::from_str(listed.get()).map_err(|error| error.to_string())?;
    let definitions: Vec<&RawValue> = fields
        .get("tools")
        .and_then(|tools| serde_json::from_str(tools.get()).ok())
        .ok_or_else(|| format!("the upstream lists no tools: {listed}"))?;
    let wanted: Vec<&str> = fixture.searches.iter().map(|(_, tool)| *tool).collect();
    for wire in [Wire::modern(stack.proxy, "/mcp"), Wire::legacy(stack.proxy, "/mcp")?] {
        let call = json!({"name": "describe_tool", "arguments": {"names": wanted}});
        let described = parsed(&wire.result("tools/call", &call)?)?;
        let text = described["content"][0]["text"].as_str().unwrap_or_default();
        for name in &wanted {
            let is_it = |definition: &&&RawValue| parsed(definition).is_ok_and(|tool| tool["name"] == *name);
            let definition = definitions.iter().find(is_it).ok_or_else(|| format!("no {name} upstream"))?;
            ensure(text.contains(definition.get()), || {
                format!("{name} is not byte for byte\nupstream: {definition}\nproxy:    {text}")
            })?;
        }
    }
    Ok(())
}

fn results_keep_bytes(kind: Kind, stack: &Stack, fixture: &Fixture) -> Checked {
    let (call, bytes) = &fixture.exact;
    let arguments = json!({"name": call.tool, "arguments": call.arguments});
    let direct = Wire::open(kind, stack.upstream)?.result("tools/call", &arguments)?;
    ensure(direct.get().contains(bytes), || format!("the upstream does not give {bytes}: {direct}"))?;
    let read = json!({"name": "call_read_tool", "arguments": arguments});
    let batch = json!({"name": "call_read_tools", "arguments": {"calls": [arguments]}});
    for wire in [Wire::modern(stack.proxy, "/mcp"), Wire::legacy(stack.proxy, "/mcp")?] {
        let through = wire.result("tools/call", &read)?;
        ensure(through.get().contains(bytes), || format!("{bytes} did not survive: {through}"))?;
        let through = parsed(&wire.result("tools/call", &batch)?)?;
        answer(&through)?;
        let text = through["content"][0]["text"].as_str().unwrap_or_default();
        ensure(text.contains(bytes), || format!("{bytes} did not survive a batch: {text}"))?;
    }
    Ok(())
}

fn challenge_is_relayed(kind: Kind, stack: &Stack) -> Checked {
    let search = json!({"name": "search_tools", "arguments": {"query": "write a note"}});
    for token in [None, Some("nobody-token")] {
        let mut direct = Wire::modern(stack.upstream, "/mcp");
        direct.is_modern = kind.is_modern();
        direct.token = token;
        let expected =
            direct.post("tools/call", &json!({"name": "notes_find", "arguments": {"words": "x"}}))?;
        ensure(expected.status == 401, || format!("the upstream itself said {}", expected.status))?;
        for is_modern in [true, false] {
            let mut wire = Wire::modern(stack.proxy, "/mcp");
            wire.is_modern = is_modern;
            wire.token = token;
            let response = wire.post("tools/call", &search)?;
            ensure(response.status == 401, || {
                format!("token {token:?}: {} {}", response.status, response.body)
            })?;
            let [found, expected] =
                [&response, &expected].map(|response| json!(response.header("www-authenticate")));
            same("WWW-Authenticate", &found, &expected)?;
        }
    }
    Ok(())
}

fn nothing_private_is_kept(stack: &Stack) -> Checked {
    let metrics = http::get(stack.admin, "/metrics")?;
    ensure(metrics.status == 200 && metrics.body.contains("toolsearch_"), || {
        format!("no metrics: {} {}", metrics.status, metrics.body)
    })?;
    for (place, text) in [("the log", stack.proxy_log()), ("the metrics", metrics.body)] {
        for private in PRIVATE {
            ensure(!text.contains(private), || format!("{private:?} stands in {place}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(content_type: &str, body: &str) -> Response {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Response { status: 200, headers, body: body.to_owned() }
    }

    #[test]
    fn result_is_taken_with_its_bytes_from_either_content_type() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{"n":15511210043330985984000000, "x":1.0}}"#;
        let stream = format!(
            "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\n\ndata: {message}\n\n"
        );
        for response in [response("application/json", message), response("text/event-stream", &stream)] {
            assert_eq!(result_of(&response).unwrap().get(), r#"{"n":15511210043330985984000000, "x":1.0}"#);
        }
    }

    #[test]
    fn an_error_answer_is_no_result() {
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        assert!(result_of(&response("application/json", refused)).unwrap_err().contains("-32601"));
    }
}
