//! The whole proxy over an upstream that answers as it is told.

use crate::two_parts;
use crate::upstream::{Told, runtime};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;
use toolsearch_proxy::app::App;
use toolsearch_proxy::config::{Cli, Command};
use toolsearch_proxy::mcp::{Era, JsonLimits, check_json, resource_metadata, with_resource_metadata};
use toolsearch_proxy::upstream::{FailureStage, Listing, RpcFailure, UpstreamError};
use tower::ServiceExt;

const TOOLS: [&str; 2] = [
    r#"{"name":"look","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"at":{"type":"string"}}}}"#,
    r#"{"name":"change","description":"Changes it."}"#,
];
/// What a request may not exceed.
const LIMITS: JsonLimits = JsonLimits { depth_max: 64, keys_max: 10_000 };
/// Stands in arguments, and must come back in no error.
const CANARY: &str = "kanarienvogel";

struct Proxy {
    runtime: Runtime,
    router: axum::Router,
    upstream: Arc<Told>,
    message: Arc<Mutex<String>>,
}

impl Proxy {
    fn new() -> Self {
        let args = ["toolsearch-proxy", "serve", "--upstream", "http://localhost:1/", "--embedder", "none"];
        let Ok(Cli { command: Command::Serve(serve) }) = Cli::read(args.into_iter().map(OsString::from))
        else {
            panic!("the arguments say serve")
        };
        let config = serve.check([]).expect("the settings are sound");
        let message: Arc<Mutex<String>> = Arc::default();
        let told = Arc::clone(&message);
        let tools: Vec<Bytes> = TOOLS.iter().map(|tool| Bytes::from_static(tool.as_bytes())).collect();
        let upstream = Arc::new(Told {
            lists: Box::new(move |_| {
                Ok(Listing { tools: tools.clone(), instructions: None, ttl: None, era: Era::Legacy })
            }),
            answers: Box::new(move |_| {
                let message = told.lock().unwrap().clone();
                if message.is_empty() {
                    return Ok(Bytes::from_static(br#"{"content":[]}"#));
                }
                Err(UpstreamError::Rpc(RpcFailure {
                    http_status: 200,
                    code: -32602,
                    message,
                    data: None,
                    stage: FailureStage::Read,
                }))
            }),
            called: Mutex::default(),
        });
        let runtime = runtime(false);
        let router =
            runtime.block_on(async { App::with_upstream(&config, Arc::clone(&upstream) as _).router() });
        Self { runtime, router, upstream, message }
    }

    fn post(&self, headers: &[(&'static str, &str)], body: &[u8]) -> (u16, Bytes) {
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", "Bearer a");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_vec())).expect("the headers are valid");
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.expect("the router answers");
            (
                response.status().as_u16(),
                response.into_body().collect().await.expect("a whole body").to_bytes(),
            )
        })
    }
}

thread_local! {
    static PROXY: Proxy = Proxy::new();
}

/// Any body gets an answer in JSON. What reaches the upstream was one strict reading, and no write was called by a
/// tool for reads. The first byte chooses the headers.
pub fn inbound(data: &[u8]) {
    let Some((&first, body)) = data.split_first() else { return };
    let headers: &[(&'static str, &str)] = match first % 4 {
        0 => &[],
        1 => &[("mcp-protocol-version", "2025-03-26")],
        2 => &[("mcp-protocol-version", "2025-11-25")],
        _ => &[
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "call_read_tool"),
        ],
    };
    PROXY.with(|proxy| {
        let (status, answer) = proxy.post(headers, body);
        assert!(matches!(status, 200 | 202 | 400 | 404 | 500), "{status}");
        assert_ne!(status, 500, "something panicked");
        assert!(answer.is_empty() || serde_json::from_slice::<serde_json::Value>(&answer).is_ok());
        let called: Vec<_> = std::mem::take(&mut *proxy.upstream.called.lock().unwrap());
        if !called.is_empty() {
            assert!(check_json(body, LIMITS).is_ok());
        }
        for (name, arguments) in called {
            assert!(arguments.starts_with('{') && check_json(arguments.as_bytes(), LIMITS).is_ok());
            let has = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
            // A name can be spelled with escapes.
            assert!(name == "look" || has("call_write_tool") || has("\\u"), "{name} was called");
        }
    });
}

/// Any challenge stays a header, and has our URL where it had one; any message of the upstream becomes a short answer
/// without the caller's arguments in it. The first line is the challenge, the rest the message.
pub fn challenge(data: &[u8]) {
    let (challenge, message) = two_parts(data);
    if let Ok(challenge) = HeaderValue::from_bytes(challenge) {
        let url = "https://proxy.example/.well-known/oauth-protected-resource/mcp";
        let named = resource_metadata(&challenge).is_some();
        let changed = with_resource_metadata(&challenge, url);
        if named {
            assert_eq!(resource_metadata(&changed), Some(url));
        }
        assert_eq!(with_resource_metadata(&changed, url), changed);
    }
    let message = String::from_utf8_lossy(message);
    if message.is_empty() || message.contains(CANARY) {
        return;
    }
    PROXY.with(|proxy| {
        *proxy.message.lock().unwrap() = message.into_owned();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call_read_tool","arguments":{{"name":"look","arguments":{{"at":"{CANARY}"}}}}}}}}"#
        );
        let (status, answer) = proxy.post(&[], body.as_bytes());
        proxy.message.lock().unwrap().clear();
        proxy.upstream.called.lock().unwrap().clear();
        let text = std::str::from_utf8(&answer).expect("an answer is text");
        let parsed: serde_json::Value = serde_json::from_str(text).expect("an answer is JSON");
        assert!(status == 200 && parsed["result"]["isError"] == true, "{text}");
        assert!(!text.contains(CANARY) && text.len() < 32 * 1024, "{text}");
    });
}
