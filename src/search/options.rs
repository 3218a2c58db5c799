//! The constants of ranking, in one place, each with where it comes from.

use super::document::FIELDS;

/// How a field counts: its weight in BM25F, and how much its length is held against it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldOptions {
    pub weight: f32,
    /// BM25's `b` for this field: 0 ignores length, 1 divides by it.
    pub b: f32,
}

/// Everything that tunes a [`super::Ranker`].
#[derive(Debug, Clone, PartialEq)]
pub struct RankerOptions {
    /// In the order of [`super::document::Field`].
    pub fields: [FieldOptions; FIELDS],
    /// BM25's saturation of repeated words.
    pub k1: f32,
    /// What a synonym of a query's word counts, beside the word itself.
    pub synonym: f32,
    /// What a word that says little counts.
    pub weak: f32,
    pub fusion: FusionOptions,
}

/// How the two arms are added.
#[derive(Debug, Clone, PartialEq)]
pub struct FusionOptions {
    /// The share of the cosine; the rest is words.
    pub semantic: f32,
    pub vector: [f32; 6],
    pub x: [f32; 10],
}

impl Default for RankerOptions {
    fn default() -> Self {
        let field = |weight, b| FieldOptions { weight, b };
        Self {
            fields: [
                field(1.0, 0.0),
                field(3.0, 0.3),
                field(2.0, 0.3),
                field(1.0, 0.5),
                field(0.5, 0.75),
                field(0.5, 0.75),
                field(0.3, 0.75),
                field(0.3, 0.75),
            ],
            k1: 2.0,
            synonym: 0.4,
            weak: 0.4,
            fusion: FusionOptions {
                semantic: 0.6,
                vector: [0.8, 0.0, 1.0, 0.2, 0.2, 0.2],
                x: [0.7, 0., 0., 0., 0., 0., 0., 0., 0., 0.],
            },
        }
    }
}
