//! Callers beside each other: what one sends, breaks or is refused reaches no other, however the requests meet.

use crate::support::{FakeMcp, FakeUpstream, Reply, Style, TestApp, challenge, listing, reader, writer};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::advance;
use toolsearch_proxy::caller::Caller;
use toolsearch_proxy::upstream::{Listing, ToolCall, Upstream, UpstreamError};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"mail__search","arguments":{"q":"x"}}}}"#;

fn mail() -> [String; 1] {
    [reader("mail__search", "Searches mail")]
}

#[tokio::test]
async fn t_c5_no_other_header_and_no_query_changes_what_goes_out() {
    // Each alone, since two that cancel each other out would hide.
    let names = [
        "cookie",
        "x-api-key",
        "proxy-authorization",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-user",
        "x-forwarded-host",
        "x-real-ip",
        "x-auth-request-access-token",
        "x-ssl-client-cert",
        "mcp-session-id",
        "last-event-id",
        "accept-language",
        "user-agent",
        "referer",
        "via",
        "te",
        "x-http-method-override",
        "mcp-param-region",
    ];
    let server = FakeMcp::start(Style::Modern, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    let sent = async |headers: &[(&str, &str)]| {
        server.forget_log();
        assert_eq!(app.caller("alice").post(headers, CALL).await.status, 200, "{headers:?}");
        let calls = server.requests("tools/call");
        assert_eq!(calls.len(), 1);
        format!("{:?} {}", calls[0].headers, calls[0].body).replace(&calls[0].id(), "ID")
    };
    // The first call also finds out which era the upstream speaks.
    sent(&[]).await;
    let plain = sent(&[]).await;
    for name in names {
        assert_eq!(sent(&[(name, "canary")]).await, plain, "{name}");
    }
    let all: Vec<(&str, &str)> = names.iter().map(|name| (*name, "canary")).collect();
    assert_eq!(sent(&all).await, plain);
    // One caller still, whatever else was sent.
    assert_eq!(app.catalogs().stats().callers, 1);
}

#[tokio::test]
async fn t_c8_an_answer_that_comes_too_late_reaches_nobody() {
    let canary = r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"canary"}]}}"#;
    let server = FakeMcp::scripted(Style::Modern, &mail(), move |request| {
        let late = request.method() == "tools/call" && request.token() == "alice";
        // Half an answer, and its rest when the next request comes on this connection.
        late.then(|| {
            let half = Reply::raw(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{",
            );
            half.then_late(Reply::json(200, &canary.replace("\"x\"", &request.id())))
        })
    })
    .await;
    let app = TestApp::at(&server.url(), &["--upstream-timeout", "100ms"]);
    app.caller("bob").search("mail").await;
    for _ in 0..5 {
        let refusal = app.caller("alice").call_read("mail__search", "{}").await.refusal();
        assert!(refusal.contains("within 100ms"), "{refusal}");
        let healthy = app.caller("bob").call_read("mail__search", "{}").await;
        assert!(healthy.tool_text().contains("bob called"), "{}", healthy.text());
    }
    let calls = server.requests("tools/call");
    let of = |token: &str| -> BTreeSet<usize> {
        let calls = calls.iter().filter(|call| call.token() == token);
        calls.map(|call| call.connection).collect()
    };
    assert_eq!(of("alice").len(), 5, "a connection with half an answer was used again");
    assert!(of("alice").iter().all(|connection| {
        let last = server.log().iter().rfind(|request| request.connection == *connection).cloned();
        last.is_some_and(|request| request.token() == "alice")
    }));
}

