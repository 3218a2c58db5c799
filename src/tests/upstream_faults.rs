//! An upstream that is down, slow, wrong or hostile: what the caller is told, and that nobody else gets any of it.

use crate::support::{FakeMcp, Recorded, Reply, Style, TestApp, event, message, reader, until};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

const RESULT: &str = r#"{"content":[{"type":"text","text":"the answer"}]}"#;

/// A tool whose calls are answered so.
async fn answering(answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> (FakeMcp, TestApp) {
    answering_with(&[], answer).await
}

async fn answering_with(
    flags: &[&str],
    answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> (FakeMcp, TestApp) {
    let server = FakeMcp::scripted(Style::Modern, &[reader("ask", "Asks")], move |request| {
        (request.method() == "tools/call").then(|| answer(request))
    })
    .await;
    let app = TestApp::at(&server.url(), flags);
    (server, app)
}

/// A fault of an answer, and a part of what is told about it.
struct Fault {
    answer: fn(&Recorded) -> Reply,
    told: &'static str,
    /// Whether the upstream certainly did nothing.
    nothing_done: bool,
}

const UNKNOWN: bool = false;
const NOTHING: bool = true;

const FAULTS: &[Fault] = &[
    Fault {
        answer: |_| Reply::http(200, "Content-Type: text/html\r\n", "<!doctype html>canary"),
        told: "HTML",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::http(200, "Content-Type: application/json\r\n", "hello canary"),
        told: "not a JSON-RPC message",
        nothing_done: UNKNOWN,
    },
    Fault { answer: |_| Reply::json(200, ""), told: "ended before it was complete", nothing_done: UNKNOWN },
    Fault {
        answer: |_| Reply::http(204, "", ""),
        told: "ended before it was complete",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::json(200, r#"{"jsonrpc":"2.0","id":"1","res"#),
        told: "ended before it was complete",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{").then_close(),
        told: "ended before it was complete",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::default().then_close(),
        told: "ended before it was complete",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::raw("nonsense canary\r\n\r\n").then_close(),
        told: "ended before it was complete",
        nothing_done: UNKNOWN,
    },
    Fault { answer: |_| Reply::http(500, "", "canary"), told: "HTTP 500", nothing_done: UNKNOWN },
    Fault {
        answer: |_| Reply::http(502, "Content-Type: text/html\r\n", "<html>canary"),
        told: "HTTP 502",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::http(500, "", &"canary ".repeat(1_500_000)),
        told: "HTTP 500",
        nothing_done: UNKNOWN,
    },
    Fault { answer: |_| Reply::http(429, "Retry-After: 1\r\n", ""), told: "HTTP 429", nothing_done: NOTHING },
    Fault { answer: |_| Reply::http(404, "", ""), told: "HTTP 404", nothing_done: NOTHING },
    Fault {
        answer: |_| Reply::json(200, r#"{"jsonrpc":"2.0","id":"another","result":{"content":"canary"}}"#),
        told: "answers another request",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::json(200, r#"{"jsonrpc":"2.0","result":{"content":"canary"}}"#),
        told: "answers another request",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| {
            Reply::json(200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"canary"}}"#)
        },
        told: "answers another request",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |r| Reply::json(200, &format!("[{}]", message(r, RESULT))),
        told: "not a JSON-RPC message",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |r| Reply::json(200, &format!("{} ", message(r, "7"))),
        told: "not valid MCP",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |r| Reply::http(200, "Content-Encoding: gzip\r\n", &message(r, RESULT)),
        told: "compressed",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::http(307, "Location: http://127.0.0.1:9/elsewhere\r\n", ""),
        told: "HTTP 307",
        nothing_done: UNKNOWN,
    },
    Fault {
        answer: |_| Reply::http(301, "Location: /mcp/other\r\n", ""),
        told: "HTTP 301",
        nothing_done: UNKNOWN,
    },
    Fault { answer: |r| Reply::error(r, 200, -32603, ""), told: "error: no", nothing_done: UNKNOWN },
    Fault { answer: |r| Reply::error(r, 500, -32603, ""), told: "error: no", nothing_done: UNKNOWN },
    Fault {
        answer: |r| Reply::error(r, 400, -32602, ""),
        told: "refused the call: no",
        nothing_done: UNKNOWN,
    },
];

#[tokio::test]
async fn t_r12_every_fault_is_told_in_plain_words_and_a_write_is_sent_once() {
    for (i, fault) in FAULTS.iter().enumerate() {
        let (server, app) = answering(fault.answer).await;
        let read = app.caller("alice").call_read("ask", "{}").await.refusal();
        assert!(read.contains(fault.told) && !read.contains("canary"), "fault {i}: {read}");
        server.forget_log();
        let write = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert!(write.contains(fault.told) && !write.contains("canary"), "fault {i}: {write}");
        assert!(!fault.nothing_done || write.contains("Nothing was executed"), "fault {i}: {write}");
        assert_eq!(server.requests("tools/call").len(), 1, "fault {i}");
        assert_eq!(server.log().iter().filter(|request| request.target != "/mcp").count(), 0, "fault {i}");
    }
}

#[tokio::test]
async fn a_listing_with_any_fault_is_an_answer_too() {
    for (i, fault) in FAULTS.iter().enumerate() {
        let server = FakeMcp::scripted(Style::Modern, &[], |request| {
            (request.method() == "tools/list").then(|| (fault.answer)(request))
        })
        .await;
        let app = TestApp::at(&server.url(), &[]);
        let refusal = app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.refusal();
        assert!(
            refusal.contains("can't be listed now") && !refusal.contains("canary"),
            "fault {i}: {refusal}"
        );
    }
}

#[tokio::test]
async fn t_c7_an_error_of_another_request_says_nothing_of_this_one() {
    let error = |id: &str| {
        let id = id.to_owned();
        move |_: &Recorded| {
            let body = format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":-32001,"message":"canary"}}}}"#);
            Reply::json(404, &body)
        }
    };
    let (_server, app) = answering(error(r#","id":"0123456789abcdef0123456789abcdef""#)).await;
    let told = app.caller("alice").call_write("ask", "{}").await.refusal();
    assert!(told.contains("answers another request"), "{told}");
    assert!(told.contains("not known whether the call was executed"), "{told}");
    // Servers that could not read a request name it as they like.
    for id in ["", r#","id":null"#, r#","id":"server-error""#] {
        let (_server, app) = answering(error(id)).await;
        let told = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert!(told.contains("HTTP 404") && !told.contains("canary"), "{told}");
    }
}

#[tokio::test]
async fn t_c7_an_answer_to_another_request_ends_the_connections() {
    let wrong = r#"{"jsonrpc":"2.0","id":"another","result":{}}"#;
    let (server, app) = answering(move |request| {
        if request.token() == "alice" { Reply::json(200, wrong) } else { Reply::result(request, RESULT) }
    })
    .await;
    app.caller("bob").call_read("ask", "{}").await;
    app.caller("alice").call_read("ask", "{}").await;
    assert!(!app.caller("bob").call_read("ask", "{}").await.is_error());
    let connections: Vec<usize> = server.requests("tools/call").iter().map(|call| call.connection).collect();
    assert_eq!(connections[0], connections[1]);
    assert_ne!(connections[1], connections[2]);
}

#[tokio::test]
async fn t_c7_a_second_response_that_nobody_asked_for_reaches_no_other_caller() {
    let others = r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"canary"}]}}"#;
    for same_write in [true, false] {
        for copies_id in [true, false] {
            let (server, app) = answering(move |request| {
                let answer = Reply::result(request, RESULT);
                if request.token() != "alice" {
                    return answer;
                }
                let id = if copies_id { request.id() } else { "\"x\"".to_owned() };
                let more = Reply::json(200, &others.replace("\"x\"", &id));
                if same_write { answer.followed_by(more) } else { answer.then_late(more) }
            })
            .await;
            app.caller("bob").search("ask").await;
            for _ in 0..20 {
                let alice = app.caller("alice").call_read("ask", "{}").await;
                let bob = app.caller("bob").call_read("ask", "{}").await;
                assert!(!alice.text().contains("canary") && !bob.text().contains("canary"), "{}", bob.text());
            }
            // The faulty connections were really shared, else this test would show nothing.
            let calls = server.requests("tools/call");
            let is_reused = calls.windows(2).any(|pair| pair[0].connection == pair[1].connection);
            assert!(is_reused || same_write, "no connection was used twice");
        }
    }
}

#[tokio::test]
async fn t_x2_a_result_at_the_limit_passes_and_one_byte_more_does_not() {
    const MAX: usize = 2_000;
    fn padded(request: &Recorded, bytes: usize) -> String {
        let empty = message(request, r#"{"content":[],"x":""}"#).len();
        message(request, &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(bytes - empty)))
    }
    let flags = ["--max-response-bytes", "2000"];
    for (bytes, fits) in [(MAX, true), (MAX + 1, false)] {
        let answers: [fn(&Recorded, usize) -> Reply; 3] = [
            |request, bytes| Reply::json(200, &padded(request, bytes)),
            // Without a length, in chunks.
            |request, bytes| Reply::sse(&padded(request, bytes), 100),
            // The stream counts with its field names.
            |request, bytes| Reply::sse(&event(&padded(request, bytes - event("").len())), 100),
        ];
        for answer in answers {
            let (_server, app) = answering_with(&flags, move |request| answer(request, bytes)).await;
            let answer = app.caller("alice").call_read("ask", "{}").await;
            assert_eq!(!answer.is_error(), fits, "{bytes}: {}", answer.text());
            if !fits {
                let refusal = answer.refusal();
                assert!(
                    refusal.contains("larger than 2000 bytes") && refusal.contains("Ask for less"),
                    "{refusal}"
                );
            }
        }
    }
}

#[tokio::test]
async fn c17_a_call_that_takes_too_long_is_told_with_the_time_that_the_operator_set() {
    let (server, app) = answering_with(&["--upstream-timeout", "60ms"], |_| Reply::hang()).await;
    insta::assert_snapshot!(app.caller("alice").call_write("ask", "{}").await.refusal(), @r#"{"error":"The upstream did not answer within 60ms. It is not known whether the call was executed: check before you repeat it."}"#);
    assert_eq!(server.requests("tools/call").len(), 1);
    // The connection with the late answer is not used again.
    until("the end of the connection", || server.open_connections() == 0).await;
}

#[tokio::test]
async fn c17_a_stream_that_never_answers_takes_no_longer_than_the_time_limit() {
    let flags = ["--upstream-timeout", "60ms"];
    let (_server, app) = answering_with(&flags, |_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        Reply::raw(format!("{head}: keep alive\n\n")).then_hang()
    })
    .await;
    let refusal = app.caller("alice").call_read("ask", "{}").await.refusal();
    assert!(refusal.contains("did not answer within"), "{refusal}");
}

#[tokio::test]
async fn c17_a_listing_that_takes_too_long_is_told_with_the_time_that_the_operator_set() {
    let server =
        FakeMcp::scripted(Style::Modern, &[], |request| (request.method() == "tools/list").then(Reply::hang))
            .await;
    let app = TestApp::at(&server.url(), &["--list-timeout", "60ms"]);
    let refusal = app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.refusal();
    insta::assert_snapshot!(refusal, @r#"{"error":"The tools can't be listed now: the upstream did not answer within 60ms. Nothing was called. Try again later."}"#);
}

#[tokio::test]
async fn an_upstream_that_is_down_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let app = TestApp::at(&url, &[]);
    insta::assert_snapshot!(app.caller("alice").call_write("x", "{}").await.refusal(), @r#"{"error":"The tools can't be listed now: the upstream can't be reached: the connection was refused. Nothing was called. Try again later."}"#);
}

#[tokio::test]
async fn a_write_that_never_left_since_the_handshake_failed_was_not_executed() {
    let failures: [fn() -> Reply; 3] =
        [Reply::hang, || Reply::http(500, "", ""), || Reply::default().then_close()];
    for failure in failures {
        // The first handshake succeeds, for the listing; the one after the loss of the session does not.
        let handshakes = AtomicUsize::new(0);
        let server = FakeMcp::scripted(Style::LegacySessions, &[reader("ask", "Asks")], move |request| {
            let is_second = request.method() == "initialize" && handshakes.fetch_add(1, Ordering::SeqCst) > 0;
            is_second.then(failure)
        })
        .await;
        let app = TestApp::at(&server.url(), &["--upstream-timeout", "100ms"]);
        app.caller("alice").search("ask").await;
        server.forget_sessions();
        app.caller("alice").call_write("ask", "{}").await.refusal();
        server.forget_log();
        let refusal = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert_eq!(server.requests("tools/call").len(), 0);
        assert!(refusal.contains("Nothing was executed"), "{refusal}");
    }
}

#[tokio::test]
async fn f14_challenges_cross_unchanged_however_many_there_are() {
    let server = FakeMcp::scripted(Style::Modern, &[], |_| {
        let challenges = "WWW-Authenticate: Bearer resource_metadata=\"https://a.example/x\", scope=\"a b\"\r\n\
                          Set-Cookie: canary=1\r\nWWW-Authenticate: Basic realm=\"b\"\r\n";
        Some(Reply::http(401, challenges, "canary"))
    })
    .await;
    // Where the proxy does not know what its clients call it, it changes nothing.
    let app = TestApp::at(&server.url(), &["--listen", "0.0.0.0:8080"]);
    let answer = app.anonymous().tool("search_tools", r#"{"query":"x"}"#).await;
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.values("www-authenticate"),
        ["Bearer resource_metadata=\"https://a.example/x\", scope=\"a b\"", "Basic realm=\"b\""]
    );
    assert!(!answer.text().contains("canary") && answer.values("set-cookie").is_empty());
    // Where it does, a login leads to this server, and the rest of the challenges is as it was.
    let app = TestApp::at(&server.url(), &["--public-url", "https://gateway.example/mcp/search"]);
    let answer = app.anonymous().tool("search_tools", r#"{"query":"x"}"#).await;
    let own = "https://gateway.example/.well-known/oauth-protected-resource/mcp/search";
    let bearer = format!("Bearer resource_metadata=\"{own}\", scope=\"a b\"");
    assert_eq!(answer.values("www-authenticate"), [bearer.as_str(), "Basic realm=\"b\""]);
}

#[tokio::test]
async fn c7_an_http_error_with_a_result_in_it_is_no_success() {
    for status in [400, 404, 500] {
        let (server, app) = answering(move |request| Reply::json(status, &message(request, RESULT))).await;
        let told = app.caller("alice").call_write("ask", "{}").await.refusal();
        assert!(
            told.contains(&format!("HTTP {status}. It is not known whether the call was executed")),
            "{told}"
        );
        assert_eq!(server.requests("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn c13_what_never_left_or_was_answered_is_not_cancelled() {
    let server = FakeMcp::scripted(Style::LegacySessions, &[reader("ask", "Asks")], |request| {
        (request.method() == "tools/call").then(|| Reply::http(307, "Location: /elsewhere\r\n", ""))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    for _ in 0..3 {
        app.caller("alice").call_write("ask", "{}").await.refusal();
    }
    assert_eq!(server.requests("tools/call").len(), 3);
    assert_eq!(server.requests("notifications/cancelled").len(), 0);
}

#[tokio::test]
async fn c14_a_handshake_that_is_given_up_leaves_no_session_behind() {
    let server = FakeMcp::scripted(Style::LegacySessions, &[reader("ask", "Asks")], |request| {
        (request.method() == "notifications/initialized").then(Reply::hang)
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let alice = app.caller("alice").modern();
    let call = tokio::spawn(async move { alice.call_write("ask", "{}").await });
    server.received("notifications/initialized", 1).await;
    call.abort();
    let closed = server.received("DELETE", 1).await;
    assert!(closed[0].header("mcp-session-id").is_some());
}

#[tokio::test]
async fn t_x15_an_upstream_that_refuses_connections_is_left_alone_and_found_again() {
    let server = FakeMcp::start(Style::Modern, &[reader("mail__find", "Searches mail")]).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let app = TestApp::at(&format!("http://{address}/mcp"), &[]);
    let search = async || app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await;
    for _ in 0..10 {
        let refusal = search().await.refusal();
        assert!(refusal.contains("the connection was refused"), "{refusal}");
    }
    let refusal = search().await.refusal();
    assert!(refusal.contains("left alone"), "{refusal}");

    let listener = TcpListener::bind(address).await.unwrap();
    let upstream = server.address();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = TcpStream::connect(upstream).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let mut tries = 0;
    while search().await.is_error() {
        tries += 1;
        assert!(tries < 50, "it was never tried again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(tries > 1);
}
