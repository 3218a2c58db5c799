//! A model2vec folder, checked and opened.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use super::FetchError;
use super::compact::{self, Source};
use super::folder::{Folder, FolderError, FolderLock, Hashed};
use super::manifest::{CONFIG, Digest, Manifest, Pin, TABLE, TOKENIZER};
use crate::embedder::convert::convert_tokenizer;
use crate::embedder::model::{ModelError, StaticModel};
use crate::embedder::table::Table;
use crate::embedder::vocabulary::Vocabulary;

const NAMES: [&str; 3] = [CONFIG, TOKENIZER, TABLE];

/// Largest files that are read as a whole. A tokenizer of half a million pieces has 18 MB.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
const TOKENIZER_BYTES_MAX: u64 = 64 << 20;

/// What the files of a folder are compared with.
#[derive(Clone, Debug)]
pub enum Pins {
    Of(Box<Manifest>),
    /// Nothing: the operator vouches for them.
    None,
}

/// The model in a folder.
///
/// The first time it is made 8-bit and kept so in the folder, if that can be written; after that only the kept form is
/// read.
///
/// # Errors
/// When the folder or a file can't be trusted, is missing, has not the digest that is pinned, or is no model that is
/// supported.
///
/// # Cost
/// For half a million vectors of 256 numbers: some 150 MB of memory, and what hashing these takes; the first time the
/// four times larger files are read and hashed too, with some 260 MB at the peak.
pub fn open_model_folder(path: &Path, pins: &Pins) -> Result<Arc<StaticModel>, FetchError> {
    let folder = Folder::open(path)?;
    let manifest = match pins {
        Pins::Of(manifest) if !manifest.is_confirmed => {
            return Err(FetchError::Unconfirmed(manifest.repository.clone()));
        }
        Pins::Of(manifest) => Some(&**manifest),
        Pins::None => None,
    };
    if let Some(model) = compact::load(&folder, &NAMES, manifest)? {
        return Ok(model);
    }
    let made = Made::from(&folder, manifest)?;
    let kept = folder.lock().map_err(FetchError::from).and_then(|lock| made.keep(&folder, &lock));
    if let Err(error) = kept {
        tracing::warn!(
            "the model's 8-bit form can't be kept, so that each start takes longer and more memory: {error}"
        );
    }
    made.model(&folder)
}

/// Makes sure that the next [`open_model_folder`] is quick.
pub(super) fn prepare(folder: &Folder, manifest: &Manifest, lock: &FolderLock) -> Result<(), FetchError> {
    if compact::load(folder, &NAMES, Some(manifest))?.is_some() {
        return Ok(());
    }
    let made = Made::from(folder, Some(manifest))?;
    made.keep(folder, lock)?;
    made.model(folder).map(|_| ())
}

/// Whether a file is there, and what its pin says.
pub(super) fn is_right(folder: &Folder, name: &str, pin: Pin) -> Result<Option<bool>, FetchError> {
    let Some((file, metadata)) = folder.find(name)? else { return Ok(None) };
    if metadata.len() != pin.bytes {
        return Ok(Some(false));
    }
    let read = Hashed::new(file).finish().map_err(|source| unreadable(folder, name, source))?;
    Ok(Some(read == (pin.bytes, pin.digest)))
}

/// A model made from its files.
struct Made {
    table: Table,
    vocabulary: Vec<u8>,
    sources: Vec<Source>,
}

impl Made {
    fn from(folder: &Folder, manifest: Option<&Manifest>) -> Result<Self, FetchError> {
        let (_, config) = whole(folder, CONFIG, CONFIG_BYTES_MAX, manifest)?;
        let (json, tokenizer) = whole(folder, TOKENIZER, TOKENIZER_BYTES_MAX, manifest)?;
        let vocabulary = convert_tokenizer(&json).map_err(unusable(folder, TOKENIZER))?;
        drop(json);
        let (file, metadata) = folder.get(TABLE)?;
        check_length(folder, TABLE, &metadata, manifest)?;
        let mut reader = BufReader::with_capacity(1 << 20, Hashed::new(file.take(metadata.len())));
        let table = Table::read(&mut reader, metadata.len());
        let read = reader.into_inner().finish();
        let (bytes, digest) = read.map_err(|source| unreadable(folder, TABLE, source))?;
        // That the file was changed says more than what is wrong with the table now.
        check(folder, TABLE, bytes, digest, manifest)?;
        let table = table.map_err(unusable(folder, TABLE))?;
        let sources = vec![config, tokenizer, Source::new(TABLE, &metadata, digest)];
        Ok(Self { table, vocabulary, sources })
    }

    fn keep(&self, folder: &Folder, lock: &FolderLock) -> Result<(), FetchError> {
        compact::store(folder, lock, &self.table, &self.vocabulary, self.sources.clone())
    }

    fn model(self, folder: &Folder) -> Result<Arc<StaticModel>, FetchError> {
        let vocabulary = Vocabulary::new(Cow::Owned(self.vocabulary))
            .ok_or_else(|| ModelError::Tokenizer("its compact form is broken".to_owned()))
            .map_err(unusable(folder, TOKENIZER))?;
        StaticModel::new(vocabulary, self.table).map(Arc::new).map_err(unusable(folder, TABLE))
    }
}

/// A small file's bytes, once they are the right ones.
fn whole(
    folder: &Folder,
    name: &str,
    bytes_max: u64,
    manifest: Option<&Manifest>,
) -> Result<(Vec<u8>, Source), FetchError> {
    let (file, metadata): (File, Metadata) = folder.get(name)?;
    check_length(folder, name, &metadata, manifest)?;
    if metadata.len() > bytes_max {
        let why = format!("it has {} bytes, and more than {bytes_max} are not read", metadata.len());
        return Err(unusable(folder, name)(ModelError::Tokenizer(why)));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(bytes_max).read_to_end(&mut bytes).map_err(|source| unreadable(folder, name, source))?;
    let digest = Digest::of(&bytes);
    check(folder, name, bytes.len() as u64, digest, manifest)?;
    Ok((bytes, Source::new(name, &metadata, digest)))
}

fn check_length(
    folder: &Folder,
    name: &str,
    metadata: &Metadata,
    manifest: Option<&Manifest>,
) -> Result<(), FetchError> {
    match manifest.and_then(|manifest| manifest.pin(name)) {
        Some(pin) if pin.bytes != metadata.len() => {
            Err(changed(folder, name, format!("it has {} bytes instead of {}", metadata.len(), pin.bytes)))
        }
        _ => Ok(()),
    }
}

fn check(
    folder: &Folder,
    name: &str,
    bytes: u64,
    digest: Digest,
    manifest: Option<&Manifest>,
) -> Result<(), FetchError> {
    match manifest.map(|manifest| manifest.pin(name)) {
        Some(pin) if pin != Some(Pin { bytes, digest }) => {
            Err(changed(folder, name, format!("it has {digest}")))
        }
        _ => Ok(()),
    }
}

fn changed(folder: &Folder, name: &str, why: String) -> FetchError {
    FetchError::Changed { path: folder.path().join(name), why }
}

fn unusable(folder: &Folder, name: &str) -> impl FnOnce(ModelError) -> FetchError + use<> {
    let path = folder.path().join(name);
    move |source| FetchError::Model { path, source }
}

fn unreadable(folder: &Folder, name: &str, source: std::io::Error) -> FetchError {
    FolderError::Io { doing: "read", path: folder.path().join(name), source }.into()
}
