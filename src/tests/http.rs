//! HTTP in: what is taken, what is turned away and how, in both eras.

use crate::support::{Answer, FakeUpstream, TestApp, reader};
use axum::body::Body;
use http::Request;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn app() -> TestApp {
    app_with(&[])
}

fn app_with(flags: &[&str]) -> TestApp {
    TestApp::over(&FakeUpstream::new(), flags)
}

async fn post(headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    app().anonymous().post(headers, body).await
}

/// Status, JSON-RPC code, and whether there is an id.
fn gist(answer: &Answer) -> (u16, Option<i64>, bool) {
    (answer.status, answer.code(), answer.id().is_some())
}

#[tokio::test]
async fn m5_what_is_no_json_is_refused_without_an_id() {
    let deep = "[".repeat(200_000);
    for body in [
        "",
        " ",
        "hello",
        "{",
        "{}}",
        "{\"jsonrpc\":\"2.0\",}",
        "\u{feff}{}",
        "{} {}",
        "'x'",
        "NaN",
        "{\"a\":\u{1}}",
        &deep,
    ] {
        let answer = post(&[], body.to_owned()).await;
        assert_eq!(gist(&answer), (400, Some(-32700), false), "{}", &body[..body.len().min(20)]);
        assert!(!answer.text().contains("hello"), "{}", answer.text());
    }
    for bytes in [&b"{\"a\":\"\xff\"}"[..], b"\xff\xfe{\0}\0", b"\0"] {
        assert_eq!(gist(&post(&[], bytes).await), (400, Some(-32700), false), "{bytes:?}");
    }
}

#[tokio::test]
async fn m5_what_is_no_message_is_refused_without_an_id() {
    for body in [
        "1",
        "null",
        "\"tools/list\"",
        "true",
        "{}",
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list"}"#,
    ] {
        assert_eq!(gist(&post(&[], body).await), (400, Some(-32600), false), "{body}");
    }
}

#[tokio::test]
async fn m12_a_readable_id_of_what_is_no_request_is_named() {
    for body in [
        r#"{"id":"abc","method":"tools/list"}"#,
        r#"{"jsonrpc":"1.0","id":"abc","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":"ping","error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":"ping","params":null}"#,
        r#"{"jsonrpc":2.0,"id":"abc","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":"abc"}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":7}"#,
        r#"{"jsonrpc":"2.0","id":"abc","method":null}"#,
    ] {
        let answer = post(&[], body).await;
        assert_eq!(gist(&answer), (400, Some(-32600), true), "{body}");
        assert_eq!(answer.id(), Some("\"abc\""), "{body}");
    }
}

#[tokio::test]
async fn t_r9_a_key_that_comes_twice_is_refused_wherever_it_stands() {
    for arguments in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","n\u0061me":"b"}"#,
        r#"{"name":"a","arguments":{"x":[{"y":1,"y":2}]}}"#,
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_write_tool","arguments":{arguments}}}}}"#
        );
        assert_eq!(gist(&post(&[], body).await), (400, Some(-32600), false), "{arguments}");
    }
}

#[tokio::test]
async fn t_r9_what_readers_disagree_about_is_refused_or_crosses_as_it_came() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("ask", "Asks")]);
    let app = TestApp::over(&upstream, &[]);
    let call = async |arguments: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_read_tool","arguments":{{"name":"ask","arguments":{arguments}}}}}}}"#
        );
        app.caller("alice").post(&[], body).await
    };
    for refused in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"__proto__":1,"__proto__":2}"#,
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":0x1}",
        "{'a':1}",
        "{a:1}",
        "{\"a\":1,}",
        "{\"a\":[1,]}",
        "{\"a\":1} {}",
        "{\"a\":1}\0",
        "\u{feff}{}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x41\"}",
        "{\"a\":/**/1}",
        "{\"a\":undefined}",
        "{\"a\":1\u{a0}}",
    ] {
        let answer = call(refused).await;
        assert!(answer.status == 400 && answer.code().is_some(), "{refused}: {}", answer.text());
    }
    assert!(upstream.called().is_empty());
    let crossing = [
        r#"{"__proto__":{"a":1},"constructor":null}"#,
        r#"{"a":1e400,"b":-0,"c":0.1000000000000000055511151231257827,"d":18446744073709551616,"e":7e242}"#,
        r#"{"a":"\ud800","b":"\u0000","c":"\/","d":"\u00e9é"}"#,
        r#"{"A":1,"a":2,"a ":3}"#,
        "{ \"a\" :\t[ 1 ,\r\n2 ] }",
    ];
    for (i, arguments) in crossing.into_iter().enumerate() {
        let answer = call(arguments).await;
        assert!(!answer.is_error(), "{arguments}: {}", answer.text());
        assert_eq!(upstream.called()[i].arguments, arguments);
    }
}

