//! The upstream's protected resource metadata (RFC 9728): where clients learn who gives out tokens for it.
//!
//! **It is fetched from the upstream's own origin only**, whatever URL a challenge names, and without credentials. It is
//! public, and anybody may ask for it, so it is kept for a minute, or up to the next challenge, and fetched by one at a
//! time: whoever asks often costs the upstream nothing.

use super::error::{Challenge, UpstreamError};
use super::exchange::Wire;
use crate::mcp::resource_metadata;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 64 * 1024;

/// How long a document is kept.
const KEPT: Duration = Duration::from_secs(60);
/// How long it is kept that there was none.
const FAILURE_KEPT: Duration = Duration::from_secs(5);

/// The metadata, and where it was last said to be. Soft state, the same for all callers.
#[derive(Default)]
pub(super) struct Metadata {
    noted: Mutex<Noted>,
    kept: tokio::sync::Mutex<Option<Kept>>,
}

/// What challenges said.
#[derive(Clone, Default)]
struct Noted {
    location: Option<Url>,
    /// How many there were. One that comes after the document was fetched may be there because it has changed.
    challenges: u64,
}

struct Kept {
    /// The challenges that were known of then.
    challenges: u64,
    outcome: Result<Bytes, UpstreamError>,
    since: Instant,
}

impl Kept {
    fn holds(&self, noted: &Noted) -> bool {
        let time = if self.outcome.is_ok() { KEPT } else { FAILURE_KEPT };
        self.challenges == noted.challenges && self.since.elapsed() < time
    }
}

impl Metadata {
    /// Notes a challenge, and its URL if that is on the upstream's origin.
    pub(super) fn note(&self, upstream: &Url, challenge: &Challenge) {
        let named = challenge.www_authenticate.iter().find_map(resource_metadata);
        let url = named.and_then(|named| upstream.join(named).ok());
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.challenges += 1;
        if let Some(url) = url.filter(|url| url.origin() == upstream.origin()) {
            noted.location = Some(url);
        }
    }

    /// Where to look, in this order: as a challenge said, the well-known place with the upstream's path, without it.
    fn candidates(location: Option<Url>, upstream: &Url) -> Vec<Url> {
        let path = upstream.path().trim_end_matches('/');
        let with_path = upstream.join(&format!("{WELL_KNOWN}{path}")).ok();
        let mut urls: Vec<Url> =
            location.into_iter().chain(with_path).chain(upstream.join(WELL_KNOWN).ok()).collect();
        urls.dedup();
        urls
    }

    fn noted(&self) -> Noted {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The metadata document as the upstream gave it a moment ago.
    pub(super) async fn get(&self, wire: &Wire) -> Result<Bytes, UpstreamError> {
        // Held while the upstream is asked, so that all others wait for the same answer.
        let mut kept = self.kept.lock().await;
        let noted = self.noted();
        if let Some(kept) = kept.as_ref().filter(|kept| kept.holds(&noted)) {
            return kept.outcome.clone();
        }
        let outcome = Self::fetch(noted.location, wire).await;
        *kept = Some(Kept { challenges: noted.challenges, outcome: outcome.clone(), since: Instant::now() });
        outcome
    }

    async fn fetch(location: Option<Url>, wire: &Wire) -> Result<Bytes, UpstreamError> {
        let mut last = UpstreamError::Status(404);
        for url in Self::candidates(location, &wire.url) {
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
    let request =
        wire.pool.client().get(url).header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "identity");
    let mut response = wire.attempt(request).await?;
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
        let metadata = Metadata::default();
        let www_authenticate = vec![HeaderValue::from_static(challenge)];
        metadata.note(&upstream, &Challenge { status: 401, www_authenticate });
        Metadata::candidates(metadata.noted().location, &upstream).iter().map(Url::to_string).collect()
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
