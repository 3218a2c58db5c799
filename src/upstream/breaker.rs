//! [`Breaker`]: stops knocking at an upstream that can't be connected to.
//!
//! After ten connections in a row that failed, requests fail at once for a second; then one of them tries, and when it
//! fails too the pause doubles, up to half a minute. A connection that stands proves that the upstream is there, whatever
//! is answered on it and whenever: [`Connecting`] sees it, so a slow call keeps nobody out. Where none is made, since an
//! old one is used, a trial keeps others out for no longer than a connection may take. Nothing here repeats a request.

use futures_util::future::{BoxFuture, FutureExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tower::{Layer, Service};

const FAILURES_MAX: u32 = 10;
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Whether the upstream may be tried now.
#[derive(Debug)]
pub(super) struct Breaker {
    state: Mutex<State>,
    /// How long a connection may take, and so a trial.
    connect_timeout: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Connections in a row that failed.
    failures: u32,
    /// While it is open: until when, and for how long it was closed off.
    pause: Option<(Instant, Duration)>,
    /// Since when the one that may try after a pause is under way.
    tried_since: Option<Instant>,
}

/// A request that may connect. Dropped without an outcome, it says nothing.
pub(super) struct Attempt<'a> {
    breaker: &'a Breaker,
    /// Since when, where it is the one that may try.
    trial: Option<Instant>,
}

impl Breaker {
    pub(super) fn new(connect_timeout: Duration) -> Self {
        Self { state: Mutex::default(), connect_timeout }
    }

    /// `None` while nobody may try.
    pub(super) fn attempt(&self) -> Option<Attempt<'_>> {
        let mut state = self.state();
        let now = Instant::now();
        let is_tried = state.tried_since.is_some_and(|since| now < since + self.connect_timeout);
        let trial = match state.pause {
            None => None,
            Some((until, _)) if now < until || is_tried => return None,
            Some(_) => Some(now),
        };
        state.tried_since = trial;
        Some(Attempt { breaker: self, trial })
    }

    /// Whether nobody may try now, without a try.
    pub(super) fn is_open(&self) -> bool {
        self.state().pause.is_some()
    }

    /// There is a connection.
    pub(super) fn connected(&self) {
        let mut state = self.state();
        if state.pause.is_some() {
            tracing::info!("the upstream can be reached again");
        }
        *state = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Tells whether there was a connection.
    pub(super) fn end(self, connected: bool) {
        if connected {
            self.breaker.connected();
            return;
        }
        let mut state = self.breaker.state();
        state.failures = state.failures.saturating_add(1);
        let pause = match state.pause {
            Some((_, pause)) if self.trial.is_some() => (pause * 2).min(PAUSE_MAX),
            None if state.failures >= FAILURES_MAX => PAUSE_FIRST,
            // It began before the pause did.
            _ => return,
        };
        state.pause = Some((Instant::now() + pause, pause));
        tracing::warn!(pause_secs = pause.as_secs(), "the upstream can't be connected to: it is left alone");
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.state();
        // It may have taken so long that another tries by now.
        if self.trial.is_some() && state.tried_since == self.trial {
            state.tried_since = None;
        }
    }
}

/// Tells a [`Breaker`] of each connection that stands, TLS included.
#[derive(Clone)]
pub(super) struct Connecting<S = ()> {
    breaker: Arc<Breaker>,
    connector: S,
}

impl Connecting {
    pub(super) fn new(breaker: Arc<Breaker>) -> Self {
        Self { breaker, connector: () }
    }
}

impl<S> Layer<S> for Connecting {
    type Service = Connecting<S>;

    fn layer(&self, connector: S) -> Self::Service {
        Connecting { breaker: Arc::clone(&self.breaker), connector }
    }
}

impl<S, R> Service<R> for Connecting<S>
where
    S: Service<R, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connecting, breaker) = (self.connector.call(request), Arc::clone(&self.breaker));
        async move {
            let connected = connecting.await;
            if connected.is_ok() {
                breaker.connected();
            }
            connected
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const CONNECT: Duration = Duration::from_secs(5);

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.attempt().unwrap().end(false);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn t_x15_ten_failures_in_a_row_open_it_and_nine_do_not() {
        let breaker = Breaker::new(CONNECT);
        fail(&breaker, 9);
        breaker.attempt().unwrap().end(true);
        fail(&breaker, 9);
        assert!(breaker.attempt().is_some());
        fail(&breaker, 1);
        assert!(breaker.attempt().is_none());
        advance(PAUSE_FIRST).await;
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn t_x15_after_a_pause_one_tries_and_the_pauses_double_to_half_a_minute() {
        let breaker = Breaker::new(CONNECT);
        fail(&breaker, 10);
        for pause_secs in [1, 2, 4, 8, 16, 30, 30] {
            advance(Duration::from_secs(pause_secs) - Duration::from_millis(1)).await;
            assert!(breaker.attempt().is_none(), "{pause_secs}");
            advance(Duration::from_millis(1)).await;
            let trial = breaker.attempt().unwrap();
            assert!(breaker.attempt().is_none(), "{pause_secs}");
            trial.end(false);
        }
        advance(PAUSE_MAX).await;
        breaker.attempt().unwrap().end(true);
        fail(&breaker, 9);
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_is_given_up_lets_the_next_one_try() {
        let breaker = Breaker::new(CONNECT);
        fail(&breaker, 10);
        advance(PAUSE_FIRST).await;
        drop(breaker.attempt().unwrap());
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_began_before_the_pause_do_not_prolong_it() {
        let breaker = Breaker::new(CONNECT);
        let early: Vec<_> = (0..30).map(|_| breaker.attempt().unwrap()).collect();
        for attempt in early {
            attempt.end(false);
        }
        advance(PAUSE_FIRST).await;
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn t_x15_a_trial_keeps_others_out_no_longer_than_a_connection_may_take() {
        let breaker = Breaker::new(CONNECT);
        fail(&breaker, 10);
        advance(PAUSE_FIRST).await;
        let slow = breaker.attempt().unwrap();
        advance(CONNECT - Duration::from_millis(1)).await;
        assert!(breaker.attempt().is_none());
        advance(Duration::from_millis(1)).await;
        let next = breaker.attempt().unwrap();
        // The end of the first says nothing of the second.
        drop(slow);
        assert!(breaker.attempt().is_none());
        drop(next);
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn t_x15_a_connection_that_stands_lets_everyone_in_before_there_is_an_answer() {
        let breaker = Breaker::new(CONNECT);
        fail(&breaker, 10);
        advance(PAUSE_FIRST).await;
        let _unanswered = breaker.attempt().unwrap();
        breaker.connected();
        assert!(breaker.attempt().is_some() && breaker.attempt().is_some());
    }
}