#[tokio::test]
async fn t_x5_a_body_nests_64_levels_and_not_65() {
    // The message itself is one level, its params are another.
    for (arrays, expected) in [(62, 200), (63, 400)] {
        let params = format!(r#"{{"x":{}{}}}"#, "[".repeat(arrays), "]".repeat(arrays));
        let answer =
            post(&[], format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#)).await;
        assert_eq!(answer.status, expected, "{arrays}");
    }
}

#[tokio::test]
async fn m12_every_kind_of_id_comes_back_byte_for_byte() {
    for id in ["1", "0", "-7", "123456789012345678901234567890", "\"\"", "\"a b\"", "\"\\u0061\\/\"", "\"ž\""]
    {
        let legacy = post(&[], format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        assert_eq!(legacy.id(), Some(id));
        let unknown = post(&[], format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"nope"}}"#)).await;
        assert_eq!((unknown.status, unknown.code(), unknown.id()), (200, Some(-32601), Some(id)));
        let modern = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{META}}}}}"#);
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
        assert_eq!(post(&headers, modern).await.id(), Some(id));
    }
}

#[tokio::test]
async fn l3_m8_notifications_are_taken_with_202_and_no_body() {
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/nope", "tools/list"]
    {
        for headers in [
            &[][..],
            &[("mcp-protocol-version", "2025-11-25")][..],
            &[("mcp-protocol-version", "2026-07-28")][..],
        ] {
            let answer = post(headers, format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)).await;
            assert_eq!((answer.status, answer.text()), (202, ""), "{method}");
        }
    }
}

#[tokio::test]
async fn l4_m5_a_response_is_dropped_when_legacy_and_refused_when_modern() {
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
    ] {
        for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let answer = post(&[("mcp-protocol-version", version)], body).await;
            assert_eq!((answer.status, answer.text()), (202, ""), "{version}");
        }
        let modern = post(&[("mcp-protocol-version", "2026-07-28")], body).await;
        assert_eq!(gist(&modern), (400, Some(-32600), false));
    }
}

#[tokio::test]
async fn m11_l14_unknown_methods_are_404_when_modern_and_200_when_legacy() {
    let app = app();
    for method in ["nope", "resources/list", "logging/setLevel", "TOOLS/LIST", "tools/list "] {
        let legacy = app.anonymous().version("2025-11-25").rpc(method, "{}").await;
        assert_eq!(gist(&legacy), (200, Some(-32601), true), "{method}");
    }
    for method in
        ["nope", "ping", "initialize", "resources/subscribe", "subscriptions/listen", "prompts/list"]
    {
        let modern = app.anonymous().modern().rpc(method, "{}").await;
        assert_eq!(gist(&modern), (404, Some(-32601), true), "{method}");
    }
    assert_eq!(gist(&app.anonymous().rpc("server/discover", "{}").await), (200, Some(-32601), true));
}

#[tokio::test]
async fn l8_ping_is_answered_in_every_legacy_version() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(app().anonymous().version(version).rpc("ping", "{}").await.result(), "{}");
    }
}

