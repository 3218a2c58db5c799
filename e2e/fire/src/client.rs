//! A client of the proxy, in either era, over one connection that is kept.

use crate::http::{Message, Wire};
use serde_json::Value;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Which revision a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy,
}

/// What one of the five tools is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    pub tool: &'static str,
    /// Raw JSON.
    pub arguments: String,
}

impl Ask {
    pub fn search(query: &str) -> Self {
        Self { tool: "search_tools", arguments: format!(r#"{{"query":{}}}"#, quoted(query)) }
    }

    pub fn describe(name: &str) -> Self {
        Self { tool: "describe_tool", arguments: format!(r#"{{"names":[{}]}}"#, quoted(name)) }
    }

    pub fn read(name: &str, nonce: &str) -> Self {
        Self { tool: "call_read_tool", arguments: one_call(name, nonce, "") }
    }

    pub fn write(name: &str, nonce: &str, text: &str) -> Self {
        Self { tool: "call_write_tool", arguments: one_call(name, nonce, text) }
    }

    pub fn reads(names: &[&str], nonce: &str) -> Self {
        // Each call has a nonce of its own, which starts with that of all.
        let calls = names.iter().enumerate().map(|(i, name)| one_call(name, &format!("{nonce}-{i}"), ""));
        let calls: Vec<String> = calls.collect();
        Self { tool: "call_read_tools", arguments: format!(r#"{{"calls":[{}]}}"#, calls.join(",")) }
    }
}

fn one_call(name: &str, nonce: &str, text: &str) -> String {
    let (name, text) = (quoted(name), quoted(text));
    format!(r#"{{"name":{name},"arguments":{{"nonce":"{nonce}","text":{text}}}}}"#)
}

/// Text as a JSON string.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What came back.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    /// The body as it came.
    pub body: String,
    /// The whole response, headers too.
    pub raw: Vec<u8>,
    pub took: Duration,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}: {}", self.status, self.took, self.body)
    }
}

impl Answer {
    fn of(message: Message, took: Duration) -> Self {
        let body = String::from_utf8_lossy(&message.body).into_owned();
        Self { status: message.status(), body, raw: message.raw, took }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Whether it is a result without an error in it.
    pub fn is_ok(&self) -> bool {
        let json = self.json();
        self.status == 200 && json["result"].is_object() && json["result"]["isError"] != Value::Bool(true)
    }

    /// All the text of the result, or of the error.
    pub fn text(&self) -> String {
        let json = self.json();
        let blocks = json["result"]["content"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        if texts.is_empty() {
            json["error"]["message"].as_str().unwrap_or_default().to_owned()
        } else {
            texts.join("\n")
        }
    }
}

/// A client with one token.
pub struct Client {
    pub token: String,
    pub era: Era,
    address: SocketAddr,
    wire: Option<Wire>,
    next_id: u64,
}

impl Client {
    pub fn new(address: SocketAddr, token: &str, era: Era) -> Self {
        Self { token: token.to_owned(), era, address, wire: None, next_id: 0 }
    }

    /// The request for a tool, as it goes over the wire.
    pub fn request(&mut self, ask: &Ask) -> Vec<u8> {
        self.next_id += 1;
        let (tool, arguments, id) = (ask.tool, &ask.arguments, self.next_id);
        let (meta, headers) = match self.era {
            Era::Modern => (
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"fire","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#,
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"),
            ),
            Era::Legacy => ("", "MCP-Protocol-Version: 2025-11-25\r\n".to_owned()),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
        );
        post(self.address, &self.token, &headers, &body)
    }

    /// Asks a tool and waits for the answer, on the kept connection where there is one.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        let request = self.request(ask);
        self.exchange(&request).await
    }

    /// Sends these bytes and reads one response.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        let started = Instant::now();
        let mut wire = self.connected().await?;
        wire.write(request).await?;
        let message = wire.read().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let took = started.elapsed();
        if !message.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.wire = Some(wire);
        }
        Ok(Answer::of(message, took))
    }

    /// Asks and hangs up after so long, or earlier when the answer is there.
    pub async fn abort(&mut self, ask: &Ask, after: Duration) {
        let request = self.request(ask);
        let Ok(mut wire) = self.connected().await else { return };
        if wire.write(&request).await.is_ok() {
            let _late = tokio::time::timeout(after, wire.read()).await;
        }
    }

    /// Closes the kept connection.
    pub fn hang_up(&mut self) {
        self.wire = None;
    }

    async fn connected(&mut self) -> io::Result<Wire> {
        match self.wire.take() {
            Some(wire) => Ok(wire),
            None => Ok(Wire::new(TcpStream::connect(self.address).await?)),
        }
    }
}

/// A POST to the endpoint.
pub fn post(address: SocketAddr, token: &str, headers: &str, body: &str) -> Vec<u8> {
    let authorization =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
