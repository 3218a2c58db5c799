//! Traces, as a collector gets them.

use crate::support::{FakeMcp, PATIENCE, Proxy, Reply, Style, exchange, reader};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A request's head and body.
type Posted = (String, Vec<u8>);
type Taken = Arc<Mutex<Vec<Posted>>>;

/// Takes what is posted to it: the head of each request and its body.
struct Collector {
    address: SocketAddr,
    taken: Taken,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, taken) = (listener.local_addr().unwrap(), Taken::default());
        let taking = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let taking = Arc::clone(&taking);
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    while let Ok(read) = stream.read_buf(&mut bytes).await {
                        while let Some((taken, rest)) = whole(&bytes) {
                            taking.lock().unwrap().push(taken);
                            bytes = rest;
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                        }
                        if read == 0 {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, taken }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn batches(&self) -> Vec<ExportTraceServiceRequest> {
        let taken = self.taken.lock().unwrap();
        taken.iter().map(|(_, body)| ExportTraceServiceRequest::decode(body.as_slice()).unwrap()).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let resources = self.batches().into_iter().flat_map(|batch| batch.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

/// The first whole request, and what is behind it.
fn whole(bytes: &[u8]) -> Option<(Posted, Vec<u8>)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let length: usize = length.trim().parse().unwrap();
    let body = bytes.get(end..end + length)?;
    Some(((head, body.to_vec()), bytes[end + length..].to_vec()))
}

fn call(tool: &str, arguments: &str, flags: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer canary-token\r\n\
         traceparent: 00-{TRACE}-{PARENT}-{flags}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    found.map(|attribute| format!("{:?}", attribute.value)).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn upstream() -> FakeMcp {
    FakeMcp::scripted(Style::Modern, &[reader("canary__search", "Searches canaries")], |request| {
        let is_broken = request.json().to_string().contains("canary-broken");
        (request.method() == "tools/call" && is_broken).then(|| Reply::json(500, "{}"))
    })
    .await
}

#[tokio::test]
async fn a_trace_goes_through_both_hops_and_holds_nothing_private() {
    let (collector, upstream) = (Collector::start().await, upstream().await);
    let proxy = Proxy::serve(&upstream.url(), &["--otlp-endpoint", &collector.url()]).await;
    for (tool, arguments) in [
        ("search_tools", r#"{"query":"canary-query"}"#),
        ("call_read_tool", r#"{"name":"canary__search","arguments":{"text":"canary-argument"}}"#),
        ("call_read_tool", r#"{"name":"canary__search","arguments":{"text":"canary-broken"}}"#),
    ] {
        exchange(proxy.address, call(tool, arguments, "01")).await;
    }
    // What is still waiting goes out when the process stops.
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.0, Some(0));

    let spans = collector.spans();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let count = |name: &str| named(name).len();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        [
            "tools/call search_tools",
            "tools/call call_read_tool",
            "catalogue",
            "search",
            "upstream list",
            "upstream call"
        ]
        .map(count),
        [1, 2, 3, 1, 1, 2],
        "{names:?}"
    );
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:?}");
    let request = named("tools/call search_tools")[0];
    assert_eq!((hex(&request.parent_span_id).as_str(), request.kind), (PARENT, 2));
    assert!(attribute(request, "toolsearch.outcome").contains("ok"), "{request:?}");
    assert_eq!(named("search")[0].parent_span_id, request.span_id);
    assert_eq!(named("upstream list")[0].kind, 3);
    assert!(spans.iter().all(|span| span.events.is_empty()), "{spans:?}");

    // The upstream is told of the span that asks it, in both forms.
    let calls = upstream.requests("tools/call");
    for (call, span) in calls.iter().zip(named("upstream call")) {
        let expected = format!("00-{TRACE}-{}-01", hex(&span.span_id));
        assert_eq!(call.header("traceparent"), Some(expected.as_str()));
        assert_eq!(call.json()["params"]["_meta"]["traceparent"], expected);
    }
    let broken = named("upstream call")[1];
    assert!(attribute(broken, "toolsearch.outcome").contains("status"), "{broken:?}");
    assert_eq!(broken.status.as_ref().map(|status| status.code), Some(2));

    let taken = collector.taken.lock().unwrap();
    for (head, body) in taken.iter() {
        assert!(head.starts_with("post /v1/traces ") && head.contains("application/x-protobuf"), "{head}");
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains("canary") && text.contains("toolsearch-proxy"), "{text}");
        assert!(!head.contains("canary"), "{head}");
    }
}

#[tokio::test]
async fn a_request_that_is_not_marked_for_tracing_is_not_traced_and_passes_its_mark_on() {
    let (collector, upstream) = (Collector::start().await, upstream().await);
    let proxy = Proxy::serve(&upstream.url(), &["--otlp-endpoint", &collector.url()]).await;
    exchange(proxy.address, call("call_read_tool", r#"{"name":"canary__search"}"#, "00")).await;
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.0, Some(0));
    assert!(collector.spans().is_empty());
    let call = &upstream.requests("tools/call")[0];
    let traceparent = call.header("traceparent").unwrap();
    assert!(
        traceparent.starts_with(&format!("00-{TRACE}-")) && traceparent.ends_with("-00"),
        "{traceparent}"
    );
}

#[tokio::test]
async fn a_collector_that_is_gone_is_told_once_and_costs_nothing_else() {
    let upstream = upstream().await;
    let proxy = Proxy::serve(&upstream.url(), &["--otlp-endpoint", "http://127.0.0.1:1"]).await;
    let answer = exchange(proxy.address, call("search_tools", r#"{"query":"canaries"}"#, "01")).await;
    assert!(answer.0.starts_with("HTTP/1.1 200") && answer.1.contains("canary__search"), "{answer:?}");
    proxy.signal("TERM");
    let (code, lines) = tokio::time::timeout(PATIENCE, proxy.exit()).await.unwrap();
    let told = lines.iter().filter(|line| line.contains("traces can't be sent to --otlp-endpoint")).count();
    assert_eq!((code, told), (Some(0), 1), "{lines:?}");
}

#[tokio::test]
async fn where_traces_go_must_be_a_base_without_secrets() {
    for (endpoint, word) in [
        ("collector:4318", "must start with"),
        ("https://me:secret@collector", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("https://collector/?key=1", "leave it out"),
        ("https://collector/v1/traces", "which is added"),
    ] {
        let args = ["serve", "--upstream", "http://localhost", "--otlp-endpoint", endpoint];
        let output = Proxy::run(&args, &[]).await;
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(word) && !told.contains("secret"), "{told}");
    }
    let args = ["serve", "--upstream", "http://localhost", "--otlp-sample-percent", "101"];
    assert_eq!(Proxy::run(&args, &[]).await.status.code(), Some(2));
}
