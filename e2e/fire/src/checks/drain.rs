//! Restarts under load: two instances behind a TCP balancer (haproxy), one of them stopped again and again, and no request
//! fails.

use super::{Options, Secrets};
use crate::client::{Ask, Client, Era};
use crate::daemon::Daemon;
use crate::gateway::{Fault, Gateway, Kind, Settings};
use crate::http::Wire;
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const CLIENTS: u64 = 16;

/// haproxy in front of both.
async fn balancer(instances: [[SocketAddr; 2]; 2]) -> io::Result<Daemon> {
    let servers: String = instances
        .iter()
        .enumerate()
        .map(|(i, [mcp, admin])| {
            format!("  server s{i} {mcp} check port {} inter 200ms fall 1 rise 1\n", admin.port())
        })
        .collect();
    let balancer = Daemon::start("haproxy", |_, address| {
        format!(
            "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n  retries 3\n  option redispatch 1\n\
             frontend f\n  bind {address}\n  default_backend b\nbackend b\n  balance roundrobin\n  option httpchk GET /readyz\n{servers}"
        )
    });
    let balancer = balancer.await?;
    // Its first checks.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(balancer)
}

/// A port that is free now and hardly taken soon, for instances that come back to it.
fn free() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

struct Run {
    balancer: SocketAddr,
    gateway: Gateway,
    secrets: Secrets,
    seed: u64,
    is_over: AtomicBool,
    asked: AtomicU64,
    report: Report,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let restarts = options.count(4, 100);
    let secrets = Secrets::new(options.seed);
    let settings = Settings {
        call_takes: Duration::from_millis(20),
        // One stream that never ends.
        plan: Box::new(|asked| (asked.tool() == "notes_4__read").then_some(Fault::EndlessProgress)),
        ..Settings::new(Kind::ModernJson, options.seed)
    };
    let gateway = Gateway::start(settings).await?;
    let ports = [[free()?, free()?], [free()?, free()?]];
    let upstream = gateway.address;
    let start = async |which: usize| {
        let [mcp, admin] = ports[which].map(|address| address.to_string());
        let flags = ["--drain-delay", "2s", "--drain-timeout", "10s", "--log-level", "info"];
        Proxy::start_on(&options.proxy, upstream, [&mcp, &admin], &flags).await
    };
    let mut instances = [start(0).await?, start(1).await?];
    let balancer = balancer(ports).await?;
    let run = Arc::new(Run {
        balancer: balancer.address,
        gateway,
        secrets,
        seed: options.seed,
        is_over: AtomicBool::new(false),
        asked: AtomicU64::new(0),
        report: Report::default(),
    });
    let clients: Vec<_> = (0..CLIENTS).map(|lane| tokio::spawn(Arc::clone(&run).ask_on(lane))).collect();
    let mut longest = Duration::ZERO;
    for restart in 0..restarts {
        let which = usize::from(restart % 2 == 1);
        tokio::time::sleep(Duration::from_millis(600)).await;
        let stopped = Instant::now();
        instances[which].signal("TERM")?;
        match instances[which].ends_within(Duration::from_secs(30)).await? {
            Some(status) if status.success() => longest = longest.max(stopped.elapsed()),
            other => report
                .fail("an instance did not end well", format!("{other:?} after {:?}", stopped.elapsed())),
        }
        instances[which] = start(which).await?;
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    run.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.map_err(io::Error::other)?;
    }
    report.figure("requests over the restarts", run.asked.load(Ordering::Relaxed));
    report.figure("longest stop", format!("{longest:?}"));
    let failed = run.report.failures();
    report.must("requests that failed", failed == 0, format!("{failed} in {restarts} restarts"));
    let [first, second] = instances;
    endless_stream(first, &run, report).await?;
    second_signal(second, &run, report).await
}

impl Run {
    /// Reads over one connection, which is opened anew when an answer closes it.
    async fn ask_on(self: Arc<Self>, lane: u64) {
        let mut rng = Rng::new(self.seed, lane);
        let token = format!("{}-{lane}", self.secrets.token);
        let own = self.gateway.mark(&token);
        let mut client = Client::new(self.balancer, &token, Era::Modern);
        while !self.is_over.load(Ordering::Relaxed) {
            let nonce = format!("{NONCE}{}", rng.hex());
            let ask = Ask::read(&format!("own_{own}__read"), &nonce);
            self.asked.fetch_add(1, Ordering::Relaxed);
            match client.ask(&ask).await {
                Ok(answer) if answer.is_ok() && answer.body.contains(&nonce) => {}
                other => self.report.fail("a request failed", format!("{other:.300?}")),
            }
            tokio::time::sleep(Duration::from_millis(rng.below(20))).await;
        }
    }
}

/// A caller who listens to an endless stream keeps nobody from stopping.
async fn endless_stream(mut proxy: Proxy, run: &Run, report: &Report) -> io::Result<()> {
    let mut client = Client::new(proxy.mcp, &run.secrets.token, Era::Modern);
    let request = String::from_utf8_lossy(&client.request(&Ask::read("notes_4__read", "nn-0"))).into_owned();
    let listening = request.replacen(r#""_meta":{"#, r#""_meta":{"progressToken":1,"#, 1);
    let body = listening.split("\r\n\r\n").nth(1).unwrap_or_default();
    let headers =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: call_read_tool\r\n";
    let mut wire = Wire::new(TcpStream::connect(proxy.mcp).await?);
    wire.write(&crate::client::post(proxy.mcp, &run.secrets.token, headers, body)).await?;
    let mut first = [0; 1024];
    let count = tokio::io::AsyncReadExt::read(&mut wire.stream, &mut first).await?;
    report.figure(
        "a stream begins",
        String::from_utf8_lossy(&first[..count]).lines().next().unwrap_or_default(),
    );
    let stopped = Instant::now();
    proxy.signal("TERM")?;
    let status = proxy.ends_within(Duration::from_secs(30)).await?;
    report.must(
        "a stop with an endless stream, within 30 s",
        status.is_some_and(|status| status.success()),
        format!("{status:?} after {:?}", stopped.elapsed()),
    );
    Ok(())
}

async fn second_signal(mut proxy: Proxy, run: &Run, report: &Report) -> io::Result<()> {
    let mut client = Client::new(proxy.mcp, &run.secrets.token, Era::Modern);
    let _listed = client.ask(&Ask::search("notes")).await;
    proxy.signal("TERM")?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stopped = Instant::now();
    proxy.signal("TERM")?;
    let status = proxy.ends_within(Duration::from_secs(5)).await?;
    let took = stopped.elapsed();
    report.must(
        "a second signal ends it at once",
        status.is_some() && took < Duration::from_millis(500),
        format!("{status:?} after {took:?}"),
    );
    Ok(())
}
