//! Stands between the conformance suite and the proxy, so that the suite's tools are called through `call_write_tool`.
//!
//! The suite calls its tools by name; behind the proxy they are reached through one of the five. The shim turns a call of
//! `X` into a call of `call_write_tool` with `{"name": X, "arguments": …}`, and the `Mcp-Name` that mirrors it. Every
//! other byte goes through as it is, in both directions and as it comes. One request for each connection.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::value::RawValue;

use crate::checks::{READ_TOOLS, WRITE_TOOL};

pub struct Shim {
    pub address: SocketAddr,
}

impl Shim {
    /// Serves until the harness ends.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(proxy: SocketAddr) -> Result<Self, String> {
        let told = |error: io::Error| format!("the shim: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(told)?;
        let address = listener.local_addr().map_err(told)?;
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that breaks is for the suite to notice.
                thread::spawn(move || drop(forward(client, proxy)));
            }
        });
        Ok(Self { address })
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

fn forward(mut client: TcpStream, proxy: SocketAddr) -> io::Result<()> {
    let request = read_request(&mut client)?;
    let mut server = TcpStream::connect(proxy)?;
    server.write_all(&rewritten(&request.0, &request.1))?;
    // A suite that hangs up must be seen by the proxy, and an answer that ends by the suite.
    let (mut hung_up, to_close) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut hung_up, &mut io::sink());
        let _ = to_close.shutdown(Shutdown::Both);
    });
    let copied = io::copy(&mut server, &mut client);
    client.shutdown(Shutdown::Both)?;
    copied.map(drop)
}

/// Head and body; the suite always tells the body's length.
fn read_request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut received = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let count = client.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&piece[..count]);
        let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        let length =
            header(&head, "content-length").and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if received.len() >= end + 4 + length {
            return Ok((head, received[end + 4..].to_vec()));
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
}

fn rewritten(head: &str, body: &[u8]) -> Vec<u8> {
    let call = std::str::from_utf8(body).ok().and_then(as_write_call);
    let mut lines: Vec<String> = Vec::new();
    for (index, line) in head.split("\r\n").enumerate() {
        let (name, value) = if index == 0 { ("", line) } else { line.split_once(':').unwrap_or((line, "")) };
        match (name.to_ascii_lowercase().as_str(), &call) {
            ("connection" | "content-length", _) => {}
            ("mcp-name", Some(call)) if value.trim() == call.tool => {
                lines.push(format!("{name}:{}", value.replace(&call.tool, WRITE_TOOL)));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    let body = call.as_ref().map_or(body, |call| call.body.as_bytes());
    let head = lines.join("\r\n");
    let mut request =
        format!("{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    request.extend_from_slice(body);
    request
}

struct WriteCall {
    /// The tool that the suite called.
    tool: String,
    body: String,
}

/// The call of any tool but the proxy's own as a call of `call_write_tool`.
fn as_write_call(body: &str) -> Option<WriteCall> {
    type Fields<'a> = HashMap<&'a str, &'a RawValue>;
    let message: Fields = serde_json::from_str(body).ok()?;
    if message.get("method")?.get() != "\"tools/call\"" {
        return None;
    }
    let params: Fields = serde_json::from_str(message.get("params")?.get()).ok()?;
    let name = params.get("name")?.get();
    let tool: String = serde_json::from_str(name).ok()?;
    if tool == WRITE_TOOL || READ_TOOLS.contains(&tool.as_str()) {
        return None;
    }
    let place = |raw: &str| {
        let start = raw.as_ptr() as usize - body.as_ptr() as usize;
        start..start + raw.len()
    };
    let mut edits = match params.get("arguments") {
        Some(arguments) => vec![
            (place(name), format!("\"{WRITE_TOOL}\"")),
            (place(arguments.get()), format!(r#"{{"name":{name},"arguments":{arguments}}}"#)),
        ],
        None => vec![(place(name), format!(r#""{WRITE_TOOL}","arguments":{{"name":{name}}}"#))],
    };
    edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut body = body.to_owned();
    for (place, text) in edits {
        body.replace_range(place, &text);
    }
    Some(WriteCall { tool, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(body: &str) -> Option<String> {
        as_write_call(body).map(|call| call.body)
    }

    #[test]
    fn a_call_becomes_a_write_call_and_keeps_every_other_byte() {
        for (before, after) in [
            (
                r#"{"id": 1.0,"method":"tools/call","params":{"_meta":{"name":"x"}, "name":"a","arguments": {"n":1e400}}}"#,
                r#"{"id": 1.0,"method":"tools/call","params":{"_meta":{"name":"x"}, "name":"call_write_tool","arguments": {"name":"a","arguments":{"n":1e400}}}}"#,
            ),
            (
                r#"{"params":{"arguments":{},"name":"a"},"method":"tools/call"}"#,
                r#"{"params":{"arguments":{"name":"a","arguments":{}},"name":"call_write_tool"},"method":"tools/call"}"#,
            ),
            (
                r#"{"method":"tools/call","params":{"name":"a","requestState":"s"}}"#,
                r#"{"method":"tools/call","params":{"name":"call_write_tool","arguments":{"name":"a"},"requestState":"s"}}"#,
            ),
        ] {
            assert_eq!(body_of(before).as_deref(), Some(after));
        }
    }

    #[test]
    fn everything_else_is_left_alone() {
        for body in [
            "",
            "[]",
            r#"{"method":"tools/list","params":{"name":"a"}}"#,
            r#"{"method":"tools/call","params":{"name":"search_tools","arguments":{}}}"#,
            r#"{"method":"tools/call","params":{"name":7}}"#,
        ] {
            assert_eq!(body_of(body), None, "{body}");
        }
    }

    #[test]
    fn name_header_follows_the_body_and_a_wrong_one_stays_wrong() {
        let body = br#"{"method":"tools/call","params":{"name":"a","arguments":{}}}"#;
        for (before, after) in [("  a ", "  call_write_tool "), ("wrong", "wrong")] {
            let head = format!("POST /mcp HTTP/1.1\r\nHost: h:1\r\nMcp-Name:{before}\r\nContent-Length: 1");
            let sent = String::from_utf8(rewritten(&head, body)).unwrap();
            let (head, body) = sent.split_once("\r\n\r\n").unwrap();
            let expected = format!(
                "POST /mcp HTTP/1.1\r\nHost: h:1\r\nMcp-Name:{after}\r\nContent-Length: {}\r\nConnection: close",
                body.len()
            );
            assert_eq!(head, expected);
        }
    }
}
