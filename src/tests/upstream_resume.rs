//! Streams that a legacy upstream ends before the answer, to be asked for the rest.

use crate::support::{FakeMcp, Recorded, Reply, Style, TestApp, event, message, reader, until};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const RESULT: &str = r#"{"content":[{"type":"text","text":"the answer"}]}"#;

/// The call of one tool is answered by `streams[0]`, each `GET` by the next; `ANSWER` stands for the answer.
async fn in_parts(style: Style, streams: &'static [&'static str], flags: &[&str]) -> (FakeMcp, TestApp) {
    let state: Mutex<(usize, Option<Recorded>)> = Mutex::default();
    let server = FakeMcp::scripted(style, &[reader("ask", "Asks")], move |request| {
        let is_call = request.method() == "tools/call";
        if !is_call && request.verb != "GET" {
            return None;
        }
        let mut state = state.lock().unwrap();
        let call = state.1.get_or_insert_with(|| request.clone()).clone();
        let stream = *streams.get(state.0).unwrap_or(&"");
        state.0 += 1;
        Some(match stream {
            "404" => Reply::http(404, "", ""),
            "401" => Reply::http(401, "WWW-Authenticate: Bearer\r\n", ""),
            "302" => Reply::http(302, "Location: /elsewhere\r\n", ""),
            "json" => Reply::json(200, &message(&call, RESULT)),
            "close" => Reply::raw("").then_close(),
            "hang" => Reply::hang(),
            // The length that was promised does not come.
            "broken" => Reply::raw(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\nid: 1\nretry: 1\n\ndata: {",
            )
            .then_close(),
            stream => Reply::sse(&stream.replace("ANSWER", &event(&message(&call, RESULT))), 7),
        })
    })
    .await;
    let app = TestApp::at(&server.url(), flags);
    (server, app)
}

fn resumptions(server: &FakeMcp) -> Vec<Recorded> {
    server.log().into_iter().filter(|request| request.verb == "GET").collect()
}

#[tokio::test]
async fn c7_a_stream_that_ended_on_purpose_is_asked_for_the_rest_after_the_servers_time() {
    let streams: &[&str] =
        &["id: event-1\nretry: 300\ndata: \n\n", "id: event-2\ndata:\n\n", ": kept\n\nANSWER"];
    let (server, app) = in_parts(Style::LegacySessions, streams, &[]).await;
    let started = Instant::now();
    let answer = app.caller("alice").call_write("ask", "{}").await;
    assert_eq!(answer.tool_text(), "the answer");
    // The time holds for the next part too, which names none.
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
    assert_eq!(server.requests("tools/call").len(), 1);
    let call = &server.requests("tools/call")[0];
    let asked = resumptions(&server);
    let ids: Vec<Option<&str>> = asked.iter().map(|request| request.header("last-event-id")).collect();
    assert_eq!(ids, [Some("event-1"), Some("event-2")]);
    for request in &asked {
        for same in ["authorization", "mcp-session-id", "mcp-protocol-version"] {
            assert!(call.header(same).is_some(), "{same}");
            assert_eq!(request.header(same), call.header(same), "{same}");
        }
        assert_eq!(
            (request.header("accept"), request.header("content-type")),
            (Some("text/event-stream"), None)
        );
        assert_eq!((request.target.as_str(), request.body.as_str()), ("/mcp", ""));
    }
}

#[tokio::test]
async fn c7_a_connection_that_broke_after_an_event_id_is_come_back_to() {
    let (server, app) = in_parts(Style::LegacySessions, &["broken", "ANSWER"], &[]).await;
    assert_eq!(app.caller("alice").call_write("ask", "{}").await.tool_text(), "the answer");
    assert_eq!(resumptions(&server)[0].header("last-event-id"), Some("1"));
    assert_eq!(server.requests("tools/call").len(), 1);
}

#[tokio::test]
async fn c7_the_same_end_without_an_event_id_or_in_the_modern_era_loses_the_call() {
    for (style, first) in [
        (Style::LegacySessions, "retry: 1\ndata: \n\n"),
        (Style::LegacySessions, "id: cut\nretry: 1\n"),
        (Style::LegacySessions, "id: a\n\nid\nretry: 1\n\n"),
        (Style::LegacySessions, "id: \u{1}\nretry: 1\n\n"),
        (Style::ModernSse, "id: event-1\nretry: 1\ndata: \n\n"),
    ] {
        let streams: &'static [&'static str] = Vec::leak(vec![first, "ANSWER"]);
        let (server, app) = in_parts(style, streams, &[]).await;
        let refusal = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert!(refusal.contains("not known whether the call was executed"), "{first:?}: {refusal}");
        assert_eq!((resumptions(&server).len(), server.requests("tools/call").len()), (0, 1), "{first:?}");
    }
}

#[tokio::test]
async fn c7_a_resumption_that_fails_is_tried_once_and_never_repeats_the_call() {
    for then in ["404", "401", "302", "json", "close", ""] {
        let streams: &'static [&'static str] = Vec::leak(vec!["id: 1\nretry: 1\n\n", then]);
        let (server, app) = in_parts(Style::LegacySessions, streams, &["--upstream-timeout", "2s"]).await;
        let answer = app.caller("alice").call_write("ask", "{}").await;
        let refusal = answer.refusal();
        assert!(refusal.contains("not known whether the call was executed"), "{then}: {refusal}");
        assert_eq!(server.requests("tools/call").len(), 1, "{then}");
        // An empty part keeps the id, so it is come back to until the time is up.
        assert!(then.is_empty() || resumptions(&server).len() == 1, "{then}");
    }
}

#[tokio::test]
async fn t_x4_coming_back_ends_with_the_calls_time_and_leaves_the_server_alone_in_between() {
    let (server, app) =
        in_parts(Style::LegacySessions, &["id: 1\nretry: 0\n\n"], &["--upstream-timeout", "1s"]).await;
    let started = Instant::now();
    let refusal = app.caller("alice").call_write("ask", "{}").await.refusal();
    assert!(refusal.contains("not known whether the call was executed"), "{refusal}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let count = resumptions(&server).len();
    assert!((1..=9).contains(&count), "{count} resumptions in a second");
    // A server that wants more time than there is is not waited for.
    let (server, app) =
        in_parts(Style::LegacySessions, &["id: 1\nretry: 3600000\n\n"], &["--upstream-timeout", "1h"]).await;
    let refusal = app.caller("alice").call_write("ask", "{}").await.refusal();
    assert!(refusal.contains("not known whether the call was executed"), "{refusal}");
    assert_eq!(resumptions(&server).len(), 0);
}

#[tokio::test]
async fn m10_a_caller_who_hangs_up_ends_the_resumption_too() {
    let (server, app) = in_parts(Style::LegacySessions, &["id: 1\nretry: 1\n\n", "hang"], &[]).await;
    let server = Arc::new(server);
    let alice = app.caller("alice").modern();
    let call = tokio::spawn(async move { alice.call_write("ask", "{}").await });
    until("a resumption", || resumptions(&server).len() == 1).await;
    call.abort();
    server.connection_closed("GET").await;
    server.received("notifications/cancelled", 1).await;
}
