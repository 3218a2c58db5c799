//! The upstream's protected resource metadata (RFC 9728): where clients learn who gives out tokens for it.
//!
//! **It is fetched from the upstream's own origin only**, whatever URL a challenge names, and without credentials.

use super::error::{Challenge, UpstreamError};
use super::exchange::Wire;
use crate::mcp::resource_metadata;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use url::Url;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 64 * 1024;

/// Where the metadata was last said to be. Soft state, the same for all callers.
#[derive(Default)]
pub(super) struct MetadataLocation(Mutex<Option<Url>>);

impl MetadataLocation {
    /// Notes the URL of a challenge, if it is on the upstream's origin.
    pub(super) fn note(&self, upstream: &Url, challenge: &Challenge) {
        let named = challenge.www_authenticate.iter().find_map(resource_metadata);
        let url = named.and_then(|named| upstream.join(named).ok());
        if let Some(url) = url.filter(|url| url.origin() == upstream.origin()) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(url);
        }
    }

    /// Where to look, in this order: as a challenge said, the well-known place with the upstream's path, without it.
    fn candidates(&self, upstream: &Url) -> Vec<Url> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let path = upstream.path().trim_end_matches('/');
        let with_path = upstream.join(&format!("{WELL_KNOWN}{path}")).ok();
        let mut urls: Vec<Url> =
            noted.into_iter().chain(with_path).chain(upstream.join(WELL_KNOWN).ok()).collect();
        urls.dedup();
        urls
    }

    /// The metadata document as the upstream gives it.
    pub(super) async fn fetch(&self, wire: &Wire) -> Result<Bytes, UpstreamError> {
        let mut last = UpstreamError::Status(404);
        for url in self.candidates(&wire.url) {
            match tokio::time::timeout(TIMEOUT, get(wire, url)).await {
                Ok(Ok(document)) => return Ok(document),
                Ok(Err(error)) => last = error,
                Err(_) => return Err(UpstreamError::TimedOut(TIMEOUT)),
            }
        }
        Err(last)
    }
}

async fn get(wire: &Wire, url: Url) -> Result<Bytes, UpstreamError> {
    let request = wire.client.get(url).header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "identity");
    let mut response = request.send().await.map_err(|error| UpstreamError::of_request(&error))?;
    if response.status() != http::StatusCode::OK {
        return Err(UpstreamError::Status(response.status().as_u16()));
    }
    let mut document = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| UpstreamError::Cut)? {
        if document.len() + chunk.len() > BYTES_MAX {
            return Err(UpstreamError::TooLarge(BYTES_MAX));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn candidates_after(challenge: &'static str) -> Vec<String> {
        let upstream = Url::parse("https://up.example/mcp/all?x=1").unwrap();
        let location = MetadataLocation::default();
        let www_authenticate = vec![HeaderValue::from_static(challenge)];
        location.note(&upstream, &Challenge { status: 401, www_authenticate });
        location.candidates(&upstream).iter().map(Url::to_string).collect()
    }

    #[test]
    fn m40_metadata_is_looked_for_on_the_upstreams_origin_only() {
        let known = [
            "https://up.example/.well-known/oauth-protected-resource/mcp/all",
            "https://up.example/.well-known/oauth-protected-resource",
        ];
        assert_eq!(candidates_after(r#"Bearer resource_metadata="https://evil.example/x""#), known);
        assert_eq!(candidates_after(r#"Bearer resource_metadata="http://up.example/x""#), known);
        assert_eq!(candidates_after("Bearer"), known);
        assert_eq!(candidates_after(r#"Bearer resource_metadata="/meta""#)[0], "https://up.example/meta");
    }
}
