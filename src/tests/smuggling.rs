//! Raw bytes against the listener: requests inside of requests, forms that two readers would split differently, and other
//! protocols. Whatever comes, it is refused and the connection closed, or it is read in the one way that the specification
//! allows; a request that hides in another's body is never executed.
//!
//! Source: RFC 9112, sections 5.1, 6.1 and 7.1.

use crate::support::{Connection, FakeUpstream, Served, writer};
use std::sync::Arc;

/// The request that an attacker wants to be seen by one reader only.
const HIDDEN: &str = r#"{"jsonrpc":"2.0","id":"hidden","method":"tools/call","params":{"name":"call_write_tool","arguments":{"name":"hidden"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"seen","method":"ping"}"#;

async fn served() -> (Arc<FakeUpstream>, Served) {
    let upstream = FakeUpstream::new().lists("eve", &[writer("hidden", "Must not be called")]);
    let served = Served::over(&upstream, &[]).await;
    (upstream, served)
}

fn head(headers: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer eve\r\nContent-Type: application/json\r\n{headers}"
    )
}

fn hidden() -> String {
    format!("{}Content-Length: {}\r\n\r\n{HIDDEN}", head(""), HIDDEN.len())
}

/// Everything that comes back for these bytes, and for nothing after them.
async fn answers(served: &Served, bytes: &[u8]) -> String {
    let mut connection = Connection::open(served.address).await;
    connection.write(bytes).await;
    connection.end_of_writing().await;
    connection.read_to_end().await
}

fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

/// Forms of framing that are refused, each before a body that holds another request.
fn refused_framings() -> Vec<(String, String)> {
    let hidden = hidden();
    let chunked = format!("0\r\n\r\n{hidden}");
    let length = chunked.len();
    let framed = |headers: &str| (headers.to_owned(), format!("{}{headers}\r\n\r\n{chunked}", head("")));
    let mut forms: Vec<(String, String)> = [
        format!("Content-Length: {length}\r\nContent-Length: 5"),
        format!("Content-Length: 5\r\nContent-Length: {length}"),
        format!("Content-Length: {length}, 5"),
        "Content-Length: +5".to_owned(),
        "Content-Length: -5".to_owned(),
        "Content-Length: 0x5".to_owned(),
        "Content-Length: 5 5".to_owned(),
        "Content-Length: ".to_owned(),
        "Content-Length: 99999999999999999999".to_owned(),
        "Content-Length: ٥".to_owned(),
        "Transfer-Encoding: gzip".to_owned(),
        "Transfer-Encoding: chunked, gzip".to_owned(),
        "Transfer-Encoding: xchunked".to_owned(),
        "Transfer-Encoding: identity".to_owned(),
        "Transfer-Encoding : chunked".to_owned(),
        "Transfer-Encoding\t: chunked".to_owned(),
        "Content-Length : 5".to_owned(),
        " Content-Length: 5".to_owned(),
        "X: a\r\n Content-Length: 5".to_owned(),
        "X: a\r\n\tTransfer-Encoding: chunked".to_owned(),
        "X: a\rContent-Length: 5".to_owned(),
        "X: a\0b".to_owned(),
        "Bad Name: x".to_owned(),
        ": x".to_owned(),
        "no colon".to_owned(),
    ]
    .iter()
    .map(|headers| framed(headers))
    .collect();
    for line in [
        "POST /mcp HTTP/1.1 HTTP/1.1",
        "POST /mcp",
        "POST  /mcp HTTP/1.1",
        "POST /mcp HTTP/2.0",
        "POST /mcp HTTP/1.2",
        "POST /m cp HTTP/1.1",
        "PO ST /mcp HTTP/1.1",
        "POST /mcp\0 HTTP/1.1",
        "\0POST /mcp HTTP/1.1",
    ] {
        forms.push((line.to_owned(), hidden.replacen("POST /mcp HTTP/1.1", line, 1)));
    }
    let chunks = |name: &str, body: String| {
        (name.to_owned(), format!("{}Transfer-Encoding: chunked\r\n\r\n{body}", head("")))
    };
    for size in ["-5", "+5", "0x5", "zz", "", " ", "ffffffffffffffffff", "5 5", "5\0"] {
        forms.push(chunks(&format!("chunk size {size:?}"), format!("{size}\r\n{hidden}\r\n0\r\n\r\n")));
    }
    forms.push(chunks("a chunk longer than its size", format!("2\r\n{{}}xx\r\n0\r\n\r\n{hidden}")));
    forms.push(chunks("a chunk ended by LF alone", format!("2\n{{}}\n0\n\n{hidden}")));
    forms.push(chunks("a line end in a chunk extension", format!("2;a=\"\n\"\r\n{{}}\r\n0\r\n\r\n{hidden}")));
    forms
}

