//! What the proxy's `search_tools` is held against: an axum handler that parses the same request and returns the same
//! bytes, without doing anything for them.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

type Answers = Arc<HashMap<String, Bytes>>;

/// Serves answers by query, from a file of `[query, answer]` lines.
///
/// # Errors
/// When the file can't be read or no port can be bound.
pub async fn run(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let lines: Result<Vec<(String, String)>, _> = text.lines().map(serde_json::from_str).collect();
    let answers = lines.map_err(|error| error.to_string())?;
    let answers: Answers =
        Arc::new(answers.into_iter().map(|(query, answer)| (query, Bytes::from(answer))).collect());
    crate::upstream::serve(axum::Router::new().route("/mcp", any(answer)).with_state(answers)).await
}

async fn answer(State(answers): State<Answers>, request: Request) -> Response {
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let query = message["params"]["arguments"]["query"].as_str().unwrap_or_default();
    let mut response = Response::new(Body::from(answers.get(query).cloned().unwrap_or_default()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
