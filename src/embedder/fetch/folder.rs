//! [`Folder`]: a model's folder, used with suspicion.
//!
//! Names are fixed, links are not followed, and what others could change is refused. Files come into being under a
//! hidden name of their own and are renamed when they are whole and on the disk, so a name that can be seen always
//! stands for a whole file.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::access::{self, Access as _};
use super::manifest::Digest;

const LOCK: &str = ".toolsearch.lock";

/// A model's folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(source))]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "{} can be written by others (mode {mode:o}): take that away (chmod go-w), or use a folder of its own inside \
         it, which fetch-model makes",
        path.display()
    )]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error("{} is a link, or no plain file: put the file itself there", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is no folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("{} is missing: run toolsearch-proxy fetch-model, or name another folder", .0.display())]
    Missing(PathBuf),
    #[error("another fetch-model is at work in {}: wait for it to end", .0.display())]
    Locked(PathBuf),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or choose another --model-dir, then run it again: it goes on where it stopped"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a --model-dir that this user may use"
        }
        _ => "",
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |source| FolderError::Io { doing, path, source }
}

/// A folder that only its owner can change.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// Held while files are made, and free again when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl Folder {
    /// Makes the folder where it is missing.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        access::make_folder(path).map_err(failed("make the folder", path))?;
        Self::open(path)
    }

    pub fn open(path: &Path) -> Result<Self, FolderError> {
        // The folder that is named now is the one that is used, whatever a link on the way says later.
        let resolved = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FolderError::Missing(path.to_owned()));
            }
            resolved => resolved.map_err(failed("open", path))?,
        };
        let metadata = fs::metadata(&resolved).map_err(failed("open", path))?;
        if !metadata.is_dir() {
            return Err(FolderError::NotAFolder(path.to_owned()));
        }
        refuse_shared(path, &metadata)?;
        Ok(Self { path: resolved })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file to read; `None` when there is none.
    pub fn find(&self, name: &str) -> Result<Option<(File, Metadata)>, FolderError> {
        let path = self.path.join(name);
        let file = match OpenOptions::new().read(true).itself().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if access::is_link(&error) => return Err(FolderError::NotAFile(path)),
            file => file.map_err(failed("open", &path))?,
        };
        let metadata = file.metadata().map_err(failed("open", &path))?;
        if !metadata.is_file() {
            return Err(FolderError::NotAFile(path));
        }
        refuse_shared(&path, &metadata)?;
        Ok(Some((file, metadata)))
    }

    /// A file that must be there.
    pub fn get(&self, name: &str) -> Result<(File, Metadata), FolderError> {
        self.find(name)?.ok_or_else(|| FolderError::Missing(self.path.join(name)))
    }

    /// Keeps others from making files here.
    pub fn lock(&self) -> Result<FolderLock, FolderError> {
        let path = self.path.join(LOCK);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).private().itself();
        let file = options.open(&path).map_err(failed("write", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Locked(self.path.clone())),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }

    /// What earlier attempts at `name` left behind, the largest last; what is no plain file is removed.
    pub fn leftovers(&self, name: &str, _lock: &FolderLock) -> Result<Vec<PathBuf>, FolderError> {
        let start = format!(".{name}.");
        let entries = fs::read_dir(&self.path).map_err(failed("list", &self.path))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed("list", &self.path))?;
            let file_name = entry.file_name();
            let nonce = file_name.to_str().and_then(|name| name.strip_prefix(&start)?.strip_suffix(".part"));
            if !nonce.is_some_and(|nonce| nonce.len() == 16 && !nonce.contains('.')) {
                continue;
            }
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path).map_err(failed("open", &path))?;
            if metadata.is_file() {
                found.push((metadata.len(), path));
            } else {
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// A new file that nobody else has open: to be written, and then [published](Self::publish).
    pub fn new_part(&self, name: &str) -> Result<Part, FolderError> {
        let nonce = getrandom::u64().map_err(|_| io::Error::other("there are no random numbers"));
        let nonce = nonce.map_err(failed("write in", &self.path))?;
        let path = self.path.join(format!(".{name}.{nonce:016x}.part"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).private();
        let file = options.open(&path).map_err(failed("write", &path))?;
        Ok(Part { path, file })
    }

    /// An earlier attempt, to be gone on with.
    pub fn open_part(&self, path: &Path) -> Result<Part, FolderError> {
        let file =
            OpenOptions::new().read(true).write(true).itself().open(path).map_err(failed("open", path))?;
        Ok(Part { path: path.to_owned(), file })
    }

    /// Gives a whole file its name: it is on the disk first, and the name is after this returns.
    pub fn publish(&self, part: Part, name: &str) -> Result<(), FolderError> {
        let Part { path, file } = part;
        // What is downloaded is public, and serve may run as another user.
        access::let_all_read(&file).map_err(failed("write", &path))?;
        file.sync_all().map_err(failed("write", &path))?;
        let target = self.path.join(name);
        fs::rename(&path, &target).map_err(failed("write", &target))?;
        access::sync_folder(&self.path).map_err(failed("write", &self.path))
    }
}

/// A file under a hidden name while it is made.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    pub file: File,
}

