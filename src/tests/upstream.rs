//! What goes out to the upstream, and how its era is found out.

use crate::support::{FakeMcp, Recorded, Reply, Style, TestApp, discovery, reader, tool, until};
use serde_json::json;

const ALL: [Style; 4] = [Style::Modern, Style::ModernSse, Style::Legacy, Style::LegacySessions];

fn mail() -> Vec<String> {
    vec![reader("mail__search", "Searches mail")]
}

#[tokio::test]
async fn all_kinds_of_upstreams_are_listed_and_called() {
    for style in ALL {
        let server = FakeMcp::start(style, &mail()).await;
        let app = TestApp::at(&server.url(), &[]);
        assert_eq!(app.caller("alice").search("search mail").await, ["mail__search"], "{style:?}");
        let answer = app.caller("alice").call_read("mail__search", r#"{"q":1}"#).await;
        assert_eq!(answer.tool_text(), r#"alice called "mail__search" with {"q":1}"#);
        let methods = server.methods();
        let expected = match style {
            Style::Modern | Style::ModernSse => &["server/discover", "tools/list", "tools/call"][..],
            _ => &["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"],
        };
        assert_eq!(methods, expected, "{style:?}");
    }
}

/// What a probe is answered with, and what follows.
struct Probe {
    answer: fn(&Recorded) -> Reply,
    /// The methods of all requests.
    methods: &'static [&'static str],
    /// A part of the answer to a search.
    told: &'static str,
}

const MODERN: &[&str] = &["server/discover", "tools/list"];
const LEGACY: &[&str] = &["server/discover", "initialize", "notifications/initialized", "tools/list"];
const NOTHING: &[&str] = &["server/discover"];

const PROBES: &[Probe] = &[
    Probe {
        answer: |r| Reply::result(r, &discovery(&["2026-07-28", "2025-11-25"])),
        methods: MODERN,
        told: "mail__search",
    },
    Probe {
        answer: |r| Reply::error(r, 400, -32022, r#","data":{"supported":["2026-07-28"]}"#),
        methods: MODERN,
        told: "mail__search",
    },
    Probe {
        answer: |r| Reply::error(r, 400, -32022, r#","data":{"supported":["2025-06-18"]}"#),
        methods: LEGACY,
        told: "mail__search",
    },
    Probe {
        answer: |r| Reply::result(r, &discovery(&["2025-11-25"])),
        methods: LEGACY,
        told: "mail__search",
    },
    Probe { answer: |r| Reply::error(r, 200, -32601, ""), methods: LEGACY, told: "mail__search" },
    Probe { answer: |r| Reply::error(r, 404, -32601, ""), methods: LEGACY, told: "mail__search" },
    Probe { answer: |r| Reply::error(r, 400, -32000, ""), methods: LEGACY, told: "mail__search" },
    Probe {
        answer: |_| Reply::json(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#),
        methods: LEGACY,
        told: "mail__search",
    },
    Probe { answer: |_| Reply::http(400, "", ""), methods: LEGACY, told: "mail__search" },
    Probe {
        answer: |_| Reply::http(404, "Content-Type: text/html\r\n", "<html>"),
        methods: LEGACY,
        told: "mail__search",
    },
    Probe { answer: |_| Reply::http(405, "Allow: GET\r\n", ""), methods: LEGACY, told: "mail__search" },
    Probe {
        answer: |r| Reply::error(r, 400, -32022, r#","data":{"supported":["2031-01-01"]}"#),
        methods: NOTHING,
        told: "no protocol version",
    },
    Probe { answer: |r| Reply::error(r, 400, -32020, ""), methods: NOTHING, told: "JSON-RPC error -32020" },
    Probe { answer: |r| Reply::error(r, 400, -32021, ""), methods: NOTHING, told: "JSON-RPC error -32021" },
    Probe { answer: |r| Reply::error(r, 400, -32602, ""), methods: NOTHING, told: "JSON-RPC error -32602" },
    Probe { answer: |_| Reply::http(429, "", ""), methods: NOTHING, told: "HTTP 429" },
    Probe { answer: |_| Reply::http(500, "", "oops"), methods: NOTHING, told: "HTTP 500" },
    Probe { answer: |_| Reply::http(503, "", ""), methods: NOTHING, told: "HTTP 503" },
    Probe { answer: |_| Reply::http(302, "Location: /other\r\n", ""), methods: NOTHING, told: "HTTP 302" },
    Probe {
        answer: |_| Reply::http(401, "WWW-Authenticate: Bearer\r\n", ""),
        methods: NOTHING,
        told: "\"code\":401",
    },
    Probe { answer: |_| Reply::http(403, "", ""), methods: NOTHING, told: "\"code\":403" },
    Probe {
        answer: |_| Reply::default().then_close(),
        methods: NOTHING,
        told: "ended before it was complete",
    },
];

#[tokio::test]
async fn c2_the_era_follows_the_answer_to_the_probe() {
    for (i, probe) in PROBES.iter().enumerate() {
        let style = if probe.methods == MODERN { Style::Modern } else { Style::Legacy };
        let server = FakeMcp::scripted(style, &mail(), |request| {
            (request.method() == "server/discover").then(|| (probe.answer)(request))
        })
        .await;
        let app = TestApp::at(&server.url(), &[]);
        let answer = app.caller("alice").tool("search_tools", r#"{"query":"search mail"}"#).await;
        assert!(answer.text().contains(probe.told), "probe {i}: {}", answer.text());
        assert_eq!(server.methods(), probe.methods, "probe {i}");
    }
}

#[tokio::test]
async fn c2_a_server_that_is_no_mcp_server_is_told_as_such() {
    let server = FakeMcp::scripted(Style::Legacy, &[], |_| {
        Some(Reply::http(200, "Content-Type: text/html\r\n", "<!doctype html><html>Welcome</html>"))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let refusal = app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.refusal();
    assert!(refusal.contains("HTML") && !refusal.contains("Welcome"), "{refusal}");
}

/// Names and values of all headers, sorted, without those that differ from run to run.
fn headers(request: &Recorded) -> String {
    let mut lines: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| {
            let value = match name.to_ascii_lowercase().as_str() {
                "host" | "content-length" => "…",
                "via" => &value[..value.len() - 16],
                "user-agent" => &value.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
                _ => value,
            };
            format!("{name}: {value}")
        })
        .collect();
    lines.sort();
    format!("{} {}\n{}", request.verb, request.target, lines.join("\n"))
}

/// Headers of a client that must not cross.
const PRIVATE: [(&str, &str); 9] = [
    ("cookie", "session=canary"),
    ("x-api-key", "canary"),
    ("x-forwarded-for", "10.0.0.1"),
    ("forwarded", "for=10.0.0.1"),
    ("proxy-authorization", "Basic canary"),
    ("mcp-session-id", "canary"),
    ("last-event-id", "canary"),
    ("user-agent", "canary"),
    ("x-request-id", "canary"),
];

#[tokio::test]
async fn c1_f1_t_c5_the_outbound_headers_of_a_modern_call_are_exactly_these() {
    let server = FakeMcp::start(Style::Modern, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"mail__search"}}}"#;
    assert_eq!(app.caller("alice").post(&PRIVATE, call).await.status, 200);
    let requests = server.log();
    insta::assert_snapshot!(headers(&requests[0]), @r#"
POST /mcp
accept-encoding: identity
accept: application/json, text/event-stream
authorization: Bearer alice
content-length: …
content-type: application/json
host: …
mcp-method: server/discover
mcp-protocol-version: 2026-07-28
user-agent: toolsearch-proxy/VERSION
via: 1.1 toolsearch-proxy-
"#);
    insta::assert_snapshot!(headers(&requests[2]), @r#"
POST /mcp
accept-encoding: identity
accept: application/json, text/event-stream
authorization: Bearer alice
content-length: …
content-type: application/json
host: …
mcp-method: tools/call
mcp-name: mail__search
mcp-protocol-version: 2026-07-28
user-agent: toolsearch-proxy/VERSION
via: 1.1 toolsearch-proxy-
"#);
    assert!(!format!("{requests:?}").contains("canary"));
}

#[tokio::test]
async fn c1_f1_t_c5_the_outbound_headers_of_a_legacy_call_are_exactly_these() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"mail__search"}}}"#;
    assert_eq!(app.caller("alice").post(&PRIVATE, call).await.status, 200);
    let requests = server.log();
    insta::assert_snapshot!(headers(&requests[1]), @r#"
POST /mcp
accept-encoding: identity
accept: application/json, text/event-stream
authorization: Bearer alice
content-length: …
content-type: application/json
host: …
mcp-protocol-version: 2025-11-25
user-agent: toolsearch-proxy/VERSION
via: 1.1 toolsearch-proxy-
"#);
    insta::assert_snapshot!(headers(&requests[4]), @r#"
POST /mcp
accept-encoding: identity
accept: application/json, text/event-stream
authorization: Bearer alice
content-length: …
content-type: application/json
host: …
mcp-protocol-version: 2025-06-18
mcp-session-id: session-2-of-alice
user-agent: toolsearch-proxy/VERSION
via: 1.1 toolsearch-proxy-
"#);
    assert!(!format!("{requests:?}").contains("canary"));
}

#[tokio::test]
async fn t_c2_the_authorization_header_crosses_byte_for_byte_and_a_missing_one_is_missing() {
    let server = FakeMcp::start(Style::Modern, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}}"#;
    for value in
        ["Bearer  two  spaces", "bearer x", "Basic dXNlcjpwYXNz", "eyJ.a.b", "Digest a=\"b\", c=\"d\""]
    {
        server.forget_log();
        app.anonymous().post(&[("authorization", value)], call).await;
        let log = server.log();
        assert_eq!(log.len(), 2);
        assert!(log.iter().all(|request| request.header("authorization") == Some(value)), "{value}");
    }
    server.forget_log();
    app.anonymous().post(&[], call).await;
    assert!(server.log().iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn c3_a_modern_call_says_who_we_are_and_what_the_caller_can_do_but_no_tasks() {
    let server = FakeMcp::start(Style::Modern, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"mail__search"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/clientInfo":{"name":"canary"},"progressToken":"p","io.modelcontextprotocol/unknown":"canary","traceparent":"00-a-b-01"},"requestState":"s","inputResponses":{"a":{}}}}"#;
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "call_read_tool"),
    ];
    let answer = app.caller("alice").post(&headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let params = server.requests("tools/call")[0].json()["params"].clone();
    assert_eq!(
        params,
        json!({
            "name": "mail__search", "arguments": {}, "requestState": "s", "inputResponses": {"a": {}},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "toolsearch-proxy", "version": env!("CARGO_PKG_VERSION")},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {}},
                "progressToken": "p",
                "traceparent": "00-a-b-01",
            },
        })
    );
}

#[tokio::test]
async fn t_c7_every_request_has_an_id_of_its_own() {
    let server = FakeMcp::start(Style::Legacy, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    for _ in 0..3 {
        app.caller("alice").call_read("mail__search", "{}").await;
    }
    let ids: Vec<String> = server.log().iter().map(Recorded::id).filter(|id| id != "null").collect();
    let distinct: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (6, 6));
    assert!(ids.iter().all(|id| id.len() == 34), "{ids:?}");
    // No part of them is counted up or the same: who knows one can't guess the next.
    for part in [1..17, 17..33] {
        let parts: std::collections::HashSet<&str> = ids.iter().map(|id| &id[part.clone()]).collect();
        assert_eq!(parts.len(), 6, "{ids:?}");
        assert!(parts.iter().any(|part| part.starts_with(|digit| digit != '0')), "{ids:?}");
    }
}

#[tokio::test]
async fn c5_annotated_arguments_of_a_modern_tool_go_out_as_headers_too() {
    let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"page":{"type":"integer","x-mcp-header":"Page"},"deep":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}},"absent":{"type":"string","x-mcp-header":"Absent"}}}"#;
    let tools = [
        tool("weather", true, "Weather", schema),
        tool("broken", true, "Broken", r#"{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}"#),
    ];
    for (style, sent) in [(Style::Modern, true), (Style::Legacy, false)] {
        let server = FakeMcp::start(style, &tools).await;
        let app = TestApp::at(&server.url(), &[]);
        let arguments = r#"{"region":"Šiauliai","page":3,"deep":{"dry":true}}"#;
        assert!(!app.caller("alice").call_read("weather", arguments).await.is_error());
        let call = server.requests("tools/call").remove(0);
        for (name, value) in [("region", "=?base64?xaBpYXVsaWFp?="), ("page", "3"), ("dry-run", "true")] {
            assert_eq!(call.header(&format!("mcp-param-{name}")), sent.then_some(value), "{style:?} {name}");
        }
        assert_eq!(call.header("mcp-param-absent"), None);
        // C6: an invalid annotation takes its own tool away, in the modern era only.
        let broken = app.caller("alice").call_read("broken", "{}").await;
        assert_eq!(broken.is_error(), sent, "{style:?}");
    }
}