#[tokio::test]
async fn t_c9_a_search_finds_only_what_the_caller_lists() {
    let words = ["mail", "file", "issue", "event", "user", "page", "secret", "report", "build", "chart"];
    let name = |i: usize| format!("{}__{}_{}", words[i % 3], words[i % 7], words[i % 10]);
    let definitions: Vec<String> =
        (0..200).map(|i| reader(&name(i), &format!("Finds the {} number {i}", words[i % 9]))).collect();
    let upstream = FakeUpstream::new();
    let mut visible: Vec<BTreeSet<String>> = Vec::new();
    for caller in 0..4_usize {
        // Each shares half of its tools with each other.
        let own = (0..200).filter(|i| (i >> caller) & 1 == 1);
        let tools: Vec<String> = own.clone().map(|i| definitions[i].clone()).collect();
        upstream.lists(&format!("caller{caller}"), &tools);
        visible.push(own.map(name).collect());
    }
    let app = TestApp::over(&upstream, &[]);
    let mut found = 0;
    for round in 0..60_usize {
        for (caller, visible) in visible.iter().enumerate() {
            let query = format!("{} {}", words[round % 10], words[(round / 7 + caller) % 10]);
            let client = app.caller(&format!("caller{caller}"));
            let hits = client.tool("search_tools", &format!(r#"{{"query":"{query}","limit":25}}"#)).await;
            for hit in hits.tool_json()["tools"].as_array().unwrap() {
                assert!(visible.contains(hit["name"].as_str().unwrap()), "caller{caller} {query}: {hit}");
                found += 1;
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[tokio::test(start_paused = true)]
async fn t_c11_refused_credentials_end_a_refresh_and_nothing_tries_again() {
    let upstream = FakeUpstream::new().lists("alice", &mail());
    let app = TestApp::over(&upstream, &[]);
    app.caller("alice").search("mail").await;
    upstream.answers_listing("alice", Err(challenge(401)));
    advance(Duration::from_secs(605)).await;
    app.caller("alice").search("mail").await;
    app.settle().await;
    assert_eq!((upstream.listed().len(), app.catalogs().stats().callers), (2, 0));
    advance(Duration::from_secs(3_600)).await;
    app.catalogs().forget_idle();
    app.settle().await;
    assert_eq!(upstream.listed().len(), 2, "a listing was tried without a request");
    assert_eq!(app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await.status, 401);
    assert_eq!(upstream.listed().len(), 3);
}

#[tokio::test]
async fn t_c15_a_public_cache_scope_of_the_upstream_shares_nothing() {
    let server = FakeMcp::scripted(Style::Modern, &[], |request| {
        let tool = reader(&format!("{}__tool", request.token()), "Is a tool");
        let result =
            format!(r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[{tool}]}}"#);
        (request.method() == "tools/list").then(|| Reply::result(request, &result))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    for name in ["alice", "bob", "alice"] {
        assert_eq!(app.caller(name).search("tool").await, [format!("{name}__tool")]);
    }
    assert_eq!(server.requests("tools/list").len(), 2);
}

/// Panics where its caller's name says so.
struct Panicking;

fn name_of(caller: &Caller) -> String {
    let value = caller.authorization().map_or("", |value| value.to_str().unwrap());
    value.trim_start_matches("Bearer ").to_owned()
}

impl Upstream for Panicking {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        let name = name_of(caller);
        assert_ne!(name, "before listing", "on purpose");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(name, "while listing", "on purpose");
            Ok(listing(&mail()))
        }
        .boxed()
    }

    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        _: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        let name = name_of(caller);
        assert_ne!(name, "before calling", "on purpose");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(name, "while calling", "on purpose");
            Ok(Bytes::from_static(br#"{"content":[]}"#))
        }
        .boxed()
    }
}

#[tokio::test]
async fn t_c18_a_panic_ends_its_own_request_and_the_next_ones_are_answered() {
    let app =
        TestApp::with(Arc::new(Panicking), &["--max-in-flight", "2", "--max-in-flight-per-caller", "1"]);
    for round in 0..3 {
        for broken in ["before listing", "while listing", "before calling", "while calling"] {
            let answer = app.caller(broken).call_read("mail__search", "{}").await;
            assert_eq!((answer.status, answer.code()), (500, Some(-32603)), "{broken}: {}", answer.text());
            assert!(!answer.text().contains("on purpose"), "{}", answer.text());
            let healthy = app.caller("alice").call_read("mail__search", "{}").await;
            assert!(!healthy.is_error(), "{round}, after {broken}: {}", healthy.text());
        }
    }
    // Two who wait for one listing that breaks are both told.
    let app = TestApp::with(Arc::new(Panicking), &[]);
    let broken = app.caller("while listing");
    let search = async || broken.tool("search_tools", r#"{"query":"mail"}"#).await.status;
    assert_eq!(tokio::join!(search(), search()), (500, 500));
    assert!(!app.caller("alice").call_read("mail__search", "{}").await.is_error());
}

#[tokio::test]
async fn t_p6_an_answer_has_no_header_that_tells_of_the_inside() {
    let upstream = FakeUpstream::new().lists("alice", &mail()).answers_listing("eve", Err(challenge(401)));
    let app = TestApp::over(&upstream, &[]);
    let names = |headers: &http::HeaderMap| -> Vec<String> {
        headers.keys().map(|name| name.as_str().to_owned()).filter(|name| name != "content-length").collect()
    };
    let trace = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    assert_eq!(names(&app.caller("alice").post(&trace, CALL).await.headers), ["content-type"]);
    assert_eq!(names(&app.caller("alice").post(&[], "{").await.headers), ["content-type"]);
    let refused = app.caller("eve").post(&[], CALL).await;
    assert_eq!(refused.status, 401);
    let mut refused = names(&refused.headers);
    refused.sort();
    assert_eq!(refused, ["content-type", "www-authenticate"]);
}

#[tokio::test(start_paused = true)]
async fn t_r3_a_call_after_a_flip_that_is_known_is_never_sent() {
    let upstream = FakeUpstream::new().lists("alice", &mail());
    let app = TestApp::over(&upstream, &[]);
    let alice = app.caller("alice");
    assert!(!alice.call_read("mail__search", "{}").await.is_error());
    upstream.lists("alice", &[writer("mail__search", "Searches mail")]);
    // For up to eleven minutes the listing that the caller has decides; no later.
    advance(Duration::from_secs(660)).await;
    let refusal = alice.call_read("mail__search", "{}").await.refusal();
    assert!(refusal.contains("call_write_tool"), "{refusal}");
    assert_eq!(upstream.called().len(), 1);
    // A login that was refused drops the listing, so the flip is known at once.
    upstream.lists("bob", &mail());
    let bob = app.caller("bob");
    bob.search("mail").await;
    upstream.lists("bob", &[writer("mail__search", "Searches mail")]);
    upstream.answers("mail__search", Err(challenge(403)));
    assert_eq!(bob.call_read("mail__search", "{}").await.status, 403);
    bob.call_read("mail__search", "{}").await.refusal();
    assert_eq!(upstream.called().len(), 2);
}

/// Counts the listings that are under way at once.
#[derive(Default)]
struct Crowded {
    now: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

impl Upstream for Crowded {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            self.all.fetch_add(1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(listing(&[reader(&format!("{}__tool", name_of(caller)), "Is a tool")]))
        }
        .boxed()
    }

    fn call_tool<'a>(
        &'a self,
        _: &'a Caller,
        _: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        std::future::ready(Err(UpstreamError::Status(404))).boxed()
    }
}

#[tokio::test]
async fn t_x14_a_thousand_callers_at_once_are_listed_sixty_four_at_a_time_and_all_served() {
    let upstream = Arc::new(Crowded::default());
    let app = TestApp::with(Arc::clone(&upstream) as _, &["--max-in-flight", "2000"]);
    let searches: Vec<_> = (0..1_000)
        .map(|i| {
            let caller = app.caller(&format!("caller{i}"));
            tokio::spawn(async move { (i, caller.search("tool").await) })
        })
        .collect();
    for search in searches {
        let (i, found) = search.await.unwrap();
        assert_eq!(found, [format!("caller{i}__tool")]);
    }
    assert_eq!(upstream.all.load(Ordering::SeqCst), 1_000);
    assert_eq!(upstream.most.load(Ordering::SeqCst), 64);
}

#[tokio::test(start_paused = true)]
async fn t_x14_callers_who_came_together_do_not_come_back_together() {
    let upstream = FakeUpstream::new();
    let names: Vec<String> = (0..60).map(|i| format!("caller{i}")).collect();
    for name in &names {
        upstream.lists(name, &mail());
    }
    let app = TestApp::over(&upstream, &[]);
    let mut listed = vec![0];
    // All at once, and then every six seconds of the minute in which a listing may be renewed.
    for pause in [0, 540].into_iter().chain([6; 10]) {
        advance(Duration::from_secs(pause)).await;
        for name in &names {
            app.caller(name).search("mail").await;
        }
        app.settle().await;
        let now = upstream.listed().len();
        listed.push(now - listed.iter().sum::<usize>());
    }
    // Their keys are chance, so that one part of ten has more than half of them hardly ever: once in 10^15.
    let [_, first, again @ ..] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((*first, again.iter().sum::<usize>()), (60, 60));
    assert!(again.iter().all(|part| *part <= 30), "{listed:?}");
}

#[tokio::test]
async fn t_x20_others_are_answered_while_a_large_listing_is_indexed() {
    let words = ["mail", "file", "issue", "event", "user", "page", "secret", "report", "build", "chart"];
    let tools: Vec<String> = (0..3_000)
        .map(|i| {
            reader(
                &format!("{}__{i}", words[i % 10]),
                &format!("Does {} to the {} {i}", words[i % 7], words[i % 9]),
            )
        })
        .collect();
    let upstream = FakeUpstream::new().lists("alice", &tools);
    let app = TestApp::over(&upstream, &[]);
    let alice = app.caller("alice");
    // One thread answers all: if it indexed, nothing else would run meanwhile.
    let indexing = tokio::spawn(async move { alice.search("mail__0").await });
    upstream.listings_begun(1).await;
    let mut answered = 0;
    while !indexing.is_finished() {
        let ping = app.anonymous().post(&[], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
        answered += usize::from(ping.status == 200);
        // Without a connection nothing else makes a request wait for its turn.
        tokio::task::yield_now().await;
    }
    assert_eq!(indexing.await.unwrap()[0], "mail__0");
    assert!(answered >= 20, "{answered}");
}
