//! What a gateway can do wrong, each by a name. A fault belongs to one answer.

use super::{Asked, Kind, Settings};
use crate::http::response;
use std::time::Duration;

/// Something wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// This HTTP status and no JSON-RPC.
    Status(u16),
    /// This HTTP status and headers beside it: challenges, or where to go.
    StatusWith(u16, &'static str),
    /// A JSON-RPC error of this code.
    Rpc(i64),
    NoHeaders,
    ManyHeaders,
    LengthTooLong,
    LengthTooShort,
    LengthAndChunks,
    Gzip,
    EmptyBody,
    Truncated,
    Html,
    WrongId,
    SecondResponse,
    NeverAnswers,
    AfterDeadline,
    Dribbles,
    Bomb,
    Deep,
    InvalidUtf8,
    DuplicateKeys,
    StreamWithoutFinal,
    EndlessProgress,
    CommentsOnly,
    StreamInPieces,
    UnframedJson,
    ServerRequest,
    TwoFinals,
    ToolError,
    InputRequired,
    NoContent,
    EmptyList,
    CursorLoop,
    Closes,
    Resets,
    StopsReading,
}

/// All faults, with the name of each.
pub const FAULTS: &[(&str, Fault)] = &[
    ("400", Fault::Status(400)),
    ("401", Fault::StatusWith(401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n")),
    (
        "401-two-challenges",
        Fault::StatusWith(401, "WWW-Authenticate: Bearer\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"),
    ),
    ("403", Fault::Status(403)),
    ("403-scope", Fault::StatusWith(403, "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n")),
    ("404", Fault::Status(404)),
    ("405", Fault::Status(405)),
    ("408", Fault::Status(408)),
    ("413", Fault::Status(413)),
    ("421", Fault::Status(421)),
    ("429", Fault::StatusWith(429, "Retry-After: 1\r\n")),
    ("500", Fault::Status(500)),
    ("502", Fault::Status(502)),
    ("503", Fault::Status(503)),
    ("504", Fault::Status(504)),
    ("302-elsewhere", Fault::StatusWith(302, "Location: http://127.0.0.1:9/mcp\r\n")),
    ("307-same-host", Fault::StatusWith(307, "Location: /mcp\r\n")),
    ("101", Fault::StatusWith(101, "Upgrade: websocket\r\nConnection: Upgrade\r\n")),
    ("204", Fault::Status(204)),
    ("no-headers", Fault::NoHeaders),
    ("many-headers", Fault::ManyHeaders),
    ("length-too-long", Fault::LengthTooLong),
    ("length-too-short", Fault::LengthTooShort),
    ("length-and-chunks", Fault::LengthAndChunks),
    ("gzip", Fault::Gzip),
    ("empty-body", Fault::EmptyBody),
    ("truncated", Fault::Truncated),
    ("html", Fault::Html),
    ("wrong-id", Fault::WrongId),
    ("second-response", Fault::SecondResponse),
    ("never-answers", Fault::NeverAnswers),
    ("after-deadline", Fault::AfterDeadline),
    ("dribbles", Fault::Dribbles),
    ("bomb", Fault::Bomb),
    ("deep", Fault::Deep),
    ("invalid-utf8", Fault::InvalidUtf8),
    ("duplicate-keys", Fault::DuplicateKeys),
    ("stream-without-final", Fault::StreamWithoutFinal),
    ("endless-progress", Fault::EndlessProgress),
    ("comments-only", Fault::CommentsOnly),
    ("stream-in-pieces", Fault::StreamInPieces),
    ("unframed-json", Fault::UnframedJson),
    ("server-request", Fault::ServerRequest),
    ("two-finals", Fault::TwoFinals),
    ("-32602", Fault::Rpc(-32602)),
    ("-32601", Fault::Rpc(-32601)),
    ("-32020", Fault::Rpc(-32020)),
    ("-32022", Fault::Rpc(-32022)),
    ("-32603", Fault::Rpc(-32603)),
    ("tool-error", Fault::ToolError),
    ("input-required", Fault::InputRequired),
    ("no-content", Fault::NoContent),
    ("empty-list", Fault::EmptyList),
    ("cursor-loop", Fault::CursorLoop),
    ("closes", Fault::Closes),
    ("resets", Fault::Resets),
    ("stops-reading", Fault::StopsReading),
];

/// What happens on the wire, piece by piece.
#[derive(Clone, Debug)]
pub struct Script {
    /// Bytes, each after a pause.
    pub pieces: Vec<(Duration, Vec<u8>)>,
    /// The last piece again and again.
    pub is_endless: bool,
    /// What becomes of the connection.
    pub then: Then,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
    Reset,
    /// Open, and silent until the other side has had enough.
    Hang,
}

impl Script {
    /// One answer at once.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { pieces: vec![(Duration::ZERO, bytes)], is_endless: false, then: Then::Keep }
    }

    /// These bytes, and then that.
    pub fn then(bytes: Vec<u8>, then: Then) -> Self {
        Self { then, ..Self::whole(bytes) }
    }

    fn nothing(then: Then) -> Self {
        Self { pieces: Vec::new(), is_endless: false, then }
    }

    fn endless(first: Vec<u8>, pause: Duration, again: &[u8]) -> Self {
        let pieces = vec![(Duration::ZERO, first), (pause, again.to_vec())];
        Self { pieces, is_endless: true, then: Then::Hang }
    }
}

impl Fault {
    /// The fault of that name.
    pub fn named(name: &str) -> Option<Self> {
        FAULTS.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }

    /// Whether the gateway turned the request away before it did anything.
    pub fn refuses(self) -> bool {
        match self {
            Self::Status(status) | Self::StatusWith(status, _) => {
                status < 500 && status != 204 && status != 408
            }
            Self::Rpc(code) => code != -32603,
            Self::InputRequired | Self::StopsReading => true,
            _ => false,
        }
    }

    /// The wire for an answer whose right form is the JSON-RPC message `right`.
    pub(super) fn script(self, asked: &Asked<'_>, kind: Kind, right: &str, settings: &Settings) -> Script {
        let id = asked.id;
        let json = "Content-Type: application/json\r\n";
        let canary = &settings.canary;
        match self {
            Self::Status(status) => Script::whole(plain_status(status, "", canary)),
            Self::StatusWith(101, headers) => {
                Script::whole(format!("HTTP/1.1 101 X\r\n{headers}\r\n").into())
            }
            Self::StatusWith(status, headers) => Script::whole(plain_status(status, headers, canary)),
            Self::Rpc(code) => {
                let status = if kind.is_modern() && matches!(code, -32020 | -32022) { 400 } else { 200 };
                let error = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no {canary}","data":{{"supported":["2026-07-28","2025-11-25"]}}}}}}"#
                );
                Script::whole(response(status, json, &error))
            }
            Self::NoHeaders => Script::then(format!("HTTP/1.1 200 OK\r\n\r\n{right}").into(), Then::Close),
            Self::ManyHeaders => {
                let many: String = (0..200).map(|n| format!("X-{n}: {}\r\n", "a".repeat(8192))).collect();
                Script::whole(response(200, &(many + json), right))
            }
            Self::LengthTooLong => Script::then(with_length(right, right.len() + 100), Then::Hang),
            Self::LengthTooShort => Script::whole(with_length(right, right.len() / 2)),
            Self::LengthAndChunks => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\n{json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                );
                Script::whole(format!("{head}{:x}\r\n{right}\r\n0\r\n\r\n", right.len()).into())
            }
            Self::Gzip => {
                Script::whole(response(200, &format!("{json}Content-Encoding: gzip\r\n"), "\u{1f}not really"))
            }
            Self::EmptyBody => Script::whole(response(200, json, "")),
            Self::Truncated => {
                let mut bytes = json_answer(right);
                bytes.truncate(bytes.len() - right.len() / 2);
                Script::then(bytes, Then::Close)
            }
            Self::Html => Script::whole(response(
                200,
                "Content-Type: text/html\r\n",
                &format!("<html><body>{canary}</body></html>"),
            )),
            Self::WrongId => {
                Script::whole(json_answer(&right.replace(id, "\"00000000000000000000000000000000\"")))
            }
            Self::SecondResponse => {
                let mut bytes = json_answer(right);
                bytes.extend(json_answer(&right.replace(id, "\"11111111111111111111111111111111\"")));
                Script::whole(bytes)
            }
            Self::NeverAnswers => Script::nothing(Then::Hang),
            Self::AfterDeadline => Script {
                pieces: vec![(settings.deadline + Duration::from_millis(200), json_answer(right))],
                is_endless: false,
                then: Then::Keep,
            },
            Self::Dribbles => Script::endless(
                with_length(&right[..right.len() / 2], 1 << 20),
                Duration::from_millis(50),
                b" ",
            ),
            Self::Bomb => bomb(id),
            Self::Closes => Script::nothing(Then::Close),
            Self::Resets | Self::StopsReading => Script::nothing(Then::Reset),
            other => other.message(id, right),
        }
    }

    /// The faults of messages: well framed, and wrong inside.
    fn message(self, id: &str, right: &str) -> Script {
        let result =
            |result: &str| json_answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        match self {
            Self::Deep => {
                let deep = format!(r#""result":{{"x":{}{},"#, "[".repeat(100_000), "]".repeat(100_000));
                Script::whole(json_answer(&right.replacen(r#""result":{"#, &deep, 1)))
            }
            Self::InvalidUtf8 => {
                let mut bytes = with_length(right, right.len() + 2);
                bytes.extend([0xff, 0xfe]);
                Script::whole(bytes)
            }
            Self::DuplicateKeys => Script::whole(json_answer(&right.replacen(
                r#""result":"#,
                r#""result":{"content":[]},"result":"#,
                1,
            ))),
            Self::ToolError => Script::whole(result(
                r#"{"resultType":"complete","content":[{"type":"text","text":"it failed"}],"isError":true}"#,
            )),
            Self::InputRequired => Script::whole(result(
                r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"s"}"#,
            )),
            Self::NoContent => Script::whole(result(r#"{"resultType":"complete"}"#)),
            Self::EmptyList => Script::whole(result(r#"{"resultType":"complete","tools":[]}"#)),
            Self::CursorLoop => {
                Script::whole(result(r#"{"resultType":"complete","tools":[],"nextCursor":"again"}"#))
            }
            stream => stream.stream(id, right),
        }
    }

    /// The faults of event streams.
    fn stream(self, id: &str, right: &str) -> Script {
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
        let event = |message: &str| format!("event: message\ndata: {message}\n\n");
        match self {
            Self::StreamWithoutFinal => Script::whole(sse_answer(&event(progress))),
            Self::EndlessProgress => {
                let again = chunk(&event(progress));
                Script::endless(sse_head(), Duration::from_millis(20), &again)
            }
            Self::CommentsOnly => {
                Script::endless(sse_head(), Duration::from_millis(20), &chunk(": still here\n\n"))
            }
            Self::StreamInPieces => {
                let text = format!("\u{feff}: hello\r\n\r\ndata:{right}\r\n\r\n");
                let mut pieces = vec![(Duration::ZERO, sse_head())];
                pieces.extend(text.as_bytes().chunks(7).map(|piece| (Duration::ZERO, chunk_of(piece))));
                pieces.push((Duration::ZERO, b"0\r\n\r\n".to_vec()));
                Script { pieces, is_endless: false, then: Then::Keep }
            }
            Self::UnframedJson => Script::whole(response(200, "Content-Type: text/event-stream\r\n", right)),
            Self::ServerRequest => {
                let request = r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}"#;
                Script::whole(sse_answer(&(event(request) + &event(right))))
            }
            // Two answers to one request: the first counts, whatever the second says.
            _ => {
                let second = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"tools":[]}}}}"#);
                Script::whole(sse_answer(&(event(right) + &event(&second))))
            }
        }
    }
}

/// Eight megabytes of an answer that never gets to its point.
fn bomb(id: &str) -> Script {
    let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut pieces = vec![(Duration::ZERO, head.as_bytes().to_vec()), (Duration::ZERO, chunk(&start))];
    let megabyte = chunk(&"a".repeat(1 << 20));
    pieces.extend((0..8).map(|_| (Duration::ZERO, megabyte.clone())));
    Script { pieces, is_endless: false, then: Then::Hang }
}

fn plain_status(status: u16, headers: &str, canary: &str) -> Vec<u8> {
    if status == 204 {
        return format!("HTTP/1.1 204 X\r\n{headers}\r\n").into_bytes();
    }
    response(status, headers, &format!("no, says the gateway: {canary}"))
}

fn with_length(body: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into()
}

/// A plain JSON answer.
pub fn json_answer(message: &str) -> Vec<u8> {
    response(200, "Content-Type: application/json\r\n", message)
}

fn sse_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
}

fn chunk(text: &str) -> Vec<u8> {
    chunk_of(text.as_bytes())
}

fn chunk_of(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// A stream of these events, whole.
pub fn sse_answer(events: &str) -> Vec<u8> {
    let mut out = sse_head();
    out.extend(chunk(events));
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
