//! [`CatalogStore`]: shares tools and catalogues by the digest of their bytes, within a budget of memory.
//!
//! Every tool and every catalogue counts its bytes in one counter for as long as it lives, so the budget is held
//! against what really is in memory. Tools are found through weak references: a tool lives as long as a catalogue
//! holds it. Catalogues are kept, the least recently used one goes first; a caller whose catalogue went is listed
//! again.

use super::listing::Catalog;
use super::tool::{ContentDigest, IndexedTool, WriteTools, digest};
use crate::mcp::Era;
use crate::search::Ranker;
use crate::upstream::Listing;
use lru::LruCache;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;

/// What the store needs to build catalogues.
#[derive(Clone)]
pub struct CatalogStoreOptions {
    /// Turns tools into terms and vectors.
    pub ranker: Arc<Ranker>,
    /// Tools that are writes by the operator's word.
    pub write_tools: WriteTools,
    /// Whether a tool that a caller knew as a write may become a read in a later listing.
    pub trust_hint_changes: bool,
    /// Budget for tools and catalogues together, in bytes.
    pub bytes_max: usize,
}

/// All tools and catalogues in memory.
pub struct CatalogStore {
    options: CatalogStoreOptions,
    bytes: Arc<AtomicUsize>,
    tools: Mutex<HashMap<ContentDigest, Weak<IndexedTool>>>,
    catalogs: Mutex<LruCache<ContentDigest, Used>>,
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

/// The key of a catalogue in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ListingDigest(ContentDigest);

impl CatalogStore {
    /// An empty store.
    pub fn new(options: CatalogStoreOptions) -> Self {
        Self {
            options,
            bytes: Arc::default(),
            tools: Mutex::default(),
            catalogs: Mutex::new(LruCache::unbounded()),
            left_out: AtomicU64::default(),
            redefined: AtomicU64::default(),
            dropped: AtomicU64::default(),
            forgotten: AtomicU64::default(),
        }
    }

    /// Bytes held by tools and catalogues.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
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
        self.options.bytes_max
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

    /// Forgets catalogues by when they were last asked for, and the tools that no other holds.
    pub(super) fn forget(&self, is_idle: impl Fn(Instant) -> bool) {
        self.drop_oldest(&self.forgotten, |_, used| is_idle(used.at));
    }

    /// The catalogue of a listing: shared when its bytes are known, built otherwise. Names that were writes in the
    /// caller's listing `before` stay writes, as far as that one is still in memory.
    ///
    /// # Cost
    /// One hash over all bytes; for a listing never seen before the analysis of its new tools and an index, some 10
    /// microseconds a tool. Call it off the async threads.
    pub(super) fn intern(
        &self,
        listing: &Listing,
        before: Option<ListingDigest>,
    ) -> (ListingDigest, Arc<Catalog>) {
        let digests: Vec<ContentDigest> = listing.tools.iter().map(|tool| digest(tool)).collect();
        let before =
            before.and_then(|key| Some((key, Arc::clone(&lock(&self.catalogs).peek(&key.0)?.catalog))));
        let (key, catalog) = self.keep(listing_digest(listing, &digests), || self.build(listing, &digests));
        match before {
            Some((before_key, before)) if before_key != key => self.hold_writes(key, catalog, &before),
            _ => (key, catalog),
        }
    }

    fn keep(&self, key: ListingDigest, build: impl FnOnce() -> Catalog) -> (ListingDigest, Arc<Catalog>) {
        if let Some(catalog) = self.get(key) {
            return (key, catalog);
        }
        let catalog = Arc::new(build());
        lock(&self.catalogs).put(key.0, Used { catalog: Arc::clone(&catalog), at: Instant::now() });
        self.shrink(key);
        (key, catalog)
    }

