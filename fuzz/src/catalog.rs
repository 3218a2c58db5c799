//! Pages and definitions: what an upstream may write about its tools.

use crate::upstream::{Told, cache_over, caller, runtime};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::runtime::Runtime;
use toolsearch_proxy::caller::Salt;
use toolsearch_proxy::catalog::Catalog;
use toolsearch_proxy::mcp::Era;
use toolsearch_proxy::upstream::{Listing, parse_page};

fn cataloged(tools: Vec<Bytes>, era: Era) -> Arc<Catalog> {
    let upstream =
        Told::listing(move |_| Ok(Listing { tools: tools.clone(), instructions: None, ttl: None, era }));
    let cache = cache_over(&upstream);
    // Made once, so that what an input costs is its own.
    thread_local! {
        static RUNTIME: Runtime = runtime(false);
    }
    RUNTIME.with(|runtime| runtime.block_on(cache.get(&caller("Bearer a", &Salt::random())))).unwrap()
}

/// A page is no page, or a catalogue in which each tool is found by its name and has the bytes it came with.
pub fn listing(data: &[u8]) {
    let Some((&first, page)) = data.split_first() else { return };
    let Ok(page) = parse_page(&Bytes::copy_from_slice(page)) else { return };
    let era = if first % 2 == 0 { Era::Modern } else { Era::Legacy };
    let listed = page.tools.clone();
    let catalog = cataloged(page.tools, era);
    assert!(catalog.tools().len() + catalog.left_out() <= listed.len());
    for tool in catalog.tools() {
        assert!(listed.iter().any(|bytes| **bytes == *tool.definition().as_bytes()));
        let named = catalog.named(tool.name()).expect("a listed tool has its name");
        assert!(named.tools().any(|other| other.digest() == tool.digest()));
        assert!(!named.is_read_only() || tool.is_read_only());
    }
}

/// Whatever the annotations are, a tool is read-only only where a strict reader finds the literal `true` once, and no
/// `true` that it destroys.
pub fn gate(data: &[u8]) {
    let Ok(annotations) = serde_json::from_slice::<&RawValue>(data) else { return };
    let definition = format!(r#"{{"name":"a","annotations":{}}}"#, annotations.get());
    let catalog = cataloged(vec![Bytes::from(definition)], Era::Legacy);
    let Some(named) = catalog.named("a") else { return };
    if named.is_read_only() {
        let members = members(annotations);
        let hints = |name: &str| {
            members.iter().filter(|(key, _)| key == name).map(|(_, value)| *value).collect::<Vec<_>>()
        };
        assert_eq!(hints("readOnlyHint"), ["true"]);
        assert!(!hints("destructiveHint").contains(&"true"));
    }
}

/// All members of an object, those that come again too.
fn members(object: &RawValue) -> Vec<(String, &str)> {
    struct Members;
    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((key, value.get()));
            }
            Ok(members)
        }
    }
    use serde::Deserializer as _;
    serde_json::Deserializer::from_str(object.get()).deserialize_map(Members).unwrap_or_default()
}
