//! Connections: how large and how slow a request may be, pipelining, hanging up, draining.

use crate::support::{Connection, FakeUpstream, PATIENCE, Served, TestApp, exchange, reader, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn app_with(flags: &[&str]) -> TestApp {
    TestApp::over(&FakeUpstream::new(), flags)
}

/// A ping of exactly so many bytes.
fn padded(bytes: usize) -> String {
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}"#.len();
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(bytes - empty))
}

#[tokio::test]
async fn a_body_at_the_limit_passes_and_one_byte_more_does_not() {
    let app = app_with(&["--max-request-bytes", "1000"]);
    for (bytes, expected) in [(1000, 200), (1001, 413)] {
        let whole = app.anonymous().post(&[("content-length", &bytes.to_string())], padded(bytes)).await;
        assert_eq!(whole.status, expected, "{bytes}");
        let chunks: Vec<Result<Bytes, Infallible>> =
            padded(bytes).as_bytes().chunks(7).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let streamed = app.anonymous().post(&[], Body::from_stream(futures_util::stream::iter(chunks))).await;
        assert_eq!(streamed.status, expected, "{bytes}");
        if expected == 413 {
            assert_eq!(streamed.values("connection"), ["close"]);
            assert!(streamed.text().contains("--max-request-bytes"), "{}", streamed.text());
        }
    }
}

#[tokio::test]
async fn a_body_of_ten_megabytes_gets_a_clear_answer_on_a_real_socket() {
    let served = Served::over(&FakeUpstream::new(), &[]).await;
    let body = padded(10 * 1024 * 1024);
    // Most clients write all of it before they read a byte.
    let mut connection = Connection::open(served.address).await;
    connection.write_whole(request("alice", &body)).await;
    let (head, text) = connection.response().await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert!(text.contains("1048576 bytes"), "{text}");
    // And the next client is served.
    let (head, _) = exchange(served.address, request("alice", LIST)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(served.stop().await);
}

#[tokio::test(start_paused = true)]
async fn t_x9_a_body_that_does_not_arrive_in_time_is_told_so() {
    let app = app_with(&["--body-timeout", "15s"]);
    let started = Instant::now();
    let beginning = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"{\"jsonrpc\""))]);
    let body = Body::from_stream(beginning.chain(futures_util::stream::pending()));
    let answer = app.anonymous().post(&[], body).await;
    assert_eq!((answer.status, started.elapsed()), (408, Duration::from_secs(15)));
}

#[tokio::test]
async fn f10_t_x9_a_request_whose_headers_do_not_arrive_in_time_loses_its_connection() {
    let served = Served::over(&FakeUpstream::new(), &["--header-timeout", "50ms"]).await;
    let mut connection = Connection::open(served.address).await;
    connection.write("POST /mcp HTTP/1.1\r\nHost: local").await;
    let answer = connection.read_to_end().await;
    assert!(!answer.contains("200"), "{answer}");
    let idle = Connection::open(served.address).await;
    assert_eq!(idle.read_to_end().await, "");
    assert!(served.stop().await);
}

