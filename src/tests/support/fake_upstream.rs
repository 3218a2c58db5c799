//! A fake behind the `Upstream` trait: a listing for each token, gates, a log, and errors on demand.

use super::until;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use toolsearch_proxy::caller::Caller;
use toolsearch_proxy::mcp::Era;
use toolsearch_proxy::upstream::{
    Challenge, FailureStage, Listing, RpcFailure, ToolCall, Upstream, UpstreamError,
};

/// A listing of the legacy era without instructions.
pub(crate) fn listing(tools: &[String]) -> Listing {
    let tools = tools.iter().map(|tool| Bytes::from(tool.clone())).collect();
    Listing { tools, instructions: None, ttl: None, era: Era::Legacy }
}

/// A refusal of credentials with one challenge.
pub(crate) fn challenge(status: u16) -> UpstreamError {
    let www_authenticate = vec![HeaderValue::from_static("Bearer error=\"invalid_token\"")];
    UpstreamError::Unauthorized(Challenge { status, www_authenticate })
}

/// A JSON-RPC error of the upstream.
pub(crate) fn rpc_failure(code: i64, message: &str) -> UpstreamError {
    UpstreamError::Rpc(RpcFailure {
        http_status: 200,
        code,
        message: message.to_owned(),
        data: None,
        stage: FailureStage::Read,
    })
}

/// A call that reached the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Default)]
struct State {
    listings: HashMap<String, Result<Listing, UpstreamError>>,
    results: HashMap<String, Result<String, UpstreamError>>,
    listed: Vec<String>,
    called: Vec<Called>,
}

pub(crate) struct FakeUpstream {
    state: Mutex<State>,
    listings_held: watch::Sender<bool>,
    calls_held: watch::Sender<bool>,
    listings_dropped: Arc<AtomicUsize>,
    calls_dropped: Arc<AtomicUsize>,
    calls_finished: AtomicUsize,
}

impl FakeUpstream {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            listings_held: watch::Sender::new(false),
            calls_held: watch::Sender::new(false),
            listings_dropped: Arc::default(),
            calls_dropped: Arc::default(),
            calls_finished: AtomicUsize::new(0),
        })
    }

    /// Lists these tools to one token from now on. A token without a listing gets an empty one.
    pub(crate) fn lists(self: &Arc<Self>, token: &str, tools: &[String]) -> Arc<Self> {
        self.answers_listing(token, Ok(listing(tools)))
    }

    pub(crate) fn answers_listing(
        self: &Arc<Self>,
        token: &str,
        answer: Result<Listing, UpstreamError>,
    ) -> Arc<Self> {
        self.state.lock().unwrap().listings.insert(token.to_owned(), answer);
        Arc::clone(self)
    }

    /// Answers calls of a tool so from now on. Without it a call says who called what with what.
    pub(crate) fn answers(self: &Arc<Self>, name: &str, answer: Result<&str, UpstreamError>) -> Arc<Self> {
        self.state.lock().unwrap().results.insert(name.to_owned(), answer.map(str::to_owned));
        Arc::clone(self)
    }

    /// Lets listings begin but not end.
    pub(crate) fn hold_listings(&self, held: bool) {
        self.listings_held.send_replace(held);
    }

    /// Lets calls begin but not end.
    pub(crate) fn hold_calls(&self, held: bool) {
        self.calls_held.send_replace(held);
    }

    /// The tokens of all listings begun, in their order.
    pub(crate) fn listed(&self) -> Vec<String> {
        self.state.lock().unwrap().listed.clone()
    }

    /// All calls begun, in their order.
    pub(crate) fn called(&self) -> Vec<Called> {
        self.state.lock().unwrap().called.clone()
    }

    pub(crate) async fn listings_begun(&self, count: usize) {
        until("the beginning of a listing", || self.listed().len() >= count).await;
    }

    pub(crate) async fn calls_begun(&self, count: usize) {
        until("the beginning of a call", || self.called().len() >= count).await;
    }

    pub(crate) async fn listings_dropped(&self, count: usize) {
        until("a dropped listing", || self.listings_dropped.load(Ordering::SeqCst) >= count).await;
    }

    pub(crate) async fn calls_dropped(&self, count: usize) {
        until("a dropped call", || self.calls_dropped.load(Ordering::SeqCst) >= count).await;
    }

    pub(crate) async fn calls_finished(&self, count: usize) {
        until("the end of a call", || self.calls_finished.load(Ordering::SeqCst) >= count).await;
    }

    pub(crate) fn drops(&self) -> (usize, usize) {
        (self.listings_dropped.load(Ordering::SeqCst), self.calls_dropped.load(Ordering::SeqCst))
    }
}

fn token(caller: &Caller) -> String {
    let value = caller.authorization().map_or("", |value| value.to_str().unwrap());
    value.strip_prefix("Bearer ").unwrap_or(value).to_owned()
}

/// Counts a future that was dropped before its end.
struct Unfinished(Option<Arc<AtomicUsize>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(counter) = &self.0 {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn opened(held: &watch::Sender<bool>, dropped: &Arc<AtomicUsize>) {
    let mut unfinished = Unfinished(Some(Arc::clone(dropped)));
    let mut held = held.subscribe();
    assert!(held.wait_for(|held| !held).await.is_ok());
    unfinished.0 = None;
}

impl Upstream for FakeUpstream {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        async move {
            let token = token(caller);
            // The answer is the one of the moment when the listing began.
            let answer = {
                let mut state = self.state.lock().unwrap();
                state.listed.push(token.clone());
                state.listings.get(&token).cloned().unwrap_or_else(|| Ok(listing(&[])))
            };
            opened(&self.listings_held, &self.listings_dropped).await;
            answer
        }
        .boxed()
    }

    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        async move {
            let (token, arguments) = (token(caller), call.arguments.get().to_owned());
            let text = serde_json::json!(format!("{token} called {} with {arguments}", call.name));
            let answer = {
                let mut state = self.state.lock().unwrap();
                state.called.push(Called { token, name: call.name.to_owned(), arguments });
                state.results.get(call.name).cloned()
            };
            opened(&self.calls_held, &self.calls_dropped).await;
            self.calls_finished.fetch_add(1, Ordering::SeqCst);
            answer
                .unwrap_or_else(|| Ok(format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)))
                .map(Bytes::from)
        }
        .boxed()
    }
}
