//! Why a hit stands where it does.

/// What one word of the query gave a document.
#[derive(Debug, Clone, PartialEq)]
pub struct TermShare {
    pub word: String,
    pub score: f32,
}
#[derive(Debug, Clone, PartialEq)]
pub struct FieldShare;
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation;
