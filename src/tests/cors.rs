//! Web pages of listed origins can use the server; no other page is told anything.

use crate::support::{Answer, FakeMcp, Reply, Style, TestApp};
use axum::body::Body;
use http::Request;

const PAGE: &str = "https://inspector.example";
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// An upstream that asks for a login.
async fn guarded() -> FakeMcp {
    FakeMcp::scripted(Style::Modern, &[], |request| {
        Some(match request.verb.as_str() {
            "GET" => Reply::json(200, r#"{"resource":"x","authorization_servers":["https://as.example"]}"#),
            _ => Reply::http(401, "WWW-Authenticate: Bearer realm=\"x\"\r\n", ""),
        })
    })
    .await
}

async fn send(app: &TestApp, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if method == "POST" {
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}}"#
    } else {
        ""
    };
    app.send(request.header("content-type", "application/json").body(Body::from(body)).unwrap()).await
}

fn cors_headers(answer: &Answer) -> Vec<&str> {
    let names = answer.headers.keys().map(http::HeaderName::as_str);
    names.filter(|name| name.starts_with("access-control-")).collect()
}

#[tokio::test]
async fn m40_a_page_of_a_listed_origin_may_ask_and_read_the_challenge_and_the_metadata() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &["--allowed-origins", PAGE]);
    for (path, method) in [("/mcp/search", "POST"), ("/mcp", "POST"), ("/", "POST"), (METADATA, "GET")] {
        let asks = [
            ("origin", PAGE),
            ("access-control-request-method", method),
            ("access-control-request-headers", "authorization,content-type,mcp-protocol-version"),
        ];
        let permission = send(&app, "OPTIONS", path, &asks).await;
        assert_eq!((permission.status, permission.text()), (204, ""), "{path}");
        assert_eq!(permission.values("access-control-allow-origin"), [PAGE]);
        assert_eq!(permission.values("access-control-allow-methods"), [method]);
        let allowed = permission.values("access-control-allow-headers").concat();
        for name in ["authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"] {
            assert!(allowed.split(", ").any(|allowed| allowed == name), "{name}: {allowed}");
        }
        assert_eq!(permission.values("access-control-allow-credentials"), [""; 0]);
        assert_eq!(permission.values("vary"), ["origin"]);
    }
    let challenge = send(&app, "POST", "/mcp", &[("origin", PAGE), ("authorization", "Bearer alice")]).await;
    assert_eq!((challenge.status, challenge.values("access-control-allow-origin")), (401, vec![PAGE]));
    assert_eq!(challenge.values("access-control-expose-headers"), ["www-authenticate, retry-after"]);
    let metadata = send(&app, "GET", METADATA, &[("origin", PAGE)]).await;
    assert_eq!((metadata.status, metadata.values("access-control-allow-origin")), (200, vec![PAGE]));
}

#[tokio::test]
async fn t_h7_no_other_page_is_told_anything_and_without_a_list_none_is() {
    let server = guarded().await;
    let listed: &[&str] = &["--allowed-origins", PAGE];
    let asked = |origin: &'static str| [("origin", origin), ("access-control-request-method", "POST")];
    for (flags, origin, status) in [
        (listed, "https://evil.example", 403),
        (listed, "https://inspector.example.evil.example", 403),
        (listed, "null", 403),
        // Accepted on loopback, but not listed: such a page may send and may not read.
        (listed, "http://localhost:6274", 405),
        (&[], "http://localhost:6274", 405),
        (&[], PAGE, 403),
    ] {
        let app = TestApp::at(&server.url(), flags);
        let answer = send(&app, "OPTIONS", "/mcp", &asked(origin)).await;
        assert_eq!((answer.status, cors_headers(&answer)), (status, vec![]), "{flags:?} {origin}");
        for (method, path) in [("POST", "/mcp"), ("GET", METADATA)] {
            let answer = send(&app, method, path, &[("origin", origin)]).await;
            assert_eq!(cors_headers(&answer), [""; 0], "{flags:?} {origin} {path}");
        }
    }
}

#[tokio::test]
async fn t_h7_a_listed_origin_opens_neither_another_host_nor_another_path() {
    let server = guarded().await;
    let app = TestApp::at(&server.url(), &["--allowed-origins", PAGE]);
    let asks = [("origin", PAGE), ("access-control-request-method", "POST")];
    let answer = send(&app, "OPTIONS", "/elsewhere", &asks).await;
    assert_eq!((answer.status, cors_headers(&answer)), (404, vec![]));
    let answer = send(&app, "OPTIONS", "/.well-known/oauth-protected-resources", &asks).await;
    assert_eq!((answer.status, cors_headers(&answer)), (404, vec![]));
    let request = Request::options("/mcp").header("host", "evil.example").header("origin", PAGE);
    let answer =
        app.send(request.header("access-control-request-method", "POST").body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status, cors_headers(&answer)), (403, vec![]));
    // Without the question it is a method like any other.
    let answer = send(&app, "OPTIONS", "/mcp", &[("origin", PAGE)]).await;
    assert_eq!((answer.status, answer.values("allow")), (405, vec!["POST"]));
}
