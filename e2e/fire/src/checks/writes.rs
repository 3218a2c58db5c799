//! A write is sent at most once, and what its caller is told is true: done, not done, or not known.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::relay::{Break, Door, Exchange, Relay};
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WORKERS: u64 = 32;
const TOKENS: u64 = 20;
/// Longer than any request or answer of this check, so that some cuts come behind the last byte.
const CUT_MAX: usize = 1200;
/// A caller who is told that nothing was executed comes back after so long: the proxy leaves alone for a second or more
/// what it could not connect to, and refusing takes it no time, so that nothing would be left for an upstream that works.
const COMES_BACK: Duration = Duration::from_millis(100);
/// How long the upstream stays away when nobody notices.
const AWAY_MAX: Duration = Duration::from_secs(3);

/// What a caller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    NotDone,
    Unknown,
    /// The caller's own connection broke, or it was turned away before anything.
    Nothing,
}

struct Run {
    mcp: SocketAddr,
    seed: u64,
    count: u64,
    left: AtomicU64,
    /// Callers who were told that nothing was executed.
    not_done: AtomicU64,
    /// The upstream was away in each way.
    has_swung: AtomicBool,
    secrets: Secrets,
    marks: crate::mark::Marks,
}

impl Run {
    /// Takes one of the writes that are left. There are more of them than wanted until the upstream was away.
    fn take(&self) -> bool {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok() || !self.has_swung.load(Ordering::Relaxed)
    }

    fn has_made(&self, part: u64) -> bool {
        self.count - self.left.load(Ordering::Relaxed) >= part
    }
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let count = options.count(10_000, 100_000);
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.name().contains(&options.only)).collect();
    for kind in &kinds {
        one_kind(*kind, count / kinds.len() as u64, options, report).await?;
    }
    Ok(())
}

async fn one_kind(kind: Kind, count: u64, options: &Options, report: &Report) -> io::Result<()> {
    println!("{}: {count} writes", kind.name());
    let secrets = Secrets::new(options.seed);
    let settings = Settings { canary: secrets.upstream.clone(), ..Settings::new(kind, options.seed) };
    let gateway = Gateway::start(settings).await?;
    let seed = options.seed;
    let relay = Relay::start(gateway.address, move |exchange| cut(seed, exchange)).await?;
    let proxy = Proxy::start(&options.proxy, relay.address, &["--upstream-timeout", "5s"]).await?;
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        seed: options.seed,
        count,
        left: AtomicU64::new(count),
        not_done: AtomicU64::new(0),
        has_swung: AtomicBool::new(false),
        secrets: secrets.clone(),
        marks: gateway.shared.marks.clone(),
    });
    let is_over = AtomicBool::new(false);
    let workers = async {
        let workers: Vec<_> = (0..WORKERS).map(|lane| tokio::spawn(work(Arc::clone(&run), lane))).collect();
        let mut told = Vec::new();
        for worker in workers {
            told.extend(worker.await.map_err(io::Error::other)?);
        }
        is_over.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>(told)
    };
    let (told, ()) = tokio::join!(workers, swing_door(&relay, &run, &is_over));
    // What is still on its way has arrived by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    judge(&gateway, &told?, report);
    let (exchanges, broken) = relay.counts();
    report.figure("upstream exchanges, cut", format!("{exchanges}, {broken}"));
    nothing_private(&proxy, &secrets, report).await
}

/// Two of three calls are cut: half of them in the request, half in the answer.
fn cut(seed: u64, exchange: &Exchange<'_>) -> Break {
    let mut rng = Rng::new(seed, exchange.number);
    if !exchange.request.text().contains(r#""method":"tools/call""#) {
        return Break::Pass;
    }
    let at = rng.index(CUT_MAX);
    match rng.below(6) {
        0 | 1 => Break::CutRequest(at),
        2 => Break::ResetAnswer(at),
        3 => Break::TruncateAnswer(at),
        _ => Break::Pass,
    }
}

