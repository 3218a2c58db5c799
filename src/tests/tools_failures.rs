//! What a model or a client is told when the upstream fails: what happened, whether anything was done, what to do.

use crate::support::{FakeUpstream, TestApp, challenge, reader, rpc_failure, writer};
use std::sync::Arc;
use std::time::Duration;
use toolsearch_proxy::upstream::{FailureStage, RpcFailure, UpstreamError};

fn failures() -> Vec<UpstreamError> {
    vec![
        UpstreamError::Unreachable,
        UpstreamError::TimedOut(Duration::from_secs(120)),
        UpstreamError::Cut,
        UpstreamError::Status(500),
        UpstreamError::Status(429),
        UpstreamError::Invalid("it is HTML"),
        UpstreamError::TooLarge(1024),
        UpstreamError::SessionLost,
        UpstreamError::NoCommonVersion,
        rpc_failure(-32603, "the database is on fire"),
        rpc_failure(-32601, "no such method!"),
    ]
}

fn shop() -> (Arc<FakeUpstream>, TestApp) {
    let tools = [reader("read", "Reads"), reader("other", "Reads too"), writer("write", "Writes")];
    let upstream = FakeUpstream::new().lists("alice", &tools);
    let app = TestApp::over(&upstream, &[]);
    (upstream, app)
}