#[tokio::test]
async fn f2_t_h2_a_value_can_not_break_out_of_its_header() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
    let server = FakeMcp::start(Style::Modern, &[tool("odd\\r\\nX-Evil: 1", true, "Odd", schema)]).await;
    let app = TestApp::at(&server.url(), &[]);
    let answer = app.caller("alice").call_read("odd\r\nX-Evil: 1", r#"{"a":"x\r\nX-Evil: 2"}"#).await;
    assert!(!answer.is_error(), "{}", answer.text());
    let call = server.requests("tools/call").remove(0);
    assert_eq!(call.header("x-evil"), None);
    assert!(call.header("mcp-name").unwrap().starts_with("=?base64?"));
    assert!(call.header("mcp-param-a").unwrap().starts_with("=?base64?"));
}

#[tokio::test]
async fn c14_a_session_is_kept_and_sent_with_the_negotiated_version() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    app.caller("alice").search("mail").await;
    app.caller("alice").call_read("mail__search", "{}").await;
    app.caller("alice").call_read("mail__search", "{}").await;
    assert_eq!(server.requests("initialize").len(), 1);
    assert_eq!(server.requests("initialize")[0].header("mcp-session-id"), None);
    for request in &server.log()[2..] {
        assert_eq!(request.header("mcp-session-id"), Some("session-2-of-alice"), "{}", request.method());
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
    }
}

