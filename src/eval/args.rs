//! The command line of `eval`.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use url::Url;

/// Measure how well questions find their tools in a catalogue.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("source").args(["catalog", "upstream"]).required(true)))]
pub struct EvalArgs {
    /// A catalogue: JSON with `tools` as an MCP server lists them, or an array of tools.
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// Instead of a file: an MCP server to list the tools of.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub upstream: Option<Url>,
    /// Let the token cross the network unencrypted, to an `http://` --upstream that is not on this machine.
    #[arg(long, requires = "upstream")]
    pub allow_plaintext_upstream: bool,
    /// The environment variable that holds the bearer token for --upstream.
    #[arg(long, value_name = "NAME", default_value = "MCP_TOKEN")]
    pub token_env: String,
    /// Questions, one a line: `{"id", "query", "lang", "relevant": [names]}`, with `grades` (name to gain) where some
    /// tools are better than others. An empty `relevant` means that no tool fits.
    #[arg(long, value_name = "FILE")]
    pub queries: PathBuf,
    /// What finds meaning: `builtin`, `none` (words only), or the folder of a model2vec model.
    #[arg(long, value_name = "EMBEDDER", default_value = "builtin")]
    pub embedder: EmbedderChoice,
    /// How many tools an answer has at most.
    #[arg(long, value_name = "N", default_value = "20", value_parser = limit)]
    pub limit: usize,
    /// Write the answers, one a line: `{"id", "ranked": [names], "scores": [numbers]}`.
    #[arg(long, value_name = "FILE")]
    pub run_out: Option<PathBuf>,
    /// Show for one question why each tool stands where it does, and measure nothing.
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// Compare with the measures in this file, and fail when one has fallen.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write the measures to the baseline instead.
    #[arg(long, requires = "baseline")]
    pub update: bool,
    /// Resamples of the questions for the 95% intervals; 0 leaves them out.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub resamples: usize,
}

fn url(text: &str) -> Result<Url, &'static str> {
    text.parse().map_err(|_| "write a whole URL, such as https://gateway.example/mcp/all")
}

fn limit(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|limit| (1..=1000).contains(limit)).ok_or("write a whole number from 1 to 1000")
}

/// Which embedder to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderChoice {
    Builtin,
    None,
    Folder(PathBuf),
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::None => f.write_str("none"),
            // A model's measures are its own wherever its folder is.
            Self::Folder(folder) => f.write_str(&folder.file_name().unwrap_or_default().to_string_lossy()),
        }
    }
}

impl FromStr for EmbedderChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "builtin" => Self::Builtin,
            "none" => Self::None,
            folder => Self::Folder(PathBuf::from(folder)),
        })
    }
}
