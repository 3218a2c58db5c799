//! `toolsearch-proxy`: an MCP server that lets a model use thousands of tools through five.
//!
//! In reading order:
//!
//! - [`config`]: every flag, variable and key of a settings file.
//! - [`app`]: the only place where the parts are put together.
//! - [`server`]: HTTP in, and the one place where an answer becomes a response.
//! - [`dispatch`]: one JSON-RPC request and its caller in, one reply out.
//! - [`tools`]: the five tools that a model sees.
//! - [`catalog`]: a caller's tools, kept for a bounded time and shared by content.
//! - [`search`]: ranking; pure, no I/O.
//! - [`embedder`]: text to vector.
//! - [`upstream`]: MCP out, to the server with the many tools.
//! - [`mcp`]: the wire that both hops speak.
//! - [`caller`]: who asks.
//! - [`telemetry`]: logs, metrics and traces.
//! - [`budget`]: how much memory is taken for what upstreams list.
//! - [`host`]: what the operating system allows the process.
//! - [`outbound`]: how each HTTP client begins.
//! - [`eval`]: how well questions find their tools.
//! - [`healthcheck`]: asks a running proxy whether it takes requests.
//! - [`demo`]: a made-up upstream to try it all on.
//!
//! `ARCHITECTURE.md` follows a request through them.

pub mod app;
pub mod budget;
pub mod caller;
pub mod catalog;
pub mod config;
pub mod demo;
pub mod dispatch;
pub mod embedder;
pub mod eval;
pub mod healthcheck;
pub mod host;
pub mod mcp;
pub mod outbound;
pub mod search;
pub mod server;
pub mod telemetry;
pub mod tools;
pub mod upstream;
