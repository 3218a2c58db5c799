//! The spans of a request, and the trace that crosses both hops. Without `--otlp-endpoint` nothing listens to them, and
//! they cost nothing.
//!
//! **Attributes are closed sets and counts of ours**: no token, query, argument, result or tool of the upstream.

use super::labels::{Operation, Outcome};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Sets our spans apart from everything else that is told; log lines have another target.
pub(super) const TARGET: &str = "toolsearch::span";

/// The span of one MCP request: `method` is one of ours or a word for all others, `traceparent` what came with it.
pub fn request_span(method: &'static str, version: &str, traceparent: Option<&str>) -> Span {
    let span = info_span!(
        target: TARGET,
        "request",
        otel.kind = "server",
        otel.name = method,
        otel.status_code = Empty,
        mcp.method.name = method,
        mcp.protocol.version = version,
        gen_ai.tool.name = Empty,
        toolsearch.outcome = Empty,
    );
    if let Some(traceparent) = traceparent.filter(|_| !span.is_disabled()) {
        let parent = TraceContextPropagator::new().extract(&Traceparent(traceparent));
        // Fails only once the span has begun.
        let _begun = span.set_parent(parent);
    }
    span
}

/// Adds how a request ended to its span.
pub fn end_request(span: &Span, method: &'static str, tool: Option<&'static str>, outcome: Outcome) {
    if span.is_disabled() {
        return;
    }
    if let Some(tool) = tool {
        span.record("gen_ai.tool.name", tool);
        span.context().span().update_name(format!("{method} {tool}"));
    }
    span.record("toolsearch.outcome", outcome.as_str());
    if matches!(outcome, Outcome::UpstreamError | Outcome::InternalError) {
        span.record("otel.status_code", "ERROR");
    }
}

/// Looking a caller's tools up, their listing included where they have to be listed.
pub fn catalogue_span() -> Span {
    info_span!(target: TARGET, "catalogue", toolsearch.tools = Empty)
}

/// Ranking, for so many queries.
pub fn search_span(queries: usize) -> Span {
    info_span!(target: TARGET, "search", toolsearch.queries = queries, toolsearch.queries_without_hits = Empty)
}

/// Asking the upstream.
pub fn upstream_span(operation: Operation) -> Span {
    let (name, method) = match operation {
        Operation::List => ("upstream list", "tools/list"),
        Operation::Call => ("upstream call", "tools/call"),
    };
    info_span!(
        target: TARGET,
        "upstream",
        otel.kind = "client",
        otel.name = name,
        otel.status_code = Empty,
        mcp.method.name = method,
        toolsearch.outcome = Empty,
    )
}

/// Adds how the upstream answered.
pub fn end_upstream(span: &Span, outcome: &'static str) {
    span.record("toolsearch.outcome", outcome);
    if outcome != "ok" {
        span.record("otel.status_code", "ERROR");
    }
}

/// What the next hop gets as `traceparent`; `None` when nothing is traced.
pub fn next_traceparent(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span = context.span();
    let context = span.span_context();
    context.is_valid().then(|| {
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8())
    })
}

struct Traceparent<'a>(&'a str);

impl Extractor for Traceparent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == "traceparent").then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_listener_spans_are_nothing() {
        let span = request_span(
            "ping",
            "2026-07-28",
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        );
        assert!(span.is_disabled() && next_traceparent(&span).is_none());
        end_request(&span, "ping", None, Outcome::Ok);
    }
}
