//! What operators see: log lines and metrics. **No token, query, argument or result reaches either.**

mod logs;
mod metrics;

pub use logs::{LogFormat, init as init_logs};
pub use metrics::{Held, Metrics, Outcome};
