//! What operators see: log lines, metrics and traces. **No token, query, argument or result reaches any of them.**

mod definitions;
mod flood;
mod labels;
mod lines;
mod logs;
mod metrics;
mod otlp;
mod page;
mod spans;

pub use labels::{Operation, Outcome, RefusalReason};
pub use logs::{LogFormat, init as init_logs};
pub use metrics::{CheckedFor, Held, Metrics};
pub use otlp::{Tracing, TracingOptions, TracingSetupError};
pub use page::metrics_page;
pub use spans::{
    catalogue_span, end_request, end_upstream, next_traceparent, request_span, search_span, upstream_span,
};
