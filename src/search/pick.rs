//! From scored documents to an answer: exact names first, pointers followed, one tool of many servers not three times.

use super::analyzer::Analyzer;
use super::index::Index;
use super::{names, query};

/// At most so many hits share a bare name, unless the query gave the name.
const FAMILY_MAX: usize = 3;

/// The documents that `query` names, in the order in which it does; of one name, as `better` has it.
pub(super) fn named(analyzer: &Analyzer, index: &Index, query: &str, score: impl Fn(u32) -> f32) -> Vec<u32> {
    let query = query::capped(query);
    let mut found: Vec<u32> = Vec::new();
    let mut add = |name: &str| {
        let mut same: Vec<u32> = names::spellings(name)
            .map(|name| index.named(analyzer.name(name)).collect())
            .find(|same: &Vec<u32>| !same.is_empty())
            .unwrap_or_default();
        same.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        let known = !same.is_empty();
        for document in same {
            if !found.contains(&document) {
                found.push(document);
            }
        }
        known
    };
    if add(query.trim()) {
        return found;
    }
    let items = || query.split([',', ';', '\n']).map(str::trim).filter(|item| !item.is_empty());
    if items().count() > 1 && items().all(|item| index.named(analyzer.name(item)).next().is_some()) {
        items().for_each(|item| {
            add(item);
        });
        return found;
    }
    for word in names::candidates(query).filter(|word| names::looks_like_name(word)) {
        add(word);
    }
    found
}

/// The first `limit` of the documents: the named ones, then the scored ones in order.
pub(super) fn pick(index: &Index, named: &[u32], order: &[u32], limit: usize) -> Vec<u32> {
    let mut picked: Vec<u32> = Vec::with_capacity(limit);
    let mut late: Vec<u32> = Vec::new();
    for &document in named {
        add(index, &mut picked, document, limit);
    }
    for &document in order {
        if picked.len() >= limit {
            break;
        }
        let family = index.family(document);
        if picked.iter().filter(|&&other| index.family(other) == family).count() >= FAMILY_MAX {
            late.push(document);
        } else {
            add(index, &mut picked, document, limit);
        }
    }
    for document in late {
        add(index, &mut picked, document, limit);
    }
    picked
}

/// Adds a document and what it says to use instead.
fn add(index: &Index, picked: &mut Vec<u32>, document: u32, limit: usize) {
    for document in std::iter::once(document).chain(index.pointers_of(document)) {
        if picked.len() < limit && !picked.contains(&document) {
            picked.push(document);
        }
    }
}
