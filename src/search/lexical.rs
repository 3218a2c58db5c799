//! The lexical arm: how well each document's words answer the query's.
//!
//! ```text
//! score = sum over the query's words of  weight * max over its alternatives of (part * idf * impact)
//! bound = sum over the query's words of  weight * idf
//! ```
//!
//! A word is answered by its best alternative, not by their sum: a tool that says "get", "fetch" and "read" is not three
//! times as right. The bound is what a perfect document would score, words that nobody has at full idf; score / bound is
//! the part of the question that a document answers.

use super::index::Index;
use super::query::QueryWord;

/// The scores of all documents.
#[derive(Debug, Default)]
pub(super) struct Lexical {
    pub scores: Vec<f32>,
    pub bound: f32,
}

pub(super) fn score(index: &Index, words: &[QueryWord]) -> Lexical {
    let mut scores = vec![0.0; index.len()];
    let mut best = vec![0.0_f32; index.len()];
    let mut touched: Vec<u32> = Vec::new();
    let mut bound = 0.0;
    for word in words {
        let own = index.postings(word.alternatives[0].0);
        bound += word.weight * own.map_or(index.idf_unknown(), |postings| postings.idf);
        touched.clear();
        for &(term, part) in &word.alternatives {
            let Some(postings) = index.postings(term) else { continue };
            let factor = part * postings.idf;
            for (&document, &impact) in postings.documents.iter().zip(postings.impacts) {
                let place = &mut best[document as usize];
                if *place == 0.0 {
                    touched.push(document);
                }
                *place = place.max(factor * impact);
            }
        }
        for &document in &touched {
            scores[document as usize] += word.weight * best[document as usize];
            best[document as usize] = 0.0;
        }
    }
    Lexical { scores, bound }
}
