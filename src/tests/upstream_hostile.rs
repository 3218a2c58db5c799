//! Bodies that lie about their length or grow when they are read, redirects, and names with several addresses.

use crate::support::{FakeMcp, FakeUpstream, Recorded, Reply, Style, TestApp, event, message, reader};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const RESULT: &str = r#"{"resultType":"complete","content":[]}"#;

/// Answers with this message, told in some odd way.
type Telling = fn(&str) -> Reply;

async fn answering(
    flags: &[&str],
    answer: impl Fn(&Recorded) -> Option<Reply> + Send + Sync + 'static,
) -> (FakeMcp, TestApp) {
    let script = move |request: &Recorded| {
        if request.method() == "tools/call" { answer(request) } else { None }
    };
    let server = FakeMcp::scripted(Style::Modern, &[reader("ask", "Asks")], script).await;
    let app = TestApp::at(&server.url(), flags);
    (server, app)
}

fn head(headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}\r\n\r\n")
}

#[tokio::test]
async fn t_x2_a_length_that_lies_is_an_error_and_the_next_caller_is_served() {
    let bodies: [(&str, Telling); 8] = [
        ("longer than the body", |body| {
            Reply::raw(head(&format!("Content-Length: {}", body.len() + 9)) + body).then_close()
        }),
        ("shorter than the body", |body| {
            Reply::raw(head(&format!("Content-Length: {}", body.len() - 9)) + body)
        }),
        ("over the limit", |_| Reply::raw(head("Content-Length: 3000") + "{").then_hang()),
        ("over any limit", |_| Reply::raw(head("Content-Length: 18446744073709551615") + "{").then_hang()),
        ("two lengths", |body| {
            let length = body.len();
            Reply::raw(head(&format!("Content-Length: {length}\r\nContent-Length: 3")) + body)
        }),
        ("no number", |body| Reply::raw(head("Content-Length: many") + body)),
        ("chunks without end", |_| {
            let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
            Reply::raw(head("Transfer-Encoding: chunked") + &chunk.repeat(30)).then_hang()
        }),
        ("a chunk of any size", |_| {
            Reply::raw(head("Transfer-Encoding: chunked") + "fffffffffffffff0\r\nxx").then_close()
        }),
    ];
    for (name, reply) in bodies {
        let (_server, app) = answering(&["--max-response-bytes", "2000"], move |request| {
            (request.token() == "alice").then(|| reply(&message(request, RESULT)))
        })
        .await;
        app.caller("bob").search("ask").await;
        for _ in 0..3 {
            let refusal = app.caller("alice").call_read("ask", "{}").await.refusal();
            assert!(refusal.contains("The upstream"), "{name}: {refusal}");
            let bob = app.caller("bob").call_read("ask", "{}").await;
            assert!(!bob.is_error() && bob.tool_text().contains("bob called"), "{name}: {}", bob.text());
        }
    }
}

#[tokio::test]
async fn t_x3_what_is_compressed_is_opened_on_neither_side() {
    // A gzip member whose content is as large as its last four bytes say: 4 GB.
    let bomb = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x63\x60\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";
    for encoding in ["gzip", "br", "zstd", "deflate", "GZIP", "gzip, identity", "x-unknown"] {
        let (server, app) = answering(&[], move |_| {
            let head = head(&format!("Content-Encoding: {encoding}\r\nContent-Length: {}", bomb.len()));
            Some(Reply::raw([head.as_bytes(), bomb].concat()))
        })
        .await;
        let refusal = app.caller("alice").call_read("ask", "{}").await.refusal();
        assert!(refusal.contains("compressed"), "{encoding}: {refusal}");
        assert!(server.log().iter().all(|request| request.header("accept-encoding") == Some("identity")));
        let inbound = app.caller("alice").post(&[("content-encoding", encoding)], &bomb[..]).await;
        assert_eq!(inbound.status, 415, "{encoding}");
    }
}

