//! Log setup.
//!
//! One line a request at `info`, the rest at `debug`. The HTTP crates below us may print headers, so they stay at
//! `warn` whatever level is asked for. Warnings that come in floods are limited ([`FloodLimit`]), and no request waits
//! until a line is written ([`Lines`]).

use super::flood::FloodLimit;
use super::lines::{LastLines, Lines};
use super::otlp::Tracing;
use std::str::FromStr;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
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
/// anywhere. Does nothing when logs are set up already. What comes back is to be dropped at the end of the process.
pub fn init(format: LogFormat, level: Level, traces: Option<&Tracing>) -> Option<LastLines> {
    let (writer, last) = match Lines::start(std::io::stderr()) {
        Ok((lines, last)) => (BoxMakeWriter::new(lines), Some(last)),
        // No thread to be had: whoever logs writes then.
        Err(_) => (BoxMakeWriter::new(std::io::stderr), None),
    };
    let logs = tracing_subscriber::registry().with(layer(format, level, writer));
    // A layer that is left out as `None` would still have every span made, for nobody.
    let _already_set = match traces {
        Some(traces) => logs.with(traces.layer()).try_init(),
        None => logs.try_init(),
    };
    last
}

fn layer<S>(format: LogFormat, level: Level, writer: BoxMakeWriter) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let filter = Targets::new().with_target("toolsearch_proxy", level).with_default(Level::WARN.min(level));
    let layer = match format {
        LogFormat::Text => fmt::layer().with_target(false).with_writer(writer).boxed(),
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_current_span(false).with_writer(writer).boxed()
        }
    };
    layer.with_filter(filter.and(FloodLimit::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::request_span;

    #[test]
    fn log_lines_alone_have_no_span_made() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let writer = BoxMakeWriter::new(std::io::stderr);
            let logs = tracing_subscriber::registry().with(layer(format, Level::DEBUG, writer));
            tracing::subscriber::with_default(logs, || {
                assert!(request_span("ping", "2026-07-28", None).is_disabled());
            });
        }
    }
}
