//! What is ranked: a tool as text, and what remains of it after analysis.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::size_of;

/// A tool, in the words of its definition.
#[derive(Debug, Clone, Default)]
pub struct Document<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub parameters: Vec<Parameter<'a>>,
}

/// A parameter of a tool, nested ones too.
#[derive(Debug, Clone, Default)]
pub struct Parameter<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub enum_values: Vec<&'a str>,
}

/// Turns text into vectors, token by token, so that the ranker decides how tokens are weighed and added.
///
/// The vectors of a static model do not depend on the words around a token: a text's vector is the weighted sum of its
/// tokens' rows.
pub trait Embed: Send + Sync {
    /// The length of every vector.
    fn dimensions(&self) -> usize;
    /// Appends the tokens of `text` in order, without those that the model does not know, and returns how many characters
    /// it did not know.
    fn tokenize(&self, text: &str, tokens: &mut Vec<u32>) -> usize;
    /// Adds the vector of each token to `sum`, which has [`Embed::dimensions`] places.
    fn add_all(&self, tokens: &[u32], sum: &mut [f32]);
}

/// How many fields a document has.
pub(super) const FIELDS: usize = 8;

/// Where in a document a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The part of the name before `__`, which all tools of a server share.
    Server,
    Name,
    Title,
    /// The first sentence of the description.
    Lead,
    /// The rest of the description.
    Body,
    ParameterName,
    ParameterText,
    EnumValue,
}

impl Field {
    pub const NAMES: [&'static str; FIELDS] = [
        "server",
        "name",
        "title",
        "first sentence",
        "description",
        "parameter name",
        "parameter description",
        "enum value",
    ];
}

/// A term of a document: how often it stands in each field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DocumentTerm {
    pub term: u64,
    pub tf: [u8; FIELDS],
}

/// What the ranker keeps of a tool. It depends on the tool alone, so every listing that has the tool shares it.
#[derive(Debug, Clone)]
pub struct AnalyzedDocument {
    /// Sorted by term.
    pub(super) terms: Box<[DocumentTerm]>,
    /// Words in each field.
    pub(super) lengths: [u16; FIELDS],
    pub(super) name: NameTerms,
    /// Bare names of tools that the description says to use instead.
    pub(super) pointers: Box<[u64]>,
    /// Whether it has Lithuanian text, which is indexed by Lithuanian stems too.
    pub(super) lithuanian: bool,
    /// The meaning in 8 bits; empty without an embedder or a known token.
    pub(super) vector: Box<[i8]>,
}

/// The keys that a tool is found by when a query names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NameTerms {
    /// The whole name.
    pub full: u64,
    /// The name without its server.
    pub bare: u64,
    /// The server; `None` for a name without `__`.
    pub server: Option<u64>,
    /// A name without `__`: its first word, and the rest when that still looks like a name (`github`, `create_issue`).
    pub prefix: Option<(u64, u64)>,
}

impl AnalyzedDocument {
    /// The bytes it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.terms.len() * size_of::<DocumentTerm>()
            + self.pointers.len() * size_of::<u64>()
            + self.vector.len()
    }
}

/// Values by term.
pub(super) type TermMap<V> = HashMap<u64, V, BuildHasherDefault<TermHasher>>;

/// Terms are SipHash values already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TermHasher(u64);

impl Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, term: u64) {
        // The lowest bits, which maps go by, are none.
        self.0 = term.rotate_left(32);
    }
}