#[tokio::test]
async fn t_x9_a_head_has_its_time_on_a_used_connection_too_and_idleness_has_another() {
    let flags = ["--header-timeout", "300ms", "--idle-timeout", "1h"];
    let served = Served::over(&FakeUpstream::new(), &flags).await;
    let ping = || request("alice", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let mut connection = Connection::open(served.address).await;
    for _ in 0..2 {
        connection.write(ping()).await;
        assert!(connection.response().await.0.starts_with("HTTP/1.1 200"));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    connection.write("POST /mcp HTTP/1.1\r\nHost: local").await;
    let answer = connection.read_to_end().await;
    assert!(!answer.contains("200"), "{answer}");
    assert!(served.stop().await);
}

#[tokio::test]
async fn t_x9_silent_connections_make_room_for_those_with_requests() {
    let served = Served::over(&FakeUpstream::new(), &["--max-connections", "3"]).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(Connection::open(served.address).await);
    }
    let mut honest = Connection::open(served.address).await;
    honest.write(request("alice", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await;
    assert!(honest.response().await.0.starts_with("HTTP/1.1 200"));
    assert!(served.stop().await);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let served = Served::over(&FakeUpstream::new(), &[]).await;
    let mut connection = Connection::open(served.address).await;
    let ping = |id: usize| request("alice", &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    connection.write((0..5).map(ping).collect::<String>()).await;
    for id in 0..5 {
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn what_is_no_http_is_turned_away_and_the_next_client_is_served() {
    let served = Served::over(&FakeUpstream::new(), &[]).await;
    let many_headers = format!("POST /mcp HTTP/1.1\r\n{}\r\n", "X-A: 1\r\n".repeat(200));
    let long_header = format!("POST /mcp HTTP/1.1\r\nX-A: {}\r\n\r\n", "a".repeat(200_000));
    for bytes in
        ["hello\r\n\r\n", "POST /mcp HTTP/9.9\r\n\r\n", &many_headers, &long_header, "\0\0\0\r\n\r\n"]
    {
        let mut connection = Connection::open(served.address).await;
        connection.write(bytes).await;
        let answer = connection.read_to_end().await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let (head, _) = exchange(served.address, request("alice", LIST)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_message() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let served = Served::over(&upstream, &[]).await;
    let whole = request(
        "alice",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_write_tool","arguments":{"name":"ask"}}}"#,
    );
    let mut connection = Connection::open(served.address).await;
    connection.write(&whole[..whole.len() - 1]).await;
    drop(connection);
    let (head, _) = exchange(served.address, request("alice", LIST)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(served.stop().await);
    assert_eq!(upstream.called(), []);
}

async fn hung_up(modern: bool) -> Arc<FakeUpstream> {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_calls(true);
    let alice = if modern { app.caller("alice").modern() } else { app.caller("alice").version("2025-11-25") };
    let call = tokio::spawn(async move { alice.call_write("ask", "{}").await });
    upstream.calls_begun(1).await;
    call.abort();
    assert!(call.await.is_err());
    upstream
}

#[tokio::test]
async fn m10_a_modern_client_that_hangs_up_cancels_its_call() {
    let upstream = hung_up(true).await;
    upstream.calls_dropped(1).await;
}

#[tokio::test]
async fn f15_l13_t_h12_a_legacy_client_that_hangs_up_does_not_cancel_its_call() {
    let upstream = hung_up(false).await;
    upstream.hold_calls(false);
    upstream.calls_finished(1).await;
    assert_eq!(upstream.drops(), (0, 0));
}

#[tokio::test]
async fn m10_a_closed_connection_cancels_too() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let served = Served::over(&upstream, &[]).await;
    upstream.hold_calls(true);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_read_tool","arguments":{{"name":"ask"}},{META}}}}}"#
    );
    let call = request("alice", &body).replacen(
        "\r\n",
        "\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: call_read_tool\r\n",
        1,
    );
    let mut connection = Connection::open(served.address).await;
    connection.write(call).await;
    upstream.calls_begun(1).await;
    drop(connection);
    upstream.calls_dropped(1).await;
}

#[tokio::test]
async fn a_drain_lets_requests_finish_and_gives_up_after_its_time() {
    for (releases, finished) in [(true, true), (false, false)] {
        let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
        let served =
            Served::over(&upstream, &["--drain-timeout", if releases { "20s" } else { "50ms" }]).await;
        upstream.hold_calls(true);
        let mut connection = Connection::open(served.address).await;
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"ask"}}}"#;
        connection.write(request("alice", call)).await;
        upstream.calls_begun(1).await;
        let stopping = tokio::spawn(served.stop());
        if releases {
            upstream.hold_calls(false);
            assert!(connection.response().await.0.starts_with("HTTP/1.1 200"));
        }
        assert_eq!(stopping.await.unwrap(), finished);
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"clock__now"}}}"#;

/// An upstream with one tool, whose calls do not end until they are let go.
fn holding_calls() -> Arc<FakeUpstream> {
    let upstream = FakeUpstream::new();
    for caller in ["alice", "bob"] {
        upstream.lists(caller, &[reader("clock__now", "Tells the time.")]);
    }
    upstream.answers("clock__now", Ok(r#"{"content":[]}"#));
    upstream.hold_calls(true);
    upstream
}

#[tokio::test]
async fn t_x10_one_caller_can_not_take_all_places_and_all_callers_not_more_than_there_are() {
    let upstream = holding_calls();
    let flags = ["--max-in-flight", "3", "--max-in-flight-per-caller", "2"];
    let app = TestApp::over(&upstream, &flags);
    let call = |name: &str| {
        let client = app.caller(name);
        tokio::spawn(async move { client.post(&[], CALL).await })
    };
    let mut running = vec![call("alice"), call("alice")];
    upstream.calls_begun(2).await;
    // A request that got a place would wait for ever, since the calls are held.
    let in_time = async |name: &str| {
        let client = app.caller(name);
        tokio::time::timeout(PATIENCE, client.post(&[], CALL))
            .await
            .expect("a request without a place is refused at once")
    };
    let refused = in_time("alice").await;
    assert_eq!((refused.status, refused.values("retry-after")), (503, vec!["1"]));
    running.push(call("bob"));
    upstream.calls_begun(3).await;
    assert_eq!(in_time("bob").await.status, 503);
    upstream.hold_calls(false);
    for call in running {
        assert_eq!(call.await.unwrap().status, 200);
    }
    assert_eq!(in_time("bob").await.status, 200);
}

#[tokio::test]
async fn l13_a_call_whose_client_is_gone_keeps_its_place_and_is_waited_for() {
    let upstream = holding_calls();
    let served = Served::over(&upstream, &["--max-in-flight", "1", "--drain-timeout", "10s"]).await;
    let mut connection = Connection::open(served.address).await;
    connection.write(request("alice", CALL)).await;
    upstream.calls_begun(1).await;
    drop(connection);
    let (head, _) = exchange(served.address, request("bob", CALL)).await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    let stopping = tokio::spawn(served.stop());
    upstream.hold_calls(false);
    upstream.calls_finished(1).await;
    assert!(stopping.await.unwrap());
    assert_eq!(upstream.drops(), (0, 0));
}

#[tokio::test]
async fn t_x9_a_client_that_does_not_read_its_answer_loses_its_connection() {
    let upstream = holding_calls();
    upstream.hold_calls(false);
    let large = format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(12 << 20));
    upstream.answers("clock__now", Ok(&large));
    let served = Served::over(&upstream, &["--write-timeout", "100ms"]).await;
    let mut connection = Connection::open(served.address).await;
    connection.write(request("alice", CALL)).await;
    upstream.calls_finished(1).await;
    // The drain waits for this connection, which ends without a byte being read.
    assert!(served.stop().await);
    assert!(connection.read_to_end().await.len() < 12 << 20);
}
