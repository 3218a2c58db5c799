//! What operators see: log lines and metrics. **No token, query, argument or result reaches either.**

mod flood;
mod logs;
mod metrics;

pub use flood::lines_left_out;
pub use logs::{LogFormat, init as init_logs};
pub use metrics::{Held, Metrics, Outcome};
