//! A scriptable MCP server on a real socket.
//!
//! It speaks HTTP/1.1 by itself, so that a script can answer with any bytes, in any pieces, and records each request
//! as it came over the wire.

use super::until;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the server is like where the script says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// 2026-07-28, JSON answers.
    Modern,
    /// 2026-07-28, SSE answers.
    ModernSse,
    /// 2025-06-18, JSON answers, no sessions.
    Legacy,
    /// 2025-06-18, SSE answers, sessions.
    LegacySessions,
}

impl Style {
    fn is_modern(self) -> bool {
        matches!(self, Self::Modern | Self::ModernSse)
    }

    fn is_sse(self) -> bool {
        matches!(self, Self::ModernSse | Self::LegacySessions)
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// POST or DELETE.
    pub(crate) verb: String,
    pub(crate) target: String,
    /// In the order and spelling of the wire.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The JSON-RPC method, or what kind of message it is.
    pub(crate) fn method(&self) -> String {
        let message = self.json();
        match message["method"].as_str() {
            Some(method) => method.to_owned(),
            None if message.is_object() => "response".to_owned(),
            None => self.verb.clone(),
        }
    }

    /// The id as raw JSON.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].to_string()
    }

    /// The bearer token, empty without one.
    pub(crate) fn token(&self) -> &str {
        self.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }
}

/// What goes back over the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pieces: Vec<Vec<u8>>,
    then: Then,
    /// Sent when the next request on this connection came, before its own answer.
    late: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Then {
    #[default]
    KeepAlive,
    Close,
    /// Says nothing more and keeps the connection open.
    Hang,
}

impl Reply {
    /// Any bytes.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![bytes.into()], ..Self::default() }
    }

    /// A response with these header lines, each ended by CR and LF, and a body of that length.
    pub(crate) fn http(status: u16, headers: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        Self::raw(head + body)
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::http(status, "Content-Type: application/json\r\n", body)
    }

    /// The result of a request in a JSON body.
    pub(crate) fn result(request: &Recorded, result: &str) -> Self {
        Self::json(200, &message(request, result))
    }

    /// A JSON-RPC error with the id of the request.
    pub(crate) fn error(request: &Recorded, status: u16, code: i64, more: &str) -> Self {
        let error = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"no"{more}}}}}"#,
            request.id()
        );
        Self::json(status, &error)
    }

    /// A stream of events in chunks of so many bytes.
    pub(crate) fn sse(events: &str, chunk_bytes: usize) -> Self {
        let mut body = Vec::new();
        for chunk in events.as_bytes().chunks(chunk_bytes.max(1)) {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        Self { pieces: vec![head.as_bytes().to_vec(), body], ..Self::default() }
    }

    /// No answer at all.
    pub(crate) fn hang() -> Self {
        Self { then: Then::Hang, ..Self::default() }
    }

    /// These bytes, and then nothing more.
    pub(crate) fn then_hang(self) -> Self {
        Self { then: Then::Hang, ..self }
    }

    pub(crate) fn then_close(self) -> Self {
        Self { then: Then::Close, ..self }
    }

    /// More bytes that nobody asked for, before the answer to the next request on this connection.
    pub(crate) fn then_late(self, late: Self) -> Self {
        Self { late: late.pieces.concat(), ..self }
    }

    /// More bytes that nobody asked for, in the same write.
    pub(crate) fn followed_by(mut self, more: Self) -> Self {
        let more = more.pieces.concat();
        match self.pieces.last_mut() {
            Some(last) => last.extend(more),
            None => self.pieces.push(more),
        }
        self
    }
}

/// The whole message that answers a request.
pub(crate) fn message(request: &Recorded, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.id())
}

type Script = dyn Fn(&Recorded) -> Option<Reply> + Send + Sync;

struct Shared {
    style: Style,
    tools: String,
    script: Box<Script>,
    log: Mutex<Vec<Recorded>>,
    sessions: Mutex<Vec<String>>,
    open_connections: AtomicUsize,
    /// The numbers of connections that are over.
    closed: Mutex<Vec<usize>>,
    calls_held: watch::Sender<bool>,
}

pub(crate) struct FakeMcp {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl FakeMcp {
    /// A server with these tools.
    pub(crate) async fn start(style: Style, tools: &[String]) -> Self {
        Self::scripted(style, tools, |_| None).await
    }

    /// A server whose script may answer in place of the usual.
    pub(crate) async fn scripted(
        style: Style,
        tools: &[String],
        script: impl Fn(&Recorded) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            style,
            tools: tools.join(","),
            script: Box::new(script),
            log: Mutex::default(),
            sessions: Mutex::default(),
            open_connections: AtomicUsize::new(0),
            closed: Mutex::default(),
            calls_held: watch::Sender::new(false),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut connections = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                tokio::spawn(async move {
                    serving.open_connections.fetch_add(1, Ordering::SeqCst);
                    connection(&serving, stream, connections).await;
                    serving.open_connections.fetch_sub(1, Ordering::SeqCst);
                    serving.closed.lock().unwrap().push(connections);
                });
                connections += 1;
            }
        });
        Self { address, shared }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// All requests so far.
    pub(crate) fn log(&self) -> Vec<Recorded> {
        self.shared.log.lock().unwrap().clone()
    }

    /// The methods of all requests so far.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.log().iter().map(Recorded::method).collect()
    }

    /// The requests of a method so far.
    pub(crate) fn requests(&self, method: &str) -> Vec<Recorded> {
        self.log().into_iter().filter(|request| request.method() == method).collect()
    }

    /// Lets calls arrive but not be answered.
    pub(crate) fn hold_calls(&self, held: bool) {
        self.shared.calls_held.send_replace(held);
    }

    /// How many connections the other side holds open.
    pub(crate) fn open_connections(&self) -> usize {
        self.shared.open_connections.load(Ordering::SeqCst)
    }

    /// Waits until the connection that the first request of a method came on is over.
    pub(crate) async fn connection_closed(&self, method: &str) {
        let connection = self.received(method, 1).await[0].connection;
        until("the end of a connection", || self.shared.closed.lock().unwrap().contains(&connection)).await;
    }

    pub(crate) fn forget_log(&self) {
        self.shared.log.lock().unwrap().clear();
    }

    /// The server loses all sessions, as after a restart.
    pub(crate) fn forget_sessions(&self) {
        self.shared.sessions.lock().unwrap().clear();
    }

    /// Waits for so many requests of a method.
    pub(crate) async fn received(&self, method: &str, count: usize) -> Vec<Recorded> {
        until("a request", || self.requests(method).len() >= count).await;
        self.requests(method)
    }
}

