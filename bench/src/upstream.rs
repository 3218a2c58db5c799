//! The upstream of the whole-process benches: this program again, as a modern MCP server that answers from memory.
//!
//! A token says which listing its caller has: `Bearer c<caller>-<kind><number>`. Kind `n` is the first `number` tools, `s`
//! one of twenty subsets of 1,000 tools among 5,000, `d` a subset of its own.

use crate::catalogue;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Tools that subsets are drawn from, and how many each has.
pub const POOL: usize = 5_000;
pub const SUBSET: usize = 1_000;

/// A tool that anyone may call, first in every listing.
const READ: &str = r#"{"name":"bench__read","description":"Reads something.","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}},"annotations":{"readOnlyHint":true}}"#;

struct Upstream {
    tools: Vec<Bytes>,
    /// The result of a call, by its size in KiB: 1 or 1,024.
    small: String,
    large: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Serves until standard input ends; prints its address first.
///
/// # Errors
/// When no port can be bound or the tools can't be made.
pub async fn run(tools: usize) -> Result<(), String> {
    let result = |bytes: usize| {
        format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(bytes))
    };
    let upstream = Arc::new(Upstream {
        tools: catalogue::tools(tools)?,
        small: result(1 << 10),
        large: result(1 << 20),
    });
    let router = axum::Router::new().route("/mcp", any(answer)).with_state(upstream);
    serve(router).await
}

/// Serves a router on a port of its own, as an axum program does, until standard input ends.
pub async fn serve(router: axum::Router) -> Result<(), String> {
    let listener =
        TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.map_err(|e| e.to_string())?;
    println!("{}", listener.local_addr().map_err(|error| error.to_string())?);
    let service = hyper_util::service::TowerToHyperService::new(router);
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _best_effort = stream.set_nodelay(true);
            let service = service.clone();
            tokio::spawn(async move {
                let io = hyper_util::rt::TokioIo::new(stream);
                let _ended = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
            });
        }
    };
    let ended = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::select! {
        () = accept => Ok(()),
        _ = ended => Ok(()),
    }
}

async fn answer(State(upstream): State<Arc<Upstream>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else { return json("{}".to_owned()) };
    let id = message.id.map_or("null", RawValue::get);
    let result = match message.method {
        "server/discover" => {
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#
                .to_owned()
        }
        "tools/list" => {
            format!(
                r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"private","tools":[{}]}}"#,
                listing(&upstream, &parts.headers)
            )
        }
        _ => {
            let large = message.params.is_some_and(|params| params.get().contains("large result"));
            if large { upstream.large.clone() } else { upstream.small.clone() }
        }
    };
    json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn json(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn listing(upstream: &Upstream, headers: &HeaderMap) -> String {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = token.rsplit_once('-').map_or("n1000", |(_, kind)| kind);
    let number = kind.get(1..).and_then(|number| number.parse().ok()).unwrap_or(SUBSET);
    let pool = POOL.min(upstream.tools.len());
    let picked: Vec<usize> = match kind.get(..1) {
        Some("s") => catalogue::subset(number % 20, SUBSET.min(pool), pool),
        Some("d") => catalogue::subset(number + 1_000, SUBSET.min(pool), pool),
        _ => (0..number.min(upstream.tools.len())).collect(),
    };
    let mut text = String::with_capacity(picked.len() * 700);
    text.push_str(READ);
    for place in picked {
        text.push(',');
        text.push_str(std::str::from_utf8(&upstream.tools[place]).unwrap_or("{}"));
    }
    text
}
