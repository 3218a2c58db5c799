//! Log setup.
//!
//! One line a request at `info`, the rest at `debug`. The HTTP crates below us may print headers, so they stay at
//! `warn` whatever level is asked for. Warnings that come in floods are limited ([`FloodLimit`]).

use super::flood::FloodLimit;
use super::otlp::Tracing;
use std::str::FromStr;
use tracing::Level;
use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("choose text or json"),
        }
    }
}

/// Sends log lines of this crate at `level` and above to standard error, and spans to where traces go, if they go
/// anywhere. Does nothing when logs are set up already.
pub fn init(format: LogFormat, level: Level, traces: Option<&Tracing>) {
    let filter = Targets::new().with_target("toolsearch_proxy", level).with_default(Level::WARN.min(level));
    let layer = match format {
        LogFormat::Text => fmt::layer().with_target(false).with_writer(std::io::stderr).boxed(),
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(std::io::stderr)
            .boxed(),
    };
    let layer = layer.with_filter(filter.and(FloodLimit::default()));
    let traces = traces.map(Tracing::layer);
    let _already_set = tracing_subscriber::registry().with(layer).with(traces).try_init();
}
