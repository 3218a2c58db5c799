//! HTTP in: routes, the MCP endpoint, probes, and the one place where an answer becomes a response.
//!
//! [`Server`] holds what the routes need; [`serve`] runs them on a listener with deadlines of its own and drains on
//! shutdown. `endpoint` checks HTTP and reads one message, `era` decides which protocol version it speaks, and
//! `respond` turns replies and rejections into responses.
//!
//! Deliberately not here: methods and tools, which `dispatch` and `tools` know.

mod addresses;
mod admin;
mod admission;
mod connections;
mod cors;
mod endpoint;
mod era;
mod hangup;
mod heads;
mod listener;
mod origin;
mod resource;
mod respond;
mod routes;
mod running;
mod stream;

pub use admin::admin_router;
pub use admission::Admission;
pub use listener::{ServeOptions, serve};
pub use origin::OriginPolicy;
pub use resource::PublicUrl;
pub use routes::{is_endpoint, router};

use crate::caller::Salt;
use crate::catalog::{CatalogCache, CatalogStore};
use crate::dispatch::Dispatcher;
use crate::mcp::Instance;
use crate::telemetry::Metrics;
use crate::upstream::Upstream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Limits of the MCP endpoint.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Largest request body, in bytes.
    pub body_bytes_max: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Which `Host` and `Origin` headers are accepted.
    pub origins: OriginPolicy,
    /// What clients call this server.
    pub public_url: PublicUrl,
}

/// What the routes share.
pub struct Server {
    /// Limits of the endpoint.
    pub options: EndpointOptions,
    /// Answers requests.
    pub dispatcher: Dispatcher,
    /// For the metadata that a login needs.
    pub upstream: Arc<dyn Upstream>,
    /// For the gauges.
    pub catalogs: Arc<CatalogCache>,
    /// For the gauges.
    pub store: Arc<CatalogStore>,
    /// How many requests may be in flight.
    pub admission: Arc<Admission>,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
    /// The name of this process towards the upstream.
    pub instance: Instance,
    /// Salts the keys of callers.
    pub salt: Salt,
    /// Set when the process has begun to stop.
    pub is_draining: AtomicBool,
}
