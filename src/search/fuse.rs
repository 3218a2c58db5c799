//! The two arms, added.
//!
//! ```text
//! words = lexical score / (bound^(1 - g) * best lexical score^g)
//! s     = share of the query's letters that the embedder knows
//!         * (semantic share * (1 - l * ln(words of the query / 8) * k) + c * (1/2 - best lexical score / bound))
//! k     = 1 where tools have half of the query's words, less where they have fewer
//! score = s * cosine + (1 - s) * words
//! ```
//!
//! Scores are added rather than ranks: ranks throw away how sure an arm is, which cost up to 16 points of recall on
//! paraphrases. Dividing by the bound alone leaves a long question, of whose many words no tool has most, to the cosine;
//! dividing by the best score alone makes a chance match as good as a full one; their weighted geometric mean is neither.
//!
//! The mean of a long request is near all that it asks for and close to none of it, so meaning counts less the longer the
//! request is, and more where no tool has the words.

use super::index::Index;
use super::lexical::Lexical;
use super::options::FusionOptions;
use super::query::QueryVectors;

/// How many of the best documents are compared with each sentence of a query.
const SENTENCE_DEPTH: usize = 100;

/// The scores of all documents, and the best of them in order.
#[derive(Debug)]
pub(super) struct Fused {
    pub scores: Vec<f32>,
    /// Of the whole query; empty without vectors.
    pub cosines: Vec<f32>,
    /// Documents with a score above 0, best first, equal ones by position.
    pub order: Vec<u32>,
    /// The best cosine, of the whole query or of one of its sentences; `None` without vectors.
    pub nearest: Option<f32>,
}

/// Adds the arms and orders the best `depth` documents.
pub(super) fn fuse(
    options: &FusionOptions,
    index: &Index,
    lexical: &Lexical,
    query: Option<&QueryVectors>,
    depth: usize,
) -> Fused {
    let cosines = query.map(|query| index.cosines(&query.whole)).unwrap_or_default();
    let best = lexical.best();
    let divisor = divisor(lexical.bound, best, options.best);
    let part = |score: f32| if lexical.bound > 0.0 { score / lexical.bound } else { 0.0 };
    let (covered, shared) = (part(best), part(lexical.known));
    let semantic = query.map_or(0.0, |query| semantic_share(options, query, covered, shared));
    let scale = if divisor > 0.0 { (1.0 - semantic) / divisor } else { 0.0 };
    let mut scores: Vec<f32> = lexical.scores.iter().map(|score| score * scale).collect();
    for (score, cosine) in scores.iter_mut().zip(&cosines) {
        *score += semantic * cosine;
    }
    let sentences = query.map_or(&[][..], |query| &query.sentences);
    let mut order =
        best_above_zero(&scores, if sentences.is_empty() { depth } else { depth.max(SENTENCE_DEPTH) });
    let mut nearest_of_all = (!cosines.is_empty()).then(|| largest(&cosines));
    if !sentences.is_empty() {
        let mut nearest = vec![-1.0_f32; order.len()];
        for sentence in sentences {
            for (nearest, cosine) in nearest.iter_mut().zip(index.cosines_of(sentence, &order)) {
                *nearest = nearest.max(cosine);
            }
        }
        for (&document, nearest) in order.iter().zip(nearest) {
            nearest_of_all = nearest_of_all.map(|most| most.max(nearest));
            let gain = nearest - cosines[document as usize];
            scores[document as usize] += semantic * options.sentence * gain;
        }
        truncate_to_best(&mut order, &scores, depth);
    }
    Fused { scores, cosines, order, nearest: nearest_of_all }
}

/// What the cosine counts, from 0 to 1. `covered` is how much of the query's words the best document has, `shared` how much
/// of them any document has: a long request in another language than the tools' still has nothing but its meaning.
fn semantic_share(options: &FusionOptions, query: &QueryVectors, covered: f32, shared: f32) -> f32 {
    /// A query of so many words is not long.
    const USUAL_WORDS: f64 = 8.0;
    /// Beyond 60 words a query is no longer.
    const LONGER_MAX: f64 = 2.0;
    /// So much of the query's words must be those of tools for its length to count in full.
    const SHARED: f32 = 0.5;
    let longer = (query.words as f64 / USUAL_WORDS).ln().clamp(0.0, LONGER_MAX) as f32;
    let share = options.semantic * (1.0 - options.long * longer * (shared / SHARED).min(1.0))
        + options.uncovered * (0.5 - covered);
    query.familiarity.known * share.clamp(0.0, 1.0)
}

