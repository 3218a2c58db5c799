//! Flags of `CreateFile`; rights are inherited.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

use super::Access;

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened, and not what it leads to.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// `FILE_FLAG_BACKUP_SEMANTICS`: a folder can be opened, so that it is seen to be one.
const BACKUP_SEMANTICS: u32 = 0x0200_0000;

impl Access for OpenOptions {
    fn itself(&mut self) -> &mut Self {
        self.custom_flags(OPEN_REPARSE_POINT | BACKUP_SEMANTICS)
    }

    fn private(&mut self) -> &mut Self {
        self
    }
}

/// Never: a link opens, and its metadata tell that it is no file.
pub fn is_link(_: &io::Error) -> bool {
    false
}

pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

pub fn let_all_read(_: &File) -> io::Result<()> {
    Ok(())
}

pub fn writable_by_others(_: &Metadata) -> Option<u32> {
    None
}

/// Windows keeps the names of a folder with their files.
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
