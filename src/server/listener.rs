//! The accept loop: connections with deadlines and a bound, and a drain at the end.
//!
//! axum's own loop has no timer, so a client that sends half a header would hold its connection for ever.

use super::addresses::{Addresses, Counted};
use super::hangup::{self, EndCancels, Watched};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Most open connections; more wait to be accepted.
    pub connections_max: usize,
    /// Most of them from one address; one more is closed at once.
    pub connections_per_address_max: usize,
    /// How long the headers of a request may take.
    pub header_timeout: Duration,
    /// How long a client may take no bytes of its answer.
    pub write_timeout: Duration,
    /// How long requests in flight may go on after shutdown began.
    pub drain_timeout: Duration,
}

impl ServeOptions {
    /// For a listener that only this machine uses.
    pub fn small() -> Self {
        Self {
            connections_max: 64,
            connections_per_address_max: usize::MAX,
            header_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(1),
        }
    }
}

/// Serves until `shutdown` completes, then accepts no more and lets requests in flight finish.
///
/// Returns whether all of them did within the drain timeout.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> bool {
    let permits = Arc::new(Semaphore::new(options.connections_max));
    let addresses = Arc::new(Addresses::default());
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some(counted) = addresses.count(address, options.connections_per_address_max) else {
            tracing::warn!("an address has as many connections as --max-connections-per-address allows");
            continue;
        };
        connect(stream, (permit, counted), router.clone(), options, &graceful);
    }
    drop(listener);
    tokio::time::timeout(options.drain_timeout, graceful.shutdown()).await.is_ok()
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, IpAddr, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer.ip(), permit),
            Err(error) => {
                // Out of file descriptors, or a peer that is gone: neither gets better by trying at once.
                tracing::warn!(kind = %error.kind(), "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn connect(
    stream: TcpStream,
    place: (OwnedSemaphorePermit, Counted),
    router: Router,
    options: ServeOptions,
    graceful: &GracefulShutdown,
) {
    let _best_effort = stream.set_nodelay(true);
    let end_cancels = EndCancels::default();
    let (stream, cancelled) = Watched::new(stream, end_cancels.clone());
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(options.write_timeout));
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let router = router.clone();
        request.extensions_mut().insert(end_cancels.clone());
        async move {
            Ok::<_, Infallible>(
                router.oneshot(request.map(Body::new)).await.unwrap_or_else(|never| match never {}),
            )
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        // A client that only writes no more may still wait for its answer.
        .half_close(hangup::IS_REPORTED)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            // A connection that breaks is the client's business.
            _outcome = connection => {}
            // With the connection goes its request, unanswered.
            () = cancelled => {}
        }
        drop(place);
    });
}
