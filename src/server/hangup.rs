//! Notices at once that a client hung up while its request runs, whatever it sent behind that request.
//!
//! hyper looks for the end of a connection only while nothing unread lies before it, so one more request or a stray line
//! end behind the first hides it. The socket itself tells: the kernel reports that the other side writes no more apart
//! from what there is to read, and [`Ended`] waits for that report alone. It costs no system call, neither for a
//! request nor for a connection.
//!
//! **A client that shuts down only its writing side looks the same as one that is gone**, until something is written to
//! it. Whether that ends the request is the request's own affair: [`EndCancels`] is set while it does.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Whether this system reports the end apart from what there is to read. Elsewhere hyper's own look has to do.
pub(super) const IS_REPORTED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Whether the end of the connection cancels the request that runs on it now. A connection has one at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct EndCancels(Arc<(AtomicBool, Notify)>);

impl EndCancels {
    pub(super) fn set(&self, cancels: bool) {
        let (flag, changed) = &*self.0;
        flag.store(cancels, Ordering::Release);
        if cancels {
            changed.notify_one();
        }
    }

    async fn wait(&self) {
        let (flag, changed) = &*self.0;
        while !flag.load(Ordering::Acquire) {
            changed.notified().await;
        }
    }
}

/// A connection that can be watched while somebody else reads from it and writes to it.
pub(super) struct Watched {
    reader: Arc<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Watched {
    /// The connection, and a future that completes once the client has hung up under a request that this cancels, or
    /// has broken the connection, which no client that still waits does.
    pub(super) fn new(stream: TcpStream, cancels: EndCancels) -> (Self, impl Future<Output = ()> + Send) {
        let (reader, writer) = stream.into_split();
        let reader = Arc::new(reader);
        let (ended, broken) = (ended(Arc::clone(&reader)), broken(Arc::clone(&reader)));
        let cancelled = async move {
            tokio::select! {
                () = async { ended.await; cancels.wait().await } => {}
                () = broken => {}
            }
        };
        (Self { reader, writer }, cancelled)
    }
}

/// Completes once the other side writes no more.
#[cfg(any(target_os = "linux", target_os = "android"))]
async fn ended(reader: Arc<OwnedReadHalf>) {
    // Interest in urgent data, which is never asked of the socket, stands for the report of the end alone.
    let is_over = reader.ready(Interest::PRIORITY).await.is_ok_and(|ready| ready.is_read_closed());
    if !is_over {
        std::future::pending::<()>().await;
    }
}

/// Completes once the other side has reset the connection.
#[cfg(any(target_os = "linux", target_os = "android"))]
async fn broken(reader: Arc<OwnedReadHalf>) {
    if !reader.ready(Interest::ERROR).await.is_ok_and(|ready| ready.is_error()) {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
async fn broken(_reader: Arc<OwnedReadHalf>) {
    std::future::pending::<()>().await;
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
async fn ended(_reader: Arc<OwnedReadHalf>) {
    std::future::pending::<()>().await;
}

impl AsyncRead for Watched {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = self.reader.as_ref().as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            let (room, mut outcome) = (buf.remaining(), None);
            // A read that leaves room has emptied the socket. "Would block" then spares the system call that would only
            // say the same, as the stream's own reading does.
            let _readiness = stream.try_io(Interest::READABLE, || {
                let read = stream.try_read_buf(buf);
                let is_emptied = matches!(read, Ok(count) if count > 0 && count < room);
                let would_block = matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
                outcome = (!would_block).then_some(read);
                if is_emptied || would_block { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            if let Some(read) = outcome {
                return Poll::Ready(read.map(|_count| ()));
            }
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.writer.is_write_vectored()
    }
}
