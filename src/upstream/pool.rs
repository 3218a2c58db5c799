//! The connections to the upstream, which can be given up all at once.
//!
//! HTTP/1.1 tells answers apart by their order alone. Once one was for another request, every answer on that connection
//! may be, and which connection it was the client library does not say. So all idle ones go; requests under way keep
//! theirs, and no later request gets it.

use std::sync::{Mutex, PoisonError};

/// Builds the client; it did so once, so that it can again.
type Build = dyn Fn() -> Option<reqwest::Client> + Send + Sync;

/// The one HTTP client, while nothing is wrong with it.
pub(super) struct Pool {
    client: Mutex<reqwest::Client>,
    build: Box<Build>,
}

impl Pool {
    pub(super) fn new(
        client: reqwest::Client,
        build: impl Fn() -> Option<reqwest::Client> + Send + Sync + 'static,
    ) -> Self {
        Self { client: Mutex::new(client), build: Box::new(build) }
    }

    /// The client for one request.
    pub(super) fn client(&self) -> reqwest::Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on requests get new connections.
    pub(super) fn replace(&self) {
        tracing::warn!("the upstream answered another request: its connections are not used again");
        if let Some(client) = (self.build)() {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        }
    }
}
