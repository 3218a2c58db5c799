//! Login through the proxy: challenges lead to this server, and the metadata there names the URL that clients dial.

use crate::support::{Answer, FakeMcp, Reply, Style, TestApp};
use axum::body::Body;
use http::Request;

const DOCUMENT: &str = r#"{ "resource":"https://gateway.example/mcp/all","authorization_servers":["https://as.example"],"x":1e400}"#;

/// An upstream that asks for a login, with its metadata at a place of its own choice.
async fn guarded() -> FakeMcp {
    FakeMcp::scripted(Style::Modern, &[], |request| {
        Some(match (request.verb.as_str(), request.target.as_str()) {
            ("GET", "/metadata") => Reply::json(200, DOCUMENT),
            ("GET", _) => Reply::http(404, "", ""),
            _ => Reply::http(401, "WWW-Authenticate: Bearer resource_metadata=\"/metadata\"\r\n", ""),
        })
    })
    .await
}

async fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path).header("authorization", "Bearer canary");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request.body(Body::empty()).unwrap()).await
}

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp/search";
const LOCAL: [(&str, &str); 1] = [("host", "localhost:8080")];

#[tokio::test]
async fn m40_the_metadata_names_the_url_that_the_client_dials_and_is_fetched_without_credentials() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.status, 401);
    server.forget_log();
    let answer = get(&app, METADATA, &LOCAL).await;
    assert_eq!(answer.status, 200);
    let expected = r#"{"authorization_servers":["https://as.example"],"resource":"http://localhost:8080/mcp/search","x":1e400}"#;
    assert_eq!(answer.text(), expected);
    let requests = server.log();
    assert_eq!(requests[0].target, "/metadata");
    assert!(requests.iter().all(|request| request.header("authorization").is_none()), "{requests:?}");
}

#[tokio::test]
async fn m40_where_the_clients_url_is_not_known_no_metadata_is_served() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &["--listen", "0.0.0.0:8080"]);
    assert_eq!(get(&app, METADATA, &LOCAL).await.status, 404);
    assert_eq!(server.log().len(), 0);
    let app = TestApp::at(
        &server.url(),
        &["--listen", "0.0.0.0:8080", "--public-url", "https://gw.example/mcp/search"],
    );
    app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await;
    let answer = get(&app, METADATA, &[("host", "evil.example")]).await;
    assert!(answer.text().contains(r#""resource":"https://gw.example/mcp/search""#), "{}", answer.text());
}

#[tokio::test]
async fn m3_metadata_is_not_for_web_pages_of_others_either() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(get(&app, METADATA, &[("host", "evil.example")]).await.status, 403);
    let target = format!("http://evil.example{METADATA}");
    assert_eq!(get(&app, &target, &LOCAL).await.status, 403);
    let from_page = [("host", "localhost"), ("origin", "https://evil.example")];
    assert_eq!(get(&app, METADATA, &from_page).await.status, 403);
    assert_eq!(server.log().len(), 0);
}

#[tokio::test]
async fn an_upstream_without_metadata_or_with_nonsense_is_told_by_the_status() {
    for (status, body, expected) in
        [(404, "", 404), (403, "", 404), (500, "", 502), (200, "<html>", 502), (200, "[]", 502)]
    {
        let server =
            FakeMcp::scripted(Style::Modern, &[], move |_| Some(Reply::http(status, "", body))).await;
        let app = TestApp::at(&server.url(), &[]);
        let answer = get(&app, METADATA, &LOCAL).await;
        assert_eq!((answer.status, answer.text()), (expected, ""), "{status} {body}");
    }
}

#[tokio::test]
async fn m40_metadata_is_kept_for_a_moment_and_its_absence_too() {
    for (status, fetches) in [(200, 1), (404, 2)] {
        let server =
            FakeMcp::scripted(Style::Modern, &[], move |_| Some(Reply::json(status, DOCUMENT))).await;
        let app = TestApp::at(&server.url(), &[]);
        let asked = (0..20).map(|_| get(&app, METADATA, &LOCAL));
        for answer in futures_util::future::join_all(asked).await {
            assert_eq!(answer.status, status);
        }
        assert_eq!(server.log().len(), fetches, "{status}");
    }
}

#[tokio::test]
async fn m40_metadata_is_fetched_anew_after_each_challenge_since_it_may_have_changed() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(get(&app, METADATA, &LOCAL).await.status, 404);
    for fetches in 1..=3 {
        assert_eq!(app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.status, 401);
        assert_eq!(get(&app, METADATA, &LOCAL).await.status, 200);
        let fetched = server.log().iter().filter(|request| request.target == "/metadata").count();
        assert_eq!(fetched, fetches);
    }
}
