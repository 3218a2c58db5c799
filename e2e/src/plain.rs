//! A client without an SDK, in one era: JSON-RPC over plain HTTP, and the answer's bytes as they stand.

use std::net::SocketAddr;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::checks::Checked;
use crate::http::{self, Response};

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

/// A server at the end of a wire, spoken to in one era.
pub struct Wire {
    pub address: SocketAddr,
    pub path: &'static str,
    pub token: Option<&'static str>,
    pub is_modern: bool,
    pub session: Option<String>,
}

impl Wire {
    pub fn modern(address: SocketAddr, path: &'static str) -> Self {
        Self { address, path, token: Some("alice-token"), is_modern: true, session: None }
    }

    /// # Errors
    /// When the handshake fails.
    pub fn legacy(address: SocketAddr, path: &'static str) -> Checked<Self> {
        Self { is_modern: false, ..Self::modern(address, path) }.with_handshake()
    }

    /// # Errors
    /// When the handshake of a legacy one fails.
    pub fn open(is_modern: bool, address: SocketAddr, token: Option<&'static str>) -> Checked<Self> {
        let wire = Self { is_modern, token, ..Self::modern(address, "/mcp") };
        if is_modern { Ok(wire) } else { wire.with_handshake() }
    }

    /// Keeps the session if it is given one.
    fn with_handshake(mut self) -> Checked<Self> {
        let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}});
        let response = self.post("initialize", &hello)?;
        result_of(&response)?;
        self.session = response.header("mcp-session-id").map(str::to_owned);
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.send(initialized, "notifications/initialized", None)?;
        Ok(self)
    }

    /// What `params._meta` says already is kept.
    pub fn post(&self, method: &str, params: &Value) -> Checked<Response> {
        let mut params = params.clone();
        if self.is_modern {
            let said = params["_meta"].take();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            for (key, value) in said.as_object().into_iter().flatten() {
                params["_meta"][key] = value.clone();
            }
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
    pub fn result(&self, method: &str, params: &Value) -> Checked<Box<RawValue>> {
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

pub fn result_of(response: &Response) -> Checked<Box<RawValue>> {
    let message = message_of(response)?;
    let unreadable = || format!("no result, status {}: {message}", response.status);
    let fields: std::collections::HashMap<&str, &RawValue> =
        serde_json::from_str(&message).map_err(|_| unreadable())?;
    fields.get("result").map(|&result| result.to_owned()).ok_or_else(unreadable)
}

pub fn parsed(raw: &RawValue) -> Checked<Value> {
    serde_json::from_str(raw.get()).map_err(|error| format!("{error}: {raw}"))
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
