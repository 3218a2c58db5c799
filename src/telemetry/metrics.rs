//! [`Metrics`]: every metric with its help text and its labels. Label values come from closed sets of ours.

use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use std::time::Duration;

/// How a request ended: the closed set of the `outcome` label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// The model was told how to repair its call.
    Refused,
    /// The upstream failed.
    UpstreamError,
    /// The caller has to log in.
    Unauthorized,
    /// The client's request was wrong.
    InvalidRequest,
    /// Something broke here.
    InternalError,
}

impl Outcome {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::UpstreamError => "upstream_error",
            Self::Unauthorized => "unauthorized",
            Self::InvalidRequest => "invalid_request",
            Self::InternalError => "internal_error",
        }
    }
}

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    catalog_bytes: IntGauge,
    catalogs: IntGauge,
    callers: IntGauge,
    left_out: IntCounter,
}

/// What is held now, for the gauges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Bytes of tools and catalogues.
    pub bytes: usize,
    /// Distinct listings.
    pub catalogs: usize,
    /// Callers whose listing is kept.
    pub callers: u64,
    /// Definitions left out of catalogues since the start.
    pub left_out: u64,
}

impl Metrics {
    /// A registry with all metrics in it.
    ///
    /// # Panics
    /// Never: names and labels are constants that a test registers.
    pub fn new() -> Self {
        let registry = Registry::new();
        let labels = ["method", "tool", "outcome"];
        let requests = IntCounterVec::new(
            Opts::new("toolsearch_requests_total", "MCP requests by method, tool of ours, and outcome."),
            &labels,
        );
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "toolsearch_request_duration_seconds",
                "Time from a request's first byte to its answer.",
            )
            .buckets(vec![
                0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
            ]),
            &["tool"],
        );
        let gauge = |name: &str, help: &str| IntGauge::new(name, help).expect("the name is valid");
        let metrics = Self {
            requests: requests.expect("the names are valid"),
            durations: durations.expect("the names are valid"),
            catalog_bytes: gauge("toolsearch_catalog_bytes", "Bytes held by tools and catalogues."),
            catalogs: gauge("toolsearch_catalogs", "Distinct listings held."),
            callers: gauge("toolsearch_callers", "Callers whose listing is kept."),
            left_out: IntCounter::new(
                "toolsearch_definitions_left_out_total",
                "Listed definitions without a usable name or header annotation.",
            )
            .expect("the name is valid"),
            registry,
        };
        let collectors: [Box<dyn prometheus::core::Collector>; 6] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.durations.clone()),
            Box::new(metrics.catalog_bytes.clone()),
            Box::new(metrics.catalogs.clone()),
            Box::new(metrics.callers.clone()),
            Box::new(metrics.left_out.clone()),
        ];
        for collector in collectors {
            metrics.registry.register(collector).expect("each name is registered once");
        }
        metrics
    }

    /// Counts one request.
    pub fn count_request(&self, method: &str, tool: &str, outcome: Outcome, took: Duration) {
        self.requests.with_label_values(&[method, tool, outcome.as_str()]).inc();
        self.durations.with_label_values(&[tool]).observe(took.as_secs_f64());
    }

    /// Sets what is held now.
    pub fn set_held(&self, held: Held) {
        let gauge = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.catalog_bytes.set(gauge(held.bytes));
        self.catalogs.set(gauge(held.catalogs));
        self.callers.set(i64::try_from(held.callers).unwrap_or(i64::MAX));
        self.left_out.inc_by(held.left_out.saturating_sub(self.left_out.get()));
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_registers_and_renders() {
        let metrics = Metrics::new();
        metrics.count_request("tools/call", "search_tools", Outcome::Ok, Duration::from_millis(3));
        metrics.set_held(Held { bytes: 10, ..Held::default() });
        let text = metrics.render();
        assert!(text.contains(
            r#"toolsearch_requests_total{method="tools/call",outcome="ok",tool="search_tools"} 1"#
        ));
        assert!(text.contains("toolsearch_catalog_bytes 10"));
    }
}
