//! A query as the lexical arm sees it: words, each with the terms that would do.

use super::analyzer::Analyzer;
use super::options::RankerOptions;
use super::text::{self, Script};

/// Queries are cut here, at a character's edge; what follows is not read.
pub(super) const QUERY_BYTES_MAX: usize = 2048;

/// Different words of a query that are looked at.
const QUERY_WORDS_MAX: usize = 96;

/// A word of a query.
#[derive(Debug, Clone)]
pub(super) struct QueryWord {
    pub text: String,
    pub weight: f32,
    /// The word's own term first, then others that mean the same, with what each counts.
    pub alternatives: Vec<(u64, f32)>,
}

/// `query` up to its limit.
pub(super) fn capped(query: &str) -> &str {
    &query[..query.floor_char_boundary(QUERY_BYTES_MAX)]
}

/// The words of `query` that say something, each once, in order of first mention.
pub(super) fn words(analyzer: &Analyzer, query: &str, options: &RankerOptions) -> Vec<QueryWord> {
    let mut words: Vec<QueryWord> = Vec::new();
    text::for_each_word(capped(query), |word| {
        if words.len() == QUERY_WORDS_MAX || analyzer.is_stop_word(word.folded) {
            return;
        }
        let own = analyzer.term(word.folded, word.script);
        if words.iter().any(|known| known.alternatives[0].0 == own) {
            return;
        }
        let mut alternatives = vec![(own, 1.0)];
        if word.script == Script::Latin {
            analyzer.lithuanian_terms(&word, |term| alternatives.push((term, 1.0)));
        }
        alternatives.extend(analyzer.synonyms(own).iter().map(|&term| (term, options.synonym)));
        let weight = if analyzer.is_weak_word(word.folded) { options.weak } else { 1.0 };
        words.push(QueryWord { text: word.folded.to_owned(), weight, alternatives });
    });
    words
}
