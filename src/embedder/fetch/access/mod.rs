//! Who may do what with a model's files, in the words of each system.
//!
//! On Unix the owner alone may write, which is checked. Windows says it with lists of rights that come from the folder
//! above, and which are not read here: there the digests alone tell whether the files are the right ones.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{is_link, let_all_read, make_folder, sync_folder, writable_by_others};
#[cfg(windows)]
pub(super) use windows::{is_link, let_all_read, make_folder, sync_folder, writable_by_others};

/// How a file is opened.
pub(super) trait Access {
    /// What has the name itself: a link is not followed, and nobody is waited for who writes into a pipe.
    fn itself(&mut self) -> &mut Self;

    /// When the file is made, nobody else may use it.
    fn private(&mut self) -> &mut Self;
}
