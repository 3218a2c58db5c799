//! The two arms, added.
//!
//! ```text
//! words = lexical score / (bound^(1 - g) * best lexical score^g)
//! s     = semantic share * share of the query's letters that the embedder knows
//! score = s * cosine + (1 - s) * words
//! ```
//!
//! Scores are added rather than ranks: ranks throw away how sure an arm is, which cost up to 16 points of recall on
//! paraphrases. Dividing by the bound alone leaves a long question, of whose many words no tool has most, to the cosine;
//! dividing by the best score alone makes a chance match as good as a full one; their weighted geometric mean is neither.

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
    let best = lexical.scores.iter().copied().fold(0.0, f32::max);
    let divisor = divisor(lexical.bound, best, options.best);
    let semantic = query.map_or(0.0, |query| options.semantic * query.known);
    let scale = if divisor > 0.0 { (1.0 - semantic) / divisor } else { 0.0 };
    let mut scores: Vec<f32> = lexical.scores.iter().map(|score| score * scale).collect();
    for (score, cosine) in scores.iter_mut().zip(&cosines) {
        *score += semantic * cosine;
    }
    let mut order: Vec<u32> =
        (0..).zip(&scores).filter(|&(_, &score)| score > 0.0).map(|(document, _)| document).collect();
    let sentences = query.map_or(&[][..], |query| &query.sentences);
    truncate_to_best(
        &mut order,
        &scores,
        if sentences.is_empty() { depth } else { depth.max(SENTENCE_DEPTH) },
    );
    let mut nearest_of_all = cosines.iter().copied().reduce(f32::max);
    if !sentences.is_empty() {
        for &document in &order {
            let nearest =
                sentences.iter().map(|sentence| index.cosine(sentence, document)).fold(-1.0, f32::max);
            nearest_of_all = nearest_of_all.map(|most| most.max(nearest));
            let gain = nearest - cosines[document as usize];
            scores[document as usize] += semantic * options.sentence * gain;
        }
        truncate_to_best(&mut order, &scores, depth);
    }
    Fused { scores, cosines, order, nearest: nearest_of_all }
}

/// `bound^(1 - best's share) * best^(best's share)`, in double precision so that it is the same on every machine.
fn divisor(bound: f32, best: f32, share: f32) -> f32 {
    let share = f64::from(share);
    (f64::from(bound).powf(1.0 - share) * f64::from(best).powf(share)) as f32
}

/// Keeps the best `depth` of `order`, best first.
fn truncate_to_best(order: &mut Vec<u32>, scores: &[f32], depth: usize) {
    let better = |&a: &u32, &b: &u32| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b));
    if depth == 0 {
        order.clear();
    }
    if order.len() > depth {
        order.select_nth_unstable_by(depth - 1, better);
        order.truncate(depth);
    }
    order.sort_unstable_by(better);
}