/// `bound^(1 - best's share) * best^(best's share)`, in double precision so that it is the same on every machine.
fn divisor(bound: f32, best: f32, share: f32) -> f32 {
    let share = f64::from(share);
    (f64::from(bound).powf(1.0 - share) * f64::from(best).powf(share)) as f32
}

/// The largest of some numbers; the smallest there is without any. In lanes, since one maximum after the other has to wait
/// for the one before.
pub(super) fn largest(numbers: &[f32]) -> f32 {
    let (blocks, rest) = numbers.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for block in blocks {
        for (lane, &number) in lanes.iter_mut().zip(block) {
            *lane = if number > *lane { number } else { *lane };
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The best `depth` documents with a score above 0, best first, equal ones by position.
///
/// Most documents are worse than the best so far, and are passed over a block at a time.
fn best_above_zero(scores: &[f32], depth: usize) -> Vec<u32> {
    const BLOCK: usize = 16;
    let room = depth.saturating_mul(2).clamp(64, 4096).max(depth);
    let mut order: Vec<u32> = Vec::with_capacity(room.min(scores.len()));
    let mut least = 0.0;
    for (block, start) in scores.chunks(BLOCK).zip((0_u32..).step_by(BLOCK)) {
        if !block.iter().fold(false, |any, &score| any | (score > least)) {
            continue;
        }
        for (&score, document) in block.iter().zip(start..) {
            if score > least {
                order.push(document);
            }
        }
        if order.len() + BLOCK > room && order.len() > depth && depth > 0 {
            // A later document of the same score is worse, so only what is above the last of them counts from here.
            truncate_to_best(&mut order, scores, depth);
            least = scores[order[depth - 1] as usize];
        }
    }
    truncate_to_best(&mut order, scores, depth);
    order
}

/// Keeps the best `depth` of `order`, best first.
fn truncate_to_best(order: &mut Vec<u32>, scores: &[f32], depth: usize) {
    // Score and position in one number, which sorts without looking anything up.
    let mut keys: Vec<u64> = order.iter().map(|&document| key(scores[document as usize], document)).collect();
    if depth == 0 {
        keys.clear();
    }
    if keys.len() > depth {
        keys.select_nth_unstable(depth - 1);
        keys.truncate(depth);
    }
    keys.sort_unstable();
    order.clear();
    order.extend(keys.iter().map(|&key| key as u32));
}

/// Smaller for a higher score, and for an earlier document of the same score.
fn key(score: f32, document: u32) -> u64 {
    let bits = score.to_bits();
    // The bits of floats above zero sort as the floats do, those below zero the other way round.
    let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(!ascending) << 32 | u64::from(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::RankerOptions;
    use crate::search::vectors::{Familiarity, QueryVector};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_those_of_a_whole_sort(numbers in prop::collection::vec(-3_i8..40, 0..700), depth in 0_usize..300) {
            let scores: Vec<f32> = numbers.iter().map(|&number| f32::from(number) / 7.0).collect();
            let mut all: Vec<u32> = (0..).take(scores.len()).filter(|&i| scores[i as usize] > 0.0).collect();
            all.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
            all.truncate(depth);
            prop_assert_eq!(best_above_zero(&scores, depth), all);
            let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            prop_assert_eq!(largest(&scores), most);
        }

        #[test]
        fn keys_sort_as_scores_do(a in -9_f32..9.0, b in -9_f32..9.0) {
            prop_assert_eq!(key(a, 1) < key(b, 2), a >= b);
        }
    }

    fn share(words: usize, covered: f32, shared: f32) -> f32 {
        let familiarity = Familiarity { known: 1.0, scattered: 0.0 };
        let query =
            QueryVectors { whole: QueryVector::new(&[1.0]), sentences: Vec::new(), familiarity, words };
        semantic_share(&RankerOptions::default().fusion, &query, covered, shared)
    }

    #[test]
    fn meaning_counts_less_in_a_long_request_and_more_where_no_tool_has_the_words() {
        assert_eq!(share(1, 0.5, 1.0), share(8, 0.5, 1.0));
        assert!(share(8, 0.5, 1.0) > share(40, 0.5, 1.0));
        assert_eq!(share(200, 0.5, 1.0), share(2000, 0.5, 1.0));
        assert!(share(8, 0.0, 1.0) > share(8, 1.0, 1.0));
        assert!(share(2000, 1.0, 1.0) > 0.0);
        // No tool has the words of a request in another language, however long.
        assert_eq!(share(2000, 0.0, 0.0), share(8, 0.0, 0.0));
    }
}
