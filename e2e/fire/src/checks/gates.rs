//! The gates in large numbers: no write leaves in a batch of reads, a search finds only what its caller lists, and whatever
//! names are asked for, the metrics have the same series.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::report::Report;
use crate::rng::Rng;
use serde_json::Value;
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const WORKERS: u64 = 32;
const TOKENS: u64 = 40;
/// Words that all tools are made of.
const WORDS: [&str; 12] = [
    "mail", "file", "issue", "event", "user", "page", "secret", "report", "build", "chart", "folder",
    "invoice",
];
/// Tools that there are; which of them a token lists follows from the token.
const TOOLS: u64 = 300;

struct Run {
    mcp: SocketAddr,
    gateway: Gateway,
    secrets: Secrets,
    seed: u64,
    left: AtomicU64,
    batches: AtomicU64,
    hits: AtomicU64,
    report: Report,
}

/// Whether a token lists a tool: about half of all.
fn lists(token: &str, number: u64) -> bool {
    let lane = token.bytes().fold(number, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Rng::new(lane, number).permille(500)
}

fn name(number: u64) -> String {
    let verb = if number.is_multiple_of(3) { "write" } else { "read" };
    format!("{}_{number}__{verb}", WORDS[usize::try_from(number % 12).unwrap_or_default()])
}

fn definition(number: u64, mark: &str) -> String {
    let word = |of: u64| WORDS[usize::try_from(of % 12).unwrap_or_default()];
    let is_read = !number.is_multiple_of(3);
    format!(
        r#"{{"name":"{}","description":"Finds the {} of a {} for {mark}","annotations":{{"readOnlyHint":{is_read}}}}}"#,
        name(number),
        word(number / 12),
        word(number / 7),
    )
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let count = options.count(30_000, 3_000_000);
    let secrets = Secrets::new(options.seed);
    let settings = Settings {
        listing: Some(Box::new(|token, mark| {
            (0..TOOLS).filter(|number| lists(token, *number)).map(|number| definition(number, mark)).collect()
        })),
        page: 500,
        ..Settings::new(Kind::ModernJson, options.seed)
    };
    let gateway = Gateway::start(settings).await?;
    let proxy = Proxy::start(&options.proxy, gateway.address, &["--log-level", "info"]).await?;
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        gateway,
        secrets: secrets.clone(),
        seed: options.seed,
        left: AtomicU64::new(count),
        batches: AtomicU64::new(0),
        hits: AtomicU64::new(0),
        report: Report::default(),
    });
    let mut series = 0;
    for part in [count / 10, count - count / 10] {
        run.left.store(part, Ordering::Relaxed);
        let lanes = (0..WORKERS).map(|lane| tokio::spawn(work(Arc::clone(&run), lane << 32 | part)));
        for worker in lanes.collect::<Vec<_>>() {
            worker.await.map_err(io::Error::other)?;
        }
        let now = proxy.metrics().await?.len();
        if series != 0 {
            report.must("series of metrics stay the same", now == series, format!("{series}, then {now}"));
            report.must("series of metrics, at most 600", now <= 600, now);
        }
        series = now;
    }
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    report.figure("requests", count);
    report.must(
        "batches, some with reads that were called",
        of(&run.gateway.ledger().calls) > 100,
        of(&run.batches),
    );
    report.must("hits of searches", of(&run.hits) > count / 10, of(&run.hits));
    let wrong = run.report.failures();
    report.must("writes in batches, foreign hits, answers to made-up names", wrong == 0, wrong);
    nothing_private(&proxy, &secrets, report).await
}

async fn work(run: Arc<Run>, lane: u64) {
    let mut rng = Rng::new(run.seed, lane);
    let mut client = Client::new(run.mcp, "", Era::Modern);
    while run.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        client.token = format!("{}-{}", run.secrets.token, rng.below(TOKENS));
        match rng.below(3) {
            0 => run.batch(&mut client, &mut rng).await,
            1 => run.search(&mut client, &mut rng).await,
            _ => run.made_up(&mut client, &mut rng).await,
        }
    }
}

impl Run {
    /// Reads, writes, and names that are nearly those of writes.
    async fn batch(&self, client: &mut Client, rng: &mut Rng) {
        let nonce = format!("{NONCE}{}", rng.hex());
        let names: Vec<String> = (0..=rng.below(9))
            .map(|_| {
                let name = name(rng.below(TOOLS));
                match rng.below(12) {
                    0 => name.to_uppercase(),
                    1 => format!(" {name}"),
                    2 => format!("{name}\u{200b}"),
                    3 => name.replace('a', "\u{430}"),
                    4 => name.replace("write", "read"),
                    5 => name.replace("read", "write"),
                    _ => name,
                }
            })
            .collect();
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let answer = client.ask(&Ask::reads(&asked, &nonce)).await;
        self.batches.fetch_add(1, Ordering::Relaxed);
        for (i, asked) in names.iter().enumerate() {
            let may = (0..TOOLS).any(|number| {
                !number.is_multiple_of(3) && name(number) == *asked && lists(&client.token, number)
            });
            let nonce = format!("{nonce}-{i}");
            let executed = self.gateway.ledger().executions(&nonce);
            self.gateway.ledger().forget(&nonce);
            if executed != u32::from(may && answer.is_ok()) {
                self.report
                    .fail("a call in a batch of reads", format!("{asked:?} executed {executed} times"));
            }
        }
    }

    async fn search(&self, client: &mut Client, rng: &mut Rng) {
        let query = format!("find the {} {} of a {}", rng.pick(&WORDS), rng.pick(&WORDS), rng.pick(&WORDS));
        let Ok(answer) = client.ask(&Ask::search(&query)).await else { return };
        let found: Value = serde_json::from_str(&answer.text()).unwrap_or_default();
        let names: HashSet<&str> =
            found["tools"].as_array().into_iter().flatten().filter_map(|hit| hit["name"].as_str()).collect();
        self.hits.fetch_add(names.len() as u64, Ordering::Relaxed);
        for found in names {
            let is_listed = (0..TOOLS).any(|number| name(number) == found && lists(&client.token, number));
            if !is_listed {
                self.report.fail("a hit that the caller does not list", found);
            }
        }
    }

    async fn made_up(&self, client: &mut Client, rng: &mut Rng) {
        let name = format!("{}__{}", rng.hex(), rng.pick(&WORDS));
        let ask = if rng.permille(500) { Ask::write(&name, "nn-0", "") } else { Ask::describe(&name) };
        if client.ask(&ask).await.is_ok_and(|answer| answer.is_ok() && ask.tool == "call_write_tool") {
            self.report.fail("a tool that nobody has was called", name);
        }
    }
}
