//! What an upstream tells while a call runs, and who hears it.

use crate::support::{Answer, FakeMcp, Reply, Style, TestApp, event, message, reader};

const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
const RESULT: &str = r#"{"resultType":"complete","content":[]}"#;

/// A call with a progress token, from a client that accepts these media types.
async fn call(accept: &str, meta: &str) -> (FakeMcp, u16, String) {
    let (server, answer) = call_told(accept, meta, event(PROGRESS)).await;
    let text = format!("{} {}", answer.values("content-type").concat(), answer.text());
    (server, answer.status, text)
}

/// A call whose upstream tells these events before its answer.
async fn call_told(accept: &str, meta: &str, events: String) -> (FakeMcp, Answer) {
    call_told_in_pieces(accept, meta, events, 9).await
}

/// The same, in pieces of so many bytes.
async fn call_told_in_pieces(
    accept: &str,
    meta: &str,
    events: String,
    piece_bytes: usize,
) -> (FakeMcp, Answer) {
    let server = FakeMcp::scripted(Style::ModernSse, &[reader("ask", "Asks")], move |request| {
        let stream = || Reply::sse(&format!("{events}{}", event(&message(request, RESULT))), piece_bytes);
        (request.method() == "tools/call").then(stream)
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"call_read_tool","arguments":{{"name":"ask"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    );
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("authorization", "Bearer alice")
        .header("content-type", "application/json")
        .header("accept", accept)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "call_read_tool");
    let answer = app.send(request.body(axum::body::Body::from(body)).unwrap()).await;
    (server, answer)
}

const BOTH: &str = "application/json, text/event-stream";
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn log_of(level: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#)
}

#[tokio::test]
async fn m20_log_messages_of_the_level_that_was_asked_for_and_above_reach_the_caller() {
    let events: String = LEVELS.iter().map(|level| event(&log_of(level))).collect();
    for (asked, level) in LEVELS.iter().enumerate() {
        let meta = format!(r#","io.modelcontextprotocol/logLevel":"{level}""#);
        let (server, answer) = call_told(BOTH, &meta, events.clone()).await;
        let told: Vec<&&str> = LEVELS.iter().filter(|level| answer.text().contains(&log_of(level))).collect();
        assert_eq!(told, LEVELS[asked..].iter().collect::<Vec<_>>(), "{level}");
        let forwarded = server.requests("tools/call")[0].json();
        assert_eq!(forwarded["params"]["_meta"]["io.modelcontextprotocol/logLevel"], **level);
    }
    let (_server, answer) = call_told(BOTH, "", events).await;
    assert!(!answer.text().contains("notifications/message"), "{}", answer.text());
}

#[tokio::test]
async fn m20_what_is_no_log_level_is_refused() {
    for level in [r#""loud""#, r#""""#, "3", "{}", r#""Error""#] {
        let meta = format!(r#","io.modelcontextprotocol/logLevel":{level}"#);
        let (server, answer) = call_told(BOTH, &meta, String::new()).await;
        assert_eq!((answer.status, answer.code()), (400, Some(-32602)), "{level}");
        assert_eq!(server.requests("tools/call").len(), 0);
    }
}

#[tokio::test]
async fn m9_a_stream_says_that_nobody_may_hold_it_back_and_has_no_event_ids() {
    let told = format!("id: 7\nretry: 5\n{}", event(PROGRESS));
    let (_server, answer) = call_told(BOTH, r#","progressToken":"p""#, told).await;
    assert_eq!(answer.values("x-accel-buffering"), ["no"]);
    assert_eq!(answer.values("cache-control"), ["no-store"]);
    assert!(answer.text().lines().all(|line| !line.starts_with("id") && !line.starts_with("retry")));
}

#[tokio::test]
async fn m9_m20_progress_reaches_a_client_that_asked_for_it_before_the_answer() {
    let (server, status, text) = call("application/json, text/event-stream", r#","progressToken":"p""#).await;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{RESULT}}}"#);
    assert_eq!((status, text), (200, format!("text/event-stream {}{}", event(PROGRESS), event(&answer))));
    assert_eq!(server.requests("tools/call")[0].json()["params"]["_meta"]["progressToken"], "p");
}

#[tokio::test]
async fn m9_m20_what_is_told_in_one_piece_with_the_answer_is_told_before_it() {
    let meta = r#","progressToken":"p""#;
    let (_server, answer) = call_told_in_pieces(BOTH, meta, event(PROGRESS), 10_000).await;
    let text = answer.text();
    let (told, answered) = (text.find("notifications/progress"), text.find("content"));
    assert!(told.is_some() && told < answered, "{text}");
}

#[tokio::test]
async fn c12_progress_is_not_asked_for_and_not_told_where_the_client_takes_no_stream_or_gave_no_token() {
    for (accept, meta) in
        [("application/json", r#","progressToken":"p""#), ("application/json, text/event-stream", "")]
    {
        let (server, status, text) = call(accept, meta).await;
        assert_eq!(
            (status, text),
            (200, format!(r#"application/json {{"jsonrpc":"2.0","id":7,"result":{RESULT}}}"#))
        );
        assert!(server.requests("tools/call")[0].json()["params"]["_meta"].get("progressToken").is_none());
    }
}
