//! The operator's port: probes and metrics.
//!
//! Liveness and readiness never depend on the upstream: a proxy that can't reach it still says so to callers, and a
//! restart would not help.

use super::Server;
use crate::telemetry::Held;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `/livez`, `/readyz` and `/metrics`.
pub fn admin_router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(server)
}

async fn readyz(State(server): State<Arc<Server>>) -> (StatusCode, &'static str) {
    if server.is_draining.load(Ordering::Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn metrics(State(server): State<Arc<Server>>) -> impl IntoResponse {
    let (catalogs, interned) = server.store.counts();
    let (tools, tools_largest) = server.store.tools_held();
    let stats = server.catalogs.stats();
    server.metrics.set_held(Held {
        in_flight: server.admission.in_flight(),
        tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        bytes: server.store.bytes(),
        bytes_max: server.store.bytes_max(),
        catalogs,
        tools,
        tools_largest,
        interned,
        callers: stats.callers,
        left_out: server.store.left_out(),
        lookups: [stats.hits, stats.stale_hits, stats.misses],
        refreshes: [stats.listed, stats.failures],
        redefined: server.store.redefined(),
        evictions: [stats.evictions, stats.displaced, server.store.dropped(), server.store.forgotten()],
        is_draining: server.is_draining.load(Ordering::Relaxed),
    });
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], server.metrics.render())
}
