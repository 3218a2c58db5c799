//! In process: what a query costs (P1, P2), and what it takes until a listing can be searched (P8).

use crate::catalogue;
use crate::report::Report;
use crate::stats::{Runs, micros, millis};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{HeaderMap, HeaderValue};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolsearch_proxy::budget::Budget;
use toolsearch_proxy::caller::{Caller, Salt};
use toolsearch_proxy::catalog::{
    CatalogCache, CatalogCacheOptions, CatalogStore, CatalogStoreOptions, WriteTools, analyze_definition,
};
use toolsearch_proxy::embedder::StaticModel;
use toolsearch_proxy::mcp::Era;
use toolsearch_proxy::search::{Index, Ranker, RankerOptions};
use toolsearch_proxy::upstream::{Listing, ToolCall, Upstream, UpstreamError};

/// Hits of an answer, as `search_tools` asks for.
const LIMIT: usize = 8;

fn ranker() -> Result<Arc<Ranker>, String> {
    let model = StaticModel::builtin().map_err(|error| error.to_string())?;
    Ok(Arc::new(Ranker::new(RankerOptions::default(), Some(model))))
}

/// # Errors
/// When the catalogue can't be made.
pub fn queries(report: &mut Report) -> Result<(), String> {
    let ranker = ranker()?;
    let queries = catalogue::queries()?;
    for (name, count, most) in [
        ("P1", 1_000, Some(30.0)),
        ("P2", 5_000, Some(150.0)),
        ("P2", 10_000, Some(300.0)),
        ("-", 20_000, None),
    ] {
        let index = index(&ranker, count)?;
        let rounds = if report.is_quick { 3 } else { 21 };
        let runs = (0..=rounds).map(|_| round(&ranker, &index, &queries)).skip(1).collect();
        let what = format!("one query over {count} tools, embedding included");
        report.row(name, &what, "µs", &runs, most);
    }
    Ok(())
}

fn index(ranker: &Ranker, count: usize) -> Result<Index, String> {
    let tools = catalogue::tools(count)?;
    let documents: Vec<_> = tools
        .iter()
        .filter_map(|tool| analyze_definition(tool, ranker))
        .map(|(_, document)| Arc::new(document))
        .collect();
    Ok(ranker.index(&documents))
}

/// The mean time of all questions, once each.
fn round(ranker: &Ranker, index: &Index, queries: &[String]) -> f64 {
    let started = Instant::now();
    for query in queries {
        black_box(ranker.rank(black_box(query), index, LIMIT));
    }
    micros(started.elapsed()) / queries.len() as f64
}

/// An upstream whose listing is there already.
struct Listed(Vec<Bytes>);

impl Upstream for Listed {
    fn list_tools<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        let tools = self.0.clone();
        async move { Ok(Listing { tools, instructions: None, ttl: None, era: Era::Modern }) }.boxed()
    }

    fn resource_metadata(&self) -> BoxFuture<'_, Result<Bytes, UpstreamError>> {
        async { Err(UpstreamError::Invalid("there is none")) }.boxed()
    }

    fn call_tool<'a>(
        &'a self,
        _: &'a Caller,
        _: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        async { Err(UpstreamError::Invalid("there is none")) }.boxed()
    }
}

/// # Errors
/// When the catalogue can't be made.
pub fn listings(report: &mut Report) -> Result<(), String> {
    for (count, new_most, known_most) in
        [(1_000, Some(15.0), Some(2.0)), (5_000, Some(75.0), Some(10.0)), (20_000, None, None)]
    {
        let tools = catalogue::tools(count)?;
        let rounds = if report.is_quick { 2 } else { 11 };
        let (mut new, mut known, mut reordered) = (Runs::default(), Runs::default(), Runs::default());
        for _ in 0..rounds {
            // New threads, which remember no words of other tools.
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            let times = runtime.block_on(listing(ranker()?, &tools))?;
            new.push(millis(times[0]));
            known.push(millis(times[1]));
            reordered.push(millis(times[2]));
        }
        report.row("P8", &format!("a listing of {count} new tools, until searchable"), "ms", &new, new_most);
        report.row("P8", &format!("a listing of {count} tools that is known"), "ms", &known, known_most);
        report.row("-", &format!("a new listing of {count} known tools"), "ms", &reordered, None);
    }
    Ok(())
}

/// The times of a listing that is new, of the same for another caller, and of one of the same tools in another order.
async fn listing(ranker: Arc<Ranker>, tools: &[Bytes]) -> Result<[Duration; 3], String> {
    let salt = Salt::random();
    let caller = |token: &'static str| {
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static(token))]);
        Caller::from_headers(&headers, &salt).map_err(|_| "two values")
    };
    let (alice, bob) = (caller("Bearer a")?, caller("Bearer b")?);
    let store = Arc::new(CatalogStore::new(CatalogStoreOptions {
        ranker,
        write_tools: WriteTools::default(),
        trust_hint_changes: false,
        budget: Budget::new(usize::MAX),
    }));
    let options = CatalogCacheOptions {
        ttl: Duration::from_secs(600),
        stale_max: Duration::from_secs(60),
        idle_max: Duration::from_secs(3600),
        listings_max: NonZeroUsize::MIN,
        wait_max: Duration::from_secs(60),
        callers_max: NonZeroUsize::MIN.saturating_add(9),
    };
    let cache = |tools: Vec<Bytes>| CatalogCache::new(options, Arc::new(Listed(tools)), Arc::clone(&store));
    let (first, second) = (cache(tools.to_vec()), cache(tools.iter().rev().cloned().collect()));
    let time = async |cache: &CatalogCache, caller: &Caller| {
        let started = Instant::now();
        let catalog = cache.get(caller).await.map_err(|error| error.to_string())?;
        let took = started.elapsed();
        if catalog.tools().len() < tools.len() { Err("tools are missing".to_owned()) } else { Ok(took) }
    };
    Ok([time(&first, &alice).await?, time(&first, &bob).await?, time(&second, &alice).await?])
}
