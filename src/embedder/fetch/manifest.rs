//! [`Manifest`]: which files a model has, where they are, and the digest and length of each.
//!
//! The manifest of the model that `fetch-model` brings is part of the binary, so that whoever can change the files can't
//! change what they are compared with. One of another model can be given instead.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::Url;

const BUILT_IN: &str = include_str!("../../../model/manifest.toml");

/// What a model2vec folder must have to be used.
pub(super) const CONFIG: &str = "config.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";
pub(super) const TABLE: &str = "model.safetensors";

/// No file of a static model comes near this.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 30;

/// A SHA-256 digest; shown and read as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a SHA-256 digest has 64 hexadecimal digits";
        let mut digest = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(FORM);
        }
        for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| FORM)?;
        }
        Ok(Self(digest))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a file must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub bytes: u64,
    pub digest: Digest,
}

/// A file of the model. Without a pin it can only be downloaded to confirm one.
#[derive(Clone, Debug)]
pub(super) struct ModelFile {
    pub name: String,
    pub pin: Option<Pin>,
}

/// The files of a model, checked: names are safe to use in a folder and in a URL, and each is there once.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub(super) repository: String,
    pub(super) revision: String,
    pub(super) base_url: Url,
    pub(super) licence: String,
    pub(super) is_confirmed: bool,
    pub(super) files: Vec<ModelFile>,
}

/// The manifest can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the manifest can't be used: {0}")]
pub struct ManifestError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    model: ModelTable,
    file: Vec<FileTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    repository: String,
    revision: String,
    base_url: String,
    licence: String,
    confirmed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTable {
    name: String,
    bytes: Option<u64>,
    sha256: Option<Digest>,
}

impl Manifest {
    /// Of the model that is part of this release's promise.
    ///
    /// # Errors
    /// Only when the manifest that the binary was built with is broken.
    pub fn built_in() -> Result<Self, ManifestError> {
        Self::parse(BUILT_IN)
    }

    /// From the text of a manifest file.
    ///
    /// # Errors
    /// Names what is wrong: no TOML, an unknown or missing key, an unsafe name, a file that a model needs.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let Document { model, file } = toml::from_str(text).map_err(|error| refused(error.message()))?;
        for (key, value) in [("repository", &model.repository), ("revision", &model.revision)] {
            if value.is_empty() || !value.split('/').all(is_safe) {
                return Err(refused(format!("{key} {value:?} has characters that no URL path should have")));
            }
        }
        let base_url: Url = model.base_url.parse().map_err(|_| refused("base_url is no URL"))?;
        if !matches!(base_url.scheme(), "http" | "https") {
            return Err(refused("base_url must start with https:// or http://"));
        }
        let mut names = BTreeSet::new();
        let mut files = Vec::new();
        for FileTable { name, bytes, sha256 } in file {
            if !is_safe(&name) || !names.insert(name.clone()) {
                return Err(refused(format!("{name:?} is no safe file name, or is there twice")));
            }
            let pin = bytes.zip(sha256).map(|(bytes, digest)| Pin { bytes, digest });
            if pin.is_some_and(|pin| pin.bytes == 0 || pin.bytes > FILE_BYTES_MAX) {
                return Err(refused(format!("the bytes of {name} are out of range")));
            }
            if model.confirmed && pin.is_none() {
                return Err(refused(format!("{name} is said to be confirmed but lacks bytes or sha256")));
            }
            files.push(ModelFile { name, pin });
        }
        if let Some(missing) = [CONFIG, TOKENIZER, TABLE].iter().find(|name| !names.contains(**name)) {
            return Err(refused(format!("{missing} is missing, which every model has")));
        }
        Ok(Self {
            repository: model.repository,
            revision: model.revision,
            base_url,
            licence: model.licence,
            is_confirmed: model.confirmed,
            files,
        })
    }

    pub(super) fn pin(&self, name: &str) -> Option<Pin> {
        self.files.iter().find(|file| file.name == name)?.pin
    }

    /// Where a file is, in the layout of hubs: `BASE/REPOSITORY/resolve/REVISION/NAME`.
    pub(super) fn url(&self, base: &Url, name: &str) -> Url {
        let mut url = base.clone();
        let path = base.path().trim_end_matches('/');
        url.set_path(&format!("{path}/{}/resolve/{}/{name}", self.repository, self.revision));
        url
    }

    /// The manifest as a file, with the pins given and confirmed.
    pub(super) fn confirmed(&self, revision: &str, pins: &[(&str, Pin)]) -> String {
        let mut text = format!(
            "# Compare each digest with the one that the hub shows beside the file before you use this.\n\n\
             [model]\nrepository = \"{}\"\nrevision = \"{revision}\"\nbase_url = \"{}\"\nlicence = \"{}\"\n\
             confirmed = true\n",
            self.repository,
            self.base_url.as_str().trim_end_matches('/'),
            self.licence.replace(['"', '\\', '\n'], "")
        );
        for (name, Pin { bytes, digest }) in pins {
            text += &format!("\n[[file]]\nname = \"{name}\"\nbytes = {bytes}\nsha256 = \"{digest}\"\n");
        }
        text
    }
}

