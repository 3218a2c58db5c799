//! Modes and flags of `open`.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Access;

/// Write permission for the group and for everybody.
const OTHERS_WRITE: u32 = 0o022;

impl Access for OpenOptions {
    fn itself(&mut self) -> &mut Self {
        self.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
    }

    fn private(&mut self) -> &mut Self {
        self.mode(0o600)
    }
}

/// Whether this is how opening [`Access::itself`] of a link ends.
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// What is downloaded is public, and serve may run as another user.
pub fn let_all_read(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
}

/// The mode, where it lets others than the owner write.
pub fn writable_by_others(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.mode() & 0o7777;
    (mode & OTHERS_WRITE != 0).then_some(mode)
}

/// The names in the folder are on the disk after this.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
