//! Batches of messages, which only 2025-03-26 has.

use crate::support::{Answer, FakeUpstream, TestApp, challenge, writer};
use axum::body::Body;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

async fn post(headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    TestApp::over(&FakeUpstream::new(), &[]).anonymous().post(headers, body).await
}

#[tokio::test]
async fn l11_batches_belong_to_one_version_alone() {
    let batch = format!("[{LIST}]");
    for version in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let answer = post(&[("mcp-protocol-version", version)], batch.clone()).await;
        assert_eq!(gist_of_array(&answer), (400, Some(-32600)), "{version}");
    }
    for headers in [&[][..], &[("mcp-protocol-version", "2025-03-26")][..]] {
        let answer = post(headers, batch.clone()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json().as_array().unwrap().len(), 1);
    }
    let unknown = post(&[("mcp-protocol-version", "1999-01-01")], batch).await;
    assert_eq!(gist_of_array(&unknown), (400, Some(-32022)));
}

fn gist_of_array(answer: &Answer) -> (u16, Option<i64>) {
    (answer.status, answer.code())
}

#[tokio::test]
async fn l11_each_message_of_a_batch_is_answered_for_itself() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},7,
        {"jsonrpc":"2.0","id":"x","method":"nope"},{"jsonrpc":"2.0","id":9,"result":{}},
        {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]"#;
    let answer = post(&[], batch).await;
    insta::assert_snapshot!(answer.text(), @r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","error":{"code":-32600,"message":"the body is not a JSON-RPC 2.0 message: send one object"}},{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"this server has no such method in this protocol version: it serves tools/list and tools/call"}},{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"initialize must not be part of a batch"}}]"#);
    let notifications =
        r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"x"}]"#;
    let answer = post(&[], notifications).await;
    assert_eq!((answer.status, answer.text()), (202, ""));
}

#[tokio::test]
async fn l11_t_x10_a_batch_holds_twenty_messages_and_not_twenty_one() {
    let batch =
        |count: usize| format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; count].join(","));
    assert_eq!(post(&[], batch(20)).await.json().as_array().unwrap().len(), 20);
    for count in [0, 21] {
        assert_eq!(gist_of_array(&post(&[], batch(count)).await), (400, Some(-32600)), "{count}");
    }
}

#[tokio::test]
async fn l11_a_batch_in_which_a_login_is_needed_is_a_challenge() {
    let upstream = FakeUpstream::new().answers_listing("", Err(challenge(401)));
    let app = TestApp::over(&upstream, &[]);
    let search = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"x"}}}"#;
    let answer = app.anonymous().post(&[], format!("[{LIST},{search}]")).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.values("www-authenticate").len(), 1);
}

#[tokio::test]
async fn l11_a_batch_that_called_a_tool_answers_each_message_though_one_was_refused() {
    let upstream = FakeUpstream::new().lists("alice", &[writer("a", "Does"), writer("b", "Does")]);
    upstream.answers("b", Err(challenge(403)));
    let app = TestApp::over(&upstream, &[]);
    let call = |id: u8, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"call_write_tool","arguments":{{"name":"{name}"}}}}}}"#
        )
    };
    let batch = format!("[{},{},{}]", call(1, "a"), call(2, "b"), call(3, "a"));
    let answer = app.caller("alice").post(&[], batch).await;
    assert_eq!(answer.status, 200);
    let answers = answer.json();
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert!(answers[1]["error"].is_object() && answers[0]["result"].is_object(), "{answers}");
    let refused = app.caller("alice").post(&[], format!("[{}]", call(2, "b"))).await;
    assert_eq!(refused.status, 403);
}