#[tokio::test]
async fn t_h1_what_two_readers_would_split_differently_is_refused_and_the_connection_closed() {
    let (upstream, served) = served().await;
    for (name, bytes) in refused_framings() {
        let answers = answers(&served, bytes.as_bytes()).await;
        let statuses = statuses(&answers);
        assert!(
            statuses.len() <= 1 && statuses.iter().all(|status| status.starts_with('4')),
            "{name:?}: {answers}"
        );
        assert!(!answers.contains("hidden"), "{name:?}: {answers}");
    }
    assert!(upstream.called().is_empty(), "{:?}", upstream.called());
    let healthy = format!("{}Content-Length: {}\r\n\r\n{PING}", head(""), PING.len());
    assert!(answers(&served, healthy.as_bytes()).await.contains("seen"));
}

#[tokio::test]
async fn t_h1_a_request_inside_of_a_body_is_a_body() {
    let (upstream, served) = served().await;
    let inner = hidden();
    for (name, bytes) in [
        ("a length", format!("{}Content-Length: {}\r\n\r\n{inner}", head(""), inner.len())),
        (
            "the same length twice",
            format!("{}Content-Length: {1}\r\nContent-Length: {1}\r\n\r\n{inner}", head(""), inner.len()),
        ),
        (
            "chunks",
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{inner}\r\n0\r\n\r\n",
                head(""),
                inner.len()
            ),
        ),
        (
            "chunks with an extension and a trailer",
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{inner}\r\n0\r\nX: y\r\n\r\n",
                head(""),
                inner.len()
            ),
        ),
        (
            "an answer before the body",
            format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{inner}", inner.len()),
        ),
        (
            "a path that does not exist",
            format!("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{inner}", inner.len()),
        ),
        (
            "a media type that is refused",
            format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{inner}",
                inner.len()
            ),
        ),
        (
            "a body that is not waited for",
            format!("{}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n{inner}", head(""), inner.len()),
        ),
    ] {
        let answers = answers(&served, bytes.as_bytes()).await.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
        assert_eq!(statuses(&answers).len(), 1, "{name}: {answers}");
        assert!(statuses(&answers)[0].starts_with('4'), "{name}: {answers}");
    }
    assert!(upstream.called().is_empty());
}

#[tokio::test]
async fn t_h1_a_length_beside_chunks_is_refused_or_closes_the_connection() {
    // RFC 9112, 6.1: chunks count, and the connection must not be used any further.
    let (upstream, served) = served().await;
    let hidden = hidden();
    for (length, chunked) in [(4, "chunked"), (4, "Chunked"), (hidden.len() + 5, "chunked")] {
        for length_first in [true, false] {
            let (one, other) =
                (format!("Content-Length: {length}\r\n"), format!("Transfer-Encoding: {chunked}\r\n"));
            let headers = if length_first { one + &other } else { other + &one };
            let bytes = format!("{}\r\n0\r\n\r\n{hidden}", head(&headers));
            let answers = answers(&served, bytes.as_bytes()).await;
            assert!(
                statuses(&answers).len() == 1 && answers.starts_with("HTTP/1.1 4"),
                "{headers}: {answers}"
            );
        }
    }
    assert!(upstream.called().is_empty(), "{:?}", upstream.called());
}

#[tokio::test]
async fn t_h1_limits_of_a_head_hold_at_them_and_one_past_them() {
    let (_upstream, served) = served().await;
    let with = |headers: usize, bytes: usize| {
        // Host, Authorization, Content-Type and Content-Length are four.
        let more: String = (0..headers - 4).map(|i| format!("X{i}: y\r\n")).collect();
        let start = format!("{}{more}Content-Length: {}\r\nPad: ", head(""), PING.len());
        let start = if bytes == 0 { start.replace("\r\nPad: ", "") } else { start };
        let padding = bytes.saturating_sub(start.len() + 4);
        format!("{start}{}\r\n\r\n{PING}", "y".repeat(padding))
    };
    // Bytes are counted before each read of the socket, so that the last one may bring a little more.
    for (headers, bytes, status) in [(64, 0, "200"), (65, 0, "431"), (5, 60_000, "200"), (5, 140_000, "431")]
    {
        let answers = answers(&served, with(headers, bytes).as_bytes()).await;
        assert_eq!(statuses(&answers), [status], "{headers} headers, {bytes} bytes");
    }
}

#[tokio::test]
async fn t_h16_other_protocols_are_not_spoken() {
    let (upstream, served) = served().await;
    let with = |headers: &str, body: &str| {
        format!("{}{headers}Content-Length: {}\r\n\r\n{body}", head(""), body.len())
    };
    for (name, bytes, expected) in [
        ("h2c with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_owned(), "4"),
        (
            "h2c by upgrade",
            with("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", PING),
            "200",
        ),
        (
            "a web socket",
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                .to_owned(),
            "405",
        ),
        ("a tunnel", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n".to_owned(), "4"),
        ("a foreign target", with("", PING).replace("POST /mcp", "POST http://example.com/mcp"), "403"),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".to_owned(), "4"),
    ] {
        let answers = answers(&served, bytes.as_bytes()).await;
        let statuses = statuses(&answers);
        assert!(!answers.contains("101 Switching"), "{name}: {answers}");
        assert!(statuses.len() <= 1, "{name}: {answers}");
        assert!(statuses.iter().all(|status| status.starts_with(expected)), "{name}: {answers}");
    }
    assert!(upstream.called().is_empty());
}
