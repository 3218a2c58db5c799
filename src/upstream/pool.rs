//! The connections to the upstream, which can be given up all at once.
//!
//! HTTP/1.1 tells answers apart by their order alone. Once one was for another request, every answer on that connection
//! may be, and which connection it was the client library does not say. So all idle ones go; requests under way keep
//! theirs, and no later request gets it.

use super::breaker::{Breaker, Connecting};
use super::http::{HttpUpstreamOptions, UpstreamSetupError};
use crate::outbound::{self, UnusableTls};
use http::HeaderMap;
use http::header::VIA;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Builds the client; it did so once, so that it can again.
type Build = dyn Fn() -> Option<reqwest::Client> + Send + Sync;

/// The one HTTP client, while nothing is wrong with it.
pub(super) struct Pool(Mutex<(reqwest::Client, Box<Build>)>);

impl Pool {
    pub(super) fn new(
        client: reqwest::Client,
        build: impl Fn() -> Option<reqwest::Client> + Send + Sync + 'static,
    ) -> Self {
        Self(Mutex::new((client, Box::new(build))))
    }

    /// The client for one request.
    pub(super) fn client(&self) -> reqwest::Client {
        self.state().0.clone()
    }

    /// From now on requests get new connections.
    pub(super) fn replace(&self) {
        tracing::warn!("the upstream answered another request: its connections are not used again");
        let mut state = self.state();
        if let Some(client) = (state.1)() {
            state.0 = client;
        }
    }

    /// From now on requests get connections of another kind.
    pub(super) fn change(
        &self,
        client: reqwest::Client,
        build: impl Fn() -> Option<reqwest::Client> + Send + Sync + 'static,
    ) {
        *self.state() = (client, Box::new(build));
    }

    fn state(&self) -> MutexGuard<'_, (reqwest::Client, Box<Build>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one HTTP client. Each default that a proxy of other people's credentials can't have is switched off.
pub(super) fn client(
    options: &HttpUpstreamOptions,
    breaker: &Arc<Breaker>,
) -> Result<reqwest::Client, UpstreamSetupError> {
    outbound::client(&options.tls, &[b"h2", b"http/1.1"], options.connect_timeout)
        .map_err(|unusable| match unusable {
            UnusableTls::Roots => UpstreamSetupError::Certificates,
            UnusableTls::Identity => UpstreamSetupError::Identity,
        })?
        .connector_layer(Connecting::new(Arc::clone(breaker)))
        .pool_max_idle_per_host(32)
        // Below the 60 s after which common gateways drop idle connections.
        .pool_idle_timeout(Duration::from_secs(45))
        .tcp_nodelay(true)
        .default_headers(HeaderMap::from_iter([(VIA, options.instance.via().clone())]))
        .build()
        .map_err(UpstreamSetupError::Client)
}
