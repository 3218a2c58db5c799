//! [`MeteredUpstream`]: counts, times and traces what is asked of an upstream.

use super::{Listing, ToolCall, Upstream, UpstreamError};
use crate::caller::Caller;
use crate::mcp::TraceContext;
use crate::telemetry::{Metrics, Operation, end_upstream, next_traceparent, upstream_span};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use serde_json::value::RawValue;
use std::future::Future;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// An upstream behind the counters.
pub struct MeteredUpstream {
    upstream: Arc<dyn Upstream>,
    metrics: Arc<Metrics>,
}

impl MeteredUpstream {
    /// Counts what is asked of this upstream.
    pub fn new(upstream: Arc<dyn Upstream>, metrics: Arc<Metrics>) -> Self {
        Self { upstream, metrics }
    }

    async fn metered<T>(
        &self,
        operation: Operation,
        asked: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let mut pending = Pending {
            metrics: &self.metrics,
            span: Span::current(),
            operation,
            started: Instant::now(),
            outcome: "abandoned",
        };
        let answer = asked.await;
        pending.outcome = answer.as_ref().map_or_else(UpstreamError::kind, |_| "ok");
        answer
    }
}

/// Our own span as the parent of what the upstream traces, in both forms that cross.
struct Hop {
    meta: Box<RawValue>,
    header: HeaderValue,
}

impl Hop {
    fn new(traceparent: &str) -> Option<Self> {
        let meta = RawValue::from_string(format!("\"{traceparent}\"")).ok()?;
        Some(Self { meta, header: HeaderValue::from_str(traceparent).ok()? })
    }

    /// The vendors' parts stay as they came.
    fn in_place_of<'a>(&'a self, trace: TraceContext<'a>) -> TraceContext<'a> {
        TraceContext { traceparent: Some(&self.meta), traceparent_header: Some(&self.header), ..trace }
    }
}

/// Counts in the end, also when nobody waits for it.
struct Pending<'a> {
    metrics: &'a Metrics,
    span: Span,
    operation: Operation,
    started: Instant,
    outcome: &'static str,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.metrics.count_upstream(self.operation, self.outcome, self.started.elapsed());
        end_upstream(&self.span, self.outcome);
    }
}

impl Upstream for MeteredUpstream {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        // Several may wait for one listing, so no trace of any of them goes with it.
        let span = upstream_span(Operation::List);
        self.metered(Operation::List, self.upstream.list_tools(caller)).instrument(span).boxed()
    }

    fn resource_metadata(&self) -> BoxFuture<'_, Result<Bytes, UpstreamError>> {
        self.upstream.resource_metadata()
    }

    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        let span = upstream_span(Operation::Call);
        let hop = next_traceparent(&span).and_then(|traceparent| Hop::new(&traceparent));
        let asked = async move {
            let trace = hop.as_ref().map_or(call.trace, |hop| hop.in_place_of(call.trace));
            let call = ToolCall { trace, ..call };
            self.metered(Operation::Call, self.upstream.call_tool(caller, call)).await
        };
        asked.instrument(span).boxed()
    }
}
