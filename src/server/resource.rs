//! Login through the proxy: clients log in for the URL that they use, so the metadata that they are led to must name
//! that URL as the resource, not the upstream's.
//!
//! Source: RFC 9728. Clients refuse metadata whose `resource` is not the URL that they dialled.

use super::Server;
use super::routes::is_endpoint;
use crate::mcp::{Object, with_resource_metadata};
use crate::telemetry::Outcome;
use crate::upstream::UpstreamError;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use url::Url;

/// Where protected resource metadata is, with the resource's path behind it.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What clients call this server.
#[derive(Clone, Debug)]
pub enum PublicUrl {
    /// The operator's word: the URL of the MCP endpoint as clients dial it.
    Fixed(Url),
    /// On loopback, whatever the request's `Host` says: only programs of this machine can say it.
    OfRequest,
    /// Not known. Challenges go through unchanged, and metadata is not served.
    Unknown,
}

impl PublicUrl {
    /// The resource that a request to `path` is for.
    fn resource(&self, host: Option<&HeaderValue>, path: &str) -> Option<Url> {
        match self {
            Self::Fixed(url) => Some(url.clone()),
            Self::OfRequest => {
                let host = host?.to_str().ok()?;
                Url::parse(&format!("http://{host}{path}")).ok()
            }
            Self::Unknown => None,
        }
    }

    /// Challenges with `resource_metadata` leading to this server's own document.
    pub(super) fn own_challenges(
        &self,
        challenges: &[HeaderValue],
        host: Option<&HeaderValue>,
        path: &str,
    ) -> Vec<HeaderValue> {
        let Some(mut url) = self.resource(host, path) else { return challenges.to_vec() };
        let path = format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(None);
        challenges.iter().map(|challenge| with_resource_metadata(challenge, url.as_str())).collect()
    }
}

/// `GET /.well-known/oauth-protected-resource`
pub(super) async fn root_metadata(
    State(server): State<Arc<Server>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    metadata(&server, &uri, &headers, "/").await
}

/// `GET /.well-known/oauth-protected-resource/…`
pub(super) async fn path_metadata(
    State(server): State<Arc<Server>>,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    metadata(&server, &uri, &headers, &format!("/{path}")).await
}

/// The document, counted and logged as every request is.
async fn metadata(server: &Server, uri: &Uri, headers: &HeaderMap, path: &str) -> Response {
    let started = Instant::now();
    let response = document(server, uri, headers, path).await;
    let outcome = match response.status() {
        StatusCode::OK => Outcome::Ok,
        StatusCode::BAD_GATEWAY => Outcome::UpstreamError,
        _ => Outcome::InvalidRequest,
    };
    super::endpoint::record(server, "metadata", "none", outcome, started);
    response
}

async fn document(server: &Server, uri: &Uri, headers: &HeaderMap, path: &str) -> Response {
    if let Err(fault) = server.options.origins.check(headers, uri.authority()) {
        return super::respond::Rejection::Origin(fault).into_response();
    }
    let resource = server.options.public_url.resource(headers.get(HOST), path);
    let Some(resource) =
        resource.filter(|resource| path == "/" || path == resource.path() || is_endpoint(path))
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match server.upstream.resource_metadata().await {
        Ok(document) => match with_resource(&document, &resource) {
            Some(body) => {
                ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response()
            }
            None => StatusCode::BAD_GATEWAY.into_response(),
        },
        Err(UpstreamError::Status(400..=499)) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// The upstream's document with our resource in it. Its signed form names the upstream's, so it is left out; `None` when it is no JSON object.
fn with_resource(document: &[u8], resource: &Url) -> Option<String> {
    let Object(mut members): Object<BTreeMap<String, Box<RawValue>>> =
        serde_json::from_slice(document).ok()?;
    members.remove("signed_metadata");
    members.insert("resource".to_owned(), serde_json::value::to_raw_value(resource.as_str()).ok()?);
    serde_json::to_string(&members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f14_m40_challenges_lead_to_the_url_that_the_client_used() {
        let challenge =
            [HeaderValue::from_static(r#"Bearer scope="x", resource_metadata="https://up/.well-known/y""#)];
        let fixed = PublicUrl::Fixed(Url::parse("https://gw.example/mcp/search").unwrap());
        for (public_url, expected) in [
            (
                fixed,
                r#"Bearer scope="x", resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp/search""#,
            ),
            (
                PublicUrl::OfRequest,
                r#"Bearer scope="x", resource_metadata="http://localhost:8080/.well-known/oauth-protected-resource/mcp""#,
            ),
            (PublicUrl::Unknown, r#"Bearer scope="x", resource_metadata="https://up/.well-known/y""#),
        ] {
            assert_eq!(
                public_url.own_challenges(
                    &challenge,
                    Some(&HeaderValue::from_static("localhost:8080")),
                    "/mcp"
                ),
                [expected]
            );
        }
    }

    #[test]
    fn only_the_resource_of_the_metadata_changes() {
        let resource = Url::parse("https://gw.example/mcp/search").unwrap();
        let document = br#"{"resource":"https://up","signed_metadata":"e.y.J","authorization_servers":["https://as"],"x":1e400}"#;
        assert_eq!(
            with_resource(document, &resource).unwrap(),
            r#"{"authorization_servers":["https://as"],"resource":"https://gw.example/mcp/search","x":1e400}"#
        );
        assert!(with_resource(b"[]", &resource).is_none() && with_resource(b"<html>", &resource).is_none());
    }
}
