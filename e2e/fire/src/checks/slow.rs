//! Clients that dribble their headers and clients that never read: honest callers hardly notice, and the others go.

use super::load::Source;
use super::{Options, Secrets};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::http::Wire;
use crate::mark::Marks;
use crate::process::Proxy;
use crate::report::{Report, Times};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::watch;

const STALLED: usize = 200;
const HONEST_PER_SECOND: f64 = 100.0;

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let dribblers = usize::try_from(options.count(2_000, 5_000)).unwrap_or(5_000);
    let secrets = Secrets::new(options.seed);
    let settings = Settings { tools: 200, page: 1000, ..Settings::new(Kind::ModernJson, options.seed) };
    let gateway = Gateway::start(settings).await?;
    let proxy = Proxy::start(&options.proxy, gateway.address, &["--log-level", "info"]).await?;
    let source = Source {
        mcp: proxy.mcp,
        token: secrets.token.clone(),
        tokens: 10,
        ask: |_| Ask::search("read notes"),
        marks: Marks::new(options.seed),
    };
    let lasts = Duration::from_secs(if options.is_long { 20 } else { 8 });
    source.closed(10, Duration::from_secs(1)).await;
    let mut before = source.open(HONEST_PER_SECOND, lasts / 2).await;
    report.figure(
        "honest alone",
        format!("p50 {:?}, p99 {:?}", before.accepted.quantile(500), before.accepted.quantile(990)),
    );

    let (stop, stopped) = watch::channel(false);
    let open = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..dribblers {
        tasks.push(tokio::spawn(dribble(proxy.mcp, Arc::clone(&open), stopped.clone())));
    }
    for number in 0..STALLED {
        let token = format!("{}-{}", secrets.token, number % 10);
        tasks.push(tokio::spawn(stall(proxy.mcp, token, stopped.clone())));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.figure(
        "slow connections",
        format!("{} dribble, {STALLED} do not read", open.load(Ordering::Relaxed)),
    );
    let mut during = source.open(HONEST_PER_SECOND, lasts).await;
    let limit = before.accepted.quantile(990) * 2;
    let seen = during.accepted.quantile(990);
    report.must(
        "honest p99 meanwhile, at most twice as long",
        seen <= limit.max(Duration::from_millis(5)),
        format!("p50 {:?}, p99 {seen:?}", during.accepted.quantile(500)),
    );
    report.must(
        "honest requests that failed",
        during.failed + during.refused.count() == 0,
        format!(
            "{} refused, {} failed of {}",
            during.refused.count(),
            during.failed,
            during.accepted.count()
        ),
    );
    let mut lived = Times::default();
    let _all = stop.send(true);
    for task in tasks {
        if let Ok(Some(life)) = task.await {
            lived.add(life);
        }
    }
    report.figure("slow connections that were ended by then", lived.count());
    one_dribbler(proxy.mcp, report).await;
    Ok(())
}

/// Sends a byte of a header a second, until it is told to stop. How long it lived, when it was ended by the proxy.
async fn dribble(
    mcp: SocketAddr,
    open: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<bool>,
) -> Option<Duration> {
    let mut wire = Wire::new(TcpStream::connect(mcp).await.ok()?);
    open.fetch_add(1, Ordering::Relaxed);
    let started = Instant::now();
    wire.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").await.ok()?;
    loop {
        let pause = tokio::time::sleep(Duration::from_secs(1));
        tokio::select! {
            _ = wire.read() => return Some(started.elapsed()),
            () = pause => if wire.write(b"a").await.is_err() { return Some(started.elapsed()) },
            _ = stopped.changed() => return None,
        }
    }
}

/// Asks for large answers and never reads one.
async fn stall(mcp: SocketAddr, token: String, mut stopped: watch::Receiver<bool>) -> Option<Duration> {
    let started = Instant::now();
    let wire = Wire::new(TcpStream::connect(mcp).await.ok()?);
    let mut client = Client::new(mcp, &token, Era::Legacy);
    let names: Vec<String> = (0..10).map(|number| format!("\"notes_{}__read\"", number * 2 + 2)).collect();
    let ask = Ask { tool: "describe_tool", arguments: format!(r#"{{"names":[{}]}}"#, names.join(",")) };
    let request = client.request(&ask);
    loop {
        tokio::select! {
            sent = wire.write(&request) => if sent.is_err() { return Some(started.elapsed()) },
            _ = stopped.changed() => return None,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How long one dribbler alone is borne.
async fn one_dribbler(mcp: SocketAddr, report: &Report) {
    let (_stop, stopped) = watch::channel(false);
    let alone = dribble(mcp, Arc::default(), stopped);
    let lived = tokio::time::timeout(Duration::from_secs(70), alone).await;
    let lived = lived.ok().flatten();
    report.must(
        "a dribbler is gone in 11 s",
        lived.is_some_and(|life| life <= Duration::from_secs(11)),
        format!("{lived:?}"),
    );
}
