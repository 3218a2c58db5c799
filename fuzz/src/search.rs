//! Any text can be searched for in any text.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use toolsearch_proxy::embedder::StaticModel;
use toolsearch_proxy::search::{Document, Parameter, Ranker, RankerOptions};

static RANKER: LazyLock<Ranker> = LazyLock::new(|| {
    let model = StaticModel::builtin().expect("the built-in model is sound");
    Ranker::new(RankerOptions::default(), Some(model))
});

/// The first line is the query, each other one a tool: name, title, description and parameters behind tabs.
pub fn search(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let query = lines.next().unwrap_or_default();
    let documents: Vec<_> = lines.take(50).map(|line| Arc::new(RANKER.analyze(&document(line)))).collect();
    let index = RANKER.index(&documents);
    let hits = RANKER.rank(query, &index, 25);
    assert!(hits.len() <= 25);
    let mut seen = HashSet::new();
    for hit in &hits {
        assert!(hit.index < documents.len() && seen.insert(hit.index));
        assert!(hit.score.is_finite() && hit.cosine.is_none_or(|cosine| (-1.01..=1.01).contains(&cosine)));
    }
    assert_eq!(RANKER.rank(query, &index, 25), hits);
}

fn document(line: &str) -> Document<'_> {
    let mut parts = line.split('\t');
    let mut next = || parts.next().unwrap_or_default();
    let (name, title, description) = (next(), next(), next());
    let parameters = parts.map(|part| Parameter { name: part, description: part, enum_values: vec![part] });
    Document { name, title, description, parameters: parameters.collect() }
}
