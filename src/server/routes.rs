//! Which path leads where.

use super::resource::{self, WELL_KNOWN};
use super::{Server, endpoint};
use axum::Router;
use axum::routing::{any, get};
use std::sync::Arc;

/// The MCP endpoint at its three paths, and the metadata that a login needs; everything else is a 404 without a body.
pub fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/mcp/search", any(endpoint::endpoint))
        .route("/mcp", any(endpoint::endpoint))
        .route("/", any(endpoint::endpoint))
        .route(WELL_KNOWN, get(resource::root_metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(resource::path_metadata))
        .with_state(server)
}
