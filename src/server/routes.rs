//! Which path leads where.

use super::resource::{self, WELL_KNOWN};
use super::{Server, endpoint};
use axum::Router;
use axum::routing::{any, get};
use std::sync::Arc;

/// Where the MCP endpoint is; all three are the same.
const ENDPOINTS: [&str; 3] = ["/mcp/search", "/mcp", "/"];

/// Whether the path leads to the MCP endpoint.
pub(super) fn is_endpoint(path: &str) -> bool {
    ENDPOINTS.contains(&path)
}

/// The MCP endpoint at its three paths, and the metadata that a login needs; everything else is a 404 without a body.
pub fn router(server: Arc<Server>) -> Router {
    let endpoints =
        ENDPOINTS.into_iter().fold(Router::new(), |router, path| router.route(path, any(endpoint::endpoint)));
    endpoints
        .route(WELL_KNOWN, get(resource::root_metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(resource::path_metadata))
        .with_state(server)
}
