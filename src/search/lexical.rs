//! The lexical arm: how well each document's words answer the query's.
//!
//! ```text
//! rarity = shared * min over the word's alternatives of idf + (1 - shared) * the alternative's own idf
//! score  = sum over the query's words of  weight * max over its alternatives of (part * rarity * impact)
//! bound  = sum over the query's words of  weight * idf
//! ```
//!
//! A word is answered by its best alternative, not by their sum: a tool that says "get", "fetch" and "read" is not three
//! times as right. The bound is what a perfect document would score, words that nobody has at full idf; score / bound is
//! the part of the question that a document answers.

use super::fuse::largest;
use super::index::Index;
use super::options::RankerOptions;
use super::postings::Postings;
use super::query::QueryWord;

/// The scores of all documents.
#[derive(Debug, Default)]
pub(super) struct Lexical {
    pub scores: Vec<f32>,
    pub bound: f32,
    /// The part of the bound whose words the index has, as they are.
    pub known: f32,
}

impl Lexical {
    /// The best score of a document; 0 without any.
    pub fn best(&self) -> f32 {
        largest(&self.scores).max(0.0)
    }
}

/// # Cost
///
/// Proportional to the postings of the query's words: 1 to 10 microseconds among 1,000 tools.
pub(super) fn score(index: &Index, words: &[QueryWord], options: &RankerOptions) -> Lexical {
    let mut lexical = Lexical { scores: vec![0.0; index.len()], bound: 0.0, known: 0.0 };
    let mut best = vec![0.0_f32; index.len()];
    let mut touched: Vec<u32> = Vec::new();
    for word in words {
        if !word.bonus {
            let own = index.postings(word.alternatives[0].0);
            lexical.bound += word.weight * own.map_or(index.idf_unknown(), |postings| postings.idf);
            lexical.known += word.weight * own.map_or(0.0, |postings| postings.idf);
        }
        touched.clear();
        for (_, factor, postings) in answers(index, word, options) {
            for (&document, &impact) in postings.documents.iter().zip(postings.impacts) {
                let place = &mut best[document as usize];
                if *place == 0.0 {
                    touched.push(document);
                }
                *place = place.max(factor * impact);
            }
        }
        for &document in &touched {
            lexical.scores[document as usize] += word.weight * best[document as usize];
            best[document as usize] = 0.0;
        }
    }
    lexical
}

/// The postings of a word's alternatives that the index has, each with its term and what multiplies its impacts.
pub(super) fn answers<'i>(
    index: &'i Index,
    word: &QueryWord,
    options: &RankerOptions,
) -> impl Iterator<Item = (u64, f32, Postings<'i>)> {
    let found: Vec<(u64, f32, Postings<'i>)> = word
        .alternatives
        .iter()
        .filter_map(|&(term, part)| Some((term, part, index.postings(term)?)))
        .collect();
    let commonest = found.iter().map(|(_, _, postings)| postings.idf).fold(f32::INFINITY, f32::min);
    let shared = options.shared_rarity;
    found.into_iter().map(move |(term, part, postings)| {
        let rarity = shared * commonest + (1.0 - shared) * postings.idf;
        (term, part * rarity, postings)
    })
}
