//! [`Metrics`]: what is counted and measured. Names, labels and help texts are in `definitions`.

use super::definitions::{self as define, Definition, Kind};
use super::flood::lines_left_out;
use super::labels::{Operation, Outcome, RefusalReason};
use super::lines::lines_dropped;
use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::time::Duration;

/// Bounds of the buckets of requests and of what the upstream takes, in seconds.
const BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
/// Searches take some 10 microseconds to some milliseconds.
const SEARCH_BUCKETS: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// How far the arguments of a call were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedFor {
    /// Against the whole schema.
    Whole,
    /// But for some of its regular expressions.
    SomePatternsSkipped,
    /// Not at all.
    Unchecked,
}

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    in_flight: IntGauge,
    tasks: IntGauge,
    rejections: IntCounterVec,
    searches: IntCounterVec,
    search_duration: HistogramVec,
    searches_followed: IntCounterVec,
    refusals: IntCounterVec,
    calls: IntCounterVec,
    upstream_requests: IntCounterVec,
    upstream_durations: HistogramVec,
    lookups: IntCounterVec,
    refreshes: IntCounterVec,
    evictions: IntCounterVec,
    catalogs: IntGauge,
    catalog_bytes: IntGauge,
    catalog_bytes_max: IntGauge,
    catalog_tools: IntGauge,
    catalog_tools_largest: IntGauge,
    interned_tools: IntGauge,
    left_out: IntCounter,
    redefined: IntCounter,
    log_lines_left_out: IntCounter,
    callers: IntGauge,
    degraded: IntGaugeVec,
    build_info: IntGaugeVec,
}

/// What is held now and what the cache counted so far, for the moment of a scrape.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Requests in flight.
    pub in_flight: usize,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Bytes of tools and catalogues.
    pub bytes: usize,
    /// The bound of the former.
    pub bytes_max: usize,
    /// Distinct listings.
    pub catalogs: usize,
    /// Tools of all listings together, and of the largest.
    pub tools: usize,
    /// Tools of the largest listing.
    pub tools_largest: usize,
    /// Distinct definitions.
    pub interned: usize,
    /// Callers whose listing is kept.
    pub callers: u64,
    /// Definitions left out of catalogues since the start.
    pub left_out: u64,
    /// Definitions since the start that differed from those of the same name before.
    pub redefined: u64,
    /// Lookups since the start: from a fresh listing, from a stale one, after listing.
    pub lookups: [u64; 3],
    /// Listings since the start that came, and that failed.
    pub refreshes: [u64; 2],
    /// Listings dropped since the start: credentials refused, too many callers, too little memory, idle.
    pub evictions: [u64; 4],
    /// Whether the process is stopping.
    pub is_draining: bool,
}

impl Metrics {
    /// A registry with all metrics in it.
    ///
    /// # Panics
    /// Never: names and labels are constants that a test registers.
    pub fn new() -> Self {
        let registry = Registry::new();
        let of = Registered(&registry);
        let metrics = Self {
            requests: of.counters(&define::REQUESTS, false),
            durations: of.histograms(&define::REQUEST_DURATION, BUCKETS),
            in_flight: of.gauge(&define::IN_FLIGHT),
            tasks: of.gauge(&define::TASKS),
            rejections: of.counters(&define::REJECTIONS_TOTAL, true),
            searches: of.counters(&define::SEARCHES, true),
            search_duration: of.histograms(&define::SEARCH_DURATION, SEARCH_BUCKETS),
            searches_followed: of.counters(&define::SEARCHES_FOLLOWED, true),
            refusals: of.counters(&define::REFUSALS_TOTAL, true),
            calls: of.counters(&define::CALLS, true),
            upstream_requests: of.counters(&define::UPSTREAM_REQUESTS, true),
            upstream_durations: of.histograms(&define::UPSTREAM_DURATION, BUCKETS),
            lookups: of.counters(&define::LOOKUPS, true),
            refreshes: of.counters(&define::REFRESHES, true),
            evictions: of.counters(&define::EVICTIONS_TOTAL, true),
            catalogs: of.gauge(&define::CATALOGS),
            catalog_bytes: of.gauge(&define::CATALOG_BYTES),
            catalog_bytes_max: of.gauge(&define::CATALOG_BYTES_MAX),
            catalog_tools: of.gauge(&define::CATALOG_TOOLS),
            catalog_tools_largest: of.gauge(&define::CATALOG_TOOLS_LARGEST),
            interned_tools: of.gauge(&define::INTERNED_TOOLS),
            left_out: of.counter(&define::LEFT_OUT),
            redefined: of.counter(&define::REDEFINED),
            log_lines_left_out: of.counter(&define::LOG_LINES_LEFT_OUT),
            callers: of.gauge(&define::CALLERS),
            degraded: of.gauges(&define::DEGRADED_STATE),
            build_info: of.gauges(&define::BUILD_INFO),
            registry,
        };
        // Only Linux tells them.
        #[cfg(target_os = "linux")]
        of_process(&metrics.registry);
        metrics
    }