#[tokio::test]
async fn m14_m22_m26_d_modern_claims_are_checked_against_their_headers() {
    let modern = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/list");
    for (headers, body, expected) in [
        (&[version, method][..], modern.clone(), (200, None)),
        (&[version], modern.clone(), (400, Some(-32020))),
        (&[method], modern.clone(), (400, Some(-32020))),
        (&[version, method, method], modern.clone(), (400, Some(-32020))),
        (&[("mcp-protocol-version", "2025-11-25"), method], modern.clone(), (400, Some(-32020))),
        (&[version, ("mcp-method", "TOOLS/LIST")], modern.clone(), (400, Some(-32020))),
        (&[version, method], LIST.to_owned(), (400, Some(-32602))),
        (&[version, method], modern.replace("Capabilities\":{}", "Capabilities\":[]"), (400, Some(-32602))),
        (&[("mcp-protocol-version", "1999-01-01")], LIST.to_owned(), (400, Some(-32022))),
        (
            &[("mcp-protocol-version", "2031-01-01"), method],
            modern.replace("2026-07-28", "2031-01-01"),
            (400, Some(-32022)),
        ),
    ] {
        let answer = post(headers, body).await;
        assert_eq!((answer.status, answer.code()), expected, "{headers:?}: {}", answer.text());
        assert_eq!(answer.id(), Some("1"));
    }
    let unsupported = post(&[("mcp-protocol-version", "1999-01-01")], LIST).await.json();
    assert_eq!(unsupported["error"]["data"]["requested"], "1999-01-01");
    assert_eq!(unsupported["error"]["data"]["supported"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn l2_d3_a_handshake_gets_the_version_it_asks_for_or_the_latest_with_a_handshake() {
    let app = app();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let answer = app.anonymous().rpc("initialize", &format!(r#"{{"protocolVersion":"{asked}"}}"#)).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], given, "{asked}");
    }
    for params in ["{}", r#"{"protocolVersion":7}"#] {
        assert_eq!(
            gist(&app.anonymous().rpc("initialize", params).await),
            (200, Some(-32602), true),
            "{params}"
        );
    }
    let handshake =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    assert_eq!(
        gist(&post(&[("mcp-protocol-version", "2026-07-28")], handshake).await),
        (400, Some(-32020), true)
    );
}

#[tokio::test]
async fn m2_l5_sessions_are_neither_given_nor_asked_for() {
    let app = app();
    let session = [("mcp-session-id", "made-up"), ("last-event-id", "7")];
    let answer = app.anonymous().post(&session, LIST).await;
    assert_eq!((answer.status, answer.values("mcp-session-id").len()), (200, 0));
    let handshake = app.anonymous().rpc("initialize", r#"{"protocolVersion":"2025-06-18"}"#).await;
    assert_eq!((handshake.status, handshake.values("mcp-session-id").len()), (200, 0));
}

#[tokio::test]
async fn m32_a_cursor_that_was_never_given_is_refused() {
    for client in [app().anonymous(), app().anonymous().modern()] {
        for cursor in [r#""2""#, r#""""#, "7"] {
            let answer = client.rpc("tools/list", &format!(r#"{{"cursor":{cursor}}}"#)).await;
            assert_eq!(gist(&answer), (200, Some(-32602), true), "{cursor}");
        }
        assert_eq!(client.rpc("tools/list", r#"{"cursor":null}"#).await.status, 200);
    }
}

#[tokio::test]
async fn m15_l9_one_connection_may_mix_versions_since_each_request_speaks_for_itself() {
    let app = app();
    for _ in 0..2 {
        let modern = app.caller("alice").modern().rpc("tools/list", "{}").await;
        let legacy = app.caller("alice").version("2024-11-05").rpc("tools/list", "{}").await;
        assert!(modern.result().contains("resultType") && !legacy.result().contains("resultType"));
    }
}

#[tokio::test]
async fn m1_l6_l7_t_h8_other_http_methods_are_405_and_say_what_is_allowed() {
    let app = app();
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
        for path in ["/mcp/search", "/mcp", "/"] {
            let request = Request::builder().method(method).uri(path).header("host", "localhost");
            let answer = app.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!((answer.status, answer.values("allow")), (405, vec!["POST"]), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn t_h8_all_three_paths_serve_and_any_other_is_404_without_a_body() {
    let app = app();
    let at = |path: &str| {
        let request =
            Request::post(path).header("host", "localhost").header("content-type", "application/json");
        app.send(request.body(Body::from(LIST)).unwrap())
    };
    for path in ["/mcp/search", "/mcp", "/", "/mcp?x=1"] {
        assert_eq!(at(path).await.status, 200, "{path}");
    }
    for path in ["/mcp/", "/mcp/all", "/sse", "/metrics"] {
        let answer = at(path).await;
        assert_eq!((answer.status, answer.text()), (404, ""), "{path}");
    }
}

/// Posts a list request with exactly these headers and a host.
async fn status_with(headers: &[(&str, &str)]) -> u16 {
    let mut request = Request::post("/mcp").header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app().send(request.body(Body::from(LIST)).unwrap()).await.status
}

#[tokio::test]
async fn m6_t_h9_media_types_are_checked_where_they_say_no() {
    let json = ("content-type", "application/json");
    for content_type in ["application/json", "Application/JSON; charset=utf-8", "application/json;x=y"] {
        assert_eq!(status_with(&[("content-type", content_type)]).await, 200, "{content_type}");
    }
    for content_type in [
        "text/plain",
        "application/json-rpc",
        "application/x-www-form-urlencoded",
        "",
        "text/plain;,application/json",
        "application/json, text/plain",
    ] {
        assert_eq!(status_with(&[("content-type", content_type)]).await, 415, "{content_type}");
    }
    assert_eq!(status_with(&[]).await, 415);
    assert_eq!(status_with(&[json, json]).await, 415);
    for accept in [
        "*/*",
        "application/json",
        "text/event-stream",
        "application/json, text/event-stream",
        "text/html, */*;q=0.1",
        "APPLICATION/*",
    ] {
        assert_eq!(status_with(&[json, ("accept", accept)]).await, 200, "{accept}");
    }
    for accept in ["text/html", "image/png", "application/xml;q=1", "*/*;q=0", "application/json; q=0.000"] {
        assert_eq!(status_with(&[json, ("accept", accept)]).await, 406, "{accept}");
    }
    assert_eq!(status_with(&[json, ("content-encoding", "identity")]).await, 200);
    for encoding in ["gzip", "br", "gzip, identity"] {
        assert_eq!(status_with(&[json, ("content-encoding", encoding)]).await, 415, "{encoding}");
    }
}

#[tokio::test]
async fn t_c3_credentials_are_taken_from_one_header_with_one_value() {
    let upstream = FakeUpstream::new();
    let app = TestApp::over(&upstream, &[]);
    let search = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}}"#;
    for headers in [
        &[("authorization", "Bearer a"), ("authorization", "Bearer b")][..],
        &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
        &[("authorization", "Bearer a, Bearer b")],
    ] {
        assert_eq!(app.anonymous().post(headers, search).await.status, 400, "{headers:?}");
    }
    let in_query = Request::post("/mcp?x=1&access_token=a")
        .header("host", "localhost")
        .header("content-type", "application/json");
    assert_eq!(app.send(in_query.body(Body::from(search)).unwrap()).await.status, 400);
    assert_eq!(upstream.listed().len(), 0);
}

#[tokio::test]
async fn m3_l10_hosts_and_origins_of_web_pages_are_turned_away() {
    async fn status(app: &TestApp, host: &str, origin: Option<&str>) -> u16 {
        let mut request =
            Request::post("/mcp").header("host", host).header("content-type", "application/json");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        app.send(request.body(Body::from(LIST)).unwrap()).await.status
    }
    let local = app();
    for (host, origin, expected) in [
        ("127.0.0.1:8080", None, 200),
        ("localhost", Some("http://localhost:3000"), 200),
        ("evil.example.com", None, 403),
        ("evil.example.com", Some("http://evil.example.com"), 403),
        ("localhost", Some("http://evil.example.com"), 403),
        ("localhost", Some("null"), 403),
    ] {
        assert_eq!(status(&local, host, origin).await, expected, "{host} {origin:?}");
    }
    let public = app_with(&[
        "--listen",
        "0.0.0.0:8080",
        "--allowed-hosts",
        "mcp.example",
        "--allowed-origins",
        "https://app.example",
    ]);
    for (host, origin, expected) in [
        ("mcp.example:443", None, 200),
        ("mcp.example", Some("https://app.example"), 200),
        ("mcp.example", Some("http://localhost"), 403),
        ("other.example", None, 403),
    ] {
        assert_eq!(status(&public, host, origin).await, expected, "{host} {origin:?}");
    }
}