#[tokio::test]
async fn t_c10_every_caller_has_a_session_of_their_own() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    for name in ["alice", "bob", "alice", "bob"] {
        let answer = app.caller(name).call_read("mail__search", "{}").await;
        assert!(answer.tool_text().starts_with(name), "{}", answer.text());
    }
    assert_eq!(server.requests("initialize").len(), 2);
    for request in server.log() {
        let session = request.header("mcp-session-id");
        assert!(
            session.is_none_or(|session| session.ends_with(&format!("-of-{}", request.token()))),
            "{session:?}"
        );
    }
}

#[tokio::test]
async fn c14_a_lost_session_is_replaced_and_the_call_is_not_repeated() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    app.caller("alice").call_read("mail__search", "{}").await;
    server.forget_sessions();
    server.forget_log();
    let refusal = app.caller("alice").call_write("mail__search", "{}").await.refusal();
    assert!(
        refusal.contains("forgotten the session") && refusal.contains("Nothing was executed"),
        "{refusal}"
    );
    // The session might be gone because the upstream speaks another era by now, so that is asked.
    assert_eq!(server.methods(), ["tools/call", "server/discover"]);
    server.forget_log();
    assert!(!app.caller("alice").call_write("mail__search", "{}").await.is_error());
    assert_eq!(server.methods(), ["initialize", "notifications/initialized", "tools/call"]);
}

