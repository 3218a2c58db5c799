//! Every metric's name, help text, kind and labels: what is registered, and what `docs/metrics.md` says.

use super::labels::{
    CATALOG_LOOKUPS, DEGRADED, EVICTIONS, METHODS, OPERATIONS, OUTCOMES, REFUSALS, REJECTIONS, TOOLS,
    UPSTREAM_OUTCOMES,
};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A label and all values that it can have. An empty set is one that the program's version fixes.
pub(super) type Label = (&'static str, &'static [&'static str]);

/// One metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [Label],
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> Definition {
    Definition { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> Definition {
    Definition { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [Label], help: &'static str) -> Definition {
    Definition { name, kind: Kind::Histogram, labels, help }
}

pub(super) const REQUESTS: Definition = counter(
    "toolsearch_requests_total",
    &[("method", METHODS), ("tool", TOOLS), ("outcome", OUTCOMES)],
    "Requests by method, tool of ours, and outcome.",
);
pub(super) const REQUEST_DURATION: Definition = histogram(
    "toolsearch_request_duration_seconds",
    &[("tool", TOOLS)],
    "Time from a request's head to its answer, the upstream's part included.",
);
pub(super) const IN_FLIGHT: Definition =
    gauge("toolsearch_requests_in_flight", &[], "Requests that hold a place under --max-in-flight.");
pub(super) const TASKS: Definition = gauge(
    "toolsearch_tasks",
    &[],
    "Tasks that have not ended: connections on both sides, requests, listings.",
);
pub(super) const REJECTIONS_TOTAL: Definition = counter(
    "toolsearch_rejections_total",
    &[("reason", REJECTIONS)],
    "Requests turned away before they were understood. overloaded and caller_overloaded are those shed by --max-in-flight and --max-in-flight-per-caller.",
);
pub(super) const SEARCHES: Definition = counter(
    "toolsearch_search_queries_total",
    &[("result", &["hits", "no_hits"])],
    "Queries searched for, several in one search counted each, by whether any tool was found.",
);
pub(super) const SEARCH_DURATION: Definition = histogram(
    "toolsearch_search_duration_seconds",
    &[],
    "Time to rank and word one search_tools answer, without waiting for a listing.",
);
pub(super) const SEARCHES_FOLLOWED: Definition = counter(
    "toolsearch_searches_followed_total",
    &[],
    "Searches after which the same caller called a tool that passed all checks, each counted once. Callers without a token are not told apart and not counted.",
);
pub(super) const REFUSALS_TOTAL: Definition = counter(
    "toolsearch_refusals_total",
    &[("reason", REFUSALS)],
    "Answers that told a model how to repair its call, those inside of a batch counted each.",
);
pub(super) const CALLS: Definition = counter(
    "toolsearch_calls_forwarded_total",
    &[("checked", &["whole", "some_patterns_skipped", "unchecked"])],
    "Tool calls sent to the upstream, by how far their arguments could be checked against the input schema.",
);
pub(super) const UPSTREAM_REQUESTS: Definition = counter(
    "toolsearch_upstream_requests_total",
    &[("operation", OPERATIONS), ("outcome", UPSTREAM_OUTCOMES)],
    "What was asked of the upstream and how it ended; a listing counts once with all its pages. A tool's own error is ok.",
);
pub(super) const UPSTREAM_DURATION: Definition = histogram(
    "toolsearch_upstream_request_duration_seconds",
    &[("operation", OPERATIONS)],
    "Time that the upstream took.",
);
pub(super) const LOOKUPS: Definition = counter(
    "toolsearch_catalog_lookups_total",
    &[("result", CATALOG_LOOKUPS)],
    "Requests that needed a caller's tools: served from a fresh listing, from a stale one, or after listing.",
);
pub(super) const REFRESHES: Definition = counter(
    "toolsearch_catalog_refreshes_total",
    &[("outcome", &["ok", "failed"])],
    "Listings for callers with a token that ended, those in the background included.",
);
pub(super) const EVICTIONS_TOTAL: Definition = counter(
    "toolsearch_catalog_evictions_total",
    &[("cause", EVICTIONS)],
    "Listings dropped: the upstream refused the credentials, --max-callers or --catalog-cache-bytes was reached, or nobody asked for --catalog-idle.",
);
pub(super) const CATALOGS: Definition =
    gauge("toolsearch_catalogs", &[], "Distinct listings held; callers with the same one share it.");
pub(super) const CATALOG_BYTES: Definition = gauge(
    "toolsearch_catalog_bytes",
    &[],
    "Bytes held by tools and listings, and by listings that are being read, bounded by --catalog-cache-bytes.",
);
pub(super) const CATALOG_BYTES_MAX: Definition =
    gauge("toolsearch_catalog_limit_bytes", &[], "The bound: --catalog-cache-bytes.");
pub(super) const CATALOG_TOOLS: Definition = gauge(
    "toolsearch_catalog_tools",
    &[],
    "Tools of all listings held, one that several have counted each time. Divided by toolsearch_catalogs it is the mean.",
);
pub(super) const CATALOG_TOOLS_LARGEST: Definition =
    gauge("toolsearch_catalog_largest_tools", &[], "Tools of the largest listing held.");
pub(super) const INTERNED_TOOLS: Definition =
    gauge("toolsearch_interned_tools", &[], "Distinct tool definitions held.");
pub(super) const LEFT_OUT: Definition = counter(
    "toolsearch_definitions_left_out_total",
    &[],
    "Listed definitions without a usable name or header annotation.",
);
pub(super) const REDEFINED: Definition = counter(
    "toolsearch_definitions_changed_total",
    &[],
    "Definitions that differed from those of the same name in the caller's listing before.",
);
pub(super) const LOG_LINES_LEFT_OUT: Definition = counter(
    "toolsearch_log_lines_left_out_total",
    &[],
    "Lines that were not written: warnings and errors of which the same one came more than ten times in a row, and what nobody took from standard error in time.",
);
pub(super) const CALLERS: Definition =
    gauge("toolsearch_callers", &[], "Callers whose listing is kept; those without a token are not.");
pub(super) const DEGRADED_STATE: Definition = gauge(
    "toolsearch_degraded",
    &[("state", DEGRADED)],
    "1 while it is so: search compares words only since the model could not be used; the last request found no way to the upstream; the process is stopping.",
);
pub(super) const BUILD_INFO: Definition = gauge(
    "toolsearch_build_info",
    &[("version", &[]), ("embedder", &[])],
    "Always 1; its labels say what runs.",
);

/// All of ours, in the order of the page.
pub(super) const DEFINITIONS: &[Definition] = &[
    REQUESTS,
    REQUEST_DURATION,
    IN_FLIGHT,
    TASKS,
    REJECTIONS_TOTAL,
    SEARCHES,
    SEARCH_DURATION,
    SEARCHES_FOLLOWED,
    REFUSALS_TOTAL,
    CALLS,
    UPSTREAM_REQUESTS,
    UPSTREAM_DURATION,
    LOOKUPS,
    REFRESHES,
    EVICTIONS_TOTAL,
    CATALOGS,
    CATALOG_BYTES,
    CATALOG_BYTES_MAX,
    CATALOG_TOOLS,
    CATALOG_TOOLS_LARGEST,
    INTERNED_TOOLS,
    LEFT_OUT,
    REDEFINED,
    LOG_LINES_LEFT_OUT,
    CALLERS,
    DEGRADED_STATE,
    BUILD_INFO,
];
