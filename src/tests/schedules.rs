//! Revocation against every order of events: random schedules of searches, calls, revocations and returns, with listings
//! that are slow to come, on a clock that the tests move.

use crate::support::{challenge, listing, reader};
use futures_util::future::{BoxFuture, FutureExt};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use toolsearch_proxy::budget::Budget;
use toolsearch_proxy::caller::{Caller, Salt};
use toolsearch_proxy::catalog::{
    CatalogCache, CatalogCacheOptions, CatalogStore, CatalogStoreOptions, WriteTools,
};
use toolsearch_proxy::search::{Ranker, RankerOptions};
use toolsearch_proxy::upstream::{Listing, ToolCall, Upstream, UpstreamError};

const FRESH: Duration = Duration::from_secs(600);
const STALE: Duration = Duration::from_secs(60);

/// Splits a seed into numbers.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % end
    }
}

/// Decides at once, and tells after a while.
#[derive(Default)]
struct SlowToTell {
    is_revoked: AtomicBool,
    delay_ms: AtomicU64,
    /// Counts everything that happens, in order.
    events: AtomicU64,
    /// When each listing was decided, by its event.
    decided: Mutex<Vec<(u64, Instant)>>,
}

impl SlowToTell {
    fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }
}

impl Upstream for SlowToTell {
    fn list_tools<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        async move {
            let event = self.event();
            self.decided.lock().unwrap().push((event, Instant::now()));
            let is_revoked = self.is_revoked.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(self.delay_ms.load(Ordering::Relaxed))).await;
            if is_revoked { Err(challenge(401)) } else { Ok(listing(&[reader(&format!("e{event}"), "")])) }
        }
        .boxed()
    }

    fn call_tool<'a>(
        &'a self,
        _: &'a Caller,
        _: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<bytes::Bytes, UpstreamError>> {
        std::future::ready(Err(challenge(401))).boxed()
    }
}

/// What one request saw.
#[derive(Clone, Copy, Debug)]
struct Seen {
    began: u64,
    began_at: Instant,
    ended: u64,
    /// The event of the listing that it was served from; `None` when it was refused.
    listing: Option<u64>,
}

fn alice() -> Caller {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer alice"))]);
    Caller::from_headers(&headers, &Salt::random()).unwrap()
}

async fn search(cache: Arc<CatalogCache>, upstream: Arc<SlowToTell>, caller: Caller) -> Seen {
    let (began, began_at) = (upstream.event(), Instant::now());
    let outcome = cache.get(&caller).await;
    let listing = match outcome {
        Ok(catalog) => Some(catalog.tools()[0].name()[1..].parse().unwrap()),
        Err(UpstreamError::Unauthorized(_)) => None,
        Err(error) => panic!("{error}"),
    };
    Seen { began, began_at, ended: upstream.event(), listing }
}

/// A call that meets the 401 of a revoked token, as the toolbox draws its consequence.
fn call(cache: &CatalogCache, upstream: &SlowToTell, caller: &Caller) -> Option<Seen> {
    let (began, began_at) = (upstream.event(), Instant::now());
    upstream.is_revoked.load(Ordering::Relaxed).then(|| {
        cache.evict(caller);
        Seen { began, began_at, ended: upstream.event(), listing: None }
    })
}

async fn schedule(seed: u64) {
    let mut draws = Draws(seed);
    let upstream = Arc::new(SlowToTell::default());
    let store = Arc::new(CatalogStore::new(CatalogStoreOptions {
        ranker: Arc::new(Ranker::new(RankerOptions::default(), None)),
        write_tools: WriteTools::default(),
        trust_hint_changes: false,
        budget: Budget::new(1 << 20),
    }));
    let options = CatalogCacheOptions {
        ttl: FRESH,
        stale_max: STALE,
        idle_max: FRESH * 2,
        listings_max: NonZeroUsize::MAX,
        wait_max: STALE,
        callers_max: NonZeroUsize::MIN,
    };
    let cache = CatalogCache::new(options, Arc::clone(&upstream) as Arc<dyn Upstream>, store);
    let caller = alice();
    let (mut searches, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        match draws.below(10) {
            0..=4 => {
                searches.push(tokio::spawn(search(Arc::clone(&cache), Arc::clone(&upstream), caller.clone())))
            }
            5 => upstream.is_revoked.store(true, Ordering::Relaxed),
            6 => upstream.is_revoked.store(false, Ordering::Relaxed),
            7 | 8 => seen.extend(call(&cache, &upstream, &caller)),
            _ => upstream.delay_ms.store(draws.below(90_000), Ordering::Relaxed),
        }
        let pause = match draws.below(4) {
            0 => 0,
            1 => draws.below(1_000),
            2 => draws.below(90_000),
            _ => draws.below(700_000),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    for search in searches {
        seen.push(search.await.unwrap());
    }
    judge(seed, &upstream, &seen);
}

fn judge(seed: u64, upstream: &SlowToTell, seen: &[Seen]) {
    let decided = upstream.decided.lock().unwrap();
    let served = seen.iter().filter_map(|one| Some((one, one.listing?)));
    for (one, listing) in served {
        let (_, at) = decided.iter().find(|(event, _)| *event == listing).unwrap();
        let age = one.began_at.saturating_duration_since(*at);
        assert!(age < FRESH + STALE, "seed {seed}: {one:?} is served from a listing of {age:?} before");
        let refusal = seen.iter().filter(|other| other.listing.is_none() && other.ended < one.began);
        let refused = refusal.map(|other| other.ended).max();
        assert!(
            refused.is_none_or(|refused| refused < listing),
            "seed {seed}: {one:?} is served from before the refusal at {refused:?}"
        );
    }
}

/// So many schedules as `TOOLSEARCH_TEST_SCHEDULES` says; the failing seed is told and is the next run's start.
#[tokio::test(start_paused = true)]
async fn t_c12_t_c14_no_schedule_serves_what_a_refusal_or_the_clocks_ended() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("TOOLSEARCH_TEST_SEED", 1);
    for seed in first..first + number("TOOLSEARCH_TEST_SCHEDULES", 1_000) {
        schedule(seed).await;
    }
}
