//! The constants of ranking, in one place.
//!
//! They were set on the average of many evaluation sets, one at a time, and rounded; `docs/search.md` says how, and
//! what each gives. None was set by a single query.

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
    /// In the order of `Field`.
    pub fields: [FieldOptions; FIELDS],
    /// BM25's saturation of repeated words.
    pub k1: f32,
    /// What a synonym of a query's word counts, beside the word itself.
    pub synonym: f32,
    /// How far a word's rarity is that of the commonest among it and its synonyms, rather than its own: where all tools
    /// say "read", a "get" is not a rare word.
    pub shared_rarity: f32,
    /// What a word that says little counts.
    pub weak: f32,
    /// What the word for a value's kind counts ("file" beside `settings.json`).
    pub kind: f32,
    /// What two neighbouring words that also stand together in a name or a first sentence add.
    pub pair: f32,
    /// What each further mention of a word adds.
    pub repeat: f32,
    pub vector: VectorOptions,
    pub fusion: FusionOptions,
    pub floor: FloorOptions,
}

/// What a tool's vector is made of: the weights of its parts' unit vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorOptions {
    pub server: f32,
    pub name: f32,
    pub title: f32,
    /// The first sentence of the description.
    pub lead: f32,
    pub body: f32,
    /// The names of the parameters, as one text.
    pub parameters: f32,
}

/// How the two arms are added.
#[derive(Debug, Clone, PartialEq)]
pub struct FusionOptions {
    /// The share of the cosine for a short query of whose words the best document has half; the rest is words.
    pub semantic: f32,
    /// How much less that is for each time the query is e times longer, if tools have its words.
    pub long: f32,
    /// How much more it is the less of the query's words the best document has.
    pub uncovered: f32,
    /// How far a lexical score is measured by the best one, rather than by what the question could reach (`g` in
    /// `fuse.rs`).
    pub best: f32,
    /// Of the cosine, the share of the query's best sentence; the rest is the whole query's.
    pub sentence: f32,
}

/// Below what evidence nothing fits.
#[derive(Debug, Clone, PartialEq)]
pub struct FloorOptions {
    /// What the share of known words counts beside the best cosine.
    pub known: f32,
    /// What the best document's words count.
    pub answered: f32,
    /// The least evidence for a query in English, the language of nearly all tools, in a catalogue of 100 tools.
    pub english: f32,
    /// The least cosine for a query in another language, or of names and numbers only, likewise.
    pub other: f32,
    /// The least evidence without vectors, likewise.
    pub words: f32,
    /// How much more is needed for each time the catalogue is e times larger: more tools answer more words by chance.
    pub growth: f32,
    /// Likewise for `other`.
    pub other_growth: f32,
    /// What each token per letter above the usual takes from the cosine of a query that is not English.
    pub scattered: f32,
}

impl Default for RankerOptions {
    fn default() -> Self {
        let field = |weight, b| FieldOptions { weight, b };
        Self {
            fields: [
                field(1.5, 0.0),
                field(2.2, 0.75),
                field(2.0, 0.3),
                field(1.4, 0.6),
                field(0.35, 0.75),
                field(0.2, 0.75),
                field(0.3, 0.5),
                field(0.4, 0.75),
            ],
            k1: 2.5,
            synonym: 0.3,
            shared_rarity: 0.35,
            weak: 0.5,
            kind: 0.7,
            pair: 0.2,
            repeat: 0.2,
            vector: VectorOptions {
                server: 0.2,
                name: 0.6,
                title: 0.0,
                lead: 1.0,
                body: 0.3,
                parameters: 0.2,
            },
            fusion: FusionOptions { semantic: 0.65, long: 0.35, uncovered: 0.1, best: 0.7, sentence: 0.5 },
            floor: FloorOptions {
                known: 0.4,
                answered: 1.5,
                english: 0.5,
                other: 0.115,
                words: 0.1,
                growth: 0.23,
                other_growth: 0.08,
                scattered: 1.0,
            },
        }
    }
}
