//! The real router in process, and the requests that tests send to it.

use super::{FakeUpstream, until};
use axum::body::Body;
use bytes::Bytes;
use clap::Parser;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolsearch_proxy::app::{App, Certificates, Listeners, Stop};
use toolsearch_proxy::catalog::CatalogCache;
use toolsearch_proxy::config::{Cli, Command, ServeConfig};
use toolsearch_proxy::upstream::Upstream;
use tower::ServiceExt;

const MODERN: &str = "2026-07-28";

/// The settings that these flags of `serve` make. Words alone are compared unless a flag says otherwise, so that a
/// test can tell what is found.
fn config(upstream: &str, flags: &[&str]) -> ServeConfig {
    let mut args = vec!["toolsearch-proxy", "serve", "--upstream", upstream];
    if !flags.contains(&"--embedder") {
        args.extend(["--embedder", "none"]);
    }
    args.extend(flags);
    let Command::Serve(serve) = Cli::try_parse_from(args).unwrap().command else {
        panic!("the arguments say serve")
    };
    serve.check([]).unwrap()
}

/// The proxy without a socket. Clones are the same proxy.
#[derive(Clone)]
pub(crate) struct TestApp(Arc<Inner>);

struct Inner {
    router: axum::Router,
    catalogs: Arc<CatalogCache>,
    certificates: Option<Arc<Certificates>>,
    /// How many hold the catalogues while no listing is under way: each listing holds them too.
    holders_at_rest: usize,
}

impl TestApp {
    /// The proxy in front of a fake behind the `Upstream` trait.
    pub(crate) fn over(upstream: &Arc<FakeUpstream>, flags: &[&str]) -> Self {
        let config = config("http://localhost:1/", flags);
        Self::of(&App::with_upstream(&config, Arc::clone(upstream) as _))
    }

    /// The proxy in front of any upstream.
    pub(crate) fn with(upstream: Arc<dyn Upstream>, flags: &[&str]) -> Self {
        Self::of(&App::with_upstream(&config("http://localhost:1/", flags), upstream))
    }

    /// The proxy with its own HTTP client, in front of a URL.
    pub(crate) fn at(url: &str, flags: &[&str]) -> Self {
        Self::of(&App::new(&config(url, flags)).unwrap())
    }

    /// Why the proxy can't be put together.
    pub(crate) fn fails_at(url: &str, flags: &[&str]) -> String {
        App::new(&config(url, flags)).err().expect("the settings can't be used").to_string()
    }

    fn of(app: &App) -> Self {
        let catalogs = Arc::clone(app.catalogs());
        let router = app.router();
        // The app's own handle goes with it, and every clone of the router shares the server's.
        let holders_at_rest = Arc::strong_count(&catalogs);
        let certificates = app.certificates().cloned();
        Self(Arc::new(Inner { router, catalogs, certificates, holders_at_rest }))
    }

    /// Looks for changed certificates, as the process does every few seconds.
    pub(crate) fn look_at_certificates(&self) {
        self.0.certificates.as_ref().expect("a flag names files of certificates").look_again();
    }

    pub(crate) fn catalogs(&self) -> &CatalogCache {
        &self.0.catalogs
    }

    /// Waits until no listing is under way, so that everything that will be published is.
    pub(crate) async fn settle(&self) {
        until("the end of all listings", || Arc::strong_count(&self.0.catalogs) <= self.0.holders_at_rest)
            .await;
    }

    /// Whoever sends `Authorization: Bearer <name>`.
    pub(crate) fn caller(&self, name: &str) -> Client {
        self.with_authorization(Some(format!("Bearer {name}")))
    }

    /// Whoever sends no credentials.
    pub(crate) fn anonymous(&self) -> Client {
        self.with_authorization(None)
    }

    fn with_authorization(&self, authorization: Option<String>) -> Client {
        Client { app: self.clone(), authorization, version: None }
    }

    /// Sends any request.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.0.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

/// A caller with a client that speaks one version.
#[derive(Clone)]
pub(crate) struct Client {
    app: TestApp,
    authorization: Option<String>,
    version: Option<&'static str>,
}

impl Client {
    /// The same caller with a client of the modern era.
    pub(crate) fn modern(&self) -> Self {
        self.version(MODERN)
    }

    /// The same caller with a client of that version.
    pub(crate) fn version(&self, version: &'static str) -> Self {
        Self { version: Some(version), ..self.clone() }
    }

    /// Posts a body with our usual headers and some more.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let mut request = Request::post("/mcp/search")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.app.send(request.body(body.into()).unwrap()).await
    }