/// The upstream is gone for a moment, at every fifth of the writes, in two ways by turns. It comes back once a caller
/// noticed.
async fn swing_door(relay: &Relay, run: &Run, is_over: &AtomicBool) {
    for (i, door) in (1_u64..).zip([Door::Closed, Door::Slams].into_iter().cycle()) {
        while !run.has_made(run.count * i / 5) {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let (closed, noticed) = (Instant::now(), run.not_done.load(Ordering::Relaxed));
        relay.set_door(door).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let is_noticed = || door != Door::Closed || run.not_done.load(Ordering::Relaxed) > noticed;
        while !is_noticed() && closed.elapsed() < AWAY_MAX {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        relay.set_door(Door::Open).await;
        if i == 4 {
            run.has_swung.store(true, Ordering::Relaxed);
            return;
        }
    }
}

async fn work(run: Arc<Run>, lane: u64) -> Vec<(String, Told, String)> {
    let mut rng = Rng::new(run.seed, 1 << 32 | lane);
    let token = format!("{}-{}", run.secrets.token, lane % TOKENS);
    let own = run.marks.of(&token);
    let era = if lane.is_multiple_of(2) { Era::Modern } else { Era::Legacy };
    let mut client = Client::new(run.mcp, &token, era);
    let mut told = Vec::new();
    while run.take() {
        let nonce = format!("{NONCE}{}", rng.hex());
        let ask = Ask::write(&format!("own_{own}__write"), &nonce, &run.secrets.argument);
        let answer = tokio::time::timeout(Duration::from_secs(20), client.ask(&ask)).await;
        let (said, text) = match answer {
            Ok(Ok(answer)) => (heard(&answer, &nonce), answer.text()),
            _ => (Some(Told::Nothing), "no answer".to_owned()),
        };
        match said {
            Some(said) => {
                told.push((nonce, said, text));
                if said == Told::NotDone {
                    run.not_done.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(COMES_BACK).await;
                }
            }
            None => told.push((nonce, Told::Nothing, format!("UNCLEAR {text}"))),
        }
    }
    told
}

/// What an answer says; `None` when it says nothing clear.
fn heard(answer: &crate::client::Answer, nonce: &str) -> Option<Told> {
    let text = answer.text();
    if answer.is_ok() {
        return text.contains(nonce).then_some(Told::Done);
    }
    let says = |words: &str| text.contains(words);
    match (
        says("Nothing was executed") || says("Nothing was called"),
        says("not known whether the call was executed"),
    ) {
        (true, false) => Some(Told::NotDone),
        (false, true) => Some(Told::Unknown),
        _ => None,
    }
}

fn judge(gateway: &Gateway, told: &[(String, Told, String)], report: &Report) {
    let mut counts = [0_usize; 4];
    let (mut wrong, mut unclear, mut twice, mut done_unknown) = (0, 0, 0, 0);
    for (nonce, said, text) in told {
        let executed = gateway.ledger().executions(nonce);
        counts[*said as usize] += 1;
        let is_wrong = match said {
            Told::Done => executed != 1,
            Told::NotDone => executed != 0,
            Told::Unknown | Told::Nothing => false,
        };
        if is_wrong {
            wrong += 1;
            report
                .fail("a write is reported wrongly", format!("{said:?}, executed {executed} times: {text}"));
        }
        if *said == Told::Nothing {
            unclear += 1;
            report.fail("a caller is told nothing clear", text);
        }
        twice += usize::from(executed > 1);
        done_unknown += usize::from(*said == Told::Unknown && executed == 1);
    }
    let [done, not_done, unknown, _] = counts;
    report.figure(
        "told",
        format!("{done} done, {not_done} not done, {unknown} not known (of which {done_unknown} done)"),
    );
    report.must("writes executed twice", twice == 0, twice);
    report.must("writes reported wrongly", wrong == 0, wrong);
    report.must("writes without a clear report", unclear == 0, unclear);
    report.must("all three reports were met", done > 0 && not_done > 0 && unknown > 0, told.len());
}
