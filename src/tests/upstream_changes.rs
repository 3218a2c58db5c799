//! Upstreams that change under way: a deploy, a restart, another era, and callers who are answered unlike the others.

use crate::support::{
    FakeMcp, FakeUpstream, Recorded, Reply, Style, TestApp, discovery, event, message, reader,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

fn mail() -> Vec<String> {
    vec![reader("mail__search", "Searches mail.")]
}

/// A legacy upstream with mail that answers so once it has turned, and the proxy in front of it.
async fn answering_otherwise_later(
    answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> (FakeMcp, TestApp, Arc<AtomicBool>) {
    let turned = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&turned);
    let server = FakeMcp::scripted(Style::Legacy, &mail(), move |request| {
        seen.load(Ordering::SeqCst).then(|| answer(request))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    (server, app, turned)
}

#[tokio::test]
async fn t_h15_one_callers_refusals_decide_nothing_for_the_others() {
    let server = FakeMcp::scripted(Style::Modern, &mail(), |request| match request.method().as_str() {
        _ if request.token() != "odd" => {
            (request.method() == "initialize").then(|| Reply::error(request, 404, -32601, ""))
        }
        "server/discover" => Some(Reply::http(400, "", "{\"error\":\"invalid_request\"}")),
        _ => Some(Reply::http(401, "WWW-Authenticate: Bearer\r\n", "")),
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    for _ in 0..3 {
        assert!(!app.caller("alice").call_read("mail__search", "{}").await.is_error());
        assert_eq!(app.caller("odd").tool("search_tools", r#"{"query":"mail"}"#).await.status, 401);
    }
}

#[tokio::test]
async fn c2_a_modern_upstream_is_found_again_after_a_deploy() {
    const WELL: u8 = 0;
    const GONE: u8 = 1;
    let state = Arc::new(AtomicU8::new(WELL));
    let seen = Arc::clone(&state);
    let server = FakeMcp::scripted(Style::Modern, &mail(), move |request| {
        if seen.load(Ordering::SeqCst) == GONE {
            return Some(Reply::http(404, "Content-Type: text/plain\r\n", "no such route"));
        }
        (request.method() == "initialize").then(|| Reply::error(request, 404, -32601, ""))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let alice = app.caller("alice");
    assert!(!alice.call_read("mail__search", "{}").await.is_error());
    state.store(GONE, Ordering::SeqCst);
    for _ in 0..3 {
        let refusal = alice.call_write("mail__search", "{}").await.refusal();
        assert!(refusal.contains("Nothing was executed"), "{refusal}");
    }
    state.store(WELL, Ordering::SeqCst);
    assert!(!alice.call_read("mail__search", "{}").await.is_error());
}

#[tokio::test]
async fn c2_c14_each_change_of_era_or_session_costs_one_call_that_was_not_executed() {
    const CODES: [(u16, i64); 4] = [(404, -32001), (400, -32000), (400, -32600), (400, -32001)];
    for (status, code) in CODES {
        // By custom the error of a session names no request; one that does may be of the tool, but for its own code.
        let names_us = code == -32001;
        let lost = Arc::new(AtomicU8::new(0));
        let seen = Arc::clone(&lost);
        let server = FakeMcp::scripted(Style::LegacySessions, &mail(), move |request| {
            let is_lost = request.method() == "tools/call" && seen.swap(0, Ordering::SeqCst) == 1;
            is_lost.then(|| match names_us {
                true => Reply::error(request, status, code, ""),
                false => unread(status, code),
            })
        })
        .await;
        let app = TestApp::at(&server.url(), &[]);
        let alice = app.caller("alice");
        assert!(!alice.call_read("mail__search", "{}").await.is_error());
        lost.store(1, Ordering::SeqCst);
        let refusal = alice.call_write("mail__search", "{}").await.refusal();
        assert!(refusal.contains("Nothing was executed. Call it again"), "{status} {code}: {refusal}");
        assert!(!alice.call_write("mail__search", "{}").await.is_error(), "{status} {code}");
        assert_eq!(server.requests("initialize").len(), 2, "{status} {code}");
    }
}

/// How a request is turned away.
type Refusal = fn(&Recorded) -> Reply;

/// An error of a request that was not read, so that none is named.
fn unread(status: u16, code: i64) -> Reply {
    Reply::json(status, &format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"no"}}}}"#))
}

#[tokio::test]
async fn c14_an_error_of_the_tool_is_no_lost_session_but_a_dead_one_is_not_kept() {
    for (status, code) in [(400, -32000), (400, -32600), (404, -32000), (404, -32600)] {
        let failing = Arc::new(AtomicU8::new(0));
        let seen = Arc::clone(&failing);
        let server = FakeMcp::scripted(Style::LegacySessions, &mail(), move |request| {
            let fails = request.method() == "tools/call" && seen.swap(0, Ordering::SeqCst) == 1;
            fails.then(|| Reply::error(request, status, code, ""))
        })
        .await;
        let app = TestApp::at(&server.url(), &[]);
        let alice = app.caller("alice");
        assert!(!alice.call_write("mail__search", "{}").await.is_error());
        failing.store(1, Ordering::SeqCst);
        let refusal = alice.call_write("mail__search", "{}").await.refusal();
        assert!(refusal.contains("not known whether the call was executed"), "{status} {code}: {refusal}");
        assert_eq!(server.requests("tools/call").len(), 2, "{status} {code}");
        assert!(!alice.call_write("mail__search", "{}").await.is_error(), "{status} {code}");
        assert_eq!(server.requests("initialize").len(), 2, "{status} {code}");
    }
}

/// A server that speaks one era and, once `changed` is set, the other one alone.
async fn turning(first: Style, changed: &Arc<AtomicU8>, refusal: Refusal) -> FakeMcp {
    let seen = Arc::clone(changed);
    let was_modern = matches!(first, Style::Modern | Style::ModernSse);
    FakeMcp::scripted(first, &mail(), move |request| {
        if seen.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let is_modern = request.header("mcp-method").is_some() && request.body.contains("protocolVersion\":\"2026");
        let answer = |result: &str| Some(Reply::result(request, result));
        match request.method().as_str() {
            "initialize" if was_modern => answer(
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"0"}}"#,
            ),
            "notifications/initialized" if was_modern => Some(Reply::http(202, "", "")),
            "server/discover" if !was_modern => answer(&discovery(&["2026-07-28"])),
            "tools/call" if is_modern != was_modern => {
                answer(r#"{"resultType":"complete","content":[{"type":"text","text":"changed"}]}"#)
            }
            _ => Some(refusal(request)),
        }
    })
    .await
}

#[tokio::test]
async fn c2_an_upstream_that_changed_its_era_gets_the_call_once_in_the_right_one() {
    const UNREAD: [(Style, Refusal); 10] = [
        (Style::Modern, |_| unread(400, -32000)),
        (Style::Modern, |_| Reply::http(404, "", "no such route")),
        (Style::Modern, |_| Reply::http(405, "", "")),
        (Style::Modern, |request| Reply::error(request, 404, -32601, "")),
        (Style::Modern, |request| Reply::error(request, 400, -32601, "")),
        (Style::Legacy, |_| unread(400, -32602)),
        (Style::Legacy, |request| Reply::error(request, 400, -32020, "")),
        (Style::Legacy, |request| Reply::error(request, 400, -32022, "")),
        (Style::LegacySessions, |_| unread(400, -32600)),
        (Style::LegacySessions, |request| Reply::error(request, 404, -32601, "")),
    ];
    for (i, (first, refusal)) in UNREAD.into_iter().enumerate() {
        let changed = Arc::new(AtomicU8::new(0));
        let server = turning(first, &changed, refusal).await;
        let app = TestApp::at(&server.url(), &[]);
        let alice = app.caller("alice");
        assert!(!alice.call_write("mail__search", "{}").await.is_error());
        changed.store(1, Ordering::SeqCst);
        server.forget_log();
        let answer = alice.call_write("mail__search", "{}").await;
        assert_eq!(answer.tool_text(), "changed", "{i}");
        // Once refused unread, once made.
        assert_eq!(server.requests("tools/call").len(), 2, "{i}");
        // The era is known from then on.
        server.forget_log();
        assert_eq!(alice.call_write("mail__search", "{}").await.tool_text(), "changed");
        assert_eq!(server.methods(), ["tools/call"], "{i}");
    }
}

#[tokio::test]
async fn c2_a_call_that_may_have_been_executed_is_not_made_in_the_other_era() {
    const MAYBE: [Refusal; 12] = [
        |request| Reply::error(request, 200, -32603, ""),
        |request| Reply::error(request, 500, -32603, ""),
        |request| Reply::error(request, 200, 7, ""),
        |request| Reply::error(request, 200, -32602, ""),
        // A tool may give each of these.
        |request| Reply::error(request, 200, -32600, ""),
        |request| Reply::error(request, 200, -32601, ""),
        |request| Reply::error(request, 400, -32000, ""),
        |request| Reply::error(request, 400, -32600, ""),
        |request| Reply::error(request, 400, -32602, ""),
        // Events come once something is done.
        |request| Reply::sse(&event(&failure(request, -32601)), 99),
        |request| Reply::http(404, "Content-Type: text/event-stream\r\n", &event(&failure(request, -32601))),
        |request| Reply::json(400, &message(request, r#"{"content":[]}"#)),
    ];
    for (i, refusal) in MAYBE.into_iter().enumerate() {
        for first in [Style::Modern, Style::Legacy, Style::LegacySessions] {
            let changed = Arc::new(AtomicU8::new(0));
            let server = turning(first, &changed, refusal).await;
            let app = TestApp::at(&server.url(), &[]);
            let alice = app.caller("alice");
            assert!(!alice.call_write("mail__search", "{}").await.is_error());
            changed.store(1, Ordering::SeqCst);
            server.forget_log();
            let told = alice.call_write("mail__search", "{}").await.refusal();
            assert!(!told.contains("Nothing was executed"), "{first:?} {i}: {told}");
            assert_eq!(server.requests("tools/call").len(), 1, "{first:?} {i}");
        }
    }
}

fn failure(request: &Recorded, code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"no"}}}}"#, request.id())
}

#[tokio::test]
async fn t_h15_who_is_refused_the_modern_era_is_served_in_the_other_and_nobody_else() {
    let server = FakeMcp::scripted(Style::Modern, &mail(), |request| {
        let is_modern = request.body.contains("protocolVersion\":\"2026");
        match request.method().as_str() {
            "server/discover" if request.token() == "bob" => Some(Reply::http(404, "", "")),
            "initialize" => Some(Reply::result(
                request,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"0"}}"#,
            )),
            "notifications/initialized" => Some(Reply::http(202, "", "")),
            "tools/call" if request.token() == "bob" && is_modern => Some(Reply::http(404, "", "")),
            _ => None,
        }
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    for name in ["alice", "bob", "alice", "bob", "alice"] {
        assert!(!app.caller(name).call_write("mail__search", "{}").await.is_error(), "{name}");
    }
    for call in server.requests("tools/call") {
        let version = if call.token() == "bob" { "2025-06-18" } else { "2026-07-28" };
        assert_eq!(call.header("mcp-protocol-version"), Some(version), "{}", call.token());
    }
}

#[tokio::test]
async fn c2_an_answer_that_says_nothing_of_the_call_is_no_reason_to_make_it_again() {
    let (server, app, turned) = answering_otherwise_later(|request| match request.method().as_str() {
        "server/discover" => Reply::result(request, &discovery(&["2026-07-28"])),
        _ => Reply::http(200, "Content-Type: text/html\r\n", "<html>Welcome</html>"),
    })
    .await;
    let alice = app.caller("alice");
    assert!(!alice.call_write("mail__search", "{}").await.is_error());
    turned.store(true, Ordering::SeqCst);
    server.forget_log();
    let refusal = alice.call_write("mail__search", "{}").await.refusal();
    assert!(refusal.contains("not known whether the call was executed"), "{refusal}");
    assert_eq!(server.methods(), ["tools/call"]);
}

#[tokio::test]
async fn c2_the_model_is_not_blamed_where_the_era_can_not_be_found_again() {
    let (_server, app, turned) = answering_otherwise_later(|request| match request.method().as_str() {
        "server/discover" => Reply::http(503, "", ""),
        _ => Reply::error(request, 400, -32602, ""),
    })
    .await;
    let alice = app.caller("alice");
    assert!(!alice.call_write("mail__search", "{}").await.is_error());
    turned.store(true, Ordering::SeqCst);
    let refusal = alice.call_write("mail__search", "{}").await.refusal();
    assert_eq!(
        refusal,
        r#"{"error":"The upstream answered HTTP 400. It is not known whether the call was executed: check before you repeat it."}"#
    );
}

#[tokio::test]
async fn c2_a_listing_finds_the_new_era_by_itself() {
    let (_server, app, turned) = answering_otherwise_later(|request| match request.method().as_str() {
        "server/discover" => Reply::result(request, &discovery(&["2026-07-28"])),
        "tools/list" if request.header("mcp-method").is_some() => {
            Reply::result(request, &format!(r#"{{"resultType":"complete","tools":[{}]}}"#, mail()[0]))
        }
        _ => Reply::error(request, 400, -32602, ""),
    })
    .await;
    assert_eq!(app.caller("alice").search("mail").await, ["mail__search"]);
    turned.store(true, Ordering::SeqCst);
    assert_eq!(app.caller("bob").search("mail").await, ["mail__search"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_listing_does_not_replace_tools_before_their_time_is_over() {
    let upstream = FakeUpstream::new().lists("alice", &mail());
    let app = TestApp::over(&upstream, &[]);
    assert_eq!(app.caller("alice").search("mail").await, ["mail__search"]);
    app.settle().await;
    upstream.lists("alice", &[]);
    tokio::time::advance(Duration::from_secs(600)).await;
    for _ in 0..3 {
        assert_eq!(app.caller("alice").search("mail").await, ["mail__search"]);
        app.settle().await;
    }
    assert!(upstream.listed().len() > 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(app.caller("alice").search("mail").await, [""; 0]);
}
