//! What operators see: log lines and metrics. **No token, query, argument or result reaches either.**

mod definitions;
mod flood;
mod labels;
mod logs;
mod metrics;
mod page;

pub use labels::{Operation, Outcome, RefusalReason};
pub use logs::{LogFormat, init as init_logs};
pub use metrics::{CheckedFor, Held, Metrics};
pub use page::metrics_page;