    /// Counts one request.
    pub fn count_request(&self, method: &str, tool: &str, outcome: Outcome, took: Duration) {
        self.requests.with_label_values(&[method, tool, outcome.as_str()]).inc();
        self.durations.with_label_values(&[tool]).observe(took.as_secs_f64());
    }

    /// Counts a request that was turned away before it was understood; the reason is one of ours.
    pub fn count_rejection(&self, reason: &'static str) {
        self.rejections.with_label_values(&[reason]).inc();
    }

    /// Counts one search of so many queries, some of which found nothing.
    pub fn count_search(&self, queries: usize, without_hits: usize, took: Duration) {
        let count = |result: &str, count: usize| {
            self.searches.with_label_values(&[result]).inc_by(count as u64);
        };
        count("hits", queries.saturating_sub(without_hits));
        count("no_hits", without_hits);
        self.search_duration.with_label_values::<&str>(&[]).observe(took.as_secs_f64());
    }

    /// Counts a search after which its caller called a tool.
    pub fn count_search_followed(&self) {
        self.searches_followed.with_label_values::<&str>(&[]).inc();
    }

    /// Counts what a model was told to repair.
    pub fn count_refusal(&self, reason: RefusalReason) {
        self.refusals.with_label_values(&[reason.as_str()]).inc();
    }

    /// Counts a tool call that is sent to the upstream.
    pub fn count_call(&self, checked: CheckedFor) {
        let checked = match checked {
            CheckedFor::Whole => "whole",
            CheckedFor::SomePatternsSkipped => "some_patterns_skipped",
            CheckedFor::Unchecked => "unchecked",
        };
        self.calls.with_label_values(&[checked]).inc();
    }

    /// Counts what was asked of the upstream; the outcome is `ok`, `abandoned` or the kind of an error of ours.
    pub fn count_upstream(&self, operation: Operation, outcome: &'static str, took: Duration) {
        let operation = operation.as_str();
        self.upstream_requests.with_label_values(&[operation, outcome]).inc();
        self.upstream_durations.with_label_values(&[operation]).observe(took.as_secs_f64());
        if outcome != "abandoned" {
            let is_unreachable = i64::from(outcome == "unreachable");
            self.degraded.with_label_values(&["upstream_unreachable"]).set(is_unreachable);
        }
    }

    /// Says what runs, and whether it has to do without the model that it should have.
    pub fn set_build(&self, embedder: &str, is_words_only: bool) {
        self.build_info.with_label_values(&[env!("CARGO_PKG_VERSION"), embedder]).set(1);
        self.degraded.with_label_values(&["words_only"]).set(i64::from(is_words_only));
    }

