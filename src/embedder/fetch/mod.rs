//! A model's files: brought from a hub ([`fetch_model`]), and used when they are what they should be
//! ([`open_model_folder`]).
//!
//! Invariants: a file has its name only when it is whole and has the digest that is pinned; what is used has been
//! checked in the very bytes that are used; no link is followed and nothing that others can write is trusted. A model
//! is made 8-bit once and kept so beside its files ([`compact`]), since half a gigabyte of 32-bit numbers takes too long
//! to read and to check at each start.

mod access;
mod client;
mod compact;
mod download;
mod folder;
mod manifest;
mod open;
mod progress;

use std::io::{self, Write};
use std::path::PathBuf;

use url::Url;

pub use client::ClientOptions;
use client::Hub;
use download::{Download, Downloaded};
use folder::Folder;
pub use folder::FolderError;
pub use manifest::{Manifest, ManifestError};
use manifest::{ModelFile, Pin};
pub use open::{Pins, open_model_folder};
use progress::{Progress, megabytes};

use super::model::ModelError;

/// What to bring, from where to where.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Made where it is missing.
    pub folder: PathBuf,
    pub manifest: Manifest,
    /// A hub or a mirror with the layout of one, instead of the manifest's.
    pub base_url: Option<Url>,
    pub client: ClientOptions,
    /// How often a download that broke off without a byte more is tried again.
    pub retries: u32,
    /// Take the files as they come, and tell their digests.
    pub confirm_pins: bool,
}

/// A model could not be brought or used.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(
        "the digests of {0} are not confirmed yet, so nothing tells whether its files are the right ones: run \
         toolsearch-proxy fetch-model --confirm-pins, compare what it prints with the hub's page, and give that with \
         --model-manifest"
    )]
    Unconfirmed(String),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{0}; run it again later: what came so far is kept")]
    Network(String),
    #[error(
        "{name} from {from} is not the right file: {why}. Nothing of it was kept. Somebody in between may have changed \
         it, or answers in the hub's place: try without --proxy or with another --base-url"
    )]
    Wrong { name: String, from: String, why: String },
    #[error(
        "{} has not the SHA-256 or length that is pinned for it ({why}): run toolsearch-proxy fetch-model to replace it, \
         or add --model-unpinned to use files that nobody vouches for",
        path.display()
    )]
    Changed { path: PathBuf, why: String },
    #[error("{}: {source}", path.display())]
    Model { path: PathBuf, source: ModelError },
}

impl FetchError {
    /// What the process ends with: 1 try again, 2 the settings are wrong, 3 a file is not what it should be.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Network(_)
            | Self::Folder(FolderError::Io { .. } | FolderError::Locked(_) | FolderError::Missing(_)) => 1,
            Self::Settings(_) | Self::Manifest(_) | Self::Unconfirmed(_) | Self::Folder(_) => 2,
            Self::Wrong { .. } | Self::Changed { .. } | Self::Model { .. } => 3,
        }
    }
}

/// Brings the model of a manifest into a folder, and makes it ready for use.
///
/// Files that are there already and are right are left alone. It can be interrupted at any point and run again.
///
/// # Errors
/// Nothing that is not whole and right has been given its name then.
pub async fn fetch_model(options: FetchOptions) -> Result<(), FetchError> {
    let manifest = &options.manifest;
    if !manifest.is_confirmed && !options.confirm_pins {
        return Err(FetchError::Unconfirmed(manifest.repository.clone()));
    }
    let hub = Hub::new(&options.client)?;
    let folder = Folder::create(&options.folder)?;
    let lock = folder.lock()?;
    let mut progress = Progress::on_stderr();
    let base = options.base_url.as_ref().unwrap_or(&manifest.base_url);
    let mut found: Vec<(&ModelFile, Downloaded)> = Vec::new();
    for file in &manifest.files {
        let name = &file.name;
        let pin = file.pin.filter(|_| manifest.is_confirmed && !options.confirm_pins);
        if let Some(pin) = pin {
            match open::is_right(&folder, name, pin)? {
                Some(true) => {
                    progress.note(&format!("{name}: already here and right ({})", megabytes(pin.bytes)));
                    continue;
                }
                Some(false) => progress.note(&format!("{name}: here, but not right; it will be replaced")),
                None => {}
            }
        }
        let url = manifest.url(base, name);
        let (hub, folder, lock, retries) = (&hub, &folder, &lock, options.retries);
        let download = Download { hub, folder, lock, url, name, pin, retries };
        found.push((file, download.run(&mut progress).await?));
    }
    if options.confirm_pins {
        return tell_pins(manifest, &found, &mut progress);
    }
    progress.note("making it ready for use …");
    open::prepare(&folder, manifest, &lock)?;
    progress.note(&format!(
        "done: toolsearch-proxy serve --model-dir {} uses {}",
        options.folder.display(),
        manifest.repository
    ));
    Ok(())
}

/// The manifest to use from now on, on standard output; what there is to say about it beside that.
fn tell_pins(
    manifest: &Manifest,
    found: &[(&ModelFile, Downloaded)],
    progress: &mut Progress,
) -> Result<(), FetchError> {
    for (ModelFile { name, pin }, downloaded) in found {
        let Pin { bytes, digest } = downloaded.pin;
        progress.note(&format!("{name}: {bytes} bytes, SHA-256 {digest}"));
        let listed = pin.map(|pin| if pin == downloaded.pin { "the same" } else { "NOT the same" });
        progress.note(&format!("  in the manifest so far: {}", listed.unwrap_or("not there")));
        if let Some(named) = &downloaded.hub_digest {
            let same = if *named == digest.to_string() { "the same" } else { "NOT the same" };
            progress.note(&format!("  as the hub names it: {same}"));
        }
    }
    let commit = found.iter().find_map(|(_, downloaded)| downloaded.commit.as_deref());
    let is_commit = |text: &&str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let revision = commit.filter(is_commit).unwrap_or(&manifest.revision);
    let pins: Vec<(&str, Pin)> =
        found.iter().map(|(file, downloaded)| (file.name.as_str(), downloaded.pin)).collect();
    let text = manifest.confirmed(revision, &pins);
    io::stdout().write_all(text.as_bytes()).map_err(|error| {
        FetchError::Settings(format!("the manifest can't be written to standard output: {error}"))
    })?;
    progress.note(
        "compare these with the hub's page for each file; then save the lines above as manifest.toml and give it with \
         --model-manifest, to fetch-model (which finds the files already here) and to serve",
    );
    Ok(())
}
