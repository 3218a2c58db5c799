//! MCP out: the only way from the core to the server with the many tools.
//!
//! [`Upstream`] is what the core sees; [`HttpUpstream`] speaks streamable HTTP in both eras. Tests put their own
//! behind the same trait.
//!
//! **Of the caller's headers only `Authorization` and W3C trace context cross**, to the configured URL and nowhere
//! else: no redirects, no proxies from the environment, no retries. **A tool call is executed at most once**: it is sent again
//! only where the upstream turned it away unread, because it speaks another era than it did.
//!
//! Deliberately not here: what a caller may call, which is decided before.

mod beside;
mod body;
mod breaker;
mod era;
mod error;
mod exchange;
mod http;
mod metadata;
mod metered;
mod pool;
mod resume;
mod session;
mod wire;

pub use error::{Challenge, FailureStage, RpcFailure, UpstreamError};
pub use http::{HttpUpstream, HttpUpstreamOptions, UpstreamSetupError};
pub use metered::MeteredUpstream;
#[doc(hidden)]
pub use wire::{Page, parse_page};

use crate::caller::Caller;
use crate::mcp::{Era, ParamHeader, TraceContext};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::sync::mpsc;

/// The server that has the tools.
pub trait Upstream: Send + Sync {
    /// All pages of the caller's tools.
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>>;

    /// The upstream's protected resource metadata (RFC 9728), a JSON document. An upstream need not have any.
    fn resource_metadata(&self) -> BoxFuture<'_, Result<Bytes, UpstreamError>> {
        std::future::ready(Err(UpstreamError::Status(404))).boxed()
    }

    /// Calls one tool, once. Dropping the future cancels the call.
    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>>;
}

/// A caller's tools as the upstream listed them.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Each definition's bytes, slices of the pages they came in, in the upstream's order.
    pub tools: Vec<Bytes>,
    /// The upstream's own guidance for models.
    pub instructions: Option<String>,
    /// How long the upstream says that the listing stays fresh; the shortest of all pages.
    pub ttl: Option<Duration>,
    /// Which era the upstream speaks: header annotations count in the modern one only.
    pub era: Era,
}

/// Who wants to hear what while a call runs.
#[derive(Clone, Copy, Debug)]
pub struct Listening<'a> {
    /// Raw; where present, progress is wanted, and named so.
    pub progress_token: Option<&'a RawValue>,
    /// Raw; where present, log messages of this level and above are wanted.
    pub log_level: Option<&'a RawValue>,
    /// Takes whole notifications, raw. It is bounded: whoever sends waits for whoever reads.
    pub notices: &'a mpsc::Sender<Bytes>,
}

/// One call of one tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The tool's name, exactly.
    pub name: &'a str,
    /// The arguments, a raw JSON object.
    pub arguments: &'a RawValue,
    /// Arguments that a modern upstream wants as headers too.
    pub param_headers: &'a [ParamHeader],
    /// What the caller's client can do; a raw JSON object.
    pub client_capabilities: &'a RawValue,
    /// The caller's trace context.
    pub trace: TraceContext<'a>,
    /// What the client wants to hear while the call runs.
    pub listening: Option<Listening<'a>>,
    /// The client's answers to what an earlier round asked for.
    pub input_responses: Option<&'a RawValue>,
    /// The state that an earlier round gave, opaque.
    pub request_state: Option<&'a RawValue>,
}
