//! Which path leads where.

use super::{Server, endpoint};
use axum::Router;
use axum::routing::any;
use std::sync::Arc;

/// The MCP endpoint at its three paths; everything else is a 404 without a body.
pub fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/mcp/search", any(endpoint::endpoint))
        .route("/mcp", any(endpoint::endpoint))
        .route("/", any(endpoint::endpoint))
        .with_state(server)
}
