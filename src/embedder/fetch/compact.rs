//! The model as it is used, kept in one file beside the files that it was made from.
//!
//! ```text
//! "TSMODEL1"
//! u32 bytes of the header, and the header: JSON, see [`Header`]
//! the table: a safetensors file with 8 bits a number
//! the vocabulary in its compact form
//! ```
//!
//! It is a cache: whatever is wrong with it, it is made again. It holds the digests of the files that it was made from,
//! which must be the pinned ones, and digests of its own parts, which are checked in the bytes that are used. The files
//! themselves are not read again while their length and time of change are those that were checked when it was made.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FetchError;
use super::folder::{Folder, FolderLock, Hashed, remove};
use super::manifest::{Digest, Manifest};
use crate::embedder::model::StaticModel;
use crate::embedder::table::Table;
use crate::embedder::vocabulary::Vocabulary;

pub(super) const NAME: &str = ".toolsearch-8bit.bin";

const MAGIC: &[u8; 8] = b"TSMODEL1";

/// Counts up when the same files would give another table or vocabulary, or these are laid out in another way.
const FORMAT: u32 = 1;

const HEADER_BYTES_MAX: u32 = 1 << 16;

/// The vocabulary of half a million pieces takes a tenth of this.
const VOCABULARY_BYTES_MAX: u64 = 256 << 20;

#[derive(Debug, Deserialize, Serialize)]
struct Header {
    format: u32,
    sources: Vec<Source>,
    table: Piece,
    vocabulary: Piece,
}

/// A file that the model was made from, as it was then.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Source {
    pub name: String,
    pub bytes: u64,
    sha256: String,
    modified: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Piece {
    bytes: u64,
    sha256: String,
}

impl Source {
    pub fn new(name: &str, metadata: &Metadata, digest: Digest) -> Self {
        let (bytes, modified) = (metadata.len(), modified(metadata));
        Self { name: name.to_owned(), bytes, sha256: digest.to_string(), modified }
    }
}

/// When the file was changed last; of times that no model was made at, all are one.
fn modified(metadata: &Metadata) -> String {
    let since =
        metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    format!("{}.{:09}", since.as_secs(), since.subsec_nanos())
}

/// Why the cache is not used.
enum Unusable {
    /// There is none, or it is of other files or another release.
    Stale,
    Broken,
}

impl From<io::Error> for Unusable {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// The model as it was kept, if it still stands for the files in the folder.
///
/// # Errors
/// Only for what the files themselves have: one is missing, a link, or others can write it.
///
/// # Cost
/// Reads and hashes its own bytes, a quarter of the model's.
pub(super) fn load(
    folder: &Folder,
    names: &[&str],
    manifest: Option<&Manifest>,
) -> Result<Option<Arc<StaticModel>>, FetchError> {
    let sources = names.iter().map(|name| Ok((*name, folder.get(name)?)));
    let sources: Vec<(&str, (File, Metadata))> = sources.collect::<Result<_, FetchError>>()?;
    let Some((mut file, metadata)) = folder.find(NAME)? else { return Ok(None) };
    match read(&mut file, metadata.len(), &sources, manifest) {
        Ok(model) => Ok(Some(model)),
        Err(Unusable::Stale) => Ok(None),
        Err(Unusable::Broken) => {
            tracing::warn!("the 8-bit form of the model is damaged: it is made again from the model's files");
            Ok(None)
        }
    }
}

fn read(
    file: &mut File,
    len: u64,
    sources: &[(&str, (File, Metadata))],
    manifest: Option<&Manifest>,
) -> Result<Arc<StaticModel>, Unusable> {
    let mut start = [0; 12];
    file.read_exact(&mut start)?;
    let header_len = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if start[..8] != *MAGIC || header_len > HEADER_BYTES_MAX {
        return Err(Unusable::Broken);
    }
    let mut header = vec![0; header_len as usize];
    file.read_exact(&mut header)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| Unusable::Broken)?;
    if header.format != FORMAT || !is_current(&header.sources, sources, manifest)? {
        return Err(Unusable::Stale);
    }
    let whole = 12 + u64::from(header_len);
    let whole =
        whole.checked_add(header.table.bytes).and_then(|sum| sum.checked_add(header.vocabulary.bytes));
    if whole != Some(len) || header.vocabulary.bytes > VOCABULARY_BYTES_MAX {
        return Err(Unusable::Broken);
    }
    let mut part = Hashed::new(Read::by_ref(file).take(header.table.bytes));
    let table = Table::read(&mut part, header.table.bytes).map_err(|_| Unusable::Broken)?;
    let (bytes, digest) = part.finish()?;
    if (bytes, digest.to_string()) != (header.table.bytes, header.table.sha256) {
        return Err(Unusable::Broken);
    }
    let mut vocabulary = vec![0; header.vocabulary.bytes as usize];
    file.read_exact(&mut vocabulary)?;
    if Digest::of(&vocabulary).to_string() != header.vocabulary.sha256 {
        return Err(Unusable::Broken);
    }
    let vocabulary = Vocabulary::new(Cow::Owned(vocabulary)).ok_or(Unusable::Broken)?;
    StaticModel::new(vocabulary, table).map(Arc::new).map_err(|_| Unusable::Broken)
}

