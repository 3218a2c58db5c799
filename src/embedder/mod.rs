//! Static embedding models: text to tokens to rows of a table, read by us.
//!
//! A model is a model2vec folder: `tokenizer.json` (Unigram), `model.safetensors` and `config.json`. The tokenizer is
//! converted once to a compact form (`vocabulary`) that is used in place, so the built-in model costs its own size in
//! memory and no time to load; `model.safetensors` is used in place too when its table has 8 bits, and made 8-bit row by
//! row when it has more.
//!
//! Invariants: the same tokens as the `tokenizers` crate gives, for the pipelines that are accepted; others are refused.
//! Every offset and every row number in a file is checked before use. [`fetch_model`] brings a model's files, and
//! [`open_model_folder`] uses those that are what they should be.

mod charsmap;
mod convert;
mod fetch;
mod model;
mod table;
mod trie;
mod unigram;
mod vocabulary;

pub use convert::convert_tokenizer;
pub use fetch::{
    ClientOptions, FetchError, FetchOptions, FolderError, Manifest, ManifestError, Pins, fetch_model,
    open_model_folder,
};
pub use model::{ModelError, StaticModel};
