//! Goes on with a stream that a legacy upstream ended before the answer.
//!
//! Since 2025-11-25 a server may end the stream of a long call on purpose: it gives an event id first, and whoever comes
//! back with that id hears the rest. So may one whose connection broke. **Only the stream is asked for again, with a
//! `GET`; the call is never repeated.** The modern era has no such thing.
//!
//! Coming back has bounds: the request's own time-out, a number of times, and the limits of the answer, which count
//! all its parts together.

use super::body::Messages;
use super::error::UpstreamError;
use super::exchange::{Request, Wire, base_headers};
use crate::caller::Caller;
use crate::mcp::{Era, names};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use std::time::Duration;
use tokio::time::Instant;

/// How long a server is left alone that does not say how long it wants to be.
const WAIT: Duration = Duration::from_secs(1);
/// The least time between two requests, whatever the server says.
const WAIT_MIN: Duration = Duration::from_millis(100);
/// Most times that one stream is come back to.
const TIMES_MAX: usize = 100;

/// What is left of a request's right to come back.
pub(super) struct Resumptions {
    times_left: usize,
    deadline: Instant,
}

impl Resumptions {
    /// For a request that is sent now.
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self { times_left: TIMES_MAX, deadline: Instant::now() + request.timeout }
    }
}

impl Wire {
    /// Waits as the server asks, and puts what it has to say next behind what it said.
    ///
    /// # Errors
    /// When there is nothing to come back with or to; what the call did is not known then.
    pub(super) async fn resume(
        &self,
        caller: &Caller,
        request: &Request<'_>,
        messages: &mut Messages,
        resumptions: &mut Resumptions,
    ) -> Result<(), UpstreamError> {
        let position = messages.position().filter(|_| request.version.era() == Era::Legacy);
        let position = position.ok_or(UpstreamError::Cut)?;
        let id = position.last_event_id.as_ref().ok_or(UpstreamError::Cut)?;
        let id = HeaderValue::from_maybe_shared(id.clone()).map_err(|_| UpstreamError::Cut)?;
        let wait = position.retry.unwrap_or(WAIT).max(WAIT_MIN);
        // A server that wants to be left alone for longer than there is time is as good as gone.
        let is_in_time =
            resumptions.deadline.checked_duration_since(Instant::now()).is_some_and(|left| wait < left);
        if !is_in_time || resumptions.times_left == 0 {
            return Err(UpstreamError::Cut);
        }
        resumptions.times_left -= 1;
        tokio::time::sleep(wait).await;
        let mut headers = base_headers(caller, request.version, request.session);
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(names::LAST_EVENT_ID, id);
        let response = self.attempt(self.pool.client().get(self.url.clone()).headers(headers)).await;
        let response = response.map_err(|_| UpstreamError::Cut)?;
        if response.status() != StatusCode::OK || !is_stream(&response) {
            return Err(UpstreamError::Cut);
        }
        messages.go_on(response).map_err(|_| UpstreamError::Cut)
    }
}

fn is_stream(response: &reqwest::Response) -> bool {
    const SSE: &[u8] = b"text/event-stream";
    let media = response.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    media.get(..SSE.len()).is_some_and(|media| media.eq_ignore_ascii_case(SSE))
}