async fn connection(shared: &Shared, mut stream: TcpStream, connection: usize) {
    let _best_effort = stream.set_nodelay(true);
    let (mut buffer, mut late) = (Vec::new(), Vec::new());
    while let Some(request) = read_request(&mut stream, &mut buffer, connection).await {
        shared.log.lock().unwrap().push(request.clone());
        if !late.is_empty() {
            let _may_be_closed = stream.write_all(&late).await;
        }
        if request.method() == "tools/call" {
            let mut held = shared.calls_held.subscribe();
            assert!(held.wait_for(|held| !held).await.is_ok());
        }
        let reply = (shared.script)(&request).unwrap_or_else(|| shared.usual(&request));
        for piece in &reply.pieces {
            if stream.write_all(piece).await.is_err() {
                return;
            }
        }
        late = reply.late;
        match reply.then {
            Then::KeepAlive => {}
            Then::Close => return,
            Then::Hang => {
                // Until the other side has had enough.
                while matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {}
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Recorded> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer.drain(..head_end).collect()).ok()?;
    let mut lines = head.trim_end().split("\r\n");
    let mut first = lines.next()?.split(' ');
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut request = Recorded {
        verb: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body: String::new(),
        connection,
    };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    request.body = String::from_utf8(buffer.drain(..length).collect()).ok()?;
    Some(request)
}

impl Shared {
    /// The answer of a server that is in order.
    fn usual(&self, request: &Recorded) -> Reply {
        let method = request.method();
        if request.verb == "DELETE" {
            self.sessions
                .lock()
                .unwrap()
                .retain(|session| Some(session.as_str()) != request.header("mcp-session-id"));
            return Reply::http(200, "", "");
        }
        if self.style.is_modern() {
            return match method.as_str() {
                "server/discover" => self.reply(request, "", &discovery(&["2026-07-28"])),
                "tools/list" => self.reply(
                    request,
                    "",
                    &format!(r#"{{"resultType":"complete","tools":[{}]}}"#, self.tools),
                ),
                "tools/call" => {
                    self.reply(request, "", &format!(r#"{{"resultType":"complete",{}"#, &echo(request)[1..]))
                }
                _ => Reply::error(request, 404, -32601, ""),
            };
        }
        match method.as_str() {
            "initialize" => self.initialize(request),
            "tools/list" | "tools/call" | "ping" if self.has_lost_session(request) => {
                Reply::error(request, 404, -32001, "")
            }
            "tools/list" => self.reply(request, "", &format!(r#"{{"tools":[{}]}}"#, self.tools)),
            "tools/call" => self.reply(request, "", &echo(request)),
            "server/discover" => Reply::error(request, 400, -32000, ""),
            _ if request.json().get("id").is_none() || method == "response" => Reply::http(202, "", ""),
            _ => Reply::error(request, 200, -32601, ""),
        }
    }

    fn initialize(&self, request: &Recorded) -> Reply {
        let result = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"},"instructions":"Be kind."}"#;
        if self.style != Style::LegacySessions {
            return self.reply(request, "", result);
        }
        let mut sessions = self.sessions.lock().unwrap();
        // Sessions tell whose they are, so that a test sees one that crosses.
        let session = format!("session-{}-of-{}", self.log.lock().unwrap().len(), request.token());
        sessions.push(session.clone());
        self.reply(request, &format!("Mcp-Session-Id: {session}\r\n"), result)
    }

    fn has_lost_session(&self, request: &Recorded) -> bool {
        let session = request.header("mcp-session-id");
        let known = |session: &str| self.sessions.lock().unwrap().iter().any(|known| known == session);
        self.style == Style::LegacySessions && !session.is_some_and(known)
    }

    fn reply(&self, request: &Recorded, headers: &str, result: &str) -> Reply {
        let message = message(request, result);
        if !self.style.is_sse() {
            return Reply::http(200, &format!("Content-Type: application/json\r\n{headers}"), &message);
        }
        let headers = format!("Content-Type: text/event-stream\r\n{headers}");
        Reply::http(200, &headers, &event(&message))
    }
}

/// A message as an event, each of its lines a line of data.
pub(crate) fn event(message: &str) -> String {
    let mut event = String::from("event: message\n");
    for line in message.split('\n') {
        writeln!(event, "data: {line}").unwrap();
    }
    event.push('\n');
    event
}

/// The result of a discovery that names these versions.
pub(crate) fn discovery(versions: &[&str]) -> String {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private", "instructions": "Be kind."})
        .to_string()
}

/// Says who called what with what.
fn echo(request: &Recorded) -> String {
    let params = &request.json()["params"];
    let text = format!("{} called {} with {}", request.token(), params["name"], params["arguments"]);
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}
