//! An upstream that answers as it is told, and notes what it is asked.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::{HeaderMap, HeaderValue};
use std::sync::{Arc, Mutex};
use toolsearch_proxy::budget::Budget;
use toolsearch_proxy::caller::{Caller, Salt};
use toolsearch_proxy::catalog::{
    CatalogCache, CatalogCacheOptions, CatalogStore, CatalogStoreOptions, WriteTools,
};
use toolsearch_proxy::search::{Ranker, RankerOptions};
use toolsearch_proxy::upstream::{Listing, ToolCall, Upstream, UpstreamError};

type Lists = dyn Fn(&str) -> Result<Listing, UpstreamError> + Send + Sync;
type Answers = dyn Fn(&str) -> Result<Bytes, UpstreamError> + Send + Sync;

pub(crate) struct Told {
    pub(crate) lists: Box<Lists>,
    pub(crate) answers: Box<Answers>,
    /// Names and arguments of calls.
    pub(crate) called: Mutex<Vec<(String, String)>>,
}

impl Told {
    /// Lists what the function says for a token, and knows no tool.
    pub(crate) fn listing(
        lists: impl Fn(&str) -> Result<Listing, UpstreamError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let answers = Box::new(|_: &str| Err(UpstreamError::Status(404)));
        Arc::new(Self { lists: Box::new(lists), answers, called: Mutex::default() })
    }
}

impl Upstream for Told {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        let token = caller.authorization().and_then(|value| value.to_str().ok()).unwrap_or_default();
        ready((self.lists)(token)).boxed()
    }

    fn call_tool<'a>(
        &'a self,
        _: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        let called = (call.name.to_owned(), call.arguments.get().to_owned());
        self.called.lock().unwrap().push(called);
        ready((self.answers)(call.name)).boxed()
    }
}

/// Whoever sends this token.
pub(crate) fn caller(token: &str, salt: &Salt) -> Caller {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_str(token).unwrap());
    Caller::from_headers(&headers, salt).unwrap()
}

/// A cache over an upstream, with the usual clocks and words alone.
pub(crate) fn cache_over(upstream: &Arc<Told>) -> Arc<CatalogCache> {
    use std::time::Duration;
    let count = |count| std::num::NonZeroUsize::new(count).unwrap();
    let store = Arc::new(CatalogStore::new(CatalogStoreOptions {
        ranker: Arc::new(Ranker::new(RankerOptions::default(), None)),
        write_tools: WriteTools::default(),
        trust_hint_changes: false,
        budget: Budget::new(64 << 20),
    }));
    let options = CatalogCacheOptions {
        ttl: Duration::from_secs(600),
        stale_max: Duration::from_secs(60),
        idle_max: Duration::from_secs(3_600),
        listings_max: count(64),
        wait_max: Duration::from_secs(60),
        callers_max: count(1_000),
    };
    CatalogCache::new(options, Arc::clone(upstream) as _, store)
}

/// A runtime of one thread, its clock standing still where that is asked for.
pub(crate) fn runtime(paused: bool) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(paused).build().unwrap()
}
