//! How long a caller's listing is kept, who joins whose, and what drops it. The clock stands still unless moved.

use crate::support::{
    FakeMcp, FakeUpstream, Style, TestApp, challenge, listing, reader, rpc_failure, until, writer,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::advance;
use toolsearch_proxy::upstream::{Listing, UpstreamError};

const FRESH: Duration = Duration::from_secs(600);
/// A listing is fresh for up to this much less, so that callers do not list all at once.
const SPREAD: Duration = Duration::from_secs(60);
const STALE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(1);

fn old() -> Vec<String> {
    vec![reader("mail__old", "Searches mail")]
}

fn new() -> Vec<String> {
    vec![reader("mail__new", "Searches mail")]
}

/// Alice has listed her tools, and the upstream has others by now.
async fn app_with_old_tools() -> (Arc<FakeUpstream>, TestApp) {
    let upstream = FakeUpstream::new().lists("alice", &old());
    let app = TestApp::over(&upstream, &[]);
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    app.settle().await;
    upstream.lists("alice", &new());
    (upstream, app)
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_fresh_for_ten_minutes_and_stale_after() {
    let (upstream, app) = app_with_old_tools().await;
    advance(FRESH - SPREAD - TICK).await;
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    app.settle().await;
    assert_eq!(upstream.listed().len(), 1);
    advance(SPREAD + TICK).await;
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    app.settle().await;
    assert_eq!(upstream.listed().len(), 2);
    assert_eq!(app.caller("alice").search("mail").await, ["mail__new"]);
    assert_eq!(app.catalogs().stats().stale_hits, 1);
}

#[tokio::test(start_paused = true)]
async fn stale_catalog_is_served_while_exactly_one_refresh_runs() {
    let (upstream, app) = app_with_old_tools().await;
    advance(FRESH).await;
    upstream.hold_listings(true);
    for _ in 0..5 {
        assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    }
    upstream.listings_begun(2).await;
    advance(STALE - TICK).await;
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    upstream.hold_listings(false);
    app.settle().await;
    assert_eq!(upstream.listed().len(), 2);
    assert_eq!(app.caller("alice").search("mail").await, ["mail__new"]);
}

#[tokio::test(start_paused = true)]
async fn t_c13_after_the_stale_time_a_request_waits_for_a_new_listing() {
    let (upstream, app) = app_with_old_tools().await;
    advance(FRESH + STALE).await;
    upstream.hold_listings(true);
    let alice = app.caller("alice");
    let waiting = tokio::spawn(async move { alice.search("mail").await });
    upstream.listings_begun(2).await;
    assert!(!waiting.is_finished());
    upstream.hold_listings(false);
    assert_eq!(waiting.await.unwrap(), ["mail__new"]);
}

#[tokio::test(start_paused = true)]
async fn c9_a_shorter_ttl_of_the_upstream_counts_and_a_longer_one_does_not() {
    for (ttl_secs, fresh_secs) in [(5, 5), (3_600, 600)] {
        let upstream = FakeUpstream::new();
        let ttl = Some(Duration::from_secs(ttl_secs));
        upstream.answers_listing("alice", Ok(Listing { ttl, ..listing(&old()) }));
        let app = TestApp::over(&upstream, &[]);
        app.caller("alice").search("mail").await;
        let spread = Duration::from_secs(fresh_secs) / 10;
        advance(Duration::from_secs(fresh_secs) - spread - TICK).await;
        app.caller("alice").search("mail").await;
        app.settle().await;
        assert_eq!(upstream.listed().len(), 1, "{ttl_secs}");
        advance(spread + TICK).await;
        app.caller("alice").search("mail").await;
        app.settle().await;
        assert_eq!(upstream.listed().len(), 2, "{ttl_secs}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_misses_of_one_caller_join_one_listing() {
    let upstream = FakeUpstream::new().lists("alice", &old());
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_listings(true);
    let searches: Vec<_> = (0..10)
        .map(|_| {
            let alice = app.caller("alice");
            tokio::spawn(async move { alice.search("mail").await })
        })
        .collect();
    until("ten misses", || app.catalogs().stats().misses == 10).await;
    upstream.hold_listings(false);
    for search in searches {
        assert_eq!(search.await.unwrap(), ["mail__old"]);
    }
    assert_eq!(upstream.listed(), ["alice"]);
}

#[tokio::test(start_paused = true)]
async fn t_c6_two_callers_never_join_and_never_see_each_others_tools() {
    let upstream = FakeUpstream::new().lists("alice", &old()).lists("bob", &new());
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_listings(true);
    let [alice, bob] = ["alice", "bob"].map(|name| {
        let caller = app.caller(name);
        tokio::spawn(async move { caller.search("mail").await })
    });
    upstream.listings_begun(2).await;
    upstream.hold_listings(false);
    assert_eq!(alice.await.unwrap(), ["mail__old"]);
    assert_eq!(bob.await.unwrap(), ["mail__new"]);
    let refusal = app.caller("bob").call_read("mail__old", "{}").await.refusal();
    assert!(refusal.contains("no tool of that name"), "{refusal}");
    assert!(!app.caller("bob").describe(&["mail__old"]).await.contains("\"description\""));
    assert_eq!(upstream.called(), []);
}

#[tokio::test(start_paused = true)]
async fn t_c2_every_spelling_of_a_token_is_a_caller_of_its_own() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &[]);
    for token in ["a", "A", "a ", " a", "a\tb"] {
        app.caller(token).search("mail").await;
    }
    assert_eq!(upstream.listed().len(), 5);
    app.caller("a").search("mail").await;
    assert_eq!(upstream.listed().len(), 5);
}

/// Each of twenty callers has one tool of their own, and every listing lives for a millisecond only, so that
/// listings, calls and searches of all of them are under way together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_c6_no_answer_crosses_between_callers_in_two_hundred_parallel_requests() {
    let server = FakeMcp::scripted(Style::Modern, &[], |request| {
        let own = writer(
            &format!("vault__{}", request.token()),
            &format!("Opens the vault of {}", request.token()),
        );
        (request.method() == "tools/list").then(|| {
            crate::support::Reply::result(request, &format!(r#"{{"resultType":"complete","tools":[{own}]}}"#))
        })
    })
    .await;
    let app = TestApp::at(&server.url(), &["--catalog-ttl", "1ms", "--catalog-max-stale", "1ms"]);
    let requests: Vec<_> = (0..200_usize)
        .map(|i| {
            let name = format!("caller{:02}x", i % 20);
            let (caller, tool) = (app.caller(&name), format!("vault__{name}"));
            tokio::spawn(async move {
                let text = match i / 20 % 4 {
                    0 => caller.tool("search_tools", r#"{"query":"open the vault"}"#).await.text().to_owned(),
                    1 => caller.describe(&[&tool]).await,
                    2 => caller.modern().call_write(&tool, "{}").await.text().to_owned(),
                    _ => {
                        caller.call_read(&format!("vault__caller{:02}x", (i + 1) % 20), "{}").await.refusal()
                    }
                };
                (i, name, text)
            })
        })
        .collect();
    for request in requests {
        let (i, name, text) = request.await.unwrap();
        let is_about_others =
            (0..20).map(|j| format!("caller{j:02}x")).any(|other| other != name && text.contains(&other));
        assert!(text.contains(&name) && !is_about_others, "{i} {name}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn t_c12_refused_credentials_on_a_listing_evict_at_once() {
    for status in [401, 403] {
        let (upstream, app) = app_with_old_tools().await;
        upstream.answers_listing("alice", Err(challenge(status)));
        advance(FRESH).await;
        assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
        app.settle().await;
        assert_eq!(app.catalogs().stats().callers, 0);
        let answer = app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test(start_paused = true)]
async fn t_c12_refused_credentials_on_a_call_evict_at_once_and_other_failures_do_not() {
    for (failure, callers) in [
        (challenge(401), 0),
        (challenge(403), 0),
        (UpstreamError::Status(500), 1),
        (UpstreamError::Unreachable, 1),
        (rpc_failure(-32603, "no"), 1),
    ] {
        let (upstream, app) = app_with_old_tools().await;
        let name = failure.kind();
        upstream.answers("mail__old", Err(failure));
        app.caller("alice").call_read("mail__old", "{}").await;
        assert_eq!(app.catalogs().stats().callers, callers, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn t_c14_a_listing_that_began_before_an_eviction_does_not_publish_after_it() {
    let (upstream, app) = app_with_old_tools().await;
    advance(FRESH).await;
    upstream.hold_listings(true);
    app.caller("alice").search("mail").await;
    upstream.listings_begun(2).await;
    upstream.answers("mail__old", Err(challenge(401)));
    assert_eq!(app.caller("alice").call_read("mail__old", "{}").await.status, 401);
    upstream.hold_listings(false);
    app.settle().await;
    assert_eq!(app.catalogs().stats().callers, 0);
    upstream.answers_listing("alice", Err(challenge(401)));
    assert_eq!(app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_failed_refresh_keeps_the_stale_listing_till_its_end() {
    let (upstream, app) = app_with_old_tools().await;
    upstream.answers_listing("alice", Err(UpstreamError::Status(503)));
    advance(FRESH).await;
    for _ in 0..2 {
        assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
        app.settle().await;
    }
    advance(STALE - TICK).await;
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    app.settle().await;
    advance(TICK).await;
    let refusal = app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await.refusal();
    assert!(refusal.contains("HTTP 503"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn t_c16_errors_are_not_kept() {
    let upstream = FakeUpstream::new().answers_listing("alice", Err(UpstreamError::Cut));
    let app = TestApp::over(&upstream, &[]);
    assert!(app.caller("alice").tool("search_tools", r#"{"query":"mail"}"#).await.is_error());
    upstream.lists("alice", &old());
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
}

#[tokio::test(start_paused = true)]
async fn t_c4_anonymous_callers_are_listed_each_time_and_never_joined_or_kept() {
    let upstream = FakeUpstream::new().lists("", &old());
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_listings(true);
    let searches: Vec<_> = (0..3)
        .map(|_| {
            let caller = app.anonymous();
            tokio::spawn(async move { caller.search("mail").await })
        })
        .collect();
    upstream.listings_begun(3).await;
    upstream.hold_listings(false);
    for search in searches {
        assert_eq!(search.await.unwrap(), ["mail__old"]);
    }
    app.anonymous().search("mail").await;
    assert_eq!(upstream.listed(), ["", "", "", ""]);
    assert_eq!(app.catalogs().stats().callers, 0);
}

#[tokio::test(start_paused = true)]
async fn f5_m10_waiters_that_hang_up_leave_the_listing_to_the_others() {
    let upstream = FakeUpstream::new().lists("alice", &old());
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_listings(true);
    let mut searches: Vec<_> = (0..3)
        .map(|_| {
            let alice = app.caller("alice").modern();
            tokio::spawn(async move { alice.search("mail").await })
        })
        .collect();
    until("three misses", || app.catalogs().stats().misses == 3).await;
    for search in searches.drain(..2) {
        search.abort();
        assert!(search.await.unwrap_err().is_cancelled());
    }
    upstream.hold_listings(false);
    assert_eq!(searches.pop().unwrap().await.unwrap(), ["mail__old"]);
    assert_eq!((upstream.listed().len(), upstream.drops().0), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn m10_when_all_waiters_hang_up_the_listing_is_dropped() {
    let upstream = FakeUpstream::new().lists("alice", &old());
    let app = TestApp::over(&upstream, &[]);
    upstream.hold_listings(true);
    let searches: Vec<_> = (0..2)
        .map(|_| {
            let alice = app.caller("alice").modern();
            tokio::spawn(async move { alice.search("mail").await })
        })
        .collect();
    until("two misses", || app.catalogs().stats().misses == 2).await;
    upstream.listings_begun(1).await;
    for search in searches {
        search.abort();
    }
    upstream.listings_dropped(1).await;
    upstream.hold_listings(false);
    assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
    assert_eq!(upstream.listed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_upstream_finds_invalid_makes_it_list_again_but_not_right_after_a_listing() {
    for (code, waits_secs, listings) in [(-32602, 5, 2), (-32020, 5, 2), (-32602, 4, 1), (-32603, 5, 1)] {
        let (upstream, app) = app_with_old_tools().await;
        upstream.answers("mail__old", Err(rpc_failure(code, "Unknown tool: mail__old")));
        advance(Duration::from_secs(waits_secs)).await;
        app.caller("alice").call_read("mail__old", "{}").await;
        app.settle().await;
        assert_eq!(upstream.listed().len(), listings, "{code} after {waits_secs} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_the_listing_lacks_makes_it_list_again_after_a_minute() {
    for (calls, describes) in [(true, false), (false, true), (true, true)] {
        for (waits_secs, listings) in [(59, 1), (60, 2)] {
            let (upstream, app) = app_with_old_tools().await;
            advance(Duration::from_secs(waits_secs)).await;
            upstream.lists("alice", &new());
            let alice = app.caller("alice");
            if calls {
                assert!(alice.call_read("mail__new", "{}").await.is_error());
                app.settle().await;
            }
            if describes {
                alice.describe_answer(&["nothing_like_it"]).await;
                app.settle().await;
            }
            let listed = upstream.listed().len();
            assert_eq!(listed, listings, "after {waits_secs} s, calls: {calls}, describes: {describes}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_callers_is_bounded_and_the_least_recently_used_goes() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &["--max-callers", "2"]);
    for caller in ["alice", "bob", "alice", "carol"] {
        app.caller(caller).search("mail").await;
    }
    assert_eq!(app.catalogs().stats().callers, 2);
    app.caller("alice").search("mail").await;
    assert_eq!(upstream.listed(), ["alice", "bob", "carol"]);
    app.caller("bob").search("mail").await;
    assert_eq!(upstream.listed(), ["alice", "bob", "carol", "bob"]);
}

#[tokio::test(start_paused = true)]
async fn t_x12_a_listing_over_the_memory_budget_is_answered_and_not_mixed_up() {
    let upstream = FakeUpstream::new().lists("alice", &old()).lists("bob", &new());
    let app = TestApp::over(&upstream, &["--catalog-cache-bytes", "1"]);
    for _ in 0..2 {
        assert_eq!(app.caller("alice").search("mail").await, ["mail__old"]);
        assert_eq!(app.caller("bob").search("mail").await, ["mail__new"]);
    }
    assert_eq!(upstream.listed().len(), 4);
}

/// A token that says when it ends.
fn token_that_lives(time: Duration) -> String {
    let end = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + time;
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{}}}"#, end.as_secs_f64()));
    format!("h.{claims}.s")
}

#[tokio::test(start_paused = true)]
async fn f3_t_c13_a_token_s_own_expiry_ends_its_listing_sooner() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &[]);
    let short = app.caller(&token_that_lives(Duration::from_secs(100)));
    let long = app.caller(&token_that_lives(Duration::from_secs(100_000)));
    let over = app.caller(&token_that_lives(Duration::ZERO));
    for (listings, waits_secs) in [(3, 95), (4, 10), (6, 435)] {
        for caller in [&short, &long, &over] {
            caller.search("mail").await;
        }
        assert_eq!(upstream.listed().len(), listings);
        advance(Duration::from_secs(waits_secs)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f5_an_idle_caller_is_forgotten_with_the_catalogue_and_an_active_one_is_not() {
    let upstream = FakeUpstream::new().lists("alice", &old()).lists("bob", &new());
    let app = TestApp::over(&upstream, &["--catalog-idle", "20m"]);
    let (alice, bob) = (app.caller("alice"), app.caller("bob"));
    alice.search("mail").await;
    for _ in 0..5 {
        bob.search("mail").await;
        advance(Duration::from_secs(300) - TICK).await;
        app.catalogs().forget_idle();
    }
    assert_eq!(app.catalogs().stats().callers, 1);
    app.settle().await;
    let listings = upstream.listed().len();
    alice.search("mail").await;
    assert_eq!(upstream.listed().len(), listings + 1);
}

#[tokio::test(start_paused = true)]
async fn t_x14_listings_wait_for_their_turn_and_not_for_ever() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &["--max-listings", "2", "--list-timeout", "30s"]);
    upstream.hold_listings(true);
    let search = |name: &str| {
        let caller = app.caller(name);
        tokio::spawn(async move { caller.tool("search_tools", r#"{"query":"mail"}"#).await })
    };
    let searches: Vec<_> = (0..5).map(|i| search(&format!("caller{i}"))).collect();
    until("five misses", || app.catalogs().stats().misses == 5).await;
    upstream.listings_begun(2).await;
    advance(Duration::from_secs(29)).await;
    assert_eq!(upstream.listed().len(), 2);
    upstream.hold_listings(false);
    for search in searches {
        assert!(!search.await.unwrap().is_error());
    }
    assert_eq!(upstream.listed().len(), 5);

    upstream.hold_listings(true);
    let held = ["x", "y"].map(search);
    upstream.listings_begun(7).await;
    let refusal = search("z").await.unwrap().refusal();
    assert!(refusal.contains("too many tool listings"), "{refusal}");
    upstream.hold_listings(false);
    for held in held {
        held.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn t_x13_tokens_that_the_upstream_refuses_push_nobody_out() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &["--max-callers", "100"]);
    let honest: Vec<String> = (0..100).map(|i| format!("honest{i}")).collect();
    for name in &honest {
        upstream.lists(name, &old());
        app.caller(name).search("mail").await;
    }
    let listings = upstream.listed().len();
    for i in 0..2_000 {
        let name = format!("junk{i}");
        upstream.answers_listing(&name, Err(challenge(401)));
        assert_eq!(app.caller(&name).tool("search_tools", r#"{"query":"mail"}"#).await.status, 401);
        app.caller(&honest[i % 100]).search("mail").await;
    }
    assert_eq!(upstream.listed().len(), listings + 2_000);
}
