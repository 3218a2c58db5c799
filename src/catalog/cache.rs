//! [`CatalogCache`]: which catalogue a caller has, and how fresh it is.
//!
//! A listing is fresh for a while, then served stale for a shorter while as one background refresh runs; after that a
//! request waits. **Concurrent misses of one caller join one listing; two callers never do.** A caller whose
//! credentials are refused is dropped at once, and a listing that began before that can't bring it back: it
//! publishes only while it is still the one that the table of flights names.
//!
//! The clocks can only be shortened: by the upstream's own time to live, and by the expiry that a caller's token names.
//!
//! A caller without credentials is listed anew for each request and never kept.

use super::digest::ListingDigest;
use super::listing::Catalog;
use super::store::{CatalogStore, TooHeavy};
use crate::caller::{Caller, TokenHash};
use crate::upstream::{Listing, Upstream, UpstreamError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use lru::LruCache;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long listings are kept, and for how many callers.
#[derive(Clone, Copy, Debug)]
pub struct CatalogCacheOptions {
    /// How long a listing is fresh.
    pub ttl: Duration,
    /// How much longer it is served while a refresh runs.
    pub stale_max: Duration,
    /// How long the listing of a caller who asks nothing is remembered.
    pub idle_max: Duration,
    /// Most listings under way at once; more wait.
    pub listings_max: NonZeroUsize,
    /// How long a listing may wait for its turn.
    pub wait_max: Duration,
    /// Most callers that are kept.
    pub callers_max: NonZeroUsize,
}

/// What happened in the cache since the start, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogCacheStats {
    /// Requests served from a fresh listing.
    pub hits: u64,
    /// Requests served from a stale one.
    pub stale_hits: u64,
    /// Requests that waited for a listing.
    pub misses: u64,
    /// Listings begun.
    pub listings: u64,
    /// Listings that failed.
    pub failures: u64,
    /// Listings that came.
    pub listed: u64,
    /// Callers dropped since their credentials were refused.
    pub evictions: u64,
    /// Callers dropped since there were too many.
    pub displaced: u64,
    /// Callers kept now.
    pub callers: u64,
}

type Outcome = Result<Arc<Catalog>, UpstreamError>;
type Flight = Shared<BoxFuture<'static, Outcome>>;

/// A caller's listing.
#[derive(Clone, Copy)]
struct Kept {
    listing: ListingDigest,
    listed_at: Instant,
    used_at: Instant,
    fresh_until: Instant,
    stale_until: Instant,
}

/// A listing under way. Whoever waits holds it; when nobody does, it is dropped and with it the upstream request.
/// It is upgraded only where the result leaves the lock: dropping the last holder takes the lock again.
struct InFlight {
    id: u64,
    flight: WeakShared<BoxFuture<'static, Outcome>>,
}

struct State {
    kept: LruCache<TokenHash, Kept>,
    flights: HashMap<TokenHash, InFlight>,
    next_flight: u64,
    stats: CatalogCacheStats,
}

impl CatalogCacheOptions {
    /// A listing that came just now, with its clocks: as long as the upstream, these options and the caller's own
    /// credentials allow.
    fn kept(
        &self,
        caller: &Caller,
        key: TokenHash,
        listing: ListingDigest,
        upstream_ttl: Option<Duration>,
        began: Instant,
    ) -> Kept {
        let now = Instant::now();
        let ttl = upstream_ttl.map_or(self.ttl, |ttl| ttl.min(self.ttl));
        let expires_at = caller.expires_in(SystemTime::now()).and_then(|left| now.checked_add(left));
        let no_later = |time: Instant| expires_at.map_or(time, |expires_at| time.min(expires_at));
        Kept {
            listing,
            listed_at: began,
            used_at: now,
            // Up to a tenth less, another part for each caller: those who came together do not come back together.
            fresh_until: no_later(began + ttl - (ttl / 10).mul_f64(key.spread())),
            stale_until: no_later(began + ttl + self.stale_max),
        }
    }
}

/// The catalogues of all callers.
pub struct CatalogCache {
    /// For the flights, which outlive a borrow.
    this: Weak<Self>,
    options: CatalogCacheOptions,
    upstream: Arc<dyn Upstream>,
    store: Arc<CatalogStore>,
    turns: Semaphore,
    state: Mutex<State>,
    /// Listings that are made searchable at once: more than there are processors would only wait for one another, with
    /// all that they hold.
    interning: Semaphore,
    interning_max: u32,
}

