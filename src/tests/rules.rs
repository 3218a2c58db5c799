//! Protocol rules that no other test proves: what results hold, what is declared, what is never dereferenced.

use crate::support::{FakeMcp, FakeUpstream, Style, TestApp, reader, tool};
use serde_json::Value;

fn app() -> TestApp {
    TestApp::over(&FakeUpstream::new(), &[])
}

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn m17_m18_m29_m30_m31_d6_discovery_says_what_is_served_and_no_more() {
    let answer = app().caller("alice").modern().rpc("server/discover", "{}").await.json();
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(result["supportedVersions"], serde_json::json!(versions));
    assert_eq!(result["capabilities"], serde_json::json!({"tools": {}}));
    assert!(result["ttlMs"].as_u64().is_some() && result["cacheScope"] == "private");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolsearch-proxy");
    assert!(result.get("serverInfo").is_none());
}

#[tokio::test]
async fn m30_m36_m37_what_is_not_declared_does_not_exist() {
    for method in [
        "subscriptions/listen",
        "resources/list",
        "resources/read",
        "prompts/get",
        "completion/complete",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "logging/setLevel",
    ] {
        let answer = app().caller("alice").modern().rpc(method, "{}").await;
        assert_eq!((answer.status, answer.code()), (404, Some(-32601)), "{method}");
    }
}

#[tokio::test]
async fn m7_m31_l12_l16_l17_l18_the_list_has_the_shape_of_its_era() {
    let modern = app().caller("alice").modern().rpc("tools/list", "{}").await.json();
    assert_eq!(
        (&modern["result"]["cacheScope"], &modern["result"]["resultType"]),
        (&"public".into(), &"complete".into())
    );
    for version in LEGACY {
        let answer = app().caller("alice").version(version).rpc("tools/list", "{}").await;
        assert_eq!(answer.headers["content-type"], "application/json");
        let result = &answer.json()["result"];
        let members: Vec<&String> = result.as_object().unwrap().keys().collect();
        assert_eq!(members, ["tools"], "{version}");
        for tool in result["tools"].as_array().unwrap() {
            assert!(tool.get("execution").is_none() && tool.get("outputSchema").is_none());
        }
        assert_eq!(modern["result"]["tools"], result["tools"]);
    }
}

#[tokio::test]
async fn l1_a_handshake_names_version_capabilities_and_server() {
    for version in LEGACY {
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"0"}}}}"#
        );
        let result =
            app().caller("alice").version(version).rpc("initialize", &params).await.json()["result"].clone();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["capabilities"], serde_json::json!({"tools": {}}));
        assert_eq!(result["serverInfo"]["name"], "toolsearch-proxy");
        assert!(result["serverInfo"]["version"].is_string() && result["instructions"].is_string());
    }
}

#[tokio::test]
async fn m21_m23_d1_header_names_have_any_case_and_their_values_one() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
    let client = app().caller("alice");
    for (method, status) in [("tools/list", 200), (" \ttools/list ", 200), ("Tools/List", 400)] {
        let headers = [("MCP-PROTOCOL-VERSION", "2026-07-28"), ("mCp-mEtHoD", method)];
        assert_eq!(client.post(&headers, body.clone()).await.status, status, "{method}");
    }
}

#[tokio::test]
async fn m25_header_parameters_that_nobody_asked_for_are_ignored() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search_tools","arguments":{{"query":"x"}},{meta}}}}}"#
    );
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "search_tools"),
        ("mcp-param-query", "something else"),
        ("mcp-param-x", "=?base64?!?="),
    ];
    assert_eq!(app().caller("alice").post(&headers, body).await.status, 200);
}

#[tokio::test]
async fn m38_our_own_error_codes_are_the_specifications_or_outside_of_its_range() {
    let app = app();
    let client = app.caller("alice").modern();
    for (method, params) in [
        ("tools/call", "{}"),
        ("tools/call", r#"{"name":"x"}"#),
        ("tools/list", r#"{"cursor":"x"}"#),
        ("x", "{}"),
    ] {
        let code = client.rpc(method, params).await.code().unwrap();
        assert!(
            [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022].contains(&code),
            "{method}: {code}"
        );
    }
}

#[tokio::test]
async fn f6_m39_c18_a_reference_in_a_schema_is_never_fetched() {
    let bait = FakeMcp::start(Style::Modern, &[]).await;
    let schema = format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{}"}}}}}}"#, bait.url());
    let upstream = FakeUpstream::new();
    upstream.lists("alice", &[tool("remote", false, "Has a remote schema.", &schema)]);
    let app = TestApp::over(&upstream, &[]);
    let client = app.caller("alice");
    let described = client.describe(&["remote"]).await;
    assert!(described.contains("argumentsNotCheckedHere"), "{described}");
    client.call_write("remote", r#"{"a":1}"#).await;
    assert_eq!(upstream.called().len(), 1);
    assert!(bait.log().is_empty());
}

#[tokio::test]
async fn c19_a_tool_without_annotations_is_a_write() {
    let upstream = FakeUpstream::new();
    let unmarked = reader("unmarked", "Says nothing of itself.").replace(r#""readOnlyHint":true"#, "");
    upstream.lists("alice", &[unmarked]);
    let app = TestApp::over(&upstream, &[]);
    let refusal = app.caller("alice").call_read("unmarked", "{}").await.refusal();
    assert!(refusal.contains("call_write_tool"), "{refusal}");
}

#[tokio::test]
async fn m33_our_tools_keep_to_the_names_and_schemas_that_clients_check() {
    let list: Value = app().caller("alice").modern().rpc("tools/list", "{}").await.json();
    for tool in list["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(
            name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        assert!(tool["inputSchema"]["type"] == "object" && tool["description"].is_string());
    }
}

#[tokio::test]
async fn m19_c12_trace_context_crosses_in_metadata_and_headers_and_nothing_beside_it() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for style in [Style::Modern, Style::LegacySessions] {
        let server = FakeMcp::start(style, &[reader("clock__now", "Tells the time.")]).await;
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"traceparent":"{TRACE}","baggage":"a=1","com.example/secret":1,"progressToken":7}}"#
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_read_tool","arguments":{{"name":"clock__now"}},{meta}}}}}"#
        );
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "call_read_tool"),
            ("traceparent", TRACE),
            ("tracestate", "vendor=1"),
            ("baggage", "b=2"),
            ("x-b3-traceid", "1"),
        ];
        let answer = TestApp::at(&server.url(), &[]).caller("alice").post(&headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let call = server.requests("tools/call").remove(0);
        let sent = call.json()["params"]["_meta"].clone();
        assert_eq!((&sent["traceparent"], &sent["baggage"]), (&TRACE.into(), &"a=1".into()));
        assert!(sent.get("com.example/secret").is_none());
        assert_eq!(call.header("traceparent"), Some(TRACE));
        assert_eq!(call.header("tracestate"), Some("vendor=1"));
        assert_eq!((call.header("baggage"), call.header("x-b3-traceid")), (None, None));
        // Listings are shared by requests, so they carry nobody's trace.
        assert!(server.requests("tools/list").iter().all(|list| list.header("traceparent").is_none()));
    }
}
