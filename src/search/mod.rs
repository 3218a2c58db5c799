//! Ranking: which tools fit a query.
//!
//! [`Ranker`] turns a tool into an [`AnalyzedDocument`] (once for a tool, whoever lists it), a listing of those into an
//! [`Index`], and a query over an index into [`Hit`]s. Two arms look at the same tools: words (fielded BM25) and meaning
//! (vectors from an [`Embed`]). Their scores are added, exact names go first, and an answer in which nothing fits is
//! empty.
//!
//! Invariants: the same query over the same documents gives the same hits on every machine and in every process; an
//! index is made from its own documents only. Not here: tools as JSON, models, files, threads.

mod analyzer;
mod document;
mod dot;
mod english;
mod explain;
mod floor;
mod fuse;
mod index;
mod lexical;
mod names;
mod options;
mod pick;
mod postings;
mod query;
mod ranker;
mod remembered;
mod text;
mod values;
mod variants;
mod vectors;

pub use document::{AnalyzedDocument, Document, Embed, Parameter};
pub use explain::{Explanation, FieldShare, TermShare};
pub use floor::Evidence;
pub use index::Index;
pub use options::{FieldOptions, FloorOptions, FusionOptions, RankerOptions, VectorOptions};
pub use ranker::{Hit, Ranker};
pub use remembered::{Pool, Remembered};
