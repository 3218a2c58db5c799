//! What an upstream tells while a call runs, and who hears it.

use crate::support::{FakeMcp, Reply, Style, TestApp, event, message, reader};

const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
const RESULT: &str = r#"{"resultType":"complete","content":[]}"#;

/// A call with a progress token, from a client that accepts these media types.
async fn call(accept: &str, meta: &str) -> (FakeMcp, u16, String) {
    let server = FakeMcp::scripted(Style::ModernSse, &[reader("ask", "Asks")], |request| {
        let stream = || Reply::sse(&format!("{}{}", event(PROGRESS), event(&message(request, RESULT))), 9);
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
    (server, answer.status, format!("{} {}", answer.values("content-type").concat(), answer.text()))
}

#[tokio::test]
async fn m9_m20_progress_reaches_a_client_that_asked_for_it_before_the_answer() {
    let (server, status, text) = call("application/json, text/event-stream", r#","progressToken":"p""#).await;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{RESULT}}}"#);
    assert_eq!((status, text), (200, format!("text/event-stream {}{}", event(PROGRESS), event(&answer))));
    assert_eq!(server.requests("tools/call")[0].json()["params"]["_meta"]["progressToken"], "p");
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