impl Part {
    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn remove(self) -> Result<(), FolderError> {
        remove(&self.path)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FolderError> {
        self.file.write_all(bytes).map_err(failed("write", &self.path))
    }

    /// For whatever else is done with the file.
    pub fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> FolderError + use<> {
        failed(doing, &self.path)
    }
}

pub(super) fn remove(path: &Path) -> Result<(), FolderError> {
    fs::remove_file(path).map_err(failed("remove", path))
}

fn refuse_shared(path: &Path, metadata: &Metadata) -> Result<(), FolderError> {
    match access::writable_by_others(metadata) {
        None => Ok(()),
        Some(mode) => Err(FolderError::WritableByOthers { path: path.to_owned(), mode }),
    }
}

/// Hashes what is read through it, so that what was checked is what was used.
pub(super) struct Hashed<R> {
    inner: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> Hashed<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// Reads the rest, and gives the length and the digest of the whole.
    pub fn finish(mut self) -> io::Result<(u64, Digest)> {
        let mut buffer = vec![0; 1 << 17];
        while self.read(&mut buffer)? > 0 {}
        Ok((self.bytes, Digest(self.hasher.finalize().into())))
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use std::fs::Permissions;
    #[cfg(unix)]
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("toolsearch-folder-{name}-{}", std::process::id()));
        let _may_be_missing = fs::remove_dir_all(&path);
        path
    }

    #[cfg(unix)]
    #[test]
    fn t_s3_links_pipes_and_what_others_can_write_are_refused() {
        let path = scratch("links");
        let folder = Folder::create(&path).unwrap();
        fs::write(path.join("plain"), "x").unwrap();
        symlink(path.join("plain"), path.join("link")).unwrap();
        fs::create_dir(path.join("folder")).unwrap();
        assert!(folder.find("plain").unwrap().is_some() && folder.find("missing").unwrap().is_none());
        for bad in ["link", "folder"] {
            assert!(matches!(folder.find(bad), Err(FolderError::NotAFile(_))), "{bad}");
        }
        for mode in [0o664, 0o646, 0o666] {
            fs::set_permissions(path.join("plain"), Permissions::from_mode(mode)).unwrap();
            assert!(matches!(folder.find("plain"), Err(FolderError::WritableByOthers { .. })), "{mode:o}");
        }
        for mode in [0o775, 0o757, 0o1777] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(matches!(Folder::open(&path), Err(FolderError::WritableByOthers { .. })), "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        assert!(Folder::open(&path).is_ok());
        assert!(matches!(Folder::open(&path.join("plain")), Err(FolderError::NotAFolder(_))));
        assert!(matches!(Folder::open(&path.join("none")), Err(FolderError::Missing(_))));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_lock_is_held_once_and_free_again_when_it_is_dropped() {
        let path = scratch("lock");
        let folder = Folder::create(&path).unwrap();
        let lock = folder.lock().unwrap();
        assert!(matches!(folder.lock(), Err(FolderError::Locked(_))));
        drop(lock);
        assert!(folder.lock().is_ok());
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_part_has_its_name_when_it_is_whole_and_leftovers_are_found() {
        let path = scratch("parts");
        let folder = Folder::create(&path).unwrap();
        let lock = folder.lock().unwrap();
        let mut part = folder.new_part("x.bin").unwrap();
        part.write(b"whole").unwrap();
        assert_eq!(folder.leftovers("x.bin", &lock).unwrap(), [part.path().to_owned()]);
        assert!(folder.leftovers("bin", &lock).unwrap().is_empty());
        folder.publish(part, "x.bin").unwrap();
        assert_eq!(fs::read(path.join("x.bin")).unwrap(), b"whole");
        assert!(folder.leftovers("x.bin", &lock).unwrap().is_empty());
        fs::remove_dir_all(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_part_is_its_owners_alone_and_a_link_in_its_place_is_removed() {
        let path = scratch("private");
        let folder = Folder::create(&path).unwrap();
        let lock = folder.lock().unwrap();
        let part = folder.new_part("x.bin").unwrap();
        assert_eq!(fs::metadata(part.path()).unwrap().mode() & 0o777, 0o600);
        folder.publish(part, "x.bin").unwrap();
        assert_eq!(fs::metadata(path.join("x.bin")).unwrap().mode() & 0o777, 0o644);
        symlink("/etc/passwd", path.join(".x.bin.0123456789abcdef.part")).unwrap();
        assert!(folder.leftovers("x.bin", &lock).unwrap().is_empty());
        assert!(!path.join(".x.bin.0123456789abcdef.part").is_symlink());
        fs::remove_dir_all(&path).unwrap();
    }
}
