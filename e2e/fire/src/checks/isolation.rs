//! No answer reaches the wrong caller: a thousand tokens over all tools, with caches cold, warm and stale, while answers
//! are cut, late, doubled or somebody else's, and callers hang up.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Asked, Fault, Gateway, Kind, Settings};
use crate::mark::{self, NONCE};
use crate::process::Proxy;
use crate::relay::{Break, Exchange, Relay};
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOKENS: u64 = 1000;
const WORKERS: u64 = 128;

/// Counts of how requests ended.
#[derive(Debug, Default)]
struct Ends {
    ok: AtomicU64,
    told: AtomicU64,
    unauthorized: AtomicU64,
    turned_away: AtomicU64,
    broken: AtomicU64,
    aborted: AtomicU64,
}

struct Run {
    mcp: SocketAddr,
    gateway: Gateway,
    secrets: Secrets,
    seed: u64,
    left: AtomicU64,
    ends: Ends,
    report: Arc<Report>,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let count = options.count(100_000, 1_000_000);
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.name().contains(&options.only)).collect();
    for kind in &kinds {
        one_kind(*kind, count / kinds.len() as u64, options, report).await?;
    }
    Ok(())
}

async fn one_kind(kind: Kind, count: u64, options: &Options, report: &Report) -> io::Result<()> {
    println!("{}: {count} requests", kind.name());
    let secrets = Secrets::new(options.seed);
    let seed = options.seed;
    let settings = Settings {
        canary: secrets.upstream.clone(),
        plan: Box::new(move |asked| answer_fault(seed, asked)),
        ..Settings::new(kind, options.seed)
    };
    let gateway = Gateway::start(settings).await?;
    let relay = Relay::start(gateway.address, move |exchange| wire_fault(seed, exchange)).await?;
    // Short clocks and fewer places than callers, so that every state of the cache is met again and again.
    let flags = [
        "--catalog-ttl",
        "1s",
        "--catalog-max-stale",
        "1s",
        "--max-callers",
        "900",
        "--upstream-timeout",
        "1s",
        "--list-timeout",
        "1s",
    ];
    let proxy = Proxy::start(&options.proxy, relay.address, &flags).await?;
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        gateway,
        secrets: secrets.clone(),
        seed: options.seed,
        left: AtomicU64::new(count),
        ends: Ends::default(),
        report: Arc::default(),
    });
    let started = Instant::now();
    let workers: Vec<_> = (0..WORKERS).map(|lane| tokio::spawn(work(Arc::clone(&run), lane))).collect();
    for worker in workers {
        worker.await.map_err(io::Error::other)?;
    }
    let took = started.elapsed().as_secs_f64();
    let (exchanges, broken) = relay.counts();
    let Ends { ok, told, unauthorized, turned_away, broken: cut, aborted } = &run.ends;
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    report.figure("requests a second", format!("{:.0}", count as f64 / took));
    report.figure(
        "ends",
        format!(
            "{} answered, {} told why not, {} to log in, {} turned away, {} cut, {} hung up",
            of(ok),
            of(told),
            of(unauthorized),
            of(turned_away),
            of(cut),
            of(aborted)
        ),
    );
    report.figure("upstream exchanges, broken", format!("{exchanges}, {broken}"));
    report.figure("gateway", run.gateway.ledger().to_json());
    what_must_be_zero(&run, report);
    // A run in which little is answered, or little goes wrong, proves little.
    report.must("enough is answered", of(ok) * 10 > count * 7, format!("{} of {count}", of(ok)));
    report.must("enough goes wrong", broken * 100 > exchanges, format!("{broken} of {exchanges}"));
    nothing_private(&proxy, &secrets, report).await
}

fn what_must_be_zero(run: &Run, report: &Report) {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let wrong = run.report.failures();
    report.must("answers to the wrong caller", wrong == 0, wrong);
    let crossed = of(&run.gateway.ledger().crossed_sessions);
    report.must("sessions used for another caller", crossed == 0, crossed);
    let repeated = of(&run.gateway.ledger().repeated_ids);
    report.must("request ids used twice", repeated == 0, repeated);
    let twice = run.gateway.ledger().executed_twice();
    report.must("calls executed twice", twice == 0, twice);
    let leaked = of(&run.gateway.ledger().leaked_headers);
    report.must("headers of callers passed on", leaked == 0, leaked);
}

/// What the gateway does wrong by itself: one answer in fifty.
fn answer_fault(seed: u64, asked: &Asked<'_>) -> Option<Fault> {
    const FAULTS: [Fault; 12] = [
        Fault::StatusWith(401, "WWW-Authenticate: Bearer\r\n"),
        Fault::StatusWith(401, "WWW-Authenticate: Bearer\r\n"),
        Fault::Status(500),
        Fault::Closes,
        Fault::Resets,
        Fault::Rpc(-32602),
        Fault::Rpc(-32603),
        Fault::WrongId,
        Fault::SecondResponse,
        Fault::Truncated,
        Fault::StreamWithoutFinal,
        Fault::ToolError,
    ];
    let id = u128::from_str_radix(asked.id.trim_matches('"'), 16).unwrap_or_default();
    let mut rng = Rng::new(seed, u64::try_from(id >> 64).unwrap_or_default());
    rng.permille(20).then(|| *rng.pick(&FAULTS))
}

