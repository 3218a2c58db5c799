//! [`Breaker`]: stops knocking at an upstream that can't be connected to.
//!
//! After ten connections in a row that failed, requests fail at once for a second; then one of them tries, and when it
//! fails too the pause doubles, up to half a minute. Whatever the upstream answers, an error included, proves that it
//! is there. Nothing here repeats a request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const FAILURES_MAX: u32 = 10;
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Whether the upstream may be tried now.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Connections in a row that failed.
    failures: u32,
    /// While it is open: until when, and for how long it was closed off.
    pause: Option<(Instant, Duration)>,
    /// Whether the one that may try after a pause is under way.
    is_tried: bool,
}

/// A request that may connect. Dropped without an outcome, it says nothing.
pub(super) struct Attempt<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Breaker {
    /// `None` while nobody may try.
    pub(super) fn attempt(&self) -> Option<Attempt<'_>> {
        let mut state = self.state();
        let is_trial = match state.pause {
            None => false,
            Some((until, _)) if Instant::now() < until || state.is_tried => return None,
            Some(_) => true,
        };
        state.is_tried = is_trial;
        Some(Attempt { breaker: self, is_trial })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Tells whether there was a connection.
    pub(super) fn end(self, connected: bool) {
        let mut state = self.breaker.state();
        if connected {
            if state.pause.is_some() {
                tracing::info!("the upstream can be reached again");
            }
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        let pause = match state.pause {
            Some((_, pause)) if self.is_trial => (pause * 2).min(PAUSE_MAX),
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
        if self.is_trial {
            self.breaker.state().is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.attempt().unwrap().end(false);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn t_x15_ten_failures_in_a_row_open_it_and_nine_do_not() {
        let breaker = Breaker::default();
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
        let breaker = Breaker::default();
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
        let breaker = Breaker::default();
        fail(&breaker, 10);
        advance(PAUSE_FIRST).await;
        drop(breaker.attempt().unwrap());
        assert!(breaker.attempt().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_began_before_the_pause_do_not_prolong_it() {
        let breaker = Breaker::default();
        let early: Vec<_> = (0..30).map(|_| breaker.attempt().unwrap()).collect();
        for attempt in early {
            attempt.end(false);
        }
        advance(PAUSE_FIRST).await;
        assert!(breaker.attempt().is_some());
    }
}
