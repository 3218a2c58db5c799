//! [`Running`]: a request's work, and what the end of its connection means for it.
//!
//! **In the modern era the work ends with its connection; in the legacy one it goes on** (rules M10 and L13). So work that has
//! to wait is a task, which is aborted or left alone. What need not wait is done by the connection itself: to hand a search to
//! a task and its answer back would cost a good part of what the search does.

use super::Server;
use super::endpoint::record;
use super::hangup::EndCancels;
use super::respond::Answered;
use crate::mcp::{Era, Payload, RpcError, code, error_envelope};
use crate::telemetry::Outcome;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::StatusCode;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A request's work, which ends with its connection in the modern era only.
pub(super) struct Running {
    work: Work,
    connection: Arc<Connection>,
    server: Arc<Server>,
}

/// Where a request is worked on.
enum Work {
    /// By whoever waits for the answer, as long as the work itself has to wait for nothing.
    Here(BoxFuture<'static, Answered>),
    /// By a task.
    Task(JoinHandle<Answered>),
    /// It is done, and the answer was not taken yet.
    Answered(Box<Answered>),
    Done,
}

impl Running {
    pub(super) fn new(
        work: BoxFuture<'static, Answered>,
        connection: Arc<Connection>,
        server: Arc<Server>,
    ) -> Self {
        Self { work: Work::Here(work), connection, server }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The answer.
    pub(super) async fn finish(&mut self) -> Answered {
        if let Work::Here(work) = &mut self.work {
            // Nothing of it is looked at again after a panic.
            let at_once = AssertUnwindSafe(work).catch_unwind().now_or_never();
            self.work = match (at_once, std::mem::replace(&mut self.work, Work::Done)) {
                (None, Work::Here(work)) => Work::Task(tokio::spawn(work)),
                (Some(Ok(answered)), _) => Work::Answered(Box::new(answered)),
                _ => Work::Done,
            };
        }
        let finished = match &mut self.work {
            Work::Task(task) => task.await.ok(),
            _ => match std::mem::replace(&mut self.work, Work::Done) {
                Work::Answered(answered) => Some(*answered),
                _ => None,
            },
        };
        self.work = Work::Done;
        // The panic was told by the hook, without what it was about.
        finished.unwrap_or_else(|| {
            record(&self.server, "other", "none", Outcome::InternalError, Instant::now());
            let error = RpcError::new(
                code::INTERNAL_ERROR,
                "something broke in the proxy; the request may be repeated",
            );
            let body = Payload::from(error_envelope(None, &error));
            Answered::Message { status: StatusCode::INTERNAL_SERVER_ERROR, body }
        })
    }

    /// The same with the answer put back, for whoever asks next.
    pub(super) fn with(mut self, answered: Answered) -> Self {
        self.work = Work::Answered(Box::new(answered));
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let is_cancelled = self.connection.close();
        match std::mem::replace(&mut self.work, Work::Done) {
            // At the very end of the process there is nothing left to spawn on.
            Work::Here(work) if !is_cancelled => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(work);
                }
            }
            Work::Task(task) if is_cancelled => task.abort(),
            Work::Here(_) | Work::Task(_) | Work::Answered(_) | Work::Done => {}
        }
    }
}

/// What is known of a request's connection: whether it is there, and whether its end ends the request.
pub(super) struct Connection {
    state: AtomicU8,
    /// Tells the connection's watch; `None` without a socket.
    end_cancels: Option<EndCancels>,
}

impl Connection {
    const UNDECIDED: u8 = 0;
    const CANCELS: u8 = 1;
    const DETACHED: u8 = 2;
    const GONE: u8 = 3;

    pub(super) fn on(end_cancels: Option<EndCancels>) -> Self {
        Self { state: AtomicU8::new(Self::UNDECIDED), end_cancels }
    }

    /// Notes the request's era. Returns whether the request should go on.
    pub(super) fn decide(&self, era: Era) -> bool {
        let decided = if era == Era::Modern { Self::CANCELS } else { Self::DETACHED };
        let was = self.state.compare_exchange(Self::UNDECIDED, decided, Ordering::AcqRel, Ordering::Acquire);
        if era == Era::Legacy {
            return true;
        }
        let is_there = was != Err(Self::GONE);
        if is_there && let Some(end_cancels) = &self.end_cancels {
            end_cancels.set(true);
        }
        is_there
    }

    /// Notes the disconnect, or that the answer is made. Returns whether the request's work should end.
    fn close(&self) -> bool {
        let was = self.state.swap(Self::GONE, Ordering::AcqRel);
        if was == Self::CANCELS
            && let Some(end_cancels) = &self.end_cancels
        {
            // Whoever reads on gets what is made already, and the connection's next request decides anew.
            end_cancels.set(false);
        }
        was == Self::CANCELS
    }
}
