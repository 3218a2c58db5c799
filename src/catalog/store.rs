//! [`CatalogStore`]: shares tools and catalogues by the digest of their bytes, within a budget of memory.
//!
//! Every tool and every catalogue has its weight in the budget for as long as it lives, so the budget is held
//! against what really is in memory. Tools are found through weak references: a tool lives as long as a catalogue
//! holds it. Catalogues are kept, the least recently used one goes first; a caller whose catalogue went is listed
//! again.
//!
//! Room is made before it is taken: catalogues go while a listing is read, and while its tools and its index are made. **A
//! listing that does not fit by itself is refused**, whatever goes.

use super::digest::{ContentDigest, ListingDigest, digest, held_digest, listing_digest};
use super::listing::Catalog;
use super::tool::{IndexedTool, WriteTools};
use crate::budget::Budget;
use crate::mcp::Era;
use crate::search::Ranker;
use crate::upstream::Listing;
use lru::LruCache;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;

/// With a smaller budget a listing may take this much all the same, and is dropped at the next occasion: a caller is
/// answered slowly rather than not at all.
const LISTING_BYTES_MIN: usize = if cfg!(test) { 64 << 10 } else { 32 << 20 };

/// What the store needs to build catalogues.
#[derive(Clone)]
pub struct CatalogStoreOptions {
    /// Turns tools into terms and vectors.
    pub ranker: Arc<Ranker>,
    /// Tools that are writes by the operator's word.
    pub write_tools: WriteTools,
    /// Whether a tool that a caller knew as a write may become a read in a later listing.
    pub trust_hint_changes: bool,
    /// For tools and catalogues together.
    pub budget: Arc<Budget>,
}

/// All tools and catalogues in memory.
pub struct CatalogStore {
    options: CatalogStoreOptions,
    tools: Mutex<HashMap<ContentDigest, Weak<IndexedTool>>>,
    catalogs: Mutex<LruCache<ContentDigest, Used>>,
    /// Catalogues that were dropped and that somebody may still use.
    in_use: Mutex<Vec<InUse>>,
    left_out: AtomicU64,
    redefined: AtomicU64,
    dropped: AtomicU64,
    forgotten: AtomicU64,
}

/// A catalogue, and when it was last asked for.
struct Used {
    catalog: Arc<Catalog>,
    at: Instant,
}

/// A catalogue that is no longer kept, and its tools: even a tool that nobody holds takes memory until its weak reference is
/// forgotten.
struct InUse {
    catalog: Weak<Catalog>,
    digests: Vec<ContentDigest>,
}

/// A listing that would take more than the whole budget by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooHeavy;

impl CatalogStore {
    /// An empty store.
    pub fn new(options: CatalogStoreOptions) -> Self {
        Self {
            options,
            tools: Mutex::default(),
            catalogs: Mutex::new(LruCache::unbounded()),
            in_use: Mutex::default(),
            left_out: AtomicU64::default(),
            redefined: AtomicU64::default(),
            dropped: AtomicU64::default(),
            forgotten: AtomicU64::default(),
        }
    }

    /// Bytes held by tools and catalogues, and by listings that are being read.
    pub fn bytes(&self) -> usize {
        self.options.budget.counted()
    }

    /// Definitions left out of catalogues since the start: they had no usable name, or header annotations that the
    /// protocol forbids.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Definitions since the start that differed from those of the same name in the caller's listing before.
    pub fn redefined(&self) -> u64 {
        self.redefined.load(Ordering::Relaxed)
    }

    /// Catalogues and distinct tools held.
    pub fn counts(&self) -> (usize, usize) {
        (lock(&self.catalogs).len(), lock(&self.tools).len())
    }

    /// Tools of all catalogues together, one that several have counted each time, and of the largest.
    ///
    /// # Cost
    /// A look at each catalogue.
    pub fn tools_held(&self) -> (usize, usize) {
        lock(&self.catalogs)
            .iter()
            .map(|(_, used)| used.catalog.tools().len())
            .fold((0, 0), |(all, most), tools| (all + tools, most.max(tools)))
    }

