//! [`Connections`]: who may be connected, and who has to go when there is no more room.
//!
//! **A connection with a request being answered is never given up.** When all places are taken, the one that has waited
//! longest goes: first of those that never sent a whole request head, then of the idle ones. So clients that connect and
//! dribble can't keep others out, however many they are.

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places of one listener.
pub(super) struct Connections {
    places: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

/// Connections without a request, each under its number in the order in which they began to wait.
#[derive(Default)]
struct Waiting {
    next: u64,
    silent: BTreeMap<u64, Arc<Notify>>,
    idle: BTreeMap<u64, Arc<Notify>>,
}

/// One open connection and its place.
pub(super) struct Connection {
    all: Arc<Connections>,
    go: Arc<Notify>,
    /// Even while it waits for a head, odd while a request is answered.
    turn: AtomicU64,
    /// Its number while it waits.
    number: Mutex<Option<u64>>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(places)), waiting: Mutex::default() })
    }

    /// A place for a connection that was accepted. Waits only while every other one has a request.
    pub(super) async fn enter(self: &Arc<Self>) -> Arc<Connection> {
        let places = Arc::clone(&self.places);
        let permit = match places.try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.give_one_up();
                let places = Arc::clone(&self.places);
                places.acquire_owned().await.expect("the semaphore is never closed")
            }
        };
        let connection = Connection {
            all: Arc::clone(self),
            go: Arc::default(),
            turn: AtomicU64::new(0),
            number: Mutex::default(),
            _permit: permit,
        };
        connection.wait(|waiting| &mut waiting.silent);
        Arc::new(connection)
    }

    fn give_one_up(&self) {
        let mut waiting = self.waiting();
        let oldest = waiting.silent.pop_first().or_else(|| waiting.idle.pop_first());
        if let Some((_, go)) = oldest {
            go.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Completes when somebody else needs the place more.
    pub(super) async fn given_up(&self) {
        self.go.notified().await;
    }

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        !self.turn().is_multiple_of(2)
    }

    /// Which turn it is: heads and answers take turns.
    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// From a request's whole head to the end of its answer.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.wait_no_more();
        self.turn.fetch_add(1, Ordering::AcqRel);
        Answering(Arc::clone(self))
    }

    fn wait(&self, queue: impl Fn(&mut Waiting) -> &mut BTreeMap<u64, Arc<Notify>>) {
        let mut waiting = self.all.waiting();
        let number = waiting.next;
        waiting.next += 1;
        queue(&mut waiting).insert(number, Arc::clone(&self.go));
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }

    fn wait_no_more(&self) {
        let mut waiting = self.all.waiting();
        if let Some(number) = self.number.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waiting.silent.remove(&number);
            waiting.idle.remove(&number);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wait_no_more();
    }
}

/// A request being answered. Its end makes the connection an idle one.
pub(super) struct Answering(Arc<Connection>);

impl Answering {
    /// The body of the answer, which ends it.
    pub(super) fn body(self, body: Body) -> Body {
        Body::new(Answer { body, _answering: self })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.wait(|waiting| &mut waiting.idle);
        self.0.turn.fetch_add(1, Ordering::AcqRel);
    }
}

/// An answer's body that knows its connection.
struct Answer {
    body: Body,
    _answering: Answering,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn enter(all: &Arc<Connections>) -> Option<Arc<Connection>> {
        all.enter().now_or_never()
    }

    #[test]
    fn t_x9_the_longest_silent_connection_goes_first_then_the_longest_idle_one() {
        let all = Connections::new(3);
        let [idle, silent, later] = [(); 3].map(|()| enter(&all).unwrap());
        drop(idle.answer());
        assert!(silent.given_up().now_or_never().is_none());
        assert!(enter(&all).is_none());
        assert!(silent.given_up().now_or_never().is_some());
        drop(silent);
        let fourth = enter(&all).unwrap();
        drop(later.answer());
        drop(fourth.answer());
        assert!(enter(&all).is_none());
        assert!(idle.given_up().now_or_never().is_some());
        assert!(later.given_up().now_or_never().is_none());
    }

    #[test]
    fn t_x9_a_connection_with_a_request_is_never_given_up() {
        let all = Connections::new(1);
        let busy = enter(&all).unwrap();
        let answering = busy.answer();
        assert!(busy.is_answering());
        assert!(enter(&all).is_none());
        assert!(busy.given_up().now_or_never().is_none());
        drop(answering.body(Body::empty()));
        assert!(!busy.is_answering());
        assert!(enter(&all).is_none());
        assert!(busy.given_up().now_or_never().is_some());
        drop(busy);
        assert!(enter(&all).is_some());
        assert!(all.waiting().silent.is_empty() && all.waiting().idle.is_empty());
    }
}