impl CatalogCache {
    /// An empty cache over a store.
    pub fn new(
        options: CatalogCacheOptions,
        upstream: Arc<dyn Upstream>,
        store: Arc<CatalogStore>,
    ) -> Arc<Self> {
        let mut kept = LruCache::unbounded();
        kept.resize(options.callers_max);
        let stats = CatalogCacheStats::default();
        let state = Mutex::new(State { kept, flights: HashMap::new(), next_flight: 0, stats });
        let turns = Semaphore::new(options.listings_max.get().min(Semaphore::MAX_PERMITS));
        let processors = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        let interning_max = u32::try_from(processors).unwrap_or(u32::MAX);
        let interning = Semaphore::new(interning_max as usize);
        store.give_way();
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            options,
            upstream,
            store,
            turns,
            interning,
            interning_max,
            state,
        })
    }

    /// The caller's catalogue: kept, stale while it is refreshed, or listed now.
    ///
    /// # Errors
    /// What the upstream answered to the listing. Errors are not kept.
    pub async fn get(&self, caller: &Caller) -> Outcome {
        let Some(key) = caller.key() else {
            self.state().stats.misses += 1;
            return self.list(caller, None).await.map(|(_, _, catalog)| catalog);
        };
        let flight = {
            let mut state = self.state();
            if let Some(catalog) = self.kept_catalog(&mut state, caller, key) {
                return Ok(catalog);
            }
            state.stats.misses += 1;
            self.join_or_start(&mut state, caller, key)
        };
        flight.await
    }

    /// Lists again in the background, at most once at a time and not sooner than `rest` after a listing: for when the
    /// listing may be out of date before its time.
    pub fn refresh(&self, caller: &Caller, rest: Duration) {
        let Some(key) = caller.key() else { return };
        let mut state = self.state();
        if state.kept.peek(&key).is_some_and(|kept| kept.listed_at.elapsed() >= rest) {
            self.refresh_in_background(&mut state, caller, key);
        }
    }

    /// Drops what is kept for a caller whose credentials were refused, a listing under way included.
    pub fn evict(&self, caller: &Caller) {
        let Some(key) = caller.key() else { return };
        let mut state = self.state();
        let was_flying = state.flights.remove(&key).is_some();
        if state.kept.pop(&key).is_some() || was_flying {
            state.stats.evictions += 1;
        }
    }

    /// Forgets the callers that asked nothing for a while, and the catalogues that nobody used.
    pub fn forget_idle(&self) {
        let now = Instant::now();
        let is_idle = |used_at: Instant| now.duration_since(used_at) >= self.options.idle_max;
        {
            let mut state = self.state();
            while state.kept.peek_lru().is_some_and(|(_, kept)| is_idle(kept.used_at)) {
                state.kept.pop_lru();
            }
        }
        self.store.forget(is_idle);
    }

    /// The counts so far.
    pub fn stats(&self) -> CatalogCacheStats {
        let state = self.state();
        CatalogCacheStats { callers: state.kept.len() as u64, ..state.stats }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What can be served now. Starts a refresh where it is stale.
    fn kept_catalog(&self, state: &mut State, caller: &Caller, key: TokenHash) -> Option<Arc<Catalog>> {
        let now = Instant::now();
        let kept = state.kept.get_mut(&key)?;
        kept.used_at = now;
        let kept = *kept;
        if now >= kept.stale_until {
            return None;
        }
        let catalog = self.store.get(kept.listing)?;
        if now < kept.fresh_until {
            state.stats.hits += 1;
        } else {
            state.stats.stale_hits += 1;
            self.refresh_in_background(state, caller, key);
        }
        Some(catalog)
    }

    fn refresh_in_background(&self, state: &mut State, caller: &Caller, key: TokenHash) {
        if !state.flights.contains_key(&key) {
            let flight = self.start(state, caller, key);
            tokio::spawn(async move {
                if let Err(error) = flight.await {
                    tracing::debug!(error = error.kind(), "a catalogue could not be refreshed");
                }
            });
        }
    }

    fn join_or_start(&self, state: &mut State, caller: &Caller, key: TokenHash) -> Flight {
        match state.flights.get(&key).and_then(|in_flight| in_flight.flight.upgrade()) {
            Some(flight) => flight,
            None => self.start(state, caller, key),
        }
    }

    fn start(&self, state: &mut State, caller: &Caller, key: TokenHash) -> Flight {
        let id = state.next_flight;
        state.next_flight += 1;
        state.stats.listings += 1;
        let cache = self.this.upgrade().expect("a cache lives in the Arc that `new` gives");
        let (landing, caller) = (Landing { cache, key, id, began: Instant::now() }, caller.clone());
        let before = state.kept.peek(&key).map(|kept| kept.listing);
        let flight = async move {
            let listed = landing.cache.list(&caller, before).await;
            landing.publish(&caller, &listed);
            listed.map(|(_, _, catalog)| catalog)
        };
        let flight = flight.boxed().shared();
        let weak = flight.downgrade().expect("a future that was not polled yet can be shared");
        state.flights.insert(key, InFlight { id, flight: weak });
        flight
    }

    async fn list(
        &self,
        caller: &Caller,
        before: Option<ListingDigest>,
    ) -> Result<(ListingDigest, Option<Duration>, Arc<Catalog>), UpstreamError> {
        let turn = tokio::time::timeout(self.options.wait_max, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| UpstreamError::Busy)?;
        let listing: Listing = self.upstream.list_tools(caller).await?;
        let (store, ttl) = (Arc::clone(&self.store), listing.ttl);
        // What may become large is made alone.
        let is_large = store.is_large(&listing, self.interning_max as usize);
        let places = if is_large { self.interning_max } else { 1 };
        let _places = self.interning.acquire_many(places).await;
        let interned = tokio::task::spawn_blocking(move || {
            let interned = store.intern(&listing, before);
            drop(listing);
            store.relieve();
            interned
        });
        let interned = interned.await;
        let interned =
            interned.map_err(|_| UpstreamError::Invalid("its tool listing could not be indexed"))?;
        let (digest, catalog) = interned.map_err(|TooHeavy| {
            UpstreamError::Listing("takes more memory than --catalog-cache-bytes allows")
        })?;
        Ok((digest, ttl, catalog))
    }
}