    /// The budget, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.options.budget.bytes_max()
    }

    /// Catalogues dropped since the start to keep to the budget.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Catalogues dropped since the start as nobody asked for them.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self, key: ListingDigest) -> Option<Arc<Catalog>> {
        let mut catalogs = lock(&self.catalogs);
        let used = catalogs.get_mut(&key.0)?;
        used.at = Instant::now();
        Some(Arc::clone(&used.catalog))
    }

    /// Looks whether the budget is over its bound.
    pub(super) fn relieve(&self) {
        self.forget_no_longer_used();
        self.options.budget.relieve();
    }

    /// Drops catalogues from now on whenever the budget is over its bound.
    pub(super) fn give_way(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.options.budget.when_over(move |bytes| {
            if let Some(store) = this.upgrade() {
                store.make_room(bytes, None);
            }
        });
    }

    /// Forgets catalogues by when they were last asked for, and the tools that no other holds.
    pub(super) fn forget(&self, is_idle: impl Fn(Instant) -> bool) {
        self.drop_oldest(&self.forgotten, |_, used| is_idle(used.at));
        self.forget_no_longer_used();
        // Those of analyses that two did at once.
        lock(&self.tools).retain(|_, tool| tool.strong_count() > 0);
        self.options.budget.give_back();
    }

    /// Whether a listing of so many bytes may become so large that nothing else should be made beside it.
    pub(super) fn is_large(&self, listing: &Listing, beside: usize) -> bool {
        /// What tools and their index take at most for each byte of a definition, roughly: short words that nobody
        /// repeats.
        const GROWTH: usize = 16;
        /// The same for a tool, however small.
        const TOOL_BYTES: usize = 1024;
        let bytes: usize = listing.tools.iter().map(|tool| tool.len() * GROWTH + TOOL_BYTES).sum();
        bytes.saturating_mul(beside) > self.bytes_max()
    }

    /// The catalogue of a listing: shared when its bytes are known, built otherwise. Names that were writes in the
    /// caller's listing `before` stay writes, as far as that one is still in memory.
    ///
    /// # Errors
    /// When it would take more than the whole budget.
    ///
    /// # Cost
    /// One hash over all bytes; for a listing never seen before the analysis of its new tools and an index, some 10
    /// microseconds a tool. Call it off the async threads.
    pub(super) fn intern(
        &self,
        listing: &Listing,
        before: Option<ListingDigest>,
    ) -> Result<(ListingDigest, Arc<Catalog>), TooHeavy> {
        let digests: Vec<ContentDigest> = listing.tools.iter().map(|tool| digest(tool)).collect();
        let before =
            before.and_then(|key| Some((key, Arc::clone(&lock(&self.catalogs).peek(&key.0)?.catalog))));
        let (key, catalog) = self
            .keep(listing_digest(listing, &digests), || self.build(listing, &digests))
            .inspect_err(|TooHeavy| self.forget_unheld(&digests))?;
        match before {
            Some((before_key, before)) if before_key != key => self.hold_writes(key, catalog, &before),
            _ => Ok((key, catalog)),
        }
    }

    fn keep(
        &self,
        key: ListingDigest,
        build: impl FnOnce() -> Result<Catalog, TooHeavy>,
    ) -> Result<(ListingDigest, Arc<Catalog>), TooHeavy> {
        if let Some(catalog) = self.get(key) {
            return Ok((key, catalog));
        }
        let catalog = Arc::new(build()?);
        lock(&self.catalogs).put(key.0, Used { catalog: Arc::clone(&catalog), at: Instant::now() });
        self.make_room(0, Some(key));
        Ok((key, catalog))
    }

    fn hold_writes(
        &self,
        key: ListingDigest,
        catalog: Arc<Catalog>,
        before: &Catalog,
    ) -> Result<(ListingDigest, Arc<Catalog>), TooHeavy> {
        let changes = catalog.changes_since(before);
        self.redefined.fetch_add(changes.redefined as u64, Ordering::Relaxed);
        if self.options.trust_hint_changes || changes.held_writes.is_empty() {
            return Ok((key, catalog));
        }
        if changes.turned_read_only > 0 {
            let tools = changes.turned_read_only;
            tracing::warn!(tools, "tools that were writes are marked read-only now: they stay writes");
        }
        let key = held_digest(key, &changes.held_writes);
        self.keep(key, || Ok(catalog.with_held_writes(changes.held_writes)))
    }

    fn build(&self, listing: &Listing, digests: &[ContentDigest]) -> Result<Catalog, TooHeavy> {
        self.options.budget.relieve();
        let bytes = listing.instructions.as_ref().map_or(0, String::len);
        let mut room = Room { store: self, bytes, unseen: 0 };
        let mut tools = Vec::with_capacity(listing.tools.len());
        for (definition, digest) in listing.tools.iter().zip(digests) {
            let Some(tool) = self.tool(definition, digest) else {
                tracing::debug!("a definition was left out: it is no object with one name");
                continue;
            };
            room.take(tool.bytes())?;
            match tool.param_header_fault().filter(|_| listing.era == Era::Modern) {
                None => tools.push(tool),
                // Whoever wrote the name is not trusted with the log.
                Some(fault) => {
                    let name: String = tool.name().chars().take(100).collect();
                    tracing::warn!(tool = %name.escape_debug(), %fault, "a tool was left out");
                }
            }
        }
        let left_out = listing.tools.len() - tools.len();
        if left_out > 0 {
            self.left_out.fetch_add(left_out as u64, Ordering::Relaxed);
            tracing::warn!(left_out, "definitions without a usable name or header annotation were left out");
        }
        let documents: Vec<_> = tools.iter().map(|tool| Arc::clone(tool.analyzed())).collect();
        room.make(self.options.ranker.index_bytes(&documents))?;
        let index = self.options.ranker.index(&documents);
        Ok(Catalog::new(tools, index, listing.instructions.clone(), left_out, &self.options.budget))
    }

    fn tool(&self, definition: &[u8], digest: &ContentDigest) -> Option<Arc<IndexedTool>> {
        if let Some(tool) = lock(&self.tools).get(digest).and_then(Weak::upgrade) {
            return Some(tool);
        }
        // Analysis runs without the lock; two builders may do the same work, and the first to finish wins.
        let tool = Arc::new(IndexedTool::new(
            definition,
            *digest,
            &self.options.ranker,
            &self.options.write_tools,
            &self.options.budget,
        )?);
        let mut tools = lock(&self.tools);
        if let Some(theirs) = tools.get(digest).and_then(Weak::upgrade) {
            return Some(theirs);
        }
        tools.insert(*digest, Arc::downgrade(&tool));
        Some(tool)
    }

    /// Drops the least recently used catalogues until the budget has room for so many bytes more, sparing the one just made.
    fn make_room(&self, bytes: usize, newest: Option<ListingDigest>) {
        self.forget_no_longer_used();
        let spared = newest.map(|newest| newest.0);
        self.drop_oldest(&self.dropped, |key, _| {
            self.options.budget.is_over_with(bytes) && spared.as_ref() != Some(key)
        });
    }

    /// Drops the least recently used catalogue for as long as it is one to drop, and counts them.
    fn drop_oldest(&self, count: &AtomicU64, is_to_drop: impl Fn(&ContentDigest, &Used) -> bool) {
        loop {
            // Locked for each anew: the catalogue is freed outside the lock.
            let oldest = {
                let mut catalogs = lock(&self.catalogs);
                match catalogs.peek_lru() {
                    Some((key, used)) if is_to_drop(key, used) => catalogs.pop_lru(),
                    _ => None,
                }
            };
            let Some((_, Used { catalog, .. })) = oldest else { break };
            count.fetch_add(1, Ordering::Relaxed);
            let digests: Vec<ContentDigest> = catalog.tools().iter().map(|tool| tool.digest()).collect();
            lock(&self.in_use).push(InUse { catalog: Arc::downgrade(&catalog), digests });
            drop(catalog);
            self.forget_no_longer_used();
        }
    }

    /// Forgets the tools of catalogues whose last user has gone since they were dropped.
    fn forget_no_longer_used(&self) {
        let gone: Vec<InUse> =
            lock(&self.in_use).extract_if(.., |one| one.catalog.strong_count() == 0).collect();
        for one in gone {
            self.forget_unheld(&one.digests);
        }
    }

    /// Forgets those of these tools that no catalogue holds.
    fn forget_unheld(&self, digests: &[ContentDigest]) {
        let mut tools = lock(&self.tools);
        for digest in digests {
            if tools.get(digest).is_some_and(|tool| tool.strong_count() == 0) {
                tools.remove(digest);
            }
        }
        // A table of hashes keeps the room that it once had.
        if tools.capacity() > 1024 && tools.len() * 4 < tools.capacity() {
            tools.shrink_to_fit();
        }
    }
}

/// What a catalogue that is being built takes so far.
struct Room<'a> {
    store: &'a CatalogStore,
    bytes: usize,
    /// Those that were made since the process was looked at.
    unseen: usize,
}

impl Room<'_> {
    /// Counts what was made, for which catalogues that are not used any more give way.
    fn take(&mut self, bytes: usize) -> Result<(), TooHeavy> {
        /// After so much, a look costs nothing.
        const LOOK: usize = 1 << 20;
        self.bytes += bytes;
        self.unseen += bytes;
        if self.unseen > LOOK {
            return self.make(0);
        }
        self.fits(0)?;
        self.store.make_room(0, None);
        Ok(())
    }

    fn fits(&self, bytes: usize) -> Result<(), TooHeavy> {
        let fits = self.bytes.saturating_add(bytes) <= self.store.bytes_max().max(LISTING_BYTES_MIN);
        fits.then_some(()).ok_or(TooHeavy)
    }

    /// Makes room for what will be made.
    fn make(&mut self, bytes: usize) -> Result<(), TooHeavy> {
        self.fits(bytes)?;
        self.unseen = 0;
        self.store.options.budget.relieve_for(bytes);
        self.store.make_room(bytes, None);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
