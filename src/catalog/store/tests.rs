//! What is shared, and what gives way.

use super::*;
use crate::search::RankerOptions;
use bytes::Bytes;
use futures_util::FutureExt;

fn store(bytes_max: usize) -> CatalogStore {
    let budget = Budget::new(bytes_max);
    let ranker = Arc::new(Ranker::new(RankerOptions::default(), None));
    CatalogStore::new(CatalogStoreOptions {
        ranker,
        write_tools: WriteTools::default(),
        trust_hint_changes: false,
        budget,
    })
}

fn intern(
    store: &CatalogStore,
    listing: &Listing,
    before: Option<ListingDigest>,
) -> (ListingDigest, Arc<Catalog>) {
    store.intern(listing, before).ok().unwrap()
}

fn listing(names: &[&str]) -> Listing {
    let tools = names.iter().map(|name| Bytes::from(format!(r#"{{"name":"{name}"}}"#))).collect();
    Listing { tools, instructions: None, ttl: None, era: Era::Modern }
}

#[test]
fn equal_listings_share_a_catalogue_and_equal_definitions_share_a_tool() {
    let store = store(usize::MAX);
    let (_, one) = intern(&store, &listing(&["a", "b"]), None);
    let (_, same) = intern(&store, &listing(&["a", "b"]), None);
    let (_, other) = intern(&store, &listing(&["b", "c"]), None);
    assert!(Arc::ptr_eq(&one, &same));
    assert!(Arc::ptr_eq(&one.tools()[1], &other.tools()[0]));
    assert_eq!(store.counts(), (2, 3));
}

#[test]
fn other_instructions_make_another_catalogue() {
    let store = store(usize::MAX);
    let (_, one) = intern(&store, &listing(&["a"]), None);
    let (_, other) = intern(&store, &Listing { instructions: Some(String::new()), ..listing(&["a"]) }, None);
    assert!(!Arc::ptr_eq(&one, &other));
}

#[test]
fn t_x12_the_budget_holds_by_dropping_the_least_recently_used() {
    let unbounded = store(usize::MAX);
    intern(&unbounded, &listing(&["a"]), None);
    let store = store(unbounded.bytes() * 2);
    let (a, _) = intern(&store, &listing(&["a"]), None);
    let (b, _) = intern(&store, &listing(&["b"]), None);
    assert!(store.get(a).is_some());
    let (c, _) = intern(&store, &listing(&["c"]), None);
    assert!(store.get(b).is_none() && store.get(a).is_some() && store.get(c).is_some());
    assert_eq!(store.counts(), (2, 2));
    assert!(store.bytes() <= unbounded.bytes() * 2);
}

#[test]
fn t_x12_tools_of_a_catalogue_that_was_in_use_when_it_was_dropped_are_forgotten_with_its_last_user() {
    let store = store(64 << 10);
    let (_, used) = intern(&store, &listing(&["a", "b"]), None);
    store.make_room(64 << 10, None);
    assert_eq!(store.counts(), (0, 2));
    store.relieve();
    assert_eq!(store.counts(), (0, 2));
    drop(used);
    store.relieve();
    assert_eq!((store.counts(), lock(&store.in_use).len()), ((0, 0), 0));
}

#[test]
fn t_x12_what_may_become_large_is_many_bytes_or_many_tools() {
    let store = store(64 << 20);
    let of = |tools: usize, bytes: usize| Listing {
        tools: vec![Bytes::from("x".repeat(bytes)); tools],
        instructions: None,
        ttl: None,
        era: Era::Modern,
    };
    let large = [(1, 20), (1_000, 500), (1, 3 << 20), (40_000, 20)]
        .map(|(tools, bytes)| store.is_large(&of(tools, bytes), 2));
    assert_eq!(large, [false, false, true, true]);
    assert!(!store.is_large(&of(40_000, 20), 1));
}

#[test]
fn a_listing_over_the_whole_budget_is_still_answered() {
    let store = store(1);
    let (_, catalog) = intern(&store, &listing(&["a", "b"]), None);
    assert_eq!(catalog.tools().len(), 2);
}

#[test]
fn t_x12_a_listing_that_fills_the_budget_alone_is_refused() {
    let mut large = listing(&["a"]);
    let padding = "x".repeat(2 * LISTING_BYTES_MIN);
    large.tools.push(Bytes::from(format!(r#"{{"name":"b","padding":"{padding}"}}"#)));
    let unbounded = store(usize::MAX);
    let (_, catalog) = intern(&unbounded, &large, None);
    let documents: Vec<_> = catalog.tools().iter().map(|tool| Arc::clone(tool.analyzed())).collect();
    let weight = catalog.tools().iter().map(|tool| tool.bytes()).sum::<usize>()
        + unbounded.options.ranker.index_bytes(&documents);
    // Terms are hashed by the ranker, which is the same for all.
    let of = |bytes| {
        CatalogStore::new(CatalogStoreOptions { budget: Budget::new(bytes), ..unbounded.options.clone() })
    };
    assert!(of(weight).intern(&large, None).is_ok());
    let small = of(weight - 1);
    assert_eq!(small.intern(&large, None).err(), Some(TooHeavy));
    // Nothing of it stays.
    assert_eq!((small.counts(), small.bytes()), ((0, 0), 0));
}

#[test]
fn what_is_read_pushes_out_what_is_kept() {
    let store = Arc::new(store(64 << 10));
    store.give_way();
    let (a, _) = intern(&store, &listing(&["a"]), None);
    let (b, _) = intern(&store, &listing(&["b"]), None);
    let mut place = store.options.budget.reader().place();
    let free = store.bytes_max() - store.bytes();
    place.grow(free).now_or_never().unwrap();
    assert!(store.get(a).is_some() && store.get(b).is_some());
    place.grow(1).now_or_never().unwrap();
    assert!(store.get(a).is_none() && store.get(b).is_some());
}

#[test]
fn t_r6_a_name_listed_both_ways_is_a_write_and_both_definitions_stay() {
    let store = store(usize::MAX);
    let mut listing = listing(&["z"]);
    for hint in ["true", "false"] {
        let tool = format!(r#"{{"name":"a","annotations":{{"readOnlyHint":{hint}}}}}"#);
        listing.tools.push(Bytes::from(tool));
    }
    let (_, catalog) = intern(&store, &listing, None);
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
    let (one, _) = intern(&store, &hinted(&[("a", false), ("b", true), ("c", false)]), None);
    // Turned, and gone.
    let (two, catalog) = intern(&store, &hinted(&[("a", true), ("b", true)]), Some(one));
    assert_eq!(reads(&catalog), ["b"]);
    assert!(catalog.named("a").unwrap().is_held_as_write());
    // Back as a read, beside a read that nobody knew before.
    let (three, catalog) =
        intern(&store, &hinted(&[("a", true), ("b", true), ("c", true), ("d", true)]), Some(two));
    assert_eq!(reads(&catalog), ["b", "d"]);
    assert_eq!(store.redefined(), 1);
    // Honest again: nothing is held, and the catalogue is the one of those who knew nothing else.
    let (four, catalog) = intern(&store, &hinted(&[("a", false), ("b", true), ("c", false)]), Some(three));
    assert!(four == one && !catalog.named("a").unwrap().is_held_as_write());
    // Who never knew the tool as a write has the hint's word for it.
    let (_, catalog) = intern(&store, &hinted(&[("a", true), ("b", true)]), None);
    assert_eq!(reads(&catalog), ["a", "b"]);
}

#[test]
fn t_r5_two_names_that_look_alike_are_both_writes() {
    let store = store(usize::MAX);
    let listing = hinted(&[("git__log", true), ("g\u{456}t__log", true), ("git__pull", true)]);
    let (_, catalog) = intern(&store, &listing, None);
    assert_eq!(reads(&catalog), ["git__pull"]);
}

#[test]
fn t_r4_the_operator_may_trust_changed_hints() {
    let mut store = store(usize::MAX);
    store.options.trust_hint_changes = true;
    let (one, _) = intern(&store, &hinted(&[("a", false)]), None);
    let (_, catalog) = intern(&store, &hinted(&[("a", true)]), Some(one));
    assert_eq!(reads(&catalog), ["a"]);
    assert_eq!(store.redefined(), 1);
}

#[test]
fn held_names_count_their_bytes_and_share_the_rest() {
    let store = store(usize::MAX);
    let (one, _) = intern(&store, &hinted(&[("a", false)]), None);
    let (_, plain) = intern(&store, &hinted(&[("a", true)]), None);
    let before = store.bytes();
    let (_, held) = intern(&store, &hinted(&[("a", true)]), Some(one));
    assert!(Arc::ptr_eq(&plain.tools()[0], &held.tools()[0]));
    assert!(store.bytes() > before + size_of::<Box<str>>());
    assert_eq!(store.counts(), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asked_for_is_forgotten_with_its_tools() {
    let store = store(usize::MAX);
    let (a, _) = intern(&store, &listing(&["a", "b"]), None);
    let (b, _) = intern(&store, &listing(&["b", "c"]), None);
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
    let (_, catalog) = intern(&store, &listing, None);
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
        let (_, catalog) = intern(&store, &listing, None);
        assert_eq!((catalog.tools().len(), catalog.left_out()), (kept, 2 - kept));
        assert_eq!(store.left_out(), 2 - kept as u64);
    }
}