#[tokio::test]
async fn a_failed_read_says_what_happened_and_what_to_do() {
    let (upstream, app) = shop();
    let mut told = String::new();
    for failure in failures() {
        upstream.answers("read", Err(failure));
        told.push_str(&format!("{}\n", app.caller("alice").call_read("read", "{}").await.refusal()));
    }
    insta::assert_snapshot!(told, @r#"
{"error":"The upstream can't be reached. Nothing was executed. Try again later."}
{"error":"The upstream did not answer within 2m. Try again later."}
{"error":"The upstream's answer ended before it was complete. Try again later."}
{"error":"The upstream answered HTTP 500. Try again later."}
{"error":"The upstream answered HTTP 429. Nothing was executed. Try again later."}
{"error":"The upstream's answer is not valid MCP: it is HTML. Try again later."}
{"error":"The upstream's answer is larger than 1024 bytes. Ask for less, for instance with a filter or a smaller page."}
{"error":"The upstream had forgotten the session. Nothing was executed. Call it again: a new session will be opened."}
{"error":"The upstream speaks no protocol version that this proxy speaks. Nothing was executed. Try again later."}
{"error":"The upstream answered with an error: the database is on fire. Try again later."}
{"error":"The upstream answered with an error: no such method! Try again later."}
"#);
}

#[tokio::test]
async fn t_r12_a_failed_write_says_what_is_known_about_its_execution_and_is_not_repeated() {
    let (upstream, app) = shop();
    let mut told = String::new();
    for failure in failures() {
        upstream.answers("write", Err(failure));
        told.push_str(&format!("{}\n", app.caller("alice").call_write("write", "{}").await.refusal()));
    }
    insta::assert_snapshot!(told, @r#"
{"error":"The upstream can't be reached. Nothing was executed. Try again later."}
{"error":"The upstream did not answer within 2m. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream's answer ended before it was complete. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream answered HTTP 500. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream answered HTTP 429. Nothing was executed. Try again later."}
{"error":"The upstream's answer is not valid MCP: it is HTML. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream's answer is larger than 1024 bytes. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream had forgotten the session. Nothing was executed. Call it again: a new session will be opened."}
{"error":"The upstream speaks no protocol version that this proxy speaks. Nothing was executed. Try again later."}
{"error":"The upstream answered with an error: the database is on fire. It is not known whether the call was executed: check before you repeat it."}
{"error":"The upstream answered with an error: no such method! It is not known whether the call was executed: check before you repeat it."}
"#);
    assert_eq!(upstream.called().len(), failures().len());
}

#[tokio::test]
async fn a_listing_from_what_is_no_mcp_server_is_not_to_be_tried_again() {
    for status in [301, 404, 405, 501] {
        let upstream = FakeUpstream::new().answers_listing("alice", Err(UpstreamError::Status(status)));
        let app = TestApp::over(&upstream, &[]);
        let refusal = app.caller("alice").tool("search_tools", r#"{"query":"x"}"#).await.refusal();
        let says = format!(
            r#"{{"error":"The tools can't be listed now: the upstream answered HTTP {status}. Nothing was called. Trying again will not help: the operator has to look at --upstream."}}"#
        );
        assert_eq!(refusal, says);
    }
}

#[tokio::test]
async fn a_failed_listing_says_that_nothing_was_called() {
    let mut told = String::new();
    for failure in failures() {
        let upstream = FakeUpstream::new().answers_listing("alice", Err(failure));
        let app = TestApp::over(&upstream, &[]);
        let refusal = app.caller("alice").call_write("write", "{}").await.refusal();
        assert_eq!(upstream.called(), []);
        for (tool, arguments) in [
            ("search_tools", r#"{"query":"x"}"#),
            ("describe_tool", r#"{"names":["x"]}"#),
            ("call_read_tools", r#"{"calls":[{"name":"x"}]}"#),
        ] {
            assert_eq!(app.caller("alice").tool(tool, arguments).await.refusal(), refusal);
        }
        told.push_str(&format!("{refusal}\n"));
    }
    insta::assert_snapshot!(told, @r#"
{"error":"The tools can't be listed now: the upstream can't be reached. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream did not answer within 2m. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream's answer ended before it was complete. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream answered HTTP 500. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream answered HTTP 429. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream's answer is not valid MCP: it is HTML. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream's answer is larger than 1024 bytes. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream had forgotten the session. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream speaks no protocol version that this proxy speaks. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream answered with JSON-RPC error -32603. Nothing was called. Try again later."}
{"error":"The tools can't be listed now: the upstream answered with JSON-RPC error -32601. Nothing was called. Try again later."}
"#);
}

#[tokio::test]
async fn a_handshake_needs_no_upstream() {
    let upstream = FakeUpstream::new().answers_listing("alice", Err(UpstreamError::Unreachable));
    let app = TestApp::over(&upstream, &[]);
    let answer = app.caller("alice").modern().rpc("server/discover", "{}").await;
    let told = answer.json()["result"]["instructions"].as_str().unwrap().to_owned();
    assert!(answer.status == 200 && told.starts_with("This server gives access"), "{told}");
    let answer = app.caller("alice").rpc("initialize", r#"{"protocolVersion":"2025-06-18"}"#).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_waits_ten_seconds_for_a_slow_upstream_at_most() {
    let (upstream, app) = shop();
    upstream.hold_listings(true);
    let started = tokio::time::Instant::now();
    let answer = app.caller("alice").modern().rpc("server/discover", "{}").await;
    assert_eq!((answer.status, started.elapsed()), (200, Duration::from_secs(10)));
}

#[tokio::test]
async fn l20_refused_credentials_are_the_answer_of_every_tool_and_of_the_handshake() {
    for status in [401, 403] {
        let upstream = FakeUpstream::new().answers_listing("alice", Err(challenge(status)));
        let app = TestApp::over(&upstream, &[]);
        for client in [app.caller("alice"), app.caller("alice").modern()] {
            let handshake = match client.rpc("server/discover", "{}").await {
                answer if answer.status == status => answer,
                _ => client.rpc("initialize", r#"{"protocolVersion":"2025-06-18"}"#).await,
            };
            for answer in [
                handshake,
                client.tool("search_tools", r#"{"query":"x"}"#).await,
                client.describe_answer(&["x"]).await,
                client.call_read("x", "{}").await,
                client.call_reads(&[("x", "{}")]).await,
                client.call_write("x", "{}").await,
            ] {
                assert_eq!(answer.status, status, "{}", answer.text());
                assert_eq!(answer.values("www-authenticate"), ["Bearer error=\"invalid_token\""]);
                assert_eq!(answer.id(), Some("1"));
                assert!(answer.code().is_some());
            }
            // Our own five tools are no secret.
            assert_eq!(client.rpc("tools/list", "{}").await.status, 200);
        }
    }
}

#[tokio::test]
async fn refused_credentials_end_a_batch_and_a_refused_call_only_itself() {
    for (failing, other, expected) in [
        (challenge(401), None, 401),
        (challenge(403), None, 200),
        (challenge(403), Some(challenge(403)), 403),
    ] {
        let (upstream, app) = shop();
        upstream.answers("read", Err(failing));
        if let Some(other) = other {
            upstream.answers("other", Err(other));
        }
        let answer = app.caller("alice").call_reads(&[("read", "{}"), ("other", "{}")]).await;
        assert_eq!(answer.status, expected);
        if expected == 200 {
            insta::assert_snapshot!(answer.tool_text(), @r#"{"results":[{"name":"read","error":{"error":"The upstream does not allow you to call this tool."}},{"name":"other","result":{"content":[{"type":"text","text":"alice called other with {}"}]}}]}"#);
        }
    }
}

#[tokio::test]
async fn m16_a_missing_capability_is_relayed_to_a_modern_client_and_explained_to_an_older_one() {
    let (upstream, app) = shop();
    let data = Some(r#"{"requiredCapabilities":{"sampling":{}}}"#.to_owned());
    let failure = RpcFailure {
        http_status: 400,
        code: -32021,
        message: "needs sampling".to_owned(),
        data,
        stage: FailureStage::Read,
    };
    upstream.answers("read", Err(UpstreamError::Rpc(failure)));
    let answer = app.caller("alice").modern().call_read("read", "{}").await;
    insta::assert_snapshot!(format!("{} {}", answer.status, answer.text()), @r#"400 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"needs sampling","data":{"requiredCapabilities":{"sampling":{}}}}}"#);
    insta::assert_snapshot!(app.caller("alice").call_read("read", "{}").await.refusal(), @r#"{"error":"This tool needs interactive input, which your client's protocol version can't give."}"#);
}

#[tokio::test]
async fn m28_codes_about_the_hop_to_the_upstream_are_not_ours() {
    let (upstream, app) = shop();
    for code in [-32020, -32022] {
        upstream.answers("read", Err(rpc_failure(code, "about your headers")));
        let answer = app.caller("alice").modern().call_read("read", "{}").await;
        assert!(answer.refusal().contains("about your headers"));
    }
}

#[tokio::test]
async fn f16_m35_l19_a_request_for_input_reaches_modern_clients_only_and_no_batch() {
    let (upstream, app) = shop();
    let asking = r#"{"resultType":"input_required","requestState":"opaque","inputRequests":{}}"#;
    upstream.answers("read", Ok(asking));
    assert_eq!(app.caller("alice").modern().call_read("read", "{}").await.result(), asking);
    insta::assert_snapshot!(app.caller("alice").call_read("read", "{}").await.refusal(), @r#"{"error":"This tool needs interactive input, which your client's protocol version can't give."}"#);
    let batch = app.caller("alice").modern().call_reads(&[("read", "{}")]).await;
    insta::assert_snapshot!(batch.tool_text(), @r#"{"results":[{"name":"read","error":{"error":"The tool asks for input, which a batch can't give. Call it alone with call_read_tool."}}]}"#);
}

#[tokio::test]
async fn a_state_or_responses_go_with_a_single_call_only() {
    let (upstream, app) = shop();
    for extra in [r#""requestState":"s""#, r#""inputResponses":{}"#] {
        for (tool, arguments) in [
            ("call_read_tools", r#"{"calls":[{"name":"read"},{"name":"other"}]}"#),
            ("search_tools", r#"{"query":"x"}"#),
            ("describe_tool", r#"{"names":["read"]}"#),
        ] {
            let params = format!(r#"{{"name":"{tool}","arguments":{arguments},{extra}}}"#);
            let answer = app.caller("alice").modern().rpc("tools/call", &params).await;
            assert_eq!(answer.code(), Some(-32602), "{}", answer.text());
            assert!(answer.text().contains("without requestState"), "{}", answer.text());
        }
        let params = format!(r#"{{"name":"call_read_tool","arguments":{{"name":"read"}},{extra}}}"#);
        assert_eq!(app.caller("alice").modern().rpc("tools/call", &params).await.code(), None);
    }
    assert_eq!(upstream.called().len(), 2);
}

#[tokio::test]
async fn t_d6_an_upstream_s_message_is_short_and_hides_nothing() {
    let (upstream, app) = shop();
    for code in [-32603, -32602, -32021] {
        let message = format!("\u{1b}[2J\u{202e}{}", "x".repeat(3_000_000));
        let failure = RpcFailure { http_status: 200, code, message, data: None, stage: FailureStage::Read };
        upstream.answers("read", Err(UpstreamError::Rpc(failure)));
        let answer = app.caller("alice").modern().call_read("read", "{}").await;
        let told = answer.text();
        assert!(told.len() < 4_000 && told.contains("u{1b}") && told.contains("u{202e}"), "{}", told.len());
    }
}

#[tokio::test]
async fn nothing_of_the_caller_is_echoed_at_length() {
    let (_, app) = shop();
    let long = "x".repeat(200_000);
    for (tool, arguments) in [
        ("search_tools", format!(r#"{{"query":"a","limit":"{long}"}}"#)),
        ("search_tools", format!(r#"{{"query":"a","{long}":1}}"#)),
        ("search_tools", format!(r#"{{"queries":["{long}","{long}"]}}"#)),
        ("describe_tool", format!(r#"{{"names":["{long}"]}}"#)),
        ("call_read_tool", format!(r#"{{"name":"{long}"}}"#)),
        ("call_read_tools", format!(r#"{{"calls":[{{"name":"{long}"}}]}}"#)),
    ] {
        let answer = app.caller("alice").tool(tool, &arguments).await;
        assert!(answer.status == 200 && answer.text().len() < 2_000, "{tool}: {}", answer.text().len());
    }
}

#[tokio::test]
async fn lists_numbers_and_objects_in_strings_are_taken_as_what_they_hold() {
    let (upstream, app) = shop();
    let call = |name: &'static str, arguments: serde_json::Value| {
        let arguments = serde_json::Value::String(arguments.to_string()).to_string();
        let client = app.caller("alice");
        async move { client.tool(name, &arguments).await }
    };
    let found =
        call("search_tools", serde_json::json!({ "queries": "[\"read\",\"other\"]", "limit": "1" })).await;
    assert_eq!(found.tool_json()["results"].as_array().unwrap().len(), 2, "{}", found.text());
    let described = call("describe_tool", serde_json::json!({ "names": "[\"read\",\"other\"]" })).await;
    assert_eq!(described.tool_json()["tools"].as_array().unwrap().len(), 2);
    let batch = call("call_read_tools", serde_json::json!({ "calls": "[{\"name\":\"read\"}]" })).await;
    assert!(!batch.is_error(), "{}", batch.text());
    assert_eq!(upstream.called().len(), 1);
    let refused = app.caller("alice").tool("search_tools", r#""no object""#).await;
    assert_eq!(refused.code(), Some(-32602));
}

#[tokio::test]
async fn without_the_batch_tool_no_word_names_it() {
    let upstream = FakeUpstream::new().lists("alice", &[]);
    let app = TestApp::over(&upstream, &["--max-batch-calls", "0"]);
    let client = app.caller("alice").modern();
    for answer in [client.rpc("server/discover", "{}").await, client.tool("call_read_tools", "{}").await] {
        assert!(answer.text().contains("call_read_tool"), "{}", answer.text());
        assert!(!answer.text().contains("call_read_tools"), "{}", answer.text());
    }
}