/// The end of a flight: publishes once, and clears its place in the table however it ends.
struct Landing {
    cache: Arc<CatalogCache>,
    key: TokenHash,
    id: u64,
    /// Ages count from here: the upstream may have decided what the caller sees at once, and taken long to tell it.
    began: Instant,
}

impl Landing {
    fn publish(
        self,
        caller: &Caller,
        listed: &Result<(ListingDigest, Option<Duration>, Arc<Catalog>), UpstreamError>,
    ) {
        let mut state = self.cache.state();
        let current = state.flights.get(&self.key).is_some_and(|in_flight| in_flight.id == self.id);
        match listed {
            // An upstream whose servers are starting lists nothing for a moment. The time of what was kept goes on.
            Ok((_, _, catalog)) if current && catalog.tools().is_empty() && self.keeps_tools(&state) => {
                state.stats.failures += 1;
            }
            Ok((listing, ttl, _)) if current => {
                let kept = self.cache.options.kept(caller, self.key, *listing, *ttl, self.began);
                let displaced = state.kept.push(self.key, kept).is_some_and(|(key, _)| key != self.key);
                state.stats.displaced += u64::from(displaced);
                state.stats.listed += 1;
            }
            Err(UpstreamError::Unauthorized(_)) if current => {
                state.stats.failures += 1;
                state.stats.evictions += u64::from(state.kept.pop(&self.key).is_some());
            }
            Err(_) => state.stats.failures += 1,
            Ok(_) => state.stats.listed += 1,
        }
    }
}

impl Landing {
    /// Whether there are tools of this caller that may still be served.
    fn keeps_tools(&self, state: &State) -> bool {
        let kept = state.kept.peek(&self.key).filter(|kept| Instant::now() < kept.stale_until);
        let catalog = kept.and_then(|kept| self.cache.store.get(kept.listing));
        catalog.is_some_and(|catalog| !catalog.tools().is_empty())
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        if state.flights.get(&self.key).is_some_and(|in_flight| in_flight.id == self.id) {
            state.flights.remove(&self.key);
        }
    }
}
