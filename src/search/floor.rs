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
//! it says nothing, and the cosine must do. A question that has no English function words, but words that tools have, may be
//! either: one of the two is enough. What the embedder must cut into many small tokens is no word of a language that it
//! knows ("asdf qwer"), so its cosine counts less. An exact name needs no evidence.

use super::index::Index;
use super::lexical::Lexical;
use super::options::FloorOptions;

/// A question of whose words the catalogue knows so much may be in the catalogue's language.
const KNOWN_IN_ENGLISH: f32 = 0.3;

/// What a query found, as far as it tells whether anything fits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// Of the nearest document; `None` without vectors.
    pub cosine: Option<f32>,
    pub known: f32,
    pub answered: f32,
    /// How far the query's tokens are shorter than those of words.
    pub scattered: f32,
    pub english: bool,
}

impl Evidence {
    pub(super) fn new(
        index: &Index,
        lexical: &Lexical,
        cosine: Option<f32>,
        scattered: f32,
        english: bool,
    ) -> Self {
        let known = if lexical.bound > 0.0 { lexical.known / lexical.bound } else { 0.0 };
        Self { cosine, known, answered: lexical.best() / index.idf_unknown(), scattered, english }
    }

    /// Whether its words are held against it: it is English for sure, or shares words with the catalogue.
    pub fn may_be_english(&self) -> bool {
        self.english || self.known >= KNOWN_IN_ENGLISH
    }

    /// Whether it is enough in a catalogue of `documents` tools.
    pub(super) fn suffices(&self, floor: &FloorOptions, documents: usize) -> bool {
        let words = floor.known * self.known + floor.answered * self.answered;
        let documents = documents.clamp(FEW_DOCUMENTS, MANY_DOCUMENTS) as u32;
        let larger = (f64::from(documents) / USUAL_DOCUMENTS).ln() as f32;
        let Some(cosine) = self.cosine else {
            return words >= floor.words + floor.growth * larger;
        };
        self.may_be_english() && cosine + words >= floor.english + floor.growth * larger
            || !self.english
                && cosine - floor.scattered * self.scattered >= floor.other + floor.other_growth * larger
    }
}

/// The size of catalogue that the floors are stated for.
const USUAL_DOCUMENTS: f64 = 100.0;

/// A smaller catalogue is held to the floors of one of this size: below it nothing was measured, and lower floors would let
/// everything pass.
const FEW_DOCUMENTS: usize = 40;

/// A larger catalogue is held to the floors of one of this size: what fits is no nearer to its question for having more
/// neighbours, and floors that went on growing refused one question in seven among 6,000 tools.
const MANY_DOCUMENTS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::RankerOptions;

    fn suffices(evidence: Evidence, documents: usize) -> bool {
        evidence.suffices(&RankerOptions::default().floor, documents)
    }

    #[test]
    fn a_catalogue_of_many_thousands_asks_for_no_more_than_one_of_a_thousand() {
        for english in [true, false] {
            let near = |hundredth: u32| Evidence {
                cosine: Some(hundredth as f32 / 100.0),
                known: 0.5,
                answered: 0.2,
                english,
                ..Evidence::default()
            };
            let least = |documents| (0..100).find(|&hundredth| suffices(near(hundredth), documents));
            assert!(least(100) < least(1000), "{english}");
            assert_eq!(least(1000), least(6000), "{english}");
            assert_eq!(least(5), least(40), "{english}");
        }
    }

    #[test]
    fn a_question_in_another_language_need_not_share_words_with_tools() {
        let foreign = Evidence { cosine: Some(0.4), known: 0.1, answered: 0.01, ..Evidence::default() };
        assert!(suffices(foreign, 500));
        assert!(!suffices(Evidence { english: true, ..foreign }, 500));
        // Names in it that some tool happens to have don't make it English.
        assert!(suffices(Evidence { known: 0.4, ..foreign }, 500));
        assert!(!suffices(Evidence { cosine: Some(0.1), ..foreign }, 500));
        // Letters at random are near something too.
        assert!(!suffices(Evidence { scattered: 0.3, ..foreign }, 500));
    }
}
