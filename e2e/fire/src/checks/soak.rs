//! Hours in minutes: steady traffic with one fault in a hundred, and nothing grows.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Fault, Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::relay::{Break, Door, Relay};
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WORKERS: u64 = 16;
const TOKENS: u64 = 200;
/// Between two requests of one worker.
const PAUSE: Duration = Duration::from_millis(10);

struct Run {
    mcp: SocketAddr,
    gateway: Gateway,
    secrets: Secrets,
    seed: u64,
    until: Instant,
    asked: AtomicU64,
    ok: AtomicU64,
}

/// What is held at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: f64,
    kib: f64,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let lasts = Duration::from_secs(options.count(40, 600));
    let warm_up = lasts / 5;
    let secrets = Secrets::new(options.seed);
    let seed = options.seed;
    let gateway = Gateway::start(settings(seed, &secrets)).await?;
    let relay = Relay::start(gateway.address, move |exchange| {
        let mut rng = Rng::new(seed, exchange.number);
        if rng.permille(5) { Break::ResetAnswer(rng.index(600)) } else { Break::Pass }
    });
    let relay = relay.await?;
    let flags = [
        "--catalog-ttl",
        "5s",
        "--catalog-max-stale",
        "2s",
        "--upstream-timeout",
        "2s",
        "--list-timeout",
        "2s",
        "--log-level",
        "info",
    ];
    let proxy = Proxy::start(&options.proxy, relay.address, &flags).await?;
    let started = Instant::now();
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        gateway,
        secrets: secrets.clone(),
        seed,
        until: started + lasts,
        asked: AtomicU64::new(0),
        ok: AtomicU64::new(0),
    });
    let workers: Vec<_> = (0..WORKERS).map(|lane| tokio::spawn(work(Arc::clone(&run), lane))).collect();
    let mut samples = Vec::new();
    let mut series = Vec::new();
    while Instant::now() < run.until {
        tokio::time::sleep(Duration::from_millis(250)).await;
        if started.elapsed() > warm_up {
            #[expect(clippy::cast_precision_loss, reason = "KiB of memory fit")]
            samples.push(Sample { at: started.elapsed().as_secs_f64(), kib: proxy.resident_kib() as f64 });
            series.push(proxy.metrics().await?.len());
        }
    }
    for worker in workers {
        worker.await.map_err(io::Error::other)?;
    }
    let (asked, ok) = (run.asked.load(Ordering::Relaxed), run.ok.load(Ordering::Relaxed));
    report.figure("requests", format!("{asked}, {ok} answered"));
    report.must(
        "most are answered",
        ok * 100 > asked * 95,
        format!("{:.1}%", ok as f64 * 100.0 / asked as f64),
    );
    judge_slope(&samples, if options.is_long { 0.03 } else { 0.15 }, report);
    let (first, last) = (series.first().copied().unwrap_or(0), series.last().copied().unwrap_or(0));
    report.must(
        "series of metrics",
        last <= first + 20,
        format!("{first} after the warm-up, {last} at the end"),
    );
    relay.set_door(Door::Open).await;
    idle_again(&proxy, report).await;
    nothing_private(&proxy, &secrets, report).await
}

/// A legacy gateway with sessions, one of whose answers in two hundred is wrong.
fn settings(seed: u64, secrets: &Secrets) -> Settings {
    Settings {
        canary: secrets.upstream.clone(),
        plan: Box::new(move |asked| {
            let id = u128::from_str_radix(asked.id.trim_matches('"'), 16).unwrap_or_default();
            let mut rng = Rng::new(seed, u64::try_from(id >> 64).unwrap_or_default());
            rng.permille(5).then(|| {
                *rng.pick(&[Fault::Status(500), Fault::Closes, Fault::NeverAnswers, Fault::Truncated])
            })
        }),
        ..Settings::new(Kind::LegacySessions, seed)
    }
}

/// The growth over time by least squares, held against its own error: growth that noise could be is none.
fn judge_slope(samples: &[Sample], most: f64, report: &Report) {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let n = samples.len() as f64;
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / n;
    let (at, kib) = (mean(|sample| sample.at), mean(|sample| sample.kib));
    let spread: f64 = samples.iter().map(|sample| (sample.at - at).powi(2)).sum();
    let slope = samples.iter().map(|sample| (sample.at - at) * (sample.kib - kib)).sum::<f64>() / spread;
    // Samples of one process depend on each other, so blocks of them are compared: the last fifth with the fifth after
    // the warm-up.
    let fifth = samples.len() / 5;
    let block = |samples: &[Sample]| samples.iter().map(|sample| sample.kib).fold(0.0, f64::max);
    let (early, late) = (block(&samples[..fifth.max(1)]), block(&samples[samples.len() - fifth.max(1)..]));
    report.figure("memory", format!("{:.1} MiB on average, {slope:.2} KiB a second", kib / 1024.0));
    let grown = late - early;
    report.must(
        "memory does not grow",
        grown <= early * most,
        format!("{:.1} MiB early, {:.1} MiB late", early / 1024.0, late / 1024.0),
    );
}

/// Everything that traffic took is given back.
async fn idle_again(proxy: &Proxy, report: &Report) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (tasks, in_flight) =
            (proxy.metric("toolsearch_tasks").await, proxy.metric("toolsearch_requests_in_flight").await);
        let descriptors = proxy.descriptors();
        let is_idle = in_flight == 0.0 && tasks > 0.0 && tasks <= 4.0 && descriptors <= 20;
        if is_idle || Instant::now() > deadline {
            report.must(
                "idle again",
                is_idle,
                format!("{in_flight} requests, {tasks} tasks, {descriptors} descriptors"),
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn work(run: Arc<Run>, lane: u64) {
    let mut rng = Rng::new(run.seed, 1 << 33 | lane);
    let mut client = Client::new(run.mcp, "", Era::Modern);
    while Instant::now() < run.until {
        client.token = format!("{}-{}", run.secrets.token, rng.below(TOKENS));
        client.era = if rng.permille(500) { Era::Modern } else { Era::Legacy };
        let own = run.gateway.mark(&client.token);
        let nonce = format!("{NONCE}{}", rng.hex());
        let read = format!("own_{own}__read");
        let ask = match rng.below(6) {
            0 | 1 => Ask::search(&format!("notes {}", run.secrets.query)),
            2 => Ask::describe(&read),
            3 => Ask::read(&read, &nonce),
            4 => Ask::write(&format!("own_{own}__write"), &nonce, &run.secrets.argument),
            _ => Ask::reads(&[&read, "notes_2__read"], &nonce),
        };
        if rng.permille(10) {
            client.abort(&ask, Duration::from_micros(rng.below(2000))).await;
        } else {
            run.asked.fetch_add(1, Ordering::Relaxed);
            if client.ask(&ask).await.is_ok_and(|answer| answer.is_ok()) {
                run.ok.fetch_add(1, Ordering::Relaxed);
            }
        }
        run.gateway.ledger().forget(&nonce);
        tokio::time::sleep(PAUSE).await;
    }
}
