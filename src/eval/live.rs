//! A catalogue as an upstream lists it now, with a token from the environment.

use super::EvalError;
use crate::budget::Budget;
use crate::caller::{Caller, Salt};
use crate::mcp::Instance;
use crate::outbound::Tls;
use crate::upstream::{HttpUpstream, HttpUpstreamOptions, Upstream};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use std::num::NonZeroUsize;
use std::time::Duration;
use url::Url;

/// All tools that the upstream lists for the token; without one, for nobody.
pub(super) async fn list(url: &Url, token: Option<&str>) -> Result<Vec<Bytes>, EvalError> {
    let failed = |error: &dyn std::fmt::Display| EvalError::Upstream(error.to_string());
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        // With the scheme in front, as it stands in a header, it is the same token.
        let token = token.trim();
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let value = value.map_err(|_| EvalError::Upstream("no header can carry this token".to_owned()))?;
        headers.insert(AUTHORIZATION, value);
    }
    let caller = Caller::from_headers(&headers, &Salt::random()).map_err(|error| failed(&error))?;
    let upstream = HttpUpstream::new(HttpUpstreamOptions {
        instance: Instance::random(),
        url: url.clone(),
        call_timeout: Duration::from_secs(60),
        list_timeout: Duration::from_secs(60),
        connect_timeout: Duration::from_secs(5),
        response_bytes_max: 16 << 20,
        listing_bytes_max: 64 << 20,
        pages_max: 200,
        tools_max: 20_000,
        budget: Budget::new(usize::MAX),
        callers_max: NonZeroUsize::MIN,
        tls: Tls::default(),
    });
    let upstream = upstream.map_err(|error| failed(&error))?;
    upstream.list_tools(&caller).await.map(|listing| listing.tools).map_err(|error| failed(&error))
}