fn refused(why: impl Into<String>) -> ManifestError {
    ManifestError(why.into())
}

/// No path, nothing hidden, nothing that a shell, a URL or a file system reads in its own way.
fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 96
        && !name.starts_with(['.', '-'])
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(names: &[&str], extra: &str) -> String {
        let mut text = format!(
            "[model]\nrepository = \"a/b\"\nrevision = \"main\"\nbase_url = \"https://hub.example\"\n\
             licence = \"MIT\"\nconfirmed = true\n{extra}"
        );
        for name in names {
            text += &format!("[[file]]\nname = \"{name}\"\nbytes = 1\nsha256 = \"{}\"\n", "0f".repeat(32));
        }
        text
    }

    const NAMES: [&str; 3] = [CONFIG, TOKENIZER, TABLE];

    #[test]
    fn the_built_in_manifest_is_sound_and_says_whether_it_is_confirmed() {
        let manifest = Manifest::built_in().unwrap();
        assert_eq!(manifest.files.len(), 3);
        assert_eq!(manifest.is_confirmed, BUILT_IN.contains("\nconfirmed = true\n"));
        assert_eq!(!manifest.is_confirmed, BUILT_IN.contains("STILL TO BE CONFIRMED"));
        assert!(manifest.base_url.scheme() == "https" && manifest.revision.len() == 40);
    }

    #[test]
    fn files_lie_where_hubs_have_them() {
        let manifest = Manifest::parse(&manifest(&NAMES, "")).unwrap();
        for base in ["https://mirror.example/hub", "https://mirror.example/hub/"] {
            let url = manifest.url(&base.parse().unwrap(), TABLE);
            assert_eq!(url.as_str(), "https://mirror.example/hub/a/b/resolve/main/model.safetensors");
        }
    }

    #[test]
    fn t_s3_names_that_leave_the_folder_are_refused() {
        for bad in ["../x", "a/b", "/etc/passwd", ".hidden", "", "-rf", "a\\\\b", "a b", CONFIG] {
            let names = [NAMES[0], NAMES[1], NAMES[2], bad];
            assert!(Manifest::parse(&manifest(&names, "")).is_err(), "{bad}");
        }
        assert!(Manifest::parse(&manifest(&NAMES, "").replace("a/b", "a/../b")).is_err());
    }

    #[test]
    fn a_manifest_with_unknown_missing_or_impossible_parts_is_refused() {
        assert!(Manifest::parse(&manifest(&NAMES, "")).is_ok());
        assert!(Manifest::parse(&manifest(&NAMES, "extra = 1\n")).is_err());
        assert!(Manifest::parse(&manifest(&NAMES[..2], "")).is_err());
        assert!(Manifest::parse(&manifest(&NAMES, "").replace("bytes = 1", "")).is_err());
        assert!(Manifest::parse(&manifest(&NAMES, "").replace("bytes = 1", "bytes = 0")).is_err());
        assert!(Manifest::parse(&manifest(&NAMES, "").replace("0f0f", "0f0")).is_err());
        let unconfirmed = manifest(&NAMES, "").replace("= true", "= false").replace("bytes = 1", "");
        assert!(Manifest::parse(&unconfirmed).unwrap().pin(TABLE).is_none());
    }

    #[test]
    fn a_confirmed_manifest_can_be_read_again() {
        let manifest = Manifest::parse(&manifest(&NAMES, "")).unwrap();
        let pin = Pin { bytes: 7, digest: Digest::of(b"seven b") };
        let text = manifest.confirmed("0123abc", &NAMES.map(|name| (name, pin)));
        let again = Manifest::parse(&text).unwrap();
        assert!(again.is_confirmed && again.pin(CONFIG) == Some(pin) && again.revision == "0123abc");
    }
}
