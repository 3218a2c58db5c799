//! [`StaticModel`]: a vocabulary and a table.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::convert::convert_tokenizer;
use super::table::Table;
use super::vocabulary::Vocabulary;
use crate::search::Embed;

const BUILTIN_VOCABULARY: &[u8] = include_bytes!("../../model/builtin/vocabulary.bin");
const BUILTIN_TABLE: &[u8] = include_bytes!("../../model/builtin/model.safetensors");

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the model's tokenizer cannot be used: {0}")]
    Tokenizer(String),
    #[error("the model's table cannot be used: {0}")]
    Table(String),
    #[error("the model's vocabulary has {pieces} pieces and its table {tokens} rows")]
    Mismatch { pieces: usize, tokens: usize },
}

/// A static embedding model. Immutable and cheap to share.
#[derive(Debug)]
pub struct StaticModel {
    vocabulary: Vocabulary,
    table: Table,
}

impl StaticModel {
    /// The model that is part of the binary; used in place.
    ///
    /// # Errors
    ///
    /// Only when the files that the binary was built with are broken.
    ///
    /// # Cost
    /// Reads 20 MB, from the disk where the system has not read the binary before.
    pub fn builtin() -> Result<Arc<Self>, ModelError> {
        bring_in(BUILTIN_VOCABULARY);
        bring_in(BUILTIN_TABLE);
        let vocabulary = Vocabulary::new(Cow::Borrowed(BUILTIN_VOCABULARY));
        let vocabulary =
            vocabulary.ok_or_else(|| ModelError::Tokenizer("its compact form is broken".to_owned()))?;
        Self::new(vocabulary, Table::in_place(BUILTIN_TABLE)?).map(Arc::new)
    }

    /// The model2vec model in a folder: `vocabulary.bin` if it is there, else `tokenizer.json`, and `model.safetensors`.
    ///
    /// # Errors
    ///
    /// [`ModelError`] when a file is missing, broken, or of a kind that is not supported.
    ///
    /// # Cost
    ///
    /// Reads the table once; in memory it takes 8 bits a number, whatever it has on disk. Without `vocabulary.bin` the
    /// tokenizer is converted first ([`convert_tokenizer`]).
    pub fn open(folder: &Path) -> Result<Arc<Self>, ModelError> {
        let compact = folder.join("vocabulary.bin");
        let bytes = if compact.exists() {
            read(&compact)?
        } else {
            convert_tokenizer(&read(&folder.join("tokenizer.json"))?)?
        };
        let vocabulary = Vocabulary::new(Cow::Owned(bytes));
        let vocabulary =
            vocabulary.ok_or_else(|| ModelError::Tokenizer("its compact form is broken".to_owned()))?;
        let path = folder.join("model.safetensors");
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = opened.map_err(|source| ModelError::Read { path, source })?;
        Self::new(vocabulary, Table::read(BufReader::with_capacity(1 << 20, file), len)?).map(Arc::new)
    }

    pub(super) fn new(vocabulary: Vocabulary, table: Table) -> Result<Self, ModelError> {
        let (pieces, tokens) = (vocabulary.len(), table.tokens());
        if pieces > tokens {
            return Err(ModelError::Mismatch { pieces, tokens });
        }
        Ok(Self { vocabulary, table })
    }

    /// The mean of the vectors of `text`'s tokens at unit length; zeros when no token is known.
    pub fn encode(&self, text: &str) -> Vec<f32> {
        let mut tokens = Vec::new();
        self.tokenize(text, &mut tokens);
        let mut sum = vec![0.0; self.dimensions()];
        self.table.add_all(&tokens, &mut sum);
        let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
        sum.iter_mut().for_each(|x| *x /= norm);
        sum
    }

    /// The bytes it takes on the heap; the built-in model takes almost none.
    pub fn heap_bytes(&self) -> usize {
        self.vocabulary.heap_bytes() + self.table.heap_bytes()
    }
}

impl Embed for StaticModel {
    fn dimensions(&self) -> usize {
        self.table.dimensions()
    }

    fn tokenize(&self, text: &str, tokens: &mut Vec<u32>) -> usize {
        self.vocabulary.tokenize(text, tokens)
    }

    fn add_all(&self, tokens: &[u32], sum: &mut [f32]) {
        self.table.add_all(tokens, sum);
    }
}

/// Reads a byte of each page, in order, so that no search has to wait for pages that lie anywhere on a disk.
fn bring_in(bytes: &'static [u8]) {
    const PAGE: usize = 4096;
    let sum = bytes.iter().step_by(PAGE).fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    fs::read(path).map_err(|source| ModelError::Read { path: path.to_owned(), source })
}
