//! What the tests are made of: the proxy in process, two kinds of faked upstreams, and a raw HTTP client.

mod app;
mod fake_mcp;
mod fake_upstream;
mod process;
mod raw;

pub(crate) use app::{Answer, Served, TestApp};
pub(crate) use fake_mcp::{FakeMcp, Recorded, Reply, Style, discovery, event, message};
pub(crate) use fake_upstream::{FakeUpstream, challenge, listing, rpc_failure};
pub(crate) use process::{Proxy, request};
pub(crate) use raw::{Connection, exchange};

use std::time::{Duration, SystemTime};

/// Real time after which something that was waited for will not come any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a condition that other tasks bring about, without moving the clock.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = SystemTime::now();
    while !condition() {
        assert!(started.elapsed().unwrap_or_default() < PATIENCE, "this never came: {what}");
        tokio::task::yield_now().await;
    }
}

/// A tool definition: name, whether it is read-only, description, and an input schema as JSON.
pub(crate) fn tool(name: &str, read_only: bool, description: &str, input_schema: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{input_schema},"annotations":{{"readOnlyHint":{read_only}}}}}"#
    )
}

/// A read-only tool without arguments.
pub(crate) fn reader(name: &str, description: &str) -> String {
    tool(name, true, description, r#"{"type":"object"}"#)
}

/// A tool without arguments that may change something.
pub(crate) fn writer(name: &str, description: &str) -> String {
    tool(name, false, description, r#"{"type":"object"}"#)
}
