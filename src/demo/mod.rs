//! `toolsearch-proxy demo`: the whole thing on a laptop, with a made-up upstream.
//!
//! The upstream is an MCP server on a port of its own, spoken to over HTTP like any other, with the tools of
//! `model/eval/` and two callers who see different ones.

mod upstream;

use crate::app::{App, Listeners, StartError, Stop};
use crate::config::{Cli, Command, ConfigError, DemoArgs, ServeConfig};
use clap::Parser;
use serde_json::{Value, json};
use std::future::Future;
use std::io::Write as _;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// A caller who sees every tool.
pub const ALICE: &str = "demo-alice";
/// A caller who sees the office and everyday services only.
pub const BOB: &str = "demo-bob";

/// The demonstration ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// No port could be bound.
    #[error("no port can be listened on: {0}")]
    Port(#[from] std::io::Error),
    /// The proxy did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The settings of the demonstration are not accepted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The first search got no answer.
    #[error("the first search failed: {0}")]
    Search(String),
}

/// Starts everything, searches once, tells how to connect, and serves until `stop` completes.
///
/// # Errors
/// When a port can't be had or the first search gets no answer.
pub async fn run(args: DemoArgs, stop: impl Future<Output = Stop>) -> Result<(), DemoError> {
    let upstream = TcpListener::bind("127.0.0.1:0").await?;
    let upstream_url = format!("http://{}/mcp", upstream.local_addr()?);
    tokio::spawn(crate::server::serve(
        upstream,
        upstream::router(),
        crate::server::ServeOptions::small(),
        std::future::pending(),
    ));

    let config = config(&upstream_url)?;
    let app = App::new(&config)?;
    let listeners = match Listeners::bind(args.listen, config.admin_listen).await {
        Ok(listeners) => listeners,
        Err(_) => Listeners::bind(SocketAddr::new(args.listen.ip(), 0), config.admin_listen).await?,
    };
    let address = listeners.mcp_address().unwrap_or(args.listen);
    let answer = search(&app, &args.query).await?;
    show(&first_page(&upstream_url, address, &args.query, &answer));
    if args.exit {
        return Ok(());
    }
    show("\nServing. Stop with Ctrl-C.\n");
    app.serve(listeners, stop).await;
    Ok(())
}

/// Whoever reads it, such as `head`, may have seen enough; the demonstration goes on.
fn show(text: &str) {
    let _reader_may_be_gone = std::io::stdout().write_all(text.as_bytes());
}

/// The settings of `serve` with the made-up upstream.
fn config(upstream_url: &str) -> Result<ServeConfig, DemoError> {
    let args = ["toolsearch-proxy", "serve", "--upstream", upstream_url, "--admin-listen", "127.0.0.1:0"];
    match Cli::parse_from(args).command {
        Command::Serve(serve) => Ok(serve.check([])?),
        _ => unreachable!("the arguments say serve"),
    }
}

/// One search as Alice, through the proxy's own routes.
async fn search(app: &App, query: &str) -> Result<Value, DemoError> {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let failed = |what: &str| DemoError::Search(what.to_owned());
    let request = http::Request::post("/mcp/search")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {ALICE}"))
        .header("content-type", "application/json")
        .body(Body::from(search_message(query).to_string()))
        .map_err(|_| failed("the request can't be made"))?;
    let response = app.router().oneshot(request).await.unwrap_or_else(|never| match never {});
    let body = response.into_body().collect().await.map_err(|_| failed("the answer broke off"))?.to_bytes();
    let answer: Value = serde_json::from_slice(&body).map_err(|_| failed("the answer is not JSON"))?;
    let text = answer["result"]["content"][0]["text"].as_str().ok_or_else(|| failed(&answer.to_string()))?;
    let found: Value = serde_json::from_str(text).map_err(|_| failed("the answer's text is not JSON"))?;
    found.get("tools").is_some().then_some(found).ok_or_else(|| failed(text))
}

fn search_message(query: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_tools", "arguments": {"query": query}}})
}

/// What a person reads after the start.
fn first_page(upstream_url: &str, address: SocketAddr, query: &str, answer: &Value) -> String {
    let (alice, bob) = upstream::tool_counts();
    let url = format!("http://{address}/mcp/search");
    let mut page = format!(
        "A made-up MCP server at {upstream_url} has {alice} tools for the token {ALICE} and {bob} for {BOB}.\n\
         The proxy in front of it shows a model five tools instead. What a model gets for\n\n  search_tools \"{query}\"\n\n"
    );
    for (rank, tool) in answer["tools"].as_array().into_iter().flatten().enumerate() {
        page.push_str(&hit(rank + 1, tool));
    }
    if let Some(hint) = answer["hint"].as_str() {
        page.push_str(&format!("  {hint}\n"));
    }
    let client = format!(
        r#"{{
  "mcpServers": {{
    "toolsearch": {{
      "type": "http",
      "url": "{url}",
      "headers": {{ "Authorization": "Bearer {ALICE}" }}
    }}
  }}
}}"#
    );
    let message = search_message("rotate a password").to_string();
    page.push_str(&format!(
        "\nConnect a client with\n\n{client}\n\nor ask by hand:\n\n  curl -s {url} \\\n    -H 'Authorization: Bearer {ALICE}' -H 'Content-Type: application/json' \\\n    -d '{message}'\n"
    ));
    page
}

/// One hit as two or three lines.
fn hit(rank: usize, tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap_or_default();
    let kind = if tool["readOnly"] == true { "read" } else { "write" };
    let description = tool["description"].as_str().unwrap_or_default();
    let arguments = tool["inputSchema"]["properties"].as_object();
    let arguments = arguments.map(|arguments| arguments.keys().cloned().collect::<Vec<_>>().join(", "));
    let mut lines = format!("{rank:>3}. {name}  ({kind})\n     {description}\n");
    if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
        lines.push_str(&format!("     arguments: {arguments}\n"));
    }
    lines
}
