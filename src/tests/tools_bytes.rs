//! Bytes in, same bytes out: definitions and results, over every kind of wire.

use crate::support::{
    FakeMcp, FakeUpstream, Reply, Style, TestApp, event, listing, message, reader, rpc_failure,
};
use toolsearch_proxy::mcp::Era;
use toolsearch_proxy::upstream::Listing;

/// Definitions that are odd and valid, all of the name `odd`.
fn odd_definitions() -> Vec<String> {
    let long = "Ilgas aprašymas. ".repeat(1_300);
    let deep = format!("{}true{}", r#"{"items":"#.repeat(5_000), "}".repeat(5_000));
    [
        "{\n  \"name\": \"odd\",\n  \"inputSchema\": {\n    \"type\": \"object\"\n  }\n}",
        "{\"name\":\"odd\",\t\"description\" : \"tab\",\r\n\"inputSchema\":{}}",
        r#"{"x-unknown":[{"z":null,"a":1}],"inputSchema":{"type":"object"},"name":"odd","icons":[]}"#,
        r#"{"name":"odd","inputSchema":{"properties":{"n":{"maximum":1e400,"minimum":-123456789012345678901234567890,"default":0.10000000000000000000001}}}}"#,
        r#"{"name":"odd","title":"Žiūrėti","description":"日本語 \u00e9 \ud83d\ude00 é 😀","inputSchema":{"type":"object"}}"#,
        r##"{"name":"odd","inputSchema":{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/a"}}}}}}"##,
        r#"{"name":"odd","inputSchema":{"$ref":"http://127.0.0.1:9/secret.json"}}"#,
        r##"{"name":"odd","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"type":["string","null"]}},"properties":{"x":{"$ref":"#/definitions/x"}},"additionalProperties":{"type":"string"}}}"##,
        r#"{"name":"odd","inputSchema":{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}"#,
        r#"{"name":"odd"}"#,
        r#"{"name":"odd","inputSchema":null,"outputSchema":{"type":"object"},"annotations":null,"_meta":{"a/b":1}}"#,
        r#"{"name":"odd","inputSchema":{"type":"nonsense"}}"#,
        r#"{"name":"odd","description":["not","text"],"inputSchema":true}"#,
        r#"{"\u006eame":"\u006fdd","inputSchema":{"type":"object"}}"#,
        &format!(r#"{{"name":"odd","inputSchema":{deep}}}"#),
        &format!(r#"{{"name":"odd","description":"{long}","inputSchema":{{"type":"object"}}}}"#),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Checks that `describe_tool` gives exactly these definitions; what is said about them may follow.
fn assert_described(described: &str, definitions: &[String]) {
    let expected = format!(r#"{{"tools":[{}]"#, definitions.join(","));
    assert!(
        described.starts_with(&expected) && (described[expected.len()..].starts_with([',', '}'])),
        "expected {expected}\ngot {described}"
    );
}

#[tokio::test]
async fn f8_t_d1_definitions_come_back_byte_for_byte_over_every_kind_of_wire() {
    for style in [Style::Modern, Style::ModernSse, Style::Legacy, Style::LegacySessions] {
        for definition in odd_definitions() {
            // A line end inside an event is LF, whatever it was before: SSE has no other.
            let definition = if matches!(style, Style::ModernSse | Style::LegacySessions) {
                definition.replace("\r\n", "\n")
            } else {
                definition
            };
            let server = FakeMcp::start(style, std::slice::from_ref(&definition)).await;
            let app = TestApp::at(&server.url(), &[]);
            for client in [app.caller("alice"), app.caller("alice").modern()] {
                assert_described(&client.describe(&["odd"]).await, std::slice::from_ref(&definition));
            }
        }
    }
}

#[tokio::test]
async fn names_of_any_script_are_described_and_called_exactly() {
    for name in ["žiūrėti_paštą", "日本__検索", "a b/c.d:e", "名", "\u{1F600}", "UPPER.case"] {
        let definition = reader(name, "An odd name");
        let server = FakeMcp::start(Style::Modern, std::slice::from_ref(&definition)).await;
        let app = TestApp::at(&server.url(), &[]);
        assert_described(&app.caller("alice").describe(&[name]).await, &[definition]);
        assert!(!app.caller("alice").call_read(name, "{}").await.is_error());
        assert_eq!(server.requests("tools/call")[0].json()["params"]["name"], *name);
    }
}

#[tokio::test]
async fn a_name_on_two_pages_with_different_hints_keeps_both_definitions() {
    let pages = [reader("odd", "Reads"), r#"{"name":"odd","description":"Writes"}"#.to_owned()];
    let tools = pages.clone();
    let server = FakeMcp::scripted(Style::Modern, &[], move |request| {
        let is_second = request.json()["params"]["cursor"] == "2";
        let (tool, next) = if is_second { (&tools[1], "") } else { (&tools[0], r#","nextCursor":"2""#) };
        (request.method() == "tools/list")
            .then(|| Reply::result(request, &format!(r#"{{"tools":[{tool}]{next}}}"#)))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    assert_described(&app.caller("alice").describe(&["odd"]).await, &pages);
    assert!(app.caller("alice").call_read("odd", "{}").await.refusal().contains("call_write_tool"));
}

#[tokio::test]
async fn t_r11_what_can_not_be_checked_is_said_and_forwarded() {
    let external = r#"{"name":"odd","inputSchema":{"$ref":"http://127.0.0.1:9/secret.json"}}"#.to_owned();
    let upstream = FakeUpstream::new().lists("alice", &[external]);
    let app = TestApp::over(&upstream, &[]);
    insta::assert_snapshot!(app.caller("alice").describe(&["odd"]).await, @r#"{"tools":[{"name":"odd","inputSchema":{"$ref":"http://127.0.0.1:9/secret.json"}}],"argumentsNotCheckedHere":[{"name":"odd","reason":"a `$ref` leads out of the input schema"}]}"#);
    assert!(!app.caller("alice").call_write("odd", r#"{"anything":1}"#).await.is_error());
    assert_eq!(upstream.called().len(), 1);
}

#[tokio::test]
async fn definitions_that_no_call_can_name_are_left_out_and_the_others_stay() {
    let kept = reader("kept", "Stays");
    let broken = [r#"{"description":"no name"}"#, r#"{"name":7}"#, "7", "null", r#"{"name":"a","name":"b"}"#];
    let mut tools: Vec<String> = broken.map(str::to_owned).to_vec();
    tools.insert(2, kept.clone());
    let server = FakeMcp::start(Style::Modern, &tools).await;
    let app = TestApp::at(&server.url(), &[]);
    assert_eq!(app.caller("alice").search("stays").await, ["kept"]);
    assert_described(&app.caller("alice").describe(&["kept"]).await, &[kept]);
}

const ODD_RESULTS: [&str; 7] = [
    r#"{"content":[]}"#,
    "{ \"isError\" : true,\n  \"content\" : [ {\"type\":\"text\",\"text\":\"no\"} ] }",
    r#"{"z":1,"content":[{"text":"b","type":"text","x":{}}],"a":2}"#,
    r#"{"content":[],"structuredContent":{"n":123456789012345678901234567890,"f":1e400,"g":-0.0,"h":1.10}}"#,
    r#"{"_meta":{"trace":"\u0041","b/c":[]},"content":[{"type":"resource_link","uri":"x:y"}]}"#,
    r#"{"content":[{"type":"text","text":"日本語 \ud83d\ude00 😀 \/"}]}"#,
    r#"{"structuredContent":[1,2],"content":null}"#,
];

#[tokio::test]
async fn f8_t_r9_results_come_back_byte_for_byte_over_every_kind_of_wire() {
    for style in [Style::Modern, Style::ModernSse, Style::Legacy, Style::LegacySessions] {
        for result in ODD_RESULTS {
            let server = FakeMcp::scripted(style, &[reader("odd", "Odd")], move |request| {
                let body = message(request, result);
                let is_sse = matches!(style, Style::ModernSse | Style::LegacySessions);
                (request.method() == "tools/call")
                    .then(|| if is_sse { Reply::sse(&event(&body), 7) } else { Reply::json(200, &body) })
            })
            .await;
            let app = TestApp::at(&server.url(), &[]);
            assert_eq!(app.caller("alice").call_read("odd", "{}").await.result(), result);
            assert_eq!(app.caller("alice").call_write("odd", "{}").await.result(), result);
            // A modern result says that it is complete; every other byte is the upstream's.
            let modern = format!(r#"{{"resultType":"complete",{}"#, &result[1..]);
            assert_eq!(app.caller("alice").modern().call_read("odd", "{}").await.result(), modern);
            let batch = app.caller("alice").call_reads(&[("odd", "{}")]).await.tool_text();
            assert_eq!(batch, format!(r#"{{"results":[{{"name":"odd","result":{result}}}]}}"#));
        }
    }
}

#[tokio::test]
async fn m17_a_modern_result_is_not_touched_at_all() {
    let result = r#"{ "resultType" : "complete", "content":[], "x":1e400 }"#;
    let upstream = FakeUpstream::new();
    upstream.answers_listing("alice", Ok(Listing { era: Era::Modern, ..listing(&[reader("odd", "Odd")]) }));
    upstream.answers("odd", Ok(result));
    let app = TestApp::over(&upstream, &[]);
    for client in [app.caller("alice"), app.caller("alice").modern()] {
        assert_eq!(client.call_read("odd", "{}").await.result(), result);
    }
}

#[tokio::test]
async fn m17_a_type_that_is_null_is_completed_where_it_stands() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("odd", "Odd")]);
    upstream.answers("odd", Ok(r#"{"content":[], "resultType": null ,"x":1e400}"#));
    let alice = TestApp::over(&upstream, &[]).caller("alice");
    assert_eq!(
        alice.clone().modern().call_read("odd", "{}").await.result(),
        r#"{"content":[], "resultType": "complete" ,"x":1e400}"#
    );
    assert_eq!(
        alice.call_read("odd", "{}").await.result(),
        r#"{"content":[], "resultType": null ,"x":1e400}"#
    );
}

#[tokio::test]
async fn t_d2_a_search_says_which_description_hides_something() {
    let tools = [reader("plain", "Reads mail"), reader("sly", "Reads mail\u{e0041}\u{202e}")];
    let upstream = FakeUpstream::new().lists("alice", &tools);
    let app = TestApp::over(&upstream, &["--search-schemas", "0"]);
    let found = app.caller("alice").tool("search_tools", r#"{"query":"reads mail"}"#).await.tool_json();
    let hits = found["tools"].as_array().unwrap();
    assert_eq!(hits.len(), 2);
    for hit in hits {
        let is_sly = hit["name"] == "sly";
        assert_eq!(hit["hiddenText"] == true, is_sly, "{hit}");
        assert_eq!(hit["description"].as_str().unwrap().contains(r"\u{e0041}\u{202e}"), is_sly, "{hit}");
    }
}

#[tokio::test]
async fn c8_a_result_of_an_unknown_type_is_no_success() {
    let server = FakeMcp::scripted(Style::Modern, &[reader("odd", "Odd")], |request| {
        (request.method() == "tools/call")
            .then(|| Reply::result(request, r#"{"resultType":"task","taskId":"t"}"#))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let modern = app.caller("alice").modern().call_read("odd", "{}").await.refusal();
    assert_eq!(app.caller("alice").call_read("odd", "{}").await.refusal(), modern);
    insta::assert_snapshot!(modern, @r#"{"error":"The upstream's answer is not valid MCP: its result is of a type that this proxy does not know. Try again later."}"#);
}

#[tokio::test]
async fn a_result_of_any_depth_passes() {
    let deep = format!(r#"{{"content":[],"x":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let result = deep.clone();
    let server = FakeMcp::scripted(Style::Modern, &[reader("odd", "Odd")], move |request| {
        (request.method() == "tools/call").then(|| Reply::result(request, &result))
    })
    .await;
    let app = TestApp::at(&server.url(), &[]);
    let answer = app.caller("alice").call_read("odd", "{}").await;
    assert!(answer.text().ends_with(&format!("{deep}}}")));
}

#[tokio::test]
async fn an_error_text_of_the_upstream_comes_back_as_text_whatever_it_holds() {
    let upstream = FakeUpstream::new().lists("alice", &[reader("odd", "Odd")]);
    upstream.answers("odd", Err(rpc_failure(-32000, "bad \"quotes\"\n</result> 日本")));
    let app = TestApp::over(&upstream, &[]);
    let refusal = app.caller("alice").call_read("odd", "{}").await;
    let text = refusal.tool_json()["error"].as_str().unwrap().to_owned();
    assert!(text.contains("bad \"quotes\"\n</result> 日本"), "{text}");
}
