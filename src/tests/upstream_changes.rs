//! Upstreams that change under way: a deploy, a restart, another era, and callers who are answered unlike the others.

use crate::support::{FakeMcp, Reply, Style, TestApp, reader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

fn mail() -> Vec<String> {
    vec![reader("mail__search", "Searches mail.")]
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
        let lost = Arc::new(AtomicU8::new(0));
        let seen = Arc::clone(&lost);
        let server = FakeMcp::scripted(Style::LegacySessions, &mail(), move |request| {
            let is_lost = request.method() == "tools/call" && seen.swap(0, Ordering::SeqCst) == 1;
            is_lost.then(|| Reply::error(request, status, code, ""))
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

#[tokio::test]
async fn c2_a_modern_upstream_that_became_a_legacy_one_is_asked_again() {
    let legacy = Arc::new(AtomicU8::new(0));
    let seen = Arc::clone(&legacy);
    let server = FakeMcp::scripted(Style::Modern, &mail(), move |request| {
        if seen.load(Ordering::SeqCst) == 0 {
            return None;
        }
        Some(match (request.method().as_str(), request.header("mcp-session-id")) {
            ("initialize", _) => Reply::result(
                request,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"0"}}"#,
            ),
            ("notifications/initialized", _) => Reply::http(202, "", ""),
            ("tools/call", _) if request.header("mcp-method").is_none() => {
                Reply::result(request, r#"{"content":[]}"#)
            }
            _ => Reply::error(request, 400, -32000, ""),
        })
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let alice = app.caller("alice");
    assert!(!alice.call_read("mail__search", "{}").await.is_error());
    legacy.store(1, Ordering::SeqCst);
    let refusal = alice.call_write("mail__search", "{}").await.refusal();
    assert!(refusal.contains("Nothing was executed"), "{refusal}");
    assert!(!alice.call_write("mail__search", "{}").await.is_error());
}
