//! The settings of `fetch-model`.

use super::origin::Settings;
use super::problems::Problems;
use super::{ConfigError, Seconds, Setting};
use crate::outbound::is_open_to_others;
use clap::Args;
use std::path::PathBuf;
use url::Url;

/// Settings of `fetch-model`, as given.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct FetchModelArgs {
    /// Folder for the model's files; made where it is missing. Only its owner may be able to write there
    #[arg(
        long,
        value_name = "DIR",
        default_value = "potion-multilingual-128M",
        env = "TOOLSEARCH_MODEL_DIR"
    )]
    model_dir: PathBuf,
    /// A mirror with the layout of the hub, instead of the hub: files are at URL/OWNER/MODEL/resolve/REVISION/FILE
    #[arg(long, value_name = "URL", env = "TOOLSEARCH_FETCH_BASE_URL")]
    base_url: Option<Setting<Url>>,
    /// HTTP proxy to download through, written as scheme, host and port. The usual proxy variables are not read
    #[arg(long, value_name = "URL", env = "TOOLSEARCH_FETCH_PROXY", hide_env_values = true)]
    proxy: Option<Setting<Url>>,
    /// PEM file with the certificates to trust instead of the built-in public ones
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_FETCH_CA")]
    ca: Option<PathBuf>,
    /// Another model: a manifest with its files and their digests, in the form of model/manifest.toml
    #[arg(long, alias = "manifest", value_name = "FILE", env = "TOOLSEARCH_MODEL_MANIFEST")]
    model_manifest: Option<PathBuf>,
    /// Download without comparing, and print the digests and a manifest with them, to be compared with the hub's page
    #[arg(long)]
    confirm_pins: bool,
    /// Longest time for connecting
    #[arg(long, value_name = "TIME", default_value = "10s", env = "TOOLSEARCH_FETCH_CONNECT_TIMEOUT")]
    connect_timeout: Setting<Seconds>,
    /// Longest time in which nothing comes
    #[arg(long, value_name = "TIME", default_value = "30s", env = "TOOLSEARCH_FETCH_STALL_TIMEOUT")]
    stall_timeout: Setting<Seconds>,
    /// How often it tries again after a failure that may pass, each time a little later
    #[arg(long, value_name = "COUNT", default_value = "4", env = "TOOLSEARCH_FETCH_RETRIES")]
    retries: Setting<usize>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  the model is there, checked and ready for serve --model-dir
  1  it could not be brought this time: run it again, it goes on where it stopped
  2  the settings can't be used, the folder can't be trusted, or the digests are not confirmed
  3  a file is not what its digest says, or no model that can be used";

/// More tries than this would take hours.
const RETRIES_MAX: usize = 10;

/// Settings of `fetch-model`, each a value that can be used.
#[derive(Clone, Debug)]
pub struct FetchModelConfig {
    pub model_dir: PathBuf,
    pub base_url: Option<Url>,
    pub proxy: Option<Url>,
    pub ca: Option<Vec<u8>>,
    /// Its text.
    pub manifest: Option<String>,
    pub confirm_pins: bool,
    pub connect_timeout: Seconds,
    pub stall_timeout: Seconds,
    pub retries: u32,
}

impl FetchModelArgs {
    /// Checks all settings, and those of the environment that nobody reads.
    ///
    /// # Errors
    /// All problems at once.
    pub fn check(self, env: impl IntoIterator<Item = String>) -> Result<FetchModelConfig, ConfigError> {
        let mut problems = Problems::of(env, &Settings::default());
        let base_url = self.base_url.map(|url| problems.take("--base-url", url));
        if let Some(url) = &base_url {
            check_base_url(&mut problems, url, self.confirm_pins);
        }
        let proxy = self.proxy.map(|url| problems.take("--proxy", url));
        if proxy.as_ref().is_some_and(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host()) {
            problems.add("--proxy", "must start with http:// or https://");
        }
        let ca = self.ca.and_then(|path| problems.read("--ca", &path));
        let retries = problems.take("--retries", self.retries);
        if retries > RETRIES_MAX {
            problems.add("--retries", format!("must be {RETRIES_MAX} or less"));
        }
        let config = FetchModelConfig {
            model_dir: self.model_dir,
            base_url,
            proxy,
            ca,
            manifest: self.model_manifest.and_then(|path| problems.manifest(&path)),
            confirm_pins: self.confirm_pins,
            connect_timeout: problems.positive("--connect-timeout", self.connect_timeout),
            stall_timeout: problems.positive("--stall-timeout", self.stall_timeout),
            retries: retries.min(RETRIES_MAX) as u32,
        };
        problems.result(config)
    }
}

fn check_base_url(problems: &mut Problems, url: &Url, confirm_pins: bool) {
    const FLAG: &str = "--base-url";
    if !matches!(url.scheme(), "http" | "https") {
        problems.add(FLAG, "must start with https:// or http://");
    } else if !url.username().is_empty() || url.password().is_some() {
        problems.add(FLAG, "must hold no user name or password: downloads carry no credentials");
    } else if url.query().is_some() || url.fragment().is_some() {
        problems.add(FLAG, "must have no ? or # part");
    } else if confirm_pins && is_open_to_others(url) {
        problems.add(FLAG, "must start with https:// with --confirm-pins: digests of what anybody could change on the way confirm nothing");
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Cli, Command, FetchModelConfig};
    use clap::Parser;

    fn checked(args: &[&str]) -> Result<FetchModelConfig, Vec<String>> {
        let args = ["toolsearch-proxy", "fetch-model"].iter().chain(args);
        let Command::FetchModel(fetch) = Cli::try_parse_from(args).unwrap().command else { unreachable!() };
        fetch.check([]).map_err(|error| error.0)
    }

    #[test]
    fn every_default_works() {
        let config = checked(&[]).unwrap();
        assert_eq!(config.model_dir.to_str(), Some("potion-multilingual-128M"));
        assert!(config.proxy.is_none() && config.base_url.is_none() && config.retries == 4);
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let problems = checked(&[
            "--base-url",
            "ftp://hub.example",
            "--proxy",
            "socks5://proxy.example",
            "--ca",
            "/does/not/exist",
            "--manifest",
            "/does/not/exist",
            "--stall-timeout",
            "0",
            "--retries",
            "11",
        ]);
        let problems = problems.unwrap_err();
        let flags: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
        assert_eq!(
            flags,
            ["--base-url", "--ca", "--model-manifest", "--proxy", "--retries", "--stall-timeout"]
        );
    }

    #[test]
    fn a_base_url_carries_no_secrets_and_confirms_only_what_nobody_could_change() {
        for good in ["https://mirror.example", "http://mirror.example/hub/", "http://127.0.0.1:1"] {
            assert!(checked(&["--base-url", good]).is_ok(), "{good}");
        }
        for bad in ["https://me:pw@a.example", "https://a.example/?key=1", "https://a.example/#x"] {
            assert!(checked(&["--base-url", bad]).is_err(), "{bad}");
        }
        assert!(checked(&["--base-url", "http://mirror.example", "--confirm-pins"]).is_err());
        assert!(checked(&["--base-url", "http://localhost:1", "--confirm-pins"]).is_ok());
    }
}
