//! Why a document stands where it does.

use super::document::{AnalyzedDocument, Field};
use super::floor::Evidence;
use super::index::Index;
use super::lexical;
use super::query::QueryWord;
use super::ranker::{self, Hit, Ranker};

/// What a query found in one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub hit: Hit,
    /// The place by words and by meaning alone, from 1; `None` when the arm has nothing to say for the document.
    pub lexical_rank: Option<u32>,
    pub semantic_rank: Option<u32>,
    /// The query names the document, so it goes before all scores.
    pub named: bool,
    /// What the words alone scored, and what a perfect document would have scored.
    pub lexical: f32,
    pub bound: f32,
    /// Of the whole query, for the decision whether anything fits.
    pub evidence: Evidence,
    pub fits: bool,
    /// The words of the query that the document answers, in the query's order.
    pub terms: Vec<TermShare>,
}

/// What one word of the query gave.
#[derive(Debug, Clone, PartialEq)]
pub struct TermShare {
    /// The word; two words are a pair that stands together.
    pub word: String,
    /// Whether the document has another word for it.
    pub synonym: bool,
    /// What it added to the lexical score.
    pub score: f32,
    pub fields: Vec<FieldShare>,
}

/// Where the word stands.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldShare {
    pub field: &'static str,
    pub tf: u8,
}

impl Ranker {
    /// Why the document at `position` stands where it does for `query`. `document` is the one that the index was made
    /// from.
    pub fn explain(
        &self,
        query: &str,
        index: &Index,
        document: &AnalyzedDocument,
        position: usize,
    ) -> Explanation {
        let found = self.find(query, index, index.len());
        let id = position as u32;
        let terms =
            found.words.words.iter().filter_map(|word| self.share(index, word, document, id)).collect();
        Explanation {
            hit: ranker::hit(&found, id),
            lexical_rank: (found.lexical.scores[position] > 0.0)
                .then(|| rank(&found.lexical.scores, position)),
            semantic_rank: (!found.fused.cosines.is_empty()).then(|| rank(&found.fused.cosines, position)),
            named: found.named.contains(&id),
            lexical: found.lexical.scores[position],
            bound: found.lexical.bound,
            evidence: found.evidence,
            fits: found.evidence.suffices(&self.options.floor, index.len()),
            terms,
        }
    }

    fn share(
        &self,
        index: &Index,
        word: &QueryWord,
        document: &AnalyzedDocument,
        id: u32,
    ) -> Option<TermShare> {
        let answers = lexical::answers(index, word, &self.options).filter_map(|(term, factor, postings)| {
            let place = postings.documents.binary_search(&id).ok()?;
            Some((term, factor * postings.impacts[place]))
        });
        let (term, score) = answers.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let place = document.terms.binary_search_by_key(&term, |term| term.term).ok()?;
        let fields = Field::NAMES.iter().zip(document.terms[place].tf).filter(|&(_, tf)| tf > 0);
        Some(TermShare {
            word: word.text.clone(),
            synonym: term != word.alternatives[0].0,
            score: score * word.weight,
            fields: fields.map(|(&field, tf)| FieldShare { field, tf }).collect(),
        })
    }
}

/// The place of a document by a score, from 1; equal ones by position.
fn rank(scores: &[f32], document: usize) -> u32 {
    let score = scores[document];
    let before = scores[..document].iter().filter(|&&other| other >= score).count();
    let after = scores[document + 1..].iter().filter(|&&other| other > score).count();
    (before + after + 1) as u32
}
