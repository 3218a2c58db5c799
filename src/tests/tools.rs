//! The five tools as a model sees them: every answer and every refusal, word for word.

use crate::support::{FakeUpstream, TestApp, challenge, listing, reader, rpc_failure, tool, writer};
use serde_json::json;
use std::sync::Arc;
use toolsearch_proxy::upstream::Listing;

pub(crate) const SEND: &str = r#"{"type":"object","properties":{"to":{"type":"string","description":"Address of the recipient"},"body":{"type":"string"},"priority":{"type":"integer","minimum":1,"maximum":5}},"required":["to","body"],"additionalProperties":false}"#;
const INBOX: &str = r#"{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}"#;

fn tools() -> Vec<String> {
    vec![
        tool("mail__send_message", false, "Sends an e-mail message to somebody.", SEND),
        tool("mail__search_inbox", true, "Searches the inbox for e-mail messages.", INBOX),
        reader("calendar__list_events", "Lists the events of a day."),
        writer("files__delete_file", "Deletes a file for ever."),
        r#"{"name":"clock__now","annotations":{"readOnlyHint":true}}"#.to_owned(),
    ]
}

fn office() -> (Arc<FakeUpstream>, TestApp) {
    office_with(&[])
}

fn office_with(flags: &[&str]) -> (Arc<FakeUpstream>, TestApp) {
    let upstream = FakeUpstream::new().lists("alice", &tools());
    let app = TestApp::over(&upstream, flags);
    (upstream, app)
}

/// `count` read-only tools that one query finds all.
fn reports(count: usize) -> Vec<String> {
    (0..count).map(|i| reader(&format!("report__number_{i}"), &format!("Gives report number {i}."))).collect()
}