#[tokio::test]
async fn c14_the_session_of_an_anonymous_request_is_closed_after_it() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    assert!(!app.anonymous().call_read("mail__search", "{}").await.is_error());
    // One for the listing and one for the call.
    let closed = server.received("DELETE", 2).await;
    let mut sessions: Vec<&str> =
        closed.iter().filter_map(|request| request.header("mcp-session-id")).collect();
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!((sessions.len(), server.requests("initialize").len()), (2, 2));
    assert!(server.log().iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn t_h15_the_era_is_remembered_and_asked_for_again_after_the_upstream_changed() {
    let legacy = FakeMcp::start(Style::Legacy, &mail()).await;
    let app = TestApp::at(&legacy.url(), &["--catalog-ttl", "1ms", "--catalog-max-stale", "0s"]);
    for caller in ["alice", "bob", "carol"] {
        app.caller(caller).search("mail").await;
    }
    assert_eq!(legacy.requests("server/discover").len(), 1);

    let server = FakeMcp::scripted(Style::Modern, &mail(), |request| {
        (request.token() == "old" && request.method() == "server/discover").then(|| Reply::http(400, "", ""))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    // The first probe makes it a legacy server; its handshake then fails, and the next listing asks again.
    assert!(app.caller("old").tool("search_tools", r#"{"query":"mail"}"#).await.is_error());
    assert_eq!(app.caller("new").search("mail").await, ["mail__search"]);
}

#[tokio::test]
async fn c13_a_modern_client_that_hangs_up_ends_the_upstream_request() {
    let server = FakeMcp::scripted(Style::Modern, &mail(), |request| {
        (request.method() == "tools/call").then(Reply::hang)
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let alice = app.caller("alice").modern();
    let call = tokio::spawn(async move { alice.call_read("mail__search", "{}").await });
    server.received("tools/call", 1).await;
    assert_eq!(server.open_connections(), 1);
    call.abort();
    until("the end of the connection", || server.open_connections() == 0).await;
}

#[tokio::test]
async fn c13_a_legacy_upstream_is_told_that_a_call_is_cancelled() {
    let server = FakeMcp::start(Style::LegacySessions, &mail()).await;
    let app = TestApp::at(&server.url(), &[]);
    server.hold_calls(true);
    let alice = app.caller("alice").modern();
    let call = tokio::spawn(async move { alice.call_read("mail__search", "{}").await });
    let id = server.received("tools/call", 1).await[0].id();
    call.abort();
    let cancelled = server.received("notifications/cancelled", 1).await.remove(0);
    assert_eq!(cancelled.json()["params"]["requestId"].to_string(), id);
    assert_eq!(
        (cancelled.token(), cancelled.header("mcp-session-id")),
        ("alice", Some("session-2-of-alice"))
    );
    assert!(cancelled.json().get("id").is_none());
}

#[tokio::test]
async fn t_r7_a_request_that_comes_back_goes_no_further() {
    let server = FakeMcp::start(Style::Modern, &mail()).await;
    let (app, other) = (TestApp::at(&server.url(), &[]), TestApp::at(&server.url(), &[]));
    app.caller("alice").search("mail").await;
    let log = server.log();
    let via = log[0].header("via").unwrap();
    assert!(log.iter().all(|request| request.header("via") == Some(via)));
    server.forget_log();
    let hops = format!("1.1 nginx, {via}, 1.1 gateway");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}}"#;
    let answer = app.caller("bob").post(&[("via", &hops)], call).await;
    assert_eq!(answer.status, 508);
    assert!(answer.text().contains("--upstream leads back"), "{}", answer.text());
    assert!(server.log().is_empty());
    assert_eq!(other.caller("bob").post(&[("via", &hops)], call).await.status, 200);
}
