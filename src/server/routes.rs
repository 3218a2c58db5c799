//! Which path leads where.

use super::cors::cors;
use super::resource::{self, WELL_KNOWN};
use super::{Server, endpoint};
use crate::telemetry::Outcome;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get};
use http::HeaderValue;
use http::header::CONNECTION;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// Where the MCP endpoint is; all three are the same.
const ENDPOINTS: [&str; 3] = ["/mcp/search", "/mcp", "/"];

/// Whether the path leads to the MCP endpoint.
pub fn is_endpoint(path: &str) -> bool {
    ENDPOINTS.contains(&path)
}

/// While the process stops, each answer ends its connection: the client's next one is to another process.
async fn close_while_draining(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if server.is_draining.load(Ordering::Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The MCP endpoint at its three paths, and the metadata that a login needs; everything else is a 404 without a body.
pub fn router(server: Arc<Server>) -> Router {
    let endpoints =
        ENDPOINTS.into_iter().fold(Router::new(), |router, path| router.route(path, any(endpoint::endpoint)));
    let endpoints = endpoints.layer(from_fn_with_state(Arc::clone(&server), close_while_draining));
    let router = endpoints
        .route(WELL_KNOWN, get(resource::root_metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(resource::path_metadata))
        .fallback(no_route);
    if server.options.origins.origins.is_empty() {
        return router.with_state(server);
    }
    router.layer(from_fn_with_state(Arc::clone(&server), cors)).with_state(server)
}

/// Counted and logged, since a client that is set up with another path sees nothing but this.
async fn no_route(State(server): State<Arc<Server>>) -> StatusCode {
    endpoint::record(&server, "no_route", "none", Outcome::InvalidRequest, Instant::now());
    StatusCode::NOT_FOUND
}