#[tokio::test]
async fn a_search_gives_names_descriptions_marks_and_the_schemas_of_the_best() {
    let (_, app) = office_with(&["--search-schemas", "1"]);
    let found = app.caller("alice").tool("search_tools", r#"{"query":"search e-mail messages"}"#).await;
    insta::assert_snapshot!(found.tool_text(), @r#"{"tools":[{"name":"mail__search_inbox","description":"Searches the inbox for e-mail messages.","readOnly":true,"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}},{"name":"mail__send_message","description":"Sends an e-mail message to somebody.","readOnly":false}]}"#);
    assert!(!found.is_error());
}

#[tokio::test]
async fn a_tool_that_two_queries_find_is_described_once() {
    let (_, app) = office();
    let found = app
        .caller("alice")
        .tool("search_tools", r#"{"queries":["search inbox","search_inbox mail"],"limit":1}"#)
        .await;
    insta::assert_snapshot!(found.tool_text(), @r#"{"results":[{"query":"search inbox","tools":[{"name":"mail__search_inbox","description":"Searches the inbox for e-mail messages.","readOnly":true,"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}}]},{"query":"search_inbox mail","tools":[{"name":"mail__search_inbox"}]}]}"#);
}

#[tokio::test]
async fn a_search_again_answers_the_same_until_the_listing_is_another_one() {
    let (upstream, app) = office();
    let alice = app.caller("alice");
    let query = r#"{"query":"delete a file"}"#;
    let first = alice.tool("search_tools", query).await.tool_text();
    assert!(first.contains("Deletes a file for ever."), "{first}");
    assert_eq!(alice.tool("search_tools", query).await.tool_text(), first);
    let mut tools = tools();
    tools.insert(0, writer("files__delete_a_file", "Deletes a file and keeps a copy."));
    upstream.lists("alice", &tools);
    upstream.answers("files__delete_file", Err(challenge(401)));
    // The upstream refuses her credentials, so that she is listed anew.
    alice.call_write("files__delete_file", "{}").await;
    let names = alice.search("delete a file").await;
    assert_eq!(names[..2], ["files__delete_a_file", "files__delete_file"]);
}

#[tokio::test]
async fn no_hit_is_an_empty_list_with_a_hint_and_no_tools_at_all_says_so() {
    let (_, app) = office();
    let query = r#"{"query":"xylophone tuning"}"#;
    insta::assert_snapshot!(app.caller("alice").tool("search_tools", query).await.tool_text(), @r#"{"tools":[],"hint":"No tool fits. Try other words for what the tool should do, or a broader query."}"#);
    insta::assert_snapshot!(app.caller("nobody").tool("search_tools", query).await.tool_text(), @r#"{"tools":[],"hint":"The server behind this one lists no tools for this caller."}"#);
}

#[tokio::test]
async fn no_hit_is_an_answer_with_the_built_in_model_too() {
    let (_, app) = office_with(&["--embedder", "builtin"]);
    for query in ["who painted the ceiling of the chapel", "is it ok for a cat to drink milk"] {
        assert_eq!(app.caller("alice").search(query).await, [""; 0], "{query}");
    }
}

#[tokio::test]
async fn a_search_gives_8_hits_unless_asked_and_25_at_most() {
    let upstream = FakeUpstream::new().lists("alice", &reports(30));
    let app = TestApp::over(&upstream, &[]);
    for (limit, count) in
        [("", 8), (r#","limit":1"#, 1), (r#","limit":25"#, 25), (r#","limit":26"#, 25), (r#","limit":0"#, 1)]
    {
        let arguments = format!(r#"{{"query":"give report number"{limit}}}"#);
        let found = app.caller("alice").tool("search_tools", &arguments).await.tool_json();
        let hits = found["tools"].as_array().unwrap();
        assert_eq!(hits.len(), count, "{limit}");
        let with_schema = hits.iter().filter(|hit| hit.get("inputSchema").is_some()).count();
        assert_eq!(with_schema, count.min(3), "{limit}");
    }
}

#[tokio::test]
async fn a_limit_that_was_not_kept_to_is_told_once() {
    let (_, app) = office();
    let told = "A limit is a whole number from 1 to 25.";
    for (arguments, notes) in [
        (r#"{"query":"mail","limit":25}"#.to_owned(), [None, None]),
        (r#"{"query":"mail","limit":26}"#.to_owned(), [Some(told.to_owned()), None]),
        (r#"{"query":"mail","limit":0}"#.to_owned(), [Some(told.to_owned()), None]),
        (r#"{"query":"xylophone","limit":99}"#.to_owned(), [Some(told.to_owned()), None]),
        (r#"{"queries":["mail","file"],"limit":99}"#.to_owned(), [Some(told.to_owned()), None]),
        (r#"{"queries":["mail","file"]}"#.to_owned(), [None, None]),
        (
            format!(r#"{{"query":"{}","limit":99}}"#, "mail ".repeat(500)),
            [Some(format!("Only the first 2 KiB of the query were searched for. Say shortly what the tool should do. {told}")), None],
        ),
        (
            format!(r#"{{"queries":["{}"],"limit":99}}"#, "mail ".repeat(500)),
            [
                Some(told.to_owned()),
                Some("Only the first 2 KiB of the query were searched for. Say shortly what the tool should do.".to_owned()),
            ],
        ),
    ] {
        let found = app.caller("alice").tool("search_tools", &arguments).await.tool_json();
        let note = |place: &serde_json::Value| place["note"].as_str().map(str::to_owned);
        assert_eq!([note(&found), note(&found["results"][0])], notes, "{arguments}");
    }
}

#[tokio::test]
async fn t_d7_queries_of_any_kind_get_an_answer() {
    let (_, app) = office_with(&["--embedder", "builtin"]);
    let long = "mail ".repeat(100_000);
    for query in [
        "\u{0}",
        "😀👩‍👩‍👧",
        "\u{202e}liam",
        "___",
        "-",
        "a\u{300}\u{300}\u{300}",
        "日本語のメール",
        "\\\"'{}[]",
        &long,
    ] {
        let found = app.caller("alice").tool("search_tools", &json!({ "query": query }).to_string()).await;
        assert!(!found.is_error() && found.tool_json()["tools"].is_array());
    }
}

#[tokio::test]
async fn t_x10_five_queries_are_taken_and_six_refused() {
    let (upstream, app) = office();
    for (count, is_error) in [(5, false), (6, true)] {
        let arguments = json!({ "queries": vec!["mail"; count] }).to_string();
        let found = app.caller("alice").tool("search_tools", &arguments).await;
        assert_eq!(found.is_error(), is_error, "{count}");
        if is_error {
            insta::assert_snapshot!(found.tool_text(), @r#"{"error":"6 queries are too many. Send at most 5."}"#);
        } else {
            assert_eq!(found.tool_json()["results"].as_array().unwrap().len(), 5);
        }
    }
    assert_eq!(upstream.listed().len(), 1);
}

#[tokio::test]
async fn wrong_arguments_of_our_own_tools_are_told_with_the_right_form() {
    let (_, app) = office();
    let mut told = String::new();
    for (tool, arguments) in [
        ("search_tools", "{}"),
        ("search_tools", r#"{"q":"mail"}"#),
        ("search_tools", r#"{"query":7}"#),
        ("describe_tool", "{}"),
        ("describe_tool", r#"{"names":[]}"#),
        ("call_read_tool", r#"{"arguments":{}}"#),
        ("call_write_tool", r#"{"name":"files__delete_file","args":{}}"#),
        ("call_read_tools", r#"{"calls":[]}"#),
        ("call_read_tools", r#"{"calls":{}}"#),
    ] {
        told.push_str(&format!("{}\n", app.caller("alice").tool(tool, arguments).await.refusal()));
    }
    insta::assert_snapshot!(told, @r#"
{"error":"There is no query. Send {\"query\": \"what the tool should do\"}, or {\"queries\": [\"…\", \"…\"]} with up to 5 queries, and an optional whole number \"limit\" up to 25."}
{"error":"There is no member 'q': take 'query' or 'queries' or 'limit'. Send {\"query\": \"what the tool should do\"}, or {\"queries\": [\"…\", \"…\"]} with up to 5 queries, and an optional whole number \"limit\" up to 25."}
{"error":"'query' must be a string or a list of strings, not a number. Send {\"query\": \"what the tool should do\"}, or {\"queries\": [\"…\", \"…\"]} with up to 5 queries, and an optional whole number \"limit\" up to 25."}
{"error":"Send {\"names\": [\"…\"]} with up to 10 exact names of tools."}
{"error":"Send {\"names\": [\"…\"]} with up to 10 exact names of tools."}
{"error":"'name' is missing. Send {\"name\": \"exact name of the tool\", \"arguments\": {…}}."}
{"error":"There is no member 'args': take 'name' or 'arguments'. Send {\"name\": \"exact name of the tool\", \"arguments\": {…}}."}
{"error":"Send {\"calls\": [{\"name\": \"…\", \"arguments\": {…}}, …]} with 1 to 10 calls."}
{"error":"'calls' must be a list, not an object. Send {\"calls\": [{\"name\": \"…\", \"arguments\": {…}}, …]}."}
"#);
}

#[tokio::test]
async fn t_x10_describe_takes_ten_names_and_refuses_eleven() {
    let upstream = FakeUpstream::new().lists("alice", &reports(11));
    let app = TestApp::over(&upstream, &[]);
    let names: Vec<String> = (0..11).map(|i| format!("report__number_{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let described = app.caller("alice").describe(&names[..10]).await;
    assert_eq!(described, format!(r#"{{"tools":[{}]}}"#, reports(10).join(",")));
    insta::assert_snapshot!(app.caller("alice").describe(&names).await, @r#"{"error":"Send {\"names\": [\"…\"]} with up to 10 exact names of tools."}"#);
}

#[tokio::test]
async fn describe_gives_what_it_knows_and_the_nearest_of_what_it_does_not() {
    let (_, app) = office();
    let described =
        app.caller("alice").describe(&["clock__now", "clock__now", "mail__serch_inbox", "zzz"]).await;
    insta::assert_snapshot!(described, @r#"{"tools":[{"name":"clock__now","annotations":{"readOnlyHint":true}}],"unknown":[{"name":"mail__serch_inbox","nearest":["mail__search_inbox"]},{"name":"zzz","nearest":[]}],"argumentsNotCheckedHere":[{"name":"clock__now","reason":"the tool has no input schema"}]}"#);
    let unknown = app.caller("alice").tool("describe_tool", r#"{"name":"calendar__list_event"}"#).await;
    insta::assert_snapshot!(unknown.refusal(), @r#"{"tools":[],"unknown":[{"name":"calendar__list_event","nearest":["calendar__list_events"]}]}"#);
}

#[tokio::test]
async fn a_typing_error_is_refused_with_the_name_that_was_meant() {
    let (upstream, app) = office();
    insta::assert_snapshot!(app.caller("alice").call_read("mail__serch_inbox", "{}").await.refusal(), @r#"{"error":"There is no tool of that name. Did you mean 'mail__search_inbox'? Nothing was called.","nearest":["mail__search_inbox"]}"#);
    insta::assert_snapshot!(app.caller("alice").call_write("send_message", "{}").await.refusal(), @r#"{"error":"There is no tool of that name. Did you mean 'mail__send_message'? Nothing was called.","nearest":["mail__send_message"]}"#);
    assert_eq!(upstream.called(), []);
}

#[tokio::test]
async fn an_unknown_tool_is_refused_with_the_nearest_names_if_there_are_any() {
    let (upstream, app) = office();
    insta::assert_snapshot!(app.caller("alice").call_read("mail__search_messages", "{}").await.refusal(), @r#"{"error":"There is no tool of that name. Use search_tools to find the exact name. Nothing was called.","nearest":["mail__send_message","mail__search_inbox"]}"#);
    insta::assert_snapshot!(app.caller("alice").call_read("xylophone", "{}").await.refusal(), @r#"{"error":"There is no tool of that name. Use search_tools to find the exact name. Nothing was called."}"#);
    assert_eq!(upstream.called(), []);
}

#[tokio::test]
async fn t_r8_a_write_does_not_pass_the_read_gate() {
    let (upstream, app) = office_with(&["--write-tools", "calendar__*"]);
    insta::assert_snapshot!(app.caller("alice").call_read("files__delete_file", "{}").await.refusal(), @r#"{"error":"'files__delete_file' is not marked read-only. Call it with call_write_tool."}"#);
    insta::assert_snapshot!(app.caller("alice").call_read("calendar__list_events", "{}").await.refusal(), @r#"{"error":"'calendar__list_events' is not marked read-only. Call it with call_write_tool."}"#);
    assert_eq!(upstream.called(), []);
    assert!(!app.caller("alice").call_write("calendar__list_events", "{}").await.is_error());
    assert!(!app.caller("alice").call_write("mail__search_inbox", r#"{"query":"x"}"#).await.is_error());
    assert_eq!(upstream.called().len(), 2);
}

#[tokio::test]
async fn t_r6_a_name_that_is_listed_both_ways_is_a_write_and_described_both_ways() {
    let both = [reader("note", "Reads a note"), writer("note", "Writes a note")];
    let upstream = FakeUpstream::new().lists("alice", &both);
    let app = TestApp::over(&upstream, &[]);
    assert!(app.caller("alice").call_read("note", "{}").await.refusal().contains("call_write_tool"));
    assert_eq!(app.caller("alice").describe(&["note"]).await, format!(r#"{{"tools":[{}]}}"#, both.join(",")));
    let found = app.caller("alice").tool("search_tools", r#"{"query":"note"}"#).await.tool_json();
    assert_eq!(found["tools"].as_array().unwrap().len(), 1);
    assert_eq!(found["tools"][0]["readOnly"], false);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_by_place_with_what_was_probably_meant() {
    let (upstream, app) = office();
    let wrong = r#"{"recipient":"a@b.example","body":7,"priority":9}"#;
    insta::assert_snapshot!(app.caller("alice").call_write("mail__send_message", wrong).await.refusal(), @r#"{"error":"The arguments do not fit the input schema of 'mail__send_message'. Nothing was called.","problems":[{"at":"","problem":"missing required property \"to\" (a string)"},{"at":"/body","problem":"must be a string, not a number"},{"at":"/priority","problem":"must be at most 5"},{"at":"","problem":"unknown property \"recipient\"; did you mean \"to\"?"}],"inputSchema":{"type":"object","properties":{"to":{"type":"string","description":"Address of the recipient"},"body":{"type":"string"},"priority":{"type":"integer","minimum":1,"maximum":5}},"required":["to","body"],"additionalProperties":false}}"#);
    let wrong = r#"{"query":"x","folder":"inbx"}"#;
    insta::assert_snapshot!(app.caller("alice").call_read("mail__search_inbox", wrong).await.refusal(), @r#"{"error":"The arguments do not fit the input schema of 'mail__search_inbox'. Nothing was called.","problems":[{"at":"/folder","problem":"must be one of \"inbox\", \"sent\""}],"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}}"#);
    assert_eq!(upstream.called(), []);
}

#[tokio::test]
async fn t_p2_no_value_of_the_arguments_stands_in_a_refusal() {
    let (_, app) = office();
    let wrong = r#"{"to":["canary-1"],"body":{"x":"canary-2"},"priority":"canary-3","extra":"canary-4"}"#;
    let refusal = app.caller("alice").call_write("mail__send_message", wrong).await.refusal();
    assert!(refusal.contains("/priority") && !refusal.contains("canary"), "{refusal}");
}

#[tokio::test]
async fn f8_t_r9_arguments_go_out_as_the_model_wrote_them_also_out_of_a_string() {
    let (upstream, app) = office();
    let object = "{ \"query\" : \"ž\\u0061\", \"n\": 123456789012345678901234567890, \"x\":1e400}";
    for (sent, expected) in [
        (object.to_owned(), object),
        (json!(object).to_string(), object),
        (json!(format!("  {object}\n")).to_string(), object),
    ] {
        let answer = app.caller("alice").call_read("mail__search_inbox", &sent).await;
        assert!(!answer.is_error(), "{}", answer.text());
        assert_eq!(upstream.called().pop().unwrap().arguments, expected);
    }
    for sent in ["null", "\"\"", "{}"] {
        assert!(!app.caller("alice").call_read("clock__now", sent).await.is_error(), "{sent}");
        assert_eq!(upstream.called().pop().unwrap().arguments, "{}");
    }
    let absent = app.caller("alice").tool("call_read_tool", r#"{"name":"clock__now"}"#).await;
    assert!(!absent.is_error());
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused() {
    let (upstream, app) = office();
    let mut told = String::new();
    for arguments in ["[1]", "7", "\"hello\"", "\"[1]\"", r#""{\"to\":1,\"to\":2}""#] {
        told.push_str(&format!(
            "{}\n",
            app.caller("alice").call_read("clock__now", arguments).await.refusal()
        ));
    }
    insta::assert_snapshot!(told, @r#"
{"error":"arguments must be a JSON object."}
{"error":"arguments must be a JSON object."}
{"error":"arguments is a string that holds no JSON object. Send an object."}
{"error":"arguments is a string that holds no JSON object. Send an object."}
{"error":"arguments is a string of JSON in which an object has the same key twice. Send an object, each key once."}
"#);
    assert_eq!(upstream.called(), []);
}

#[tokio::test]
async fn what_the_upstream_finds_invalid_comes_back_with_the_schema() {
    let (upstream, app) = office();
    upstream.answers("mail__search_inbox", Err(rpc_failure(-32602, "folder is locked")));
    let answer = app.caller("alice").call_read("mail__search_inbox", r#"{"query":"x"}"#).await;
    insta::assert_snapshot!(answer.refusal(), @r#"{"error":"The upstream refused the call: folder is locked","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}}"#);
}

#[tokio::test]
async fn a_batch_answers_each_call_in_its_place_whatever_happens_to_the_others() {
    let (upstream, app) = office();
    upstream.answers("calendar__list_events", Err(rpc_failure(-32603, "the calendar is broken")));
    upstream.answers("clock__now", Ok("{ \"content\":[],\n \"big\": 123456789012345678901234567890 }"));
    let answer = app
        .caller("alice")
        .call_reads(&[
            ("calendar__list_events", "{}"),
            ("clock__now", "{}"),
            ("files__delete_file", "{}"),
            ("clok__now", "{}"),
            ("mail__search_inbox", "{}"),
            ("clock__now", "7"),
        ])
        .await;
    assert!(!answer.is_error());
    insta::assert_snapshot!(answer.tool_text(), @r#"
{"results":[{"name":"calendar__list_events","error":{"error":"The upstream answered with an error: the calendar is broken. Try again later."}},{"name":"clock__now","result":{ "content":[],
 "big": 123456789012345678901234567890 }},{"name":"files__delete_file","error":{"error":"'files__delete_file' is not marked read-only. Call it with call_write_tool."}},{"name":"clok__now","error":{"error":"There is no tool of that name. Did you mean 'clock__now'? Nothing was called.","nearest":["clock__now"]}},{"name":"mail__search_inbox","error":{"error":"The arguments do not fit the input schema of 'mail__search_inbox'. Nothing was called.","problems":[{"at":"","problem":"missing required property \"query\" (a string)"}],"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"folder":{"enum":["inbox","sent"]}},"required":["query"]}}},{"name":"clock__now","error":{"error":"arguments must be a JSON object."}}]}
"#);
    let mut called: Vec<String> = upstream.called().into_iter().map(|call| call.name).collect();
    called.sort();
    assert_eq!(called, ["calendar__list_events", "clock__now"]);
}

#[tokio::test]
async fn a_batch_in_which_every_call_fails_is_an_error() {
    let (_, app) = office();
    let answer = app.caller("alice").call_reads(&[("nothing", "{}"), ("files__delete_file", "{}")]).await;
    assert!(answer.is_error());
}

#[tokio::test]
async fn the_calls_of_a_batch_run_in_parallel() {
    let (upstream, app) = office();
    upstream.hold_calls(true);
    let alice = app.caller("alice");
    let batch = tokio::spawn(async move { alice.call_reads(&[("clock__now", "{}"); 10]).await });
    upstream.calls_begun(10).await;
    upstream.hold_calls(false);
    assert_eq!(batch.await.unwrap().tool_json()["results"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn t_x10_a_batch_holds_ten_calls_or_as_many_as_the_operator_says() {
    for (flags, calls_max) in [(&[][..], 10), (&["--max-batch-calls", "2"][..], 2)] {
        let (upstream, app) = office_with(flags);
        let calls = vec![("clock__now", "{}"); calls_max + 1];
        assert!(!app.caller("alice").call_reads(&calls[1..]).await.is_error());
        let refusal = app.caller("alice").call_reads(&calls).await.refusal();
        assert!(refusal.contains(&format!("with 1 to {calls_max} calls")), "{refusal}");
        assert_eq!(upstream.called().len(), calls_max);
        let listed = app.caller("alice").rpc("tools/list", "{}").await.json();
        let calls = &listed["result"]["tools"][3]["inputSchema"]["properties"]["calls"];
        assert_eq!(calls["maxItems"], calls_max);
    }
}

#[tokio::test]
async fn a_batch_limit_of_zero_leaves_the_tool_out() {
    let (upstream, app) = office_with(&["--max-batch-calls", "0"]);
    let listed = app.caller("alice").rpc("tools/list", "{}").await.json();
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["search_tools", "describe_tool", "call_read_tool", "call_write_tool"]);
    let answer = app.caller("alice").call_reads(&[("clock__now", "{}")]).await;
    assert_eq!((answer.status, answer.code()), (200, Some(-32602)));
    assert_eq!(upstream.called(), []);
}

#[tokio::test]
async fn m34_l15_an_unknown_tool_of_ours_or_wrong_params_are_a_json_rpc_error() {
    let (_, app) = office();
    for params in [
        r#"{"name":"mail__send_message"}"#,
        "{}",
        r#"{"name":7}"#,
        r#"{"name":"search_tools","arguments":[]}"#,
    ] {
        for client in [app.caller("alice"), app.caller("alice").modern()] {
            let answer = client.rpc("tools/call", params).await;
            assert_eq!((answer.status, answer.code()), (200, Some(-32602)), "{params}");
        }
    }
}

#[tokio::test]
async fn large_schemas_are_compact_in_a_search_and_whole_in_a_description() {
    let items = r#"{"type":"array","description":"Rows to add","items":{"type":"object","properties":{"cell":{"type":"string"}}}}"#;
    let schema =
        format!(r#"{{"type":"object","properties":{{"table":{{"type":"string"}},"rows":{items}}}}}"#);
    let rows = tool("table__add_rows", false, "Adds rows to a table.", &schema);
    let upstream = FakeUpstream::new().lists("alice", std::slice::from_ref(&rows));
    let at_limit = schema.len().to_string();
    let app = TestApp::over(&upstream, &["--search-schema-bytes", &at_limit]);
    let query = r#"{"query":"add rows"}"#;
    let found = app.caller("alice").tool("search_tools", query).await.tool_text();
    assert!(found.contains(&schema) && !found.contains("trimmed"), "{found}");
    let below_limit = (schema.len() - 1).to_string();
    let app = TestApp::over(&upstream, &["--search-schema-bytes", &below_limit]);
    insta::assert_snapshot!(app.caller("alice").tool("search_tools", query).await.tool_text(), @r#"{"tools":[{"name":"table__add_rows","description":"Adds rows to a table.","readOnly":false,"inputSchema":{"type":"object","properties":{"table":{"type":"string"},"rows":{"type":"array","description":"Rows to add"}}},"trimmed":["rows"]}]}"#);
    assert_eq!(app.caller("alice").describe(&["table__add_rows"]).await, format!(r#"{{"tools":[{rows}]}}"#));
}

#[tokio::test]
async fn t_d1_the_upstreams_instructions_follow_ours_up_to_the_limit_in_characters() {
    for (instructions, kept) in
        [("ąčęėį", "ąčęėį"), ("ąčęėįš", "ąčęėį\n[cut here: the instructions are longer]")]
    {
        let upstream = FakeUpstream::new();
        let listed = Listing { instructions: Some(instructions.to_owned()), ..listing(&tools()) };
        upstream.answers_listing("alice", Ok(listed));
        let app = TestApp::over(&upstream, &["--max-instructions", "5"]);
        for answer in [
            app.caller("alice").modern().rpc("server/discover", "{}").await,
            app.caller("alice").rpc("initialize", r#"{"protocolVersion":"2025-06-18"}"#).await,
        ] {
            let told = answer.json()["result"]["instructions"].as_str().unwrap().to_owned();
            assert!(told.starts_with("This server gives access to many tools"), "{told}");
            assert!(told.ends_with(&format!(":\n{kept}")), "{told}");
        }
    }
}