/// What the wire does: one exchange in twenty-five.
fn wire_fault(seed: u64, exchange: &Exchange<'_>) -> Break {
    let mut rng = Rng::new(seed, exchange.number);
    if !rng.permille(40) {
        return Break::Pass;
    }
    let at = rng.index(900);
    match rng.below(20) {
        0..=2 => Break::ResetAnswer(at),
        3 => Break::TruncateAnswer(at),
        4 => Break::CutRequest(at),
        5..=13 => Break::Extra(Duration::from_micros(rng.below(300))),
        14 => Break::Extra(Duration::from_millis(rng.below(50))),
        15 => Break::Before,
        16 => Break::Drip(100, Duration::from_micros(200)),
        17 => Break::Delay(Duration::from_millis(rng.below(20))),
        18 => Break::Delay(Duration::from_millis(1000 + rng.below(300))),
        _ => Break::BlackHole,
    }
}

async fn work(run: Arc<Run>, lane: u64) {
    let mut rng = Rng::new(run.seed, 1 << 32 | lane);
    let mut client = Client::new(run.mcp, "", Era::Modern);
    while run.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        // One connection carries the requests of many callers, as behind a gateway.
        client.token = format!("{}-{}", run.secrets.token, rng.below(TOKENS));
        client.era = if rng.permille(500) { Era::Modern } else { Era::Legacy };
        let other = run.gateway.mark(&format!("{}-{}", run.secrets.token, rng.below(TOKENS)));
        let own = run.gateway.mark(&client.token);
        let nonce = format!("{NONCE}{}", rng.hex());
        let (ask, is_foreign) = ask(&mut rng, &run.secrets, &own, &other, &nonce);
        if rng.permille(15) {
            let after = Duration::from_micros(rng.below(3000));
            client.abort(&ask, after).await;
            run.ends.aborted.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        match tokio::time::timeout(Duration::from_secs(20), client.ask(&ask)).await {
            Err(_) => run.report.fail("no answer within 20 s", ask.tool),
            Ok(Err(_)) => {
                run.ends.broken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Ok(answer)) => run.judge(&ask, &answer, [&own, &other], &nonce, is_foreign),
        }
    }
}

/// One of the five tools, now and then for a tool that only somebody else has.
fn ask(rng: &mut Rng, secrets: &Secrets, own: &str, other: &str, nonce: &str) -> (Ask, bool) {
    if rng.permille(30) {
        let name = format!("own_{other}__read");
        let ask = if rng.permille(500) { Ask::read(&name, nonce) } else { Ask::describe(&name) };
        return (ask, own != other);
    }
    let (read, write) = (format!("own_{own}__read"), format!("own_{own}__write"));
    let ask = match rng.below(10) {
        0..=3 => Ask::search(&format!("read notes in a folder {}", secrets.query)),
        4 => Ask::describe(&read),
        5 | 6 => Ask::read(&read, nonce),
        7 | 8 => Ask::write(&write, nonce, &secrets.argument),
        _ => Ask::reads(&[&read, "notes_2__read", "notes_4__read"], nonce),
    };
    (ask, false)
}

impl Run {
    fn judge(
        &self,
        ask: &Ask,
        answer: &crate::client::Answer,
        [own, other]: [&str; 2],
        nonce: &str,
        is_foreign: bool,
    ) {
        let raw = String::from_utf8_lossy(&answer.raw);
        // A name that was asked for may be repeated.
        let raw = if is_foreign { raw.replace(other, "") } else { raw.into_owned() };
        if let Some(mark) = mark::foreign(&raw, own) {
            self.report.fail("somebody else's answer", format!("{} for {own} holds {mark}: {raw}", ask.tool));
        }
        if let Some(foreign) = mark::found(&raw, NONCE).find(|found| *found != nonce) {
            self.report.fail("another request's answer", format!("{} {nonce} holds {foreign}", ask.tool));
        }
        if is_foreign && answer.is_ok() {
            self.report.fail("somebody else's tool", format!("{} of {other} for {own}", ask.tool));
        }
        match answer.status {
            200 if answer.is_ok() => {
                self.ends.ok.fetch_add(1, Ordering::Relaxed);
                let is_call = ask.tool.starts_with("call_");
                if !is_foreign && (!raw.contains(own) || (is_call && !self.has_nonce(ask, &raw, nonce))) {
                    self.report.fail("an answer of nobody", format!("{}: {raw}", ask.tool));
                }
            }
            200 => {
                self.ends.told.fetch_add(1, Ordering::Relaxed);
            }
            401 | 403 => {
                self.ends.unauthorized.fetch_add(1, Ordering::Relaxed);
            }
            503 => {
                self.ends.turned_away.fetch_add(1, Ordering::Relaxed);
            }
            status => self.report.fail("an odd status", format!("{} {status}: {raw}", ask.tool)),
        }
    }

    /// A batch may have lost some of its calls to faults.
    fn has_nonce(&self, ask: &Ask, raw: &str, nonce: &str) -> bool {
        raw.contains(nonce) || ask.tool == "call_read_tools"
    }
}