#[tokio::test]
async fn t_x4_a_hundred_thousand_events_are_read_and_not_one_more() {
    for (notices, fits) in [(99_999, true), (100_000, false)] {
        let (_server, app) = answering(&[], move |request| {
            let mut events = String::new();
            for _ in 0..notices {
                events.push_str("data:{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
            }
            write!(events, "{}", event(&message(request, RESULT))).unwrap();
            Some(Reply::sse(&events, 1 << 20))
        })
        .await;
        let answer = app.caller("alice").call_read("ask", "{}").await;
        assert_eq!(!answer.is_error(), fits, "{notices}: {}", answer.text());
        assert!(fits || answer.text().contains("more than 100,000 events"), "{}", answer.text());
    }
}

#[tokio::test]
async fn f22_t_h3_no_redirect_is_followed_and_none_is_told() {
    let elsewhere = FakeMcp::start(Style::Modern, &[]).await;
    let other = elsewhere.url();
    for status in [300, 301, 302, 303, 304, 307, 308] {
        for target in ["/mcp/other", "//127.0.0.1:9/canary", other.as_str(), "http://gateway.example/canary"]
        {
            let location = format!("Location: {target}\r\n");
            let (server, app) = answering(&[], move |_| Some(Reply::http(status, &location, ""))).await;
            let answer = app.caller("alice").call_write("ask", r#"{"secret":1}"#).await;
            let refusal = answer.refusal();
            assert!(refusal.contains(&format!("HTTP {status}")) && !refusal.contains("canary"), "{refusal}");
            assert_eq!(answer.headers.get("location"), None);
            assert_eq!(server.requests("tools/call").len(), 1, "{status} {target}");
            assert!(server.log().iter().all(|request| request.target == "/mcp"));
        }
    }
    assert!(elsewhere.log().is_empty());
}

#[tokio::test]
async fn t_h6_each_address_of_a_name_is_tried() {
    // `localhost` has an address of each kind where the system has both; only one of them is listened on.
    let server = FakeMcp::start(Style::Modern, &[reader("ask", "Asks")]).await;
    let app = TestApp::at(&format!("http://localhost:{}/mcp", server.address().port()), &[]);
    assert_eq!(app.caller("alice").search("ask").await, ["ask"]);
}

#[tokio::test]
async fn t_x5_an_object_has_ten_thousand_keys_and_not_one_more() {
    let app = TestApp::over(&FakeUpstream::new(), &[]);
    for (keys, expected) in [(10_000, 200), (10_001, 400)] {
        let members: Vec<String> = (0..keys).map(|i| format!("\"k{i}\":1")).collect();
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{{}}}}}"#, members.join(","));
        assert_eq!(app.anonymous().post(&[], body).await.status, expected, "{keys}");
    }
}

#[tokio::test]
async fn t_r8_no_write_leaves_in_a_batch_of_reads_whatever_stands_beside_it() {
    let upstream = FakeUpstream::new();
    let tools = [reader("look", "Looks"), crate::support::writer("change", "Changes")];
    let upstream = upstream.lists("alice", &tools);
    let app = TestApp::over(&upstream, &[]);
    let spellings = ["look", "change", "Change", " change", "change ", "chang", "lоok", "change\\u0000"];
    let reads = Arc::new(AtomicUsize::new(0));
    for round in 0..500_usize {
        let count = 1 + round % 10;
        let calls: Vec<(&str, &str)> =
            (0..count).map(|i| (spellings[(round * 7 + i * 3 + round / 8) % 8], "{}")).collect();
        reads.fetch_add(calls.iter().filter(|call| call.0 == "look").count(), Ordering::Relaxed);
        let calls: Vec<String> = calls
            .iter()
            .map(|(name, arguments)| format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
            .collect();
        app.caller("alice").tool("call_read_tools", &format!(r#"{{"calls":[{}]}}"#, calls.join(","))).await;
    }
    let called = upstream.called();
    assert!(called.iter().all(|call| call.name == "look"));
    assert_eq!(called.len(), reads.load(Ordering::Relaxed));
}
