//! [`Heads`]: a bounded time for the head of a request, from its first byte on.
//!
//! The HTTP library has one clock for an idle connection and for a head that has begun; a client may be idle for a minute,
//! but has no reason to take as long for a head.

use super::connections::Connection;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection's stream.
pub(super) struct Heads<S> {
    stream: Pin<Box<S>>,
    timeout: Duration,
    connection: Arc<Connection>,
    /// When the head that is being read began.
    began: Option<Instant>,
    /// The connection's turn that `began` belongs to.
    turn: u64,
    /// Made only once a head is not there at once, which it nearly always is.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: Pin<Box<S>>, timeout: Duration, connection: Arc<Connection>) -> Self {
        // A connection that was just made is about to send something.
        Self { stream, timeout, connection, began: Some(Instant::now()), turn: 0, end: None }
    }

    /// Whether the head's time is over.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let Some(began) = self.began else { return false };
        let until = began + self.timeout;
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if end.deadline() != until {
            end.as_mut().reset(until);
        }
        end.as_mut().poll(context).is_ready()
    }
}

impl<S: AsyncRead> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Nothing may be read while a request is answered, so that this is learnt of only now.
        let turn = self.connection.turn();
        if turn != self.turn {
            (self.turn, self.began) = (turn, None);
        }
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.began.get_or_insert_with(Instant::now);
        }
        if read.is_pending() && !self.connection.is_answering() && self.is_late(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite> AsyncWrite for Heads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