    /// Sets what is held now.
    pub fn set_held(&self, held: Held) {
        let gauge = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.in_flight.set(gauge(held.in_flight));
        self.tasks.set(gauge(held.tasks));
        self.catalog_bytes.set(gauge(held.bytes));
        self.catalog_bytes_max.set(gauge(held.bytes_max));
        self.catalogs.set(gauge(held.catalogs));
        self.catalog_tools.set(gauge(held.tools));
        self.catalog_tools_largest.set(gauge(held.tools_largest));
        self.interned_tools.set(gauge(held.interned));
        self.callers.set(i64::try_from(held.callers).unwrap_or(i64::MAX));
        self.degraded.with_label_values(&["draining"]).set(i64::from(held.is_draining));
        raise(&self.left_out, held.left_out);
        raise(&self.redefined, held.redefined);
        raise(&self.log_lines_left_out, lines_left_out() + lines_dropped());
        let sets: [(&IntCounterVec, &Definition, &[u64]); 3] = [
            (&self.lookups, &define::LOOKUPS, &held.lookups),
            (&self.refreshes, &define::REFRESHES, &held.refreshes),
            (&self.evictions, &define::EVICTIONS_TOTAL, &held.evictions),
        ];
        for (counters, definition, totals) in sets {
            for (value, total) in definition.labels[0].1.iter().zip(totals) {
                raise(&counters.with_label_values(&[*value]), *total);
            }
        }
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

/// Brings a counter to what another one has counted.
fn raise(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

#[cfg(target_os = "linux")]
fn of_process(registry: &Registry) {
    let collector = prometheus::process_collector::ProcessCollector::for_self();
    registry.register(Box::new(collector)).expect("each name is registered once");
}

/// Makes metrics from their definitions.
struct Registered<'a>(&'a Registry);

impl Registered<'_> {
    fn add(&self, collector: impl Collector + 'static) {
        self.0.register(Box::new(collector)).expect("each name is registered once");
    }

    fn counter(&self, definition: &Definition) -> IntCounter {
        assert_eq!(definition.kind, Kind::Counter);
        let counter = IntCounter::new(definition.name, definition.help).expect("the name is valid");
        self.add(counter.clone());
        counter
    }

    /// With every value of the labels at 0 where `all` says so: what never happened is told too.
    fn counters(&self, definition: &Definition, all: bool) -> IntCounterVec {
        assert_eq!(definition.kind, Kind::Counter);
        let counters = IntCounterVec::new(Opts::new(definition.name, definition.help), &names(definition));
        let counters = counters.expect("the names are valid");
        if all {
            for values in combinations(definition) {
                counters.with_label_values(&values);
            }
        }
        self.add(counters.clone());
        counters
    }

    fn gauge(&self, definition: &Definition) -> IntGauge {
        assert_eq!(definition.kind, Kind::Gauge);
        let gauge = IntGauge::new(definition.name, definition.help).expect("the name is valid");
        self.add(gauge.clone());
        gauge
    }

    fn gauges(&self, definition: &Definition) -> IntGaugeVec {
        assert_eq!(definition.kind, Kind::Gauge);
        let gauges = IntGaugeVec::new(Opts::new(definition.name, definition.help), &names(definition));
        let gauges = gauges.expect("the names are valid");
        for values in combinations(definition) {
            gauges.with_label_values(&values);
        }
        self.add(gauges.clone());
        gauges
    }

    fn histograms(&self, definition: &Definition, buckets: &[f64]) -> HistogramVec {
        assert_eq!(definition.kind, Kind::Histogram);
        let options = HistogramOpts::new(definition.name, definition.help).buckets(buckets.to_vec());
        let histograms = HistogramVec::new(options, &names(definition)).expect("the names are valid");
        for values in combinations(definition) {
            histograms.with_label_values(&values);
        }
        self.add(histograms.clone());
        histograms
    }
}

fn names(definition: &Definition) -> Vec<&'static str> {
    definition.labels.iter().map(|(name, _)| *name).collect()
}

/// Every combination of the labels' values; none where a label has values that are not known beforehand.
fn combinations(definition: &Definition) -> Vec<Vec<&'static str>> {
    definition.labels.iter().fold(vec![Vec::new()], |heads, (_, values)| {
        heads
            .iter()
            .flat_map(|head| values.iter().map(move |value| [head.as_slice(), &[*value]].concat()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_registers_and_renders() {
        let metrics = Metrics::new();
        metrics.count_request("tools/call", "search_tools", Outcome::Ok, Duration::from_millis(3));
        metrics.set_build("none", false);
        for _ in 0..2 {
            metrics.set_held(Held { bytes: 10, lookups: [3, 2, 1], ..Held::default() });
        }
        let text = metrics.render();
        for line in [
            r#"toolsearch_requests_total{method="tools/call",outcome="ok",tool="search_tools"} 1"#,
            "toolsearch_catalog_bytes 10",
            r#"toolsearch_catalog_lookups_total{result="stale"} 2"#,
            r#"toolsearch_refusals_total{reason="misspelt_tool"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        for definition in define::DEFINITIONS {
            assert!(text.contains(&format!("# HELP {} ", definition.name)), "{}", definition.name);
        }
    }

    #[test]
    fn only_values_of_the_closed_sets_are_counted() {
        let metrics = Metrics::new();
        for reason in [
            RefusalReason::Malformed,
            RefusalReason::UnknownTool,
            RefusalReason::MisspeltTool,
            RefusalReason::NotReadOnly,
            RefusalReason::Arguments,
        ] {
            metrics.count_refusal(reason);
        }
        for checked in [CheckedFor::Whole, CheckedFor::SomePatternsSkipped, CheckedFor::Unchecked] {
            metrics.count_call(checked);
        }
        metrics.count_search(3, 1, Duration::ZERO);
        metrics.count_search_followed();
        for operation in [Operation::List, Operation::Call] {
            metrics.count_upstream(operation, "abandoned", Duration::ZERO);
        }
        let before = Metrics::new().render();
        let series = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("toolsearch_"));
            lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(series(&metrics.render()), series(&before));
    }
}
