//! Whether anything fits at all.
//!
//! A nearest neighbour always exists, so an answer needs evidence:
//!
//! ```text
//! known    = share of the question, by rarity, whose words the catalogue has
//! answered = the best document's lexical score, in words that nobody has
//! evidence = best cosine + a * known + b * answered
//! ```
//!
//! Tools speak English. In a question in English a word that no tool has counts against the catalogue; in another language
//! it says nothing, and the cosine must do. An exact name needs no evidence.

use super::index::Index;
use super::lexical::Lexical;
use super::options::FloorOptions;

/// A question of whose words the catalogue knows so much is in the catalogue's language.
const KNOWN_IN_ENGLISH: f32 = 0.3;

/// What a query found, as far as it tells whether anything fits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// Of the nearest document; `None` without vectors.
    pub cosine: Option<f32>,
    pub known: f32,
    pub answered: f32,
    pub english: bool,
}

impl Evidence {
    pub(super) fn new(index: &Index, lexical: &Lexical, cosine: Option<f32>, english: bool) -> Self {
        let best = lexical.scores.iter().copied().fold(0.0, f32::max);
        let known = if lexical.bound > 0.0 { lexical.known / lexical.bound } else { 0.0 };
        let english = english || known >= KNOWN_IN_ENGLISH;
        Self { cosine, known, answered: best / index.idf_unknown(), english }
    }

    /// Whether it is enough in a catalogue of `documents` tools.
    pub(super) fn suffices(&self, floor: &FloorOptions, documents: usize) -> bool {
        let words = floor.known * self.known + floor.answered * self.answered;
        let larger = (f64::from(documents.max(FEW_DOCUMENTS) as u32) / USUAL_DOCUMENTS).ln() as f32;
        match self.cosine {
            Some(cosine) if self.english => cosine + words >= floor.english + floor.growth * larger,
            Some(cosine) => cosine >= floor.other + floor.other_growth * larger,
            None => words >= floor.words + floor.growth * larger,
        }
    }
}

/// The size of catalogue that the floors are stated for.
const USUAL_DOCUMENTS: f64 = 100.0;

/// A smaller catalogue is held to the floors of one of this size: below it nothing was measured, and lower floors would let
/// everything pass.
const FEW_DOCUMENTS: usize = 40;
