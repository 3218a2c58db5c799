//! Lets web pages of the origins that the operator lists read what this server answers.
//!
//! A browser asks before it sends a request with `Authorization` to another origin, and shows the page an answer only if
//! the answer says that it may see it. **Without `--allowed-origins` no such header is ever sent**, on loopback neither: a
//! page that merely runs on this machine reads nothing. Nothing is said to other origins, and cookies are never allowed
//! along: the one credential is `Authorization`, which a page has to hold itself.
//!
//! Source: the Fetch standard, "HTTP CORS protocol".

use super::Server;
use super::resource::WELL_KNOWN;
use super::routes::is_endpoint;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderValue, Method, StatusCode};
use std::sync::Arc;

/// Every request header that means something here and that browsers ask for.
const REQUEST_HEADERS: &str = "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id, traceparent, tracestate";
/// Response headers that a page may read beside the few that it always may.
const RESPONSE_HEADERS: &str = "www-authenticate, retry-after";

/// Answers what browsers ask beforehand, and marks the answers that a listed origin may read.
pub(super) async fn cors(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let origins = &server.options.origins;
    let path = request.uri().path();
    let behind = path.strip_prefix(WELL_KNOWN);
    let is_metadata = behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let passes = (is_metadata || is_endpoint(path))
        && origins.check(request.headers(), request.uri().authority()).is_ok();
    let origin = request.headers().get(ORIGIN).filter(|origin| passes && origins.is_listed(origin)).cloned();
    let asks =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match &origin {
        Some(_) if asks => permission(if is_metadata { "GET" } else { "POST" }),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // Whatever keeps answers must not give one origin's to another.
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
    }
    response
}

fn permission(methods: &'static str) -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, methods),
        (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
