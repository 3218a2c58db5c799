//! Listings of several pages, and the limits of a listing.

use crate::support::{FakeMcp, Recorded, Reply, Style, TestApp, reader};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server whose listing has these pages: what is in `tools`, and what follows it in the result.
async fn paged(style: Style, pages: Vec<(String, String)>) -> FakeMcp {
    FakeMcp::scripted(style, &[], move |request| {
        if request.method() != "tools/list" {
            return None;
        }
        let page = match request.json()["params"].get("cursor") {
            None => 0,
            Some(cursor) => cursor.as_str().unwrap().trim_start_matches("page ").parse().unwrap_or(1),
        };
        let (tools, more) = &pages[page];
        Some(Reply::result(request, &format!(r#"{{"tools":[{tools}]{more}}}"#)))
    })
    .await
}

fn page(i: usize, next: Option<&str>) -> (String, String) {
    let tools = reader(&format!("page{i}__report"), "Gives a report");
    (tools, next.map_or(String::new(), |next| format!(r#","nextCursor":"{next}""#)))
}

async fn listed(app: &TestApp) -> Vec<String> {
    let mut names = app.caller("alice").search("report").await;
    names.sort();
    names
}

async fn refusal(app: &TestApp) -> String {
    app.caller("alice").tool("search_tools", r#"{"query":"report"}"#).await.refusal()
}

#[tokio::test]
async fn all_pages_are_listed_with_their_cursors_as_given() {
    for style in [Style::Modern, Style::Legacy] {
        let pages = vec![page(0, Some("page 1")), page(1, Some("page 2")), page(2, None)];
        let server = paged(style, pages).await;
        let app = TestApp::at(&server.url(), &[]);
        assert_eq!(listed(&app).await, ["page0__report", "page1__report", "page2__report"]);
        let requests = server.requests("tools/list");
        let cursors: Vec<String> =
            requests.iter().map(|request| request.json()["params"]["cursor"].to_string()).collect();
        assert_eq!(cursors, ["null", "\"page 1\"", "\"page 2\""]);
        assert!(requests[0].json()["params"].get("cursor").is_none());
    }
}

#[tokio::test]
async fn c9_f13_an_empty_cursor_is_a_cursor() {
    let server = paged(Style::Modern, vec![page(0, Some("")), page(1, None)]).await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(listed(&app).await, ["page0__report", "page1__report"]);
    assert_eq!(server.requests("tools/list")[1].json()["params"]["cursor"], "");
}

#[tokio::test]
async fn c9_a_cursor_that_is_valid_no_longer_starts_the_listing_anew_once() {
    for (refused, pages, listed_names) in [(1, 4, Some(["page0__report", "page1__report"])), (2, 4, None)] {
        let left = AtomicUsize::new(refused);
        let pages_of = [page(0, Some("page 1")), page(1, None)];
        let server = FakeMcp::scripted(Style::Modern, &[], move |request| {
            if request.method() != "tools/list" {
                return None;
            }
            let goes_on = request.json()["params"].get("cursor").is_some();
            let is_refused = goes_on
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if is_refused {
                return Some(Reply::error(request, 200, -32602, ""));
            }
            let (tools, more) = &pages_of[usize::from(goes_on)];
            Some(Reply::result(request, &format!(r#"{{"tools":[{tools}]{more}}}"#)))
        })
        .await;
        let app = TestApp::at(&server.url(), &[]);
        match listed_names {
            Some(names) => assert_eq!(listed(&app).await, names),
            None => assert!(refusal(&app).await.contains("-32602")),
        }
        assert_eq!(server.requests("tools/list").len(), pages);
    }
}

#[tokio::test]
async fn a_null_cursor_is_the_end() {
    let pages = vec![(reader("page0__report", "Gives a report"), r#","nextCursor":null"#.to_owned())];
    let app = TestApp::at(&paged(Style::Modern, pages).await.url(), &[]);
    assert_eq!(listed(&app).await, ["page0__report"]);
}

#[tokio::test]
async fn f13_t_x1_a_cursor_that_comes_again_ends_the_listing_with_an_error() {
    for pages in [
        vec![page(0, Some("page 0"))],
        vec![page(0, Some("page 1")), page(1, Some("page 2")), page(2, Some("page 1"))],
    ] {
        let count = pages.len();
        let server = paged(Style::Modern, pages).await;
        let app = TestApp::at(&server.url(), &[]);
        let refusal = refusal(&app).await;
        assert!(refusal.contains("repeats a cursor"), "{refusal}");
        assert!(server.requests("tools/list").len() <= count + 1);
    }
}

#[tokio::test]
async fn t_x1_pages_are_limited_at_the_limit_and_one_past_it() {
    let pages = || vec![page(0, Some("page 1")), page(1, Some("page 2")), page(2, None)];
    let at = paged(Style::Modern, pages()).await;
    assert_eq!(listed(&TestApp::at(&at.url(), &["--max-pages", "3"])).await.len(), 3);
    let past = paged(Style::Modern, pages()).await;
    let refusal = refusal(&TestApp::at(&past.url(), &["--max-pages", "2"])).await;
    assert!(refusal.contains("more pages than --max-pages allows"), "{refusal}");
    assert_eq!(past.requests("tools/list").len(), 2);
}

#[tokio::test]
async fn t_x1_tools_are_limited_at_the_limit_and_one_past_it() {
    let tools: Vec<String> = (0..3).map(|i| reader(&format!("report{i}"), "Gives a report")).collect();
    let server = FakeMcp::start(Style::Modern, &tools).await;
    assert_eq!(listed(&TestApp::at(&server.url(), &["--max-tools", "3"])).await.len(), 3);
    let refusal = refusal(&TestApp::at(&server.url(), &["--max-tools", "2"])).await;
    assert!(refusal.contains("more tools than --max-tools allows"), "{refusal}");
}

#[tokio::test]
async fn t_x1_the_bytes_of_all_pages_are_limited() {
    // Each page is alone within the limit, and both together are not.
    let filler = format!(r#","_meta":{{"filler":"{}"}}"#, "x".repeat(10_000));
    let pages = || {
        let mut pages = vec![page(0, Some("page 1")), page(1, None)];
        pages.iter_mut().for_each(|page| page.1.push_str(&filler));
        pages
    };
    let server = paged(Style::Modern, pages()).await;
    assert_eq!(listed(&TestApp::at(&server.url(), &["--max-listing-bytes", "21000"])).await.len(), 2);
    let refusal = refusal(&TestApp::at(&server.url(), &["--max-listing-bytes", "20000"])).await;
    assert!(refusal.contains("larger than 20000 bytes"), "{refusal}");
}

#[tokio::test]
async fn f13_a_listing_that_fails_half_way_is_not_kept() {
    let script = |request: &Recorded| {
        let is_second = request.json()["params"].get("cursor").is_some();
        (request.method() == "tools/list" && is_second).then(|| Reply::http(500, "", ""))
    };
    let first = reader("page0__report", "Gives a report");
    let server = FakeMcp::scripted(Style::Modern, &[], move |request| {
        let page = || Reply::result(request, &format!(r#"{{"tools":[{first}],"nextCursor":"1"}}"#));
        script(request).or_else(|| (request.method() == "tools/list").then(page))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    assert!(refusal(&app).await.contains("HTTP 500"));
    assert_eq!(app.catalogs().stats().callers, 0);
}

#[tokio::test]
async fn a_listing_that_is_none_is_told() {
    for result in ["{}", r#"{"tools":{}}"#, r#"{"tools":null}"#, "[]", "7", "null"] {
        let server = FakeMcp::scripted(Style::Modern, &[], move |request| {
            (request.method() == "tools/list").then(|| Reply::result(request, result))
        })
        .await;
        let refusal = refusal(&TestApp::at(&server.url(), &[])).await;
        assert!(refusal.contains("not valid MCP"), "{result}: {refusal}");
    }
}