/// Whether the model was made from the files that are there now, and these are the pinned ones.
fn is_current(
    then: &[Source],
    now: &[(&str, (File, Metadata))],
    manifest: Option<&Manifest>,
) -> Result<bool, Unusable> {
    if then.len() != now.len() {
        return Ok(false);
    }
    for (then, (name, (file, metadata))) in then.iter().zip(now) {
        if then.name != *name || then.bytes != metadata.len() {
            return Ok(false);
        }
        let pin = manifest.map(|manifest| manifest.pin(name));
        if let Some(pin) = pin
            && pin.is_none_or(|pin| pin.bytes != then.bytes || pin.digest.to_string() != then.sha256)
        {
            return Ok(false);
        }
        // A copy of the folder has other times; its bytes then tell.
        if then.modified != modified(metadata) && Hashed::new(file).finish()?.1.to_string() != then.sha256 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keeps a model for the next start.
pub(super) fn store(
    folder: &Folder,
    lock: &FolderLock,
    table: &Table,
    vocabulary: &[u8],
    sources: Vec<Source>,
) -> Result<(), FetchError> {
    for path in folder.leftovers(NAME, lock)? {
        remove(&path)?;
    }
    let mut part = folder.new_part(NAME)?;
    let written = write(&mut part.file, table, vocabulary, sources);
    if let Err(error) = written {
        let error = part.failed("write")(error);
        part.remove()?;
        return Err(error.into());
    }
    Ok(folder.publish(part, NAME)?)
}

fn write(file: &mut File, table: &Table, vocabulary: &[u8], sources: Vec<Source>) -> io::Result<()> {
    // The table's digest stands before the table, so it is written twice, and first into nothing.
    let mut measured = Measured { hasher: Sha256::new(), bytes: 0 };
    table.write(&mut measured)?;
    let digest = Digest(measured.hasher.finalize().into());
    let header = Header {
        format: FORMAT,
        sources,
        table: Piece { bytes: measured.bytes, sha256: digest.to_string() },
        vocabulary: Piece { bytes: vocabulary.len() as u64, sha256: Digest::of(vocabulary).to_string() },
    };
    let header = serde_json::to_vec(&header)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.seek(SeekFrom::Start(0))?;
    out.write_all(MAGIC)?;
    out.write_all(&(header.len() as u32).to_le_bytes())?;
    out.write_all(&header)?;
    table.write(&mut out)?;
    out.write_all(vocabulary)?;
    out.flush()
}

/// Takes bytes and remembers what they were like.
struct Measured {
    hasher: Sha256,
    bytes: u64,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
