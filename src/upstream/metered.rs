//! [`MeteredUpstream`]: counts and times what is asked of an upstream.

use super::{Listing, ToolCall, Upstream, UpstreamError};
use crate::caller::Caller;
use crate::telemetry::{Metrics, Operation};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use tokio::time::Instant;

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
        let mut pending =
            Pending { metrics: &self.metrics, operation, started: Instant::now(), outcome: "abandoned" };
        let answer = asked.await;
        pending.outcome = answer.as_ref().map_or_else(UpstreamError::kind, |_| "ok");
        answer
    }
}

/// Counts in the end, also when nobody waits for it.
struct Pending<'a> {
    metrics: &'a Metrics,
    operation: Operation,
    started: Instant,
    outcome: &'static str,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.metrics.count_upstream(self.operation, self.outcome, self.started.elapsed());
    }
}

impl Upstream for MeteredUpstream {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        self.metered(Operation::List, self.upstream.list_tools(caller)).boxed()
    }

    fn resource_metadata(&self) -> BoxFuture<'_, Result<Bytes, UpstreamError>> {
        self.upstream.resource_metadata()
    }

    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        self.metered(Operation::Call, self.upstream.call_tool(caller, call)).boxed()
    }
}