    fn hold_writes(
        &self,
        key: ListingDigest,
        catalog: Arc<Catalog>,
        before: &Catalog,
    ) -> (ListingDigest, Arc<Catalog>) {
        let changes = catalog.changes_since(before);
        self.redefined.fetch_add(changes.redefined as u64, Ordering::Relaxed);
        if self.options.trust_hint_changes || changes.held_writes.is_empty() {
            return (key, catalog);
        }
        if changes.turned_read_only > 0 {
            let tools = changes.turned_read_only;
            tracing::warn!(tools, "tools that were writes are marked read-only now: they stay writes");
        }
        let key = held_digest(key, &changes.held_writes);
        self.keep(key, || catalog.with_held_writes(changes.held_writes))
    }

    fn build(&self, listing: &Listing, digests: &[ContentDigest]) -> Catalog {
        let mut tools = Vec::with_capacity(listing.tools.len());
        for (definition, digest) in listing.tools.iter().zip(digests) {
            let Some(tool) = self.tool(definition, digest) else {
                tracing::debug!("a definition was left out: it is no object with one name");
                continue;
            };
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
        let index = self.options.ranker.index(&documents);
        Catalog::new(tools, index, listing.instructions.clone(), left_out, &self.bytes)
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
            &self.bytes,
        )?);
        let mut tools = lock(&self.tools);
        if let Some(theirs) = tools.get(digest).and_then(Weak::upgrade) {
            return Some(theirs);
        }
        tools.insert(*digest, Arc::downgrade(&tool));
        Some(tool)
    }

    /// Drops the least recently used catalogues until the budget holds, sparing the one just made.
    fn shrink(&self, newest: ListingDigest) {
        self.drop_oldest(&self.dropped, |key, _| self.bytes() > self.options.bytes_max && *key != newest.0);
    }

