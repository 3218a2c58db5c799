//! The accept loop: connections with deadlines and a bound, and a drain at the end.
//!
//! axum's own loop has no timer, so a client that sends half a header would hold its connection for ever.

use super::addresses::{Addresses, Counted};
use super::connections::{Connection, Connections};
use super::hangup::{self, EndCancels, Watched};
use super::heads::Heads;
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
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Most open connections; a new one then takes the place of one that has no request.
    pub connections_max: usize,
    /// Most of them from one address; one more is closed at once.
    pub connections_per_address_max: usize,
    /// How long the headers of a request may take from their first byte.
    pub header_timeout: Duration,
    /// How long a connection may have no request.
    pub idle_timeout: Duration,
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
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
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
    let connections = Connections::new(options.connections_max);
    let addresses = Arc::new(Addresses::default());
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener) => accepted,
        };
        let Some(counted) = addresses.count(address, options.connections_per_address_max) else {
            tracing::warn!("an address has as many connections as --max-connections-per-address allows");
            continue;
        };
        let place = tokio::select! {
            biased;
            () = &mut shutdown => break,
            place = connections.enter() => place,
        };
        connect(stream, (place, counted), router.clone(), options, &graceful);
    }
    drop(listener);
    tokio::time::timeout(options.drain_timeout, graceful.shutdown()).await.is_ok()
}

/// The next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer.ip()),
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
    (place, counted): (Arc<Connection>, Counted),
    router: Router,
    options: ServeOptions,
    graceful: &GracefulShutdown,
) {
    let _best_effort = stream.set_nodelay(true);
    let end_cancels = EndCancels::default();
    let (stream, cancelled) = Watched::new(stream, end_cancels.clone());
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(options.write_timeout));
    let stream = Heads::new(Box::pin(stream), options.header_timeout, Arc::clone(&place));
    let answered = Arc::clone(&place);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let router = router.clone();
        request.extensions_mut().insert(end_cancels.clone());
        let answering = answered.answer();
        async move {
            let answer = router.oneshot(request.map(Body::new)).await;
            let response = answer.unwrap_or_else(|never| match never {});
            Ok::<_, Infallible>(response.map(|body| answering.body(body)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.idle_timeout)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        // A client that only writes no more may still wait for its answer.
        .half_close(hangup::IS_REPORTED)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            // A connection that breaks is the client's business.
            _outcome = connection => {}
            // With the connection goes its request, unanswered.
            () = cancelled => {}
            // Somebody with a request needs the place.
            () = place.given_up() => {}
        }
        drop(counted);
    });
}
