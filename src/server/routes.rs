//! Which path leads where.

use super::cors::cors;
use super::resource::{self, WELL_KNOWN};
use super::{Server, endpoint};
use axum::Router;
use axum::middleware::from_fn_with_state;
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
    let router = endpoints
        .route(WELL_KNOWN, get(resource::root_metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(resource::path_metadata));
    if server.options.origins.origins.is_empty() {
        return router.with_state(server);
    }
    router.layer(from_fn_with_state(Arc::clone(&server), cors)).with_state(server)
}
