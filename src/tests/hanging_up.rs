//! Hanging up, by era: it cancels a modern request at once, whatever was sent behind it, and never a legacy one.

use crate::support::{
    Connection, FakeMcp, FakeUpstream, Reply, Served, Style, event, exchange, reader, request,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
const CALLS: [(&str, &str); 3] = [
    ("call_read_tool", r#"{"name":"ask"}"#),
    ("call_write_tool", r#"{"name":"ask"}"#),
    ("call_read_tools", r#"{"calls":[{"name":"ask"},{"name":"ask"}]}"#),
];
const LOOKS: [(&str, &str); 2] =
    [("search_tools", r#"{"query":"ask"}"#), ("describe_tool", r#"{"names":["ask"]}"#)];

fn legacy(tool: &str, arguments: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    request("alice", &body)
}

fn modern(tool: &str, arguments: &str, more_meta: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{more_meta}}}}}}}"#
    );
    let headers = format!(
        "\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nAccept: application/json, text/event-stream\r\n"
    );
    request("alice", &body).replacen("\r\n", &headers, 1)
}

/// What a client may have sent behind its request.
fn sent_behind() -> [String; 4] {
    [String::new(), "\r\n".to_owned(), request("alice", PING), "POST /mcp HT".to_owned()]
}

async fn held() -> (Arc<FakeUpstream>, Served) {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let served = Served::over(&upstream, &[]).await;
    (upstream, served)
}

#[tokio::test]
async fn f15_m10_t_h12_a_closed_connection_cancels_every_tool_within_a_second_whatever_follows_the_request() {
    for behind in sent_behind() {
        for (tool, arguments) in CALLS {
            let (upstream, served) = held().await;
            upstream.hold_calls(true);
            let mut connection = Connection::open(served.address).await;
            connection.write(modern(tool, arguments, "") + &behind).await;
            let calls = if tool == "call_read_tools" { 2 } else { 1 };
            upstream.calls_begun(calls).await;
            let hung_up = Instant::now();
            drop(connection);
            upstream.calls_dropped(calls).await;
            assert!(hung_up.elapsed() < Duration::from_secs(1), "{tool} {behind:?}");
            assert!(served.stop().await);
        }
        for (tool, arguments) in LOOKS {
            let (upstream, served) = held().await;
            upstream.hold_listings(true);
            let mut connection = Connection::open(served.address).await;
            connection.write(modern(tool, arguments, "") + &behind).await;
            upstream.listings_begun(1).await;
            drop(connection);
            upstream.listings_dropped(1).await;
        }
    }
}

#[tokio::test]
async fn m10_a_closed_connection_cancels_a_call_whose_answer_is_a_stream_by_then() {
    const PROGRESS: &str =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
    for behind in sent_behind() {
        let server = FakeMcp::scripted(Style::ModernSse, &[reader("ask", "Asks")], |request| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            let stream = || Reply::raw(format!("{head}{}", event(PROGRESS))).then_hang();
            (request.method() == "tools/call").then(stream)
        })
        .await;
        let served = Served::at(&server.url(), &[]).await;
        let mut connection = Connection::open(served.address).await;
        connection
            .write(modern("call_write_tool", r#"{"name":"ask"}"#, r#","progressToken":"p""#) + &behind)
            .await;
        connection.read_up_to("notifications/progress").await;
        drop(connection);
        let hung_up = Instant::now();
        server.connection_closed("tools/call").await;
        assert!(hung_up.elapsed() < Duration::from_secs(1), "{behind:?}");
    }
}

#[tokio::test]
async fn l13_a_legacy_client_that_writes_no_more_still_gets_its_answers() {
    for behind in ["", &request("alice", PING)] {
        let (upstream, served) = held().await;
        upstream.hold_calls(true);
        let mut connection = Connection::open(served.address).await;
        connection.write(legacy("call_write_tool", r#"{"name":"ask"}"#) + behind).await;
        upstream.calls_begun(1).await;
        connection.half_close().await;
        // Another exchange gives the end of the first connection time to arrive.
        let (head, _) = exchange(served.address, request("alice", PING)).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        upstream.hold_calls(false);
        let answers = connection.read_to_end().await;
        assert_eq!(
            answers.matches("HTTP/1.1 200 OK").count(),
            1 + usize::from(!behind.is_empty()),
            "{answers}"
        );
        assert!(answers.contains("alice called ask"), "{answers}");
        assert_eq!(upstream.drops(), (0, 0));
        assert!(served.stop().await);
    }
}

#[tokio::test]
async fn m10_a_modern_client_that_writes_no_more_is_taken_to_have_hung_up() {
    let (upstream, served) = held().await;
    upstream.hold_calls(true);
    let mut connection = Connection::open(served.address).await;
    connection.write(modern("call_write_tool", r#"{"name":"ask"}"#, "")).await;
    upstream.calls_begun(1).await;
    connection.half_close().await;
    assert_eq!(connection.read_to_end().await, "");
    upstream.calls_dropped(1).await;
}

#[tokio::test]
async fn m10_a_modern_answer_that_is_made_is_not_taken_back() {
    let (upstream, served) = held().await;
    let large = format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(12 << 20));
    upstream.answers("ask", Ok(&large));
    let mut connection = Connection::open(served.address).await;
    connection.write(modern("call_write_tool", r#"{"name":"ask"}"#, "")).await;
    // More than sockets hold is still to be written when the client writes no more.
    connection.read_up_to("HTTP/1.1 200").await;
    connection.half_close().await;
    assert!(connection.read_to_end().await.len() > 12 << 20);
}

#[tokio::test]
async fn m10_each_request_of_a_connection_is_judged_by_its_own_era() {
    let (upstream, served) = held().await;
    let mut connection = Connection::open(served.address).await;
    connection.write(modern("call_write_tool", r#"{"name":"ask"}"#, "")).await;
    assert!(connection.response().await.0.starts_with("HTTP/1.1 200"));
    upstream.hold_calls(true);
    connection.write(legacy("call_write_tool", r#"{"name":"ask"}"#)).await;
    upstream.calls_begun(2).await;
    connection.half_close().await;
    let (head, _) = exchange(served.address, request("alice", PING)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    upstream.hold_calls(false);
    assert!(connection.read_to_end().await.starts_with("HTTP/1.1 200"));
    assert_eq!(upstream.drops(), (0, 0));
}

#[tokio::test]
async fn t_x9_a_connection_that_was_reset_gives_its_place_back_while_the_legacy_call_goes_on() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let served = Served::over(&upstream, &["--max-connections-per-address", "1"]).await;
    upstream.hold_calls(true);
    let mut connection = Connection::open(served.address).await;
    connection.write(legacy("call_read_tool", r#"{"name":"ask"}"#)).await;
    upstream.calls_begun(1).await;
    connection.reset();
    let answered = async {
        loop {
            let mut again = Connection::open(served.address).await;
            again.write(request("alice", PING)).await;
            again.half_close().await;
            if again.read_to_end().await.contains("200 OK") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), answered).await.expect("the place is free again");
    assert_eq!(upstream.drops().1, 0);
    upstream.hold_calls(false);
    upstream.calls_finished(1).await;
}