    /// Sends a request with these params, a JSON object, in the client's version.
    pub(crate) async fn rpc(&self, method: &str, params: &str) -> Answer {
        let members: HashMap<&str, &RawValue> = serde_json::from_str(params).unwrap();
        let name = members.get("name").map_or("", |name| name.get().trim_matches('"'));
        let (params, headers) = match self.version {
            Some(MODERN) => {
                let mut headers =
                    vec![("mcp-protocol-version", MODERN), ("mcp-method", method), ("mcp-name", name)];
                headers.truncate(if method == "tools/call" { 3 } else { 2 });
                (with_meta(params), headers)
            }
            Some(version) => (params.to_owned(), vec![("mcp-protocol-version", version)]),
            None => (params.to_owned(), vec![]),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        self.post(&headers, body).await
    }

    /// Calls one of the five tools.
    pub(crate) async fn tool(&self, name: &str, arguments: &str) -> Answer {
        self.rpc("tools/call", &format!(r#"{{"name":"{name}","arguments":{arguments}}}"#)).await
    }

    /// The names that a search finds, in their order.
    pub(crate) async fn search(&self, query: &str) -> Vec<String> {
        let answer = self.tool("search_tools", &json!({ "query": query }).to_string()).await;
        answer.tool_json()["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("no search answer: {}", answer.text()))
            .iter()
            .map(|hit| hit["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The text of a `describe_tool` answer.
    pub(crate) async fn describe(&self, names: &[&str]) -> String {
        self.describe_answer(names).await.tool_text()
    }

    pub(crate) async fn describe_answer(&self, names: &[&str]) -> Answer {
        self.tool("describe_tool", &json!({ "names": names }).to_string()).await
    }

    pub(crate) async fn call_read(&self, name: &str, arguments: &str) -> Answer {
        self.tool("call_read_tool", &inner(name, arguments)).await
    }

    pub(crate) async fn call_write(&self, name: &str, arguments: &str) -> Answer {
        self.tool("call_write_tool", &inner(name, arguments)).await
    }

    /// Calls several read-only tools; each is a name and its arguments.
    pub(crate) async fn call_reads(&self, calls: &[(&str, &str)]) -> Answer {
        let calls: Vec<String> = calls.iter().map(|(name, arguments)| inner(name, arguments)).collect();
        self.tool("call_read_tools", &format!(r#"{{"calls":[{}]}}"#, calls.join(","))).await
    }
}

fn inner(name: &str, arguments: &str) -> String {
    format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(name))
}

/// The params with the metadata of a modern request in front.
fn with_meta(params: &str) -> String {
    let meta = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    let rest = params.trim_start().strip_prefix('{').unwrap();
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{meta}{comma}{rest}")
}

/// An HTTP answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The result's bytes, as they stand in the answer.
    pub(crate) fn result(&self) -> &str {
        self.members()["result"].get()
    }

    /// The id's bytes; `None` where it is left out.
    pub(crate) fn id(&self) -> Option<&str> {
        self.members().get("id").map(|id| id.get())
    }

    fn members(&self) -> HashMap<&str, &RawValue> {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no object: {}", self.text()))
    }

    /// The text of the one content block.
    pub(crate) fn tool_text(&self) -> String {
        let answer = self.json();
        let blocks = answer["result"]["content"].as_array();
        let blocks = blocks.unwrap_or_else(|| panic!("no tool result: {}", self.text()));
        assert_eq!(blocks.len(), 1, "{}", self.text());
        blocks[0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn tool_json(&self) -> Value {
        serde_json::from_str(&self.tool_text()).unwrap()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.json()["result"]["isError"] == true
    }

    /// The text of an answer that the model has to act on.
    pub(crate) fn refusal(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        assert!(self.is_error(), "no refusal: {}", self.text());
        self.tool_text()
    }

    /// The code of a JSON-RPC error.
    pub(crate) fn code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }

    /// All values of a header.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }
}

/// The proxy on real sockets.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<bool>,
}

impl Served {
    pub(crate) async fn over(upstream: &Arc<FakeUpstream>, flags: &[&str]) -> Self {
        let config = config("http://localhost:1/", flags);
        Self::of(App::with_upstream(&config, Arc::clone(upstream) as _)).await
    }

    /// In front of a URL.
    pub(crate) async fn at(url: &str, flags: &[&str]) -> Self {
        Self::of(App::new(&config(url, flags)).unwrap()).await
    }

    async fn of(app: App) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = Listeners::bind(any, any).await.unwrap();
        let address = listeners.mcp_address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(app.serve(listeners, async move {
            let _stopped = stopped.await;
            Stop::Interrupted
        }));
        Self { address, stop, task }
    }

    /// Stops, and tells whether all requests finished in time.
    pub(crate) async fn stop(self) -> bool {
        let _is_gone = self.stop.send(());
        self.task.await.unwrap()
    }
}
