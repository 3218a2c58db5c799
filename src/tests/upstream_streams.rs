//! Answers as streams of events, in every form that a server may choose, and what a legacy server asks in between.

use crate::support::{FakeMcp, Recorded, Reply, Style, TestApp, event, message, reader};
use std::sync::Arc;
use std::time::Duration;

const RESULT: &str = r#"{"content":[{"type":"text","text":"the answer"}]}"#;

/// A read-only tool whose calls are answered so.
async fn answering(
    style: Style,
    answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> (FakeMcp, TestApp) {
    let server = FakeMcp::scripted(style, &[reader("ask", "Asks")], move |request| {
        (request.method() == "tools/call").then(|| answer(request))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    (server, app)
}

/// Streams that all hold the one answer, some with much around it.
fn streams(request: &Recorded) -> Vec<String> {
    let answer = message(request, RESULT);
    let pretty = answer.replace(",\"result\"", ",\n \"result\"");
    let other = r#"{"jsonrpc":"2.0","id":"somebody else's","result":{"content":[]}}"#;
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    vec![
        event(&answer),
        format!("data:{answer}\n\n"),
        format!("\u{feff}: hello\r\n\r\nretry: 5\r\nid: 7\r\nevent: message\r\ndata: {answer}\r\n\r\n"),
        format!("data: {answer}\r\r"),
        event(&pretty),
        format!(": keep alive\n\n:\n\ndata\n\n{}", event(&answer)),
        format!("{}{}", event(other), event(&answer)),
        format!("{}{}{}", event(progress), event(progress), event(&answer)),
        format!("{}{}", event(&answer), event(other)),
    ]
}

#[tokio::test]
async fn c7_t_h11_every_form_of_a_stream_is_understood_split_at_every_byte() {
    for style in [Style::ModernSse, Style::LegacySessions] {
        for form in 0..9 {
            for chunk_bytes in [1, 2, usize::MAX] {
                let (_server, app) =
                    answering(style, move |request| Reply::sse(&streams(request)[form], chunk_bytes)).await;
                let answer = app.caller("alice").call_read("ask", "{}").await;
                assert_eq!(
                    answer.tool_text(),
                    "the answer",
                    "{style:?}, form {form}, chunks of {chunk_bytes}"
                );
            }
        }
    }
}

#[tokio::test]
async fn c7_a_stream_that_ends_early_is_told_and_a_write_is_not_repeated() {
    for events in ["", ": nothing\n\n", "data: {\"jsonrpc\":\"2.0\",", "data: {}\n\n"] {
        let (server, app) = answering(Style::ModernSse, move |_| Reply::sse(events, 5)).await;
        let refusal = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert!(
            refusal.contains("ended before it was complete")
                && refusal.contains("not known whether the call was executed"),
            "{events:?}: {refusal}"
        );
        assert_eq!(server.requests("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn c7_an_answer_is_taken_before_the_stream_ends() {
    let (_server, app) = answering(Style::ModernSse, |request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        Reply::raw(format!("{head}{}", event(&message(request, RESULT)))).then_hang()
    })
    .await;
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
}

#[tokio::test]
async fn c7_t_h10_the_body_decides_where_the_media_type_is_wrong() {
    for (media, body) in [
        ("text/event-stream", false),
        ("application/json", true),
        ("text/plain", false),
        ("text/plain", true),
    ] {
        let (_server, app) = answering(Style::Modern, move |request| {
            let answer = message(request, RESULT);
            let body = if body { event(&answer) } else { answer };
            Reply::http(200, &format!("Content-Type: {media}\r\n"), &body)
        })
        .await;
        assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer", "{media}");
    }
}

#[tokio::test]
async fn c15_a_legacy_server_gets_its_pong_and_a_no_to_everything_else() {
    let (server, app) = answering(Style::LegacySessions, |request| {
        let ping = r#"{"jsonrpc":"2.0","id":"p1","method":"ping"}"#;
        let sampling = r#"{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{}}"#;
        let stream = format!("{}{}{}", event(ping), event(sampling), event(&message(request, RESULT)));
        Reply::sse(&stream, 11)
    })
    .await;
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
    let replies = server.received("response", 2).await;
    let bodies: Vec<&str> = replies.iter().map(|reply| reply.body.as_str()).collect();
    assert!(bodies.contains(&r#"{"jsonrpc":"2.0","id":"p1","result":{}}"#), "{bodies:?}");
    assert!(bodies.iter().any(|body| body.contains("\"id\":77") && body.contains("-32601")), "{bodies:?}");
    let session = server.requests("tools/call")[0].header("mcp-session-id").map(str::to_owned);
    for reply in &replies {
        assert_eq!(reply.token(), "alice");
        assert_eq!(reply.header("mcp-session-id"), session.as_deref());
    }
}

#[tokio::test]
async fn t_x15_a_flood_of_a_servers_requests_is_answered_one_at_a_time_and_not_in_full() {
    let server = FakeMcp::scripted(Style::LegacySessions, &[reader("ask", "Asks")], |request| match request
        .method()
        .as_str()
    {
        "tools/call" => {
            let pings: String = (0..1_000)
                .map(|i| event(&format!(r#"{{"jsonrpc":"2.0","id":{i},"method":"ping"}}"#)))
                .collect();
            Some(Reply::sse(&format!("{pings}{}", event(&message(request, RESULT))), 60_000))
        }
        "response" => Some(Reply::hang()),
        _ => None,
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
    server.received("response", 1).await;
    assert!(!app.caller("bob").call_read("ask", "{}").await.is_error());
    // One of each call.
    assert!(server.requests("response").len() <= 2, "{}", server.requests("response").len());
}

#[tokio::test]
async fn t_x15_of_a_flood_of_a_servers_requests_what_does_not_fit_the_queue_is_dropped() {
    let server = FakeMcp::scripted(Style::LegacySessions, &[reader("ask", "Asks")], |request| {
        (request.method() == "tools/call").then(|| {
            let ping = |i| event(&format!(r#"{{"jsonrpc":"2.0","id":{i},"method":"ping"}}"#));
            let pings: String = (0..1_000).map(ping).collect();
            Reply::sse(&format!("{pings}{}", event(&message(request, RESULT))), 100_000)
        })
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
    // They come one after the other, until none comes any more.
    let mut answered = server.received("response", 1).await.len();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        match server.requests("response").len() {
            same if same == answered => break,
            more => answered = more,
        }
    }
    assert!((2..500).contains(&answered), "{answered}");
}

#[tokio::test]
async fn c7_l11_a_batch_with_the_answer_is_read_in_2025_03_26_alone() {
    for (version, is_read) in [("2025-03-26", true), ("2025-06-18", false)] {
        for in_stream in [false, true] {
            let server = FakeMcp::scripted(Style::Legacy, &[reader("ask", "Asks")], move |request| {
                let ping = r#"{"jsonrpc":"2.0","id":"p1","method":"ping"}"#;
                let batch = format!("[{ping},{}]", message(request, RESULT));
                match request.method().as_str() {
                    "initialize" => Some(Reply::result(
                        request,
                        &format!(r#"{{"protocolVersion":"{version}","capabilities":{{}}}}"#),
                    )),
                    "tools/call" if in_stream => Some(Reply::sse(&event(&batch), 9)),
                    "tools/call" => Some(Reply::json(200, &batch)),
                    _ => None,
                }
            })
            .await;
            let app = TestApp::at(&server.url(), &[]);
            let answer = app.caller("alice").call_read("ask", "{}").await;
            assert_eq!(!answer.is_error(), is_read, "{version} {in_stream}: {}", answer.text());
            if is_read {
                assert_eq!(answer.tool_text(), "the answer");
                server.received("response", 1).await;
            }
        }
    }
}

#[tokio::test]
async fn c7_a_batch_without_the_answer_is_no_answer() {
    let (server, app) = answering(Style::Legacy, |_| Reply::json(200, "[]")).await;
    let told = app.caller("alice").call_write("ask", "{}").await.refusal();
    assert!(told.contains("not known whether the call was executed"), "{told}");
    assert_eq!(server.requests("tools/call").len(), 1);
}

#[tokio::test]
async fn c15_a_modern_server_may_not_ask_anything() {
    let (server, app) = answering(Style::ModernSse, |request| {
        let ping = r#"{"jsonrpc":"2.0","id":"p1","method":"ping"}"#;
        Reply::sse(&format!("{}{}", event(ping), event(&message(request, RESULT))), 11)
    })
    .await;
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
    app.caller("alice").call_read("ask", "{}").await;
    assert_eq!(server.requests("response").len(), 0);
}

#[tokio::test]
async fn t_x4_a_stream_without_end_and_without_answer_is_cut_off() {
    let many: Arc<str> =
        event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#).repeat(100_001).into();
    let (_server, app) = answering(Style::ModernSse, move |_| Reply::sse(&many, 60_000)).await;
    let refusal = app.caller("alice").call_read("ask", "{}").await.refusal();
    assert!(refusal.contains("more than 100,000 events"), "{refusal}");
    // An answer behind 9,999 others is still found.
    let some: Arc<str> = event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#).repeat(9_999).into();
    let (_server, app) = answering(Style::ModernSse, move |request| {
        Reply::sse(&format!("{some}{}", event(&message(request, RESULT))), 60_000)
    })
    .await;
    assert_eq!(app.caller("alice").call_read("ask", "{}").await.tool_text(), "the answer");
}