    /// Drops the least recently used catalogue for as long as it is one to drop, and counts them.
    fn drop_oldest(&self, count: &AtomicU64, is_to_drop: impl Fn(&ContentDigest, &Used) -> bool) {
        let mut dropped = false;
        loop {
            // Locked for each anew: the catalogue is freed outside the lock.
            let oldest = {
                let mut catalogs = lock(&self.catalogs);
                match catalogs.peek_lru() {
                    Some((key, used)) if is_to_drop(key, used) => catalogs.pop_lru(),
                    _ => None,
                }
            };
            if oldest.is_none() {
                break;
            }
            dropped = true;
            count.fetch_add(1, Ordering::Relaxed);
        }
        if dropped {
            lock(&self.tools).retain(|_, tool| tool.strong_count() > 0);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Covers everything that a catalogue is made of: era, instructions, and each definition in order.
fn listing_digest(listing: &Listing, digests: &[ContentDigest]) -> ListingDigest {
    let mut hash = Sha256::new();
    hash.update([u8::from(listing.era == Era::Modern), u8::from(listing.instructions.is_some())]);
    let instructions = listing.instructions.as_deref().unwrap_or_default();
    hash.update((instructions.len() as u64).to_be_bytes());
    hash.update(instructions);
    for digest in digests {
        hash.update(digest);
    }
    ListingDigest(hash.finalize().into())
}

/// Covers a listing and the names that stay writes in it.
fn held_digest(listing: ListingDigest, names: &[Box<str>]) -> ListingDigest {
    let mut hash = Sha256::new();
    hash.update(listing.0);
    for name in names {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
    }
    ListingDigest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::RankerOptions;
    use bytes::Bytes;

    fn store(bytes_max: usize) -> CatalogStore {
        let ranker = Arc::new(Ranker::new(RankerOptions::default(), None));
        CatalogStore::new(CatalogStoreOptions {
            ranker,
            write_tools: WriteTools::default(),
            trust_hint_changes: false,
            bytes_max,
        })
    }

    fn listing(names: &[&str]) -> Listing {
        let tools = names.iter().map(|name| Bytes::from(format!(r#"{{"name":"{name}"}}"#))).collect();
        Listing { tools, instructions: None, ttl: None, era: Era::Modern }
    }

    #[test]
    fn equal_listings_share_a_catalogue_and_equal_definitions_share_a_tool() {
        let store = store(usize::MAX);
        let (_, one) = store.intern(&listing(&["a", "b"]), None);
        let (_, same) = store.intern(&listing(&["a", "b"]), None);
        let (_, other) = store.intern(&listing(&["b", "c"]), None);
        assert!(Arc::ptr_eq(&one, &same));
        assert!(Arc::ptr_eq(&one.tools()[1], &other.tools()[0]));
        assert_eq!(store.counts(), (2, 3));
    }

    #[test]
    fn other_instructions_make_another_catalogue() {
        let store = store(usize::MAX);
        let (_, one) = store.intern(&listing(&["a"]), None);
        let (_, other) =
            store.intern(&Listing { instructions: Some(String::new()), ..listing(&["a"]) }, None);
        assert!(!Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn t_x12_the_budget_holds_by_dropping_the_least_recently_used() {
        let unbounded = store(usize::MAX);
        unbounded.intern(&listing(&["a"]), None);
        let store = store(unbounded.bytes() * 2);
        let (a, _) = store.intern(&listing(&["a"]), None);
        let (b, _) = store.intern(&listing(&["b"]), None);
        assert!(store.get(a).is_some());
        let (c, _) = store.intern(&listing(&["c"]), None);
        assert!(store.get(b).is_none() && store.get(a).is_some() && store.get(c).is_some());
        assert_eq!(store.counts(), (2, 2));
        assert!(store.bytes() <= unbounded.bytes() * 2);
    }

    #[test]
    fn a_listing_over_the_whole_budget_is_still_answered() {
        let store = store(1);
        let (_, catalog) = store.intern(&listing(&["a", "b"]), None);
        assert_eq!(catalog.tools().len(), 2);
    }

    #[test]
    fn t_r6_a_name_listed_both_ways_is_a_write_and_both_definitions_stay() {
        let store = store(usize::MAX);
        let mut listing = listing(&["z"]);
        for hint in ["true", "false"] {
            let tool = format!(r#"{{"name":"a","annotations":{{"readOnlyHint":{hint}}}}}"#);
            listing.tools.push(Bytes::from(tool));
        }
        let (_, catalog) = store.intern(&listing, None);
        let named = catalog.named("a").unwrap();
        assert_eq!(named.tools().count(), 2);
        assert!(named.first().is_read_only() && !named.is_read_only());
        assert!(catalog.named("b").is_none());
        assert_eq!(catalog.names().collect::<Vec<_>>(), ["a", "a", "z"]);
    }

    fn hinted(tools: &[(&str, bool)]) -> Listing {
        let tool = |(name, hint): &(&str, bool)| {
            Bytes::from(format!(r#"{{"name":"{name}","annotations":{{"readOnlyHint":{hint}}}}}"#))
        };
        Listing { tools: tools.iter().map(tool).collect(), ..listing(&[]) }
    }

    fn reads(catalog: &Catalog) -> Vec<&str> {
        catalog.names().filter(|name| catalog.named(name).unwrap().is_read_only()).collect()
    }

    #[test]
    fn t_r4_t_d5_what_was_a_write_stays_one_however_the_listing_changes() {
        let store = store(usize::MAX);
        let (one, _) = store.intern(&hinted(&[("a", false), ("b", true), ("c", false)]), None);
        // Turned, and gone.
        let (two, catalog) = store.intern(&hinted(&[("a", true), ("b", true)]), Some(one));
        assert_eq!(reads(&catalog), ["b"]);
        assert!(catalog.named("a").unwrap().is_held_as_write());
        // Back as a read, beside a read that nobody knew before.
        let (three, catalog) =
            store.intern(&hinted(&[("a", true), ("b", true), ("c", true), ("d", true)]), Some(two));
        assert_eq!(reads(&catalog), ["b", "d"]);
        assert_eq!(store.redefined(), 1);
        // Honest again: nothing is held, and the catalogue is the one of those who knew nothing else.
        let (four, catalog) = store.intern(&hinted(&[("a", false), ("b", true), ("c", false)]), Some(three));
        assert!(four == one && !catalog.named("a").unwrap().is_held_as_write());
        // Who never knew the tool as a write has the hint's word for it.
        let (_, catalog) = store.intern(&hinted(&[("a", true), ("b", true)]), None);
        assert_eq!(reads(&catalog), ["a", "b"]);
    }

    #[test]
    fn t_r5_two_names_that_look_alike_are_both_writes() {
        let store = store(usize::MAX);
        let listing = hinted(&[("git__log", true), ("g\u{456}t__log", true), ("git__pull", true)]);
        let (_, catalog) = store.intern(&listing, None);
        assert_eq!(reads(&catalog), ["git__pull"]);
    }

    #[test]
    fn t_r4_the_operator_may_trust_changed_hints() {
        let mut store = store(usize::MAX);
        store.options.trust_hint_changes = true;
        let (one, _) = store.intern(&hinted(&[("a", false)]), None);
        let (_, catalog) = store.intern(&hinted(&[("a", true)]), Some(one));
        assert_eq!(reads(&catalog), ["a"]);
        assert_eq!(store.redefined(), 1);
    }

    #[test]
    fn held_names_count_their_bytes_and_share_the_rest() {
        let store = store(usize::MAX);
        let (one, _) = store.intern(&hinted(&[("a", false)]), None);
        let (_, plain) = store.intern(&hinted(&[("a", true)]), None);
        let before = store.bytes();
        let (_, held) = store.intern(&hinted(&[("a", true)]), Some(one));
        assert!(Arc::ptr_eq(&plain.tools()[0], &held.tools()[0]));
        assert_eq!(store.bytes(), before + size_of::<Box<str>>() + 1);
        assert_eq!(store.counts(), (3, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asked_for_is_forgotten_with_its_tools() {
        let store = store(usize::MAX);
        let (a, _) = store.intern(&listing(&["a", "b"]), None);
        let (b, _) = store.intern(&listing(&["b", "c"]), None);
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        assert!(store.get(b).is_some());
        let now = Instant::now();
        store.forget(|at| at < now);
        assert!(store.get(a).is_none() && store.get(b).is_some());
        assert_eq!(store.counts(), (1, 2));
    }

    #[test]
    fn a_definition_that_repeats_a_member_stays_as_a_write_without_a_schema() {
        let store = store(usize::MAX);
        let mut listing = listing(&[]);
        for repeated in [
            r#""annotations":{"readOnlyHint":true},"annotations":{"readOnlyHint":true}"#,
            r#""annotations":{"readOnlyHint":true},"inputSchema":{},"inputSchema":{"type":"object"}"#,
            r#""annotations":{"readOnlyHint":true,"readOnlyHint":true}"#,
        ] {
            listing.tools.push(Bytes::from(format!(r#"{{"name":"a","description":"Text",{repeated}}}"#)));
        }
        listing.tools.push(Bytes::from_static(br#"{"name":"a","name":"b"}"#));
        let (_, catalog) = store.intern(&listing, None);
        assert_eq!((catalog.tools().len(), catalog.left_out()), (3, 1));
        for tool in catalog.tools() {
            assert_eq!((tool.is_read_only(), tool.input_schema().is_none()), (false, true));
            assert_eq!(tool.description(), "Text");
        }
    }

    #[test]
    fn c6_an_invalid_header_annotation_leaves_a_modern_catalogue_only() {
        let bad = Bytes::from_static(
            br#"{"name":"a","inputSchema":{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}}"#,
        );
        for (era, kept) in [(Era::Modern, 1), (Era::Legacy, 2)] {
            let mut listing = Listing { era, ..listing(&["b"]) };
            listing.tools.push(bad.clone());
            let store = store(usize::MAX);
            let (_, catalog) = store.intern(&listing, None);
            assert_eq!((catalog.tools().len(), catalog.left_out()), (kept, 2 - kept));
            assert_eq!(store.left_out(), 2 - kept as u64);
        }
    }
}
