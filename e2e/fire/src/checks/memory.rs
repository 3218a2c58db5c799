//! Memory stays within its budget whatever upstreams list, and honest callers are answered meanwhile.

use super::{Options, Secrets};
use crate::client::{Answer, Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::process::Proxy;
use crate::report::{Report, Times};
use crate::rng::Rng;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CACHE_MIB: u64 = 64;
/// Callers at once.
const WORKERS: u64 = 16;

/// A way to make a listing expensive.
type Make = fn(&mut Rng, &str) -> Vec<String>;

const HOSTILE: &[(&str, Make)] = &[
    ("many tiny tools", |rng, mark| tools(4_000, rng, mark, |_| String::new(), |_| "{}".to_owned())),
    ("words nobody used before", |rng, mark| {
        tools(200, rng, mark, |rng| words(rng, 250), |_| "{}".to_owned())
    }),
    ("one endless description", |rng, mark| {
        tools(2, rng, mark, |rng| rng.hex().repeat(30_000), |_| "{}".to_owned())
    }),
    ("schemas of many members", |rng, mark| {
        tools(20, rng, mark, |_| String::new(), |rng| members(rng, 1_000))
    }),
    ("schemas of many levels", |rng, mark| tools(50, rng, mark, |_| String::new(), |rng| nested(rng, 60))),
    ("huge enums", |rng, mark| tools(10, rng, mark, |_| String::new(), |rng| choices(rng, 4_000))),
    ("one name for all", |rng, mark| {
        let one = tools(1, rng, mark, |rng| words(rng, 20), |_| "{}".to_owned()).remove(0);
        vec![one; 2_000]
    }),
    ("megabytes of words", |rng, mark| tools(300, rng, mark, |rng| words(rng, 1_200), |_| "{}".to_owned())),
    ("a schema without end", |rng, mark| {
        tools(1, rng, mark, |_| String::new(), |_| format!(r#"{{"enum":[{}1]}}"#, "1,".repeat(1_500_000)))
    }),
    ("ways to arguments without end", |rng, mark| tools(1, rng, mark, |_| String::new(), ways)),
    ("no spaces, many scripts", |rng, mark| {
        tools(200, rng, mark, |rng| scripts(rng, 600), |_| "{}".to_owned())
    }),
];

struct Run {
    mcp: SocketAddr,
    secrets: Secrets,
    left: AtomicU64,
    listed: AtomicU64,
    refused: AtomicU64,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let callers = options.count(1_200, 10_000);
    let secrets = Secrets::new(options.seed);
    let (seed, honest) = (options.seed, format!("{}-honest", secrets.token));
    let (token, only) = (honest.clone(), options.only.clone());
    let settings = Settings {
        page: 100_000,
        listing: Some(Box::new(move |caller, mark| hostile(seed, caller == token, &only, caller, mark))),
        ..Settings::new(Kind::ModernJson, options.seed)
    };
    let gateway = Gateway::start(settings).await?;
    let cache = format!("{CACHE_MIB}MiB");
    let proxy = Proxy::start(&options.proxy, gateway.address, &["--catalog-cache-bytes", &cache]).await?;
    let mut client = Client::new(proxy.mcp, &honest, Era::Modern);
    for _ in 0..20 {
        client.ask(&Ask::search("notes")).await?;
    }
    let idle = proxy.resident_kib();
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        secrets: secrets.clone(),
        left: AtomicU64::new(callers),
        listed: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    });
    let is_over = AtomicBool::new(false);
    let attackers = async {
        let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(attack(Arc::clone(&run)))).collect();
        for worker in workers {
            worker.await.map_err(io::Error::other)?;
        }
        is_over.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>(())
    };
    let (attacked, (most, counted), (mut times, failed)) =
        tokio::join!(attackers, watch(&proxy, &is_over), stay_honest(&mut client, &is_over));
    attacked?;
    report.figure(
        "hostile callers",
        format!(
            "{callers}, {} listed, {} refused",
            run.listed.load(Ordering::Relaxed),
            run.refused.load(Ordering::Relaxed)
        ),
    );
    report.figure("idle", format!("{} MiB", idle / 1024));
    let budget = idle + CACHE_MIB * 1024;
    let limit = budget * 115 / 100;
    report.figure("most bytes in the cache by its own count", format!("{} MiB", counted / (1 << 20)));
    report.must(
        "most memory at any sample",
        most <= limit,
        format!(
            "{} MiB of {} MiB, which is the budget of {} and 15%",
            most / 1024,
            limit / 1024,
            budget / 1024
        ),
    );
    report.must(
        "honest searches",
        failed == 0 && times.count() > 10,
        format!("{} of {} failed, p99 {:?}", failed, times.count(), times.quantile(990)),
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.figure("afterwards", format!("{} MiB", proxy.resident_kib() / 1024));
    Ok(())
}

/// Lists once as each of many callers, in one of the hostile ways.
async fn attack(run: Arc<Run>) {
    while let Ok(left) =
        run.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
    {
        let mut client = Client::new(run.mcp, &format!("{}-{left}", run.secrets.token), Era::Modern);
        let answer = tokio::time::timeout(Duration::from_secs(90), client.ask(&Ask::search("notes"))).await;
        let counter = if answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.is_ok())) {
            &run.listed
        } else {
            &run.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Most memory, in KiB, and most bytes that the cache counts.
async fn watch(proxy: &Proxy, is_over: &AtomicBool) -> (u64, u64) {
    let (mut most, mut counted) = (0, 0.0_f64);
    while !is_over.load(Ordering::Relaxed) {
        most = most.max(proxy.resident_kib());
        counted = counted.max(proxy.metric("toolsearch_catalog_bytes").await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of bytes")]
    (most, counted as u64)
}

/// Searches all the time; how long it took, and how often it failed.
async fn stay_honest(client: &mut Client, is_over: &AtomicBool) -> (Times, usize) {
    let (mut times, mut failed) = (Times::default(), 0);
    while !is_over.load(Ordering::Relaxed) {
        match client.ask(&Ask::search("read notes")).await {
            Ok(answer) if Answer::is_ok(&answer) => times.add(answer.took),
            _ => failed += 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (times, failed)
}

/// A caller's tools: the usual ones, or one of the hostile kinds, no two callers alike.
fn hostile(seed: u64, is_honest: bool, only: &str, caller: &str, mark: &str) -> Vec<String> {
    if is_honest {
        return (0..200).map(|number| crate::gateway::tool(number, mark, "")).collect();
    }
    let number: u64 = caller.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let mut rng = Rng::new(seed, number);
    let kinds: Vec<Make> =
        HOSTILE.iter().filter(|(name, _)| name.contains(only)).map(|(_, make)| *make).collect();
    kinds
        .get(usize::try_from(number).unwrap_or(0) % kinds.len().max(1))
        .map_or_else(Vec::new, |make| make(&mut rng, mark))
}

fn tools(
    count: usize,
    rng: &mut Rng,
    mark: &str,
    text: impl Fn(&mut Rng) -> String,
    schema: impl Fn(&mut Rng) -> String,
) -> Vec<String> {
    let one = |number| {
        let (text, schema, name) = (text(rng), schema(rng), rng.hex());
        format!(
            r#"{{"name":"t{number}_{name}","description":"{mark} {text}","inputSchema":{{"type":"object","properties":{{"a":{schema}}}}},"annotations":{{"readOnlyHint":true}}}}"#
        )
    };
    (0..count).map(one).collect()
}

fn words(rng: &mut Rng, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, _| {
        write!(text, "{:x} ", rng.draw() >> 20).expect("a string takes any text");
        text
    })
}

fn scripts(rng: &mut Rng, count: usize) -> String {
    let letter = |rng: &mut Rng| {
        let start = *rng.pick(&[0x4e00, 0x3041, 0xac00, 0x0905, 0x0e01, 0x0430, 0x0105]);
        char::from_u32(start + u32::try_from(rng.below(60)).unwrap_or(0)).unwrap_or('ą')
    };
    (0..count).map(|_| letter(rng)).collect()
}

fn members(rng: &mut Rng, count: usize) -> String {
    let members: Vec<String> = (0..count)
        .map(|_| format!(r#""m{}":{{"type":"string","description":"{}"}}"#, rng.hex(), words(rng, 3)))
        .collect();
    format!(r#"{{"type":"object","properties":{{{}}}}}"#, members.join(","))
}

fn nested(rng: &mut Rng, levels: usize) -> String {
    (0..levels).fold(r#"{"type":"string"}"#.to_owned(), |inner, _| {
        format!(r#"{{"type":"object","properties":{{"n{}":{inner}}}}}"#, rng.hex())
    })
}

/// A few long names on the way to thousands of arguments that are wanted as headers.
fn ways(rng: &mut Rng) -> String {
    let leaves: Vec<String> =
        (0..4_000).map(|i| format!(r#""a{i}":{{"type":"string","x-mcp-header":"A{i}"}}"#)).collect();
    let inner = format!(r#"{{"properties":{{{}}}}}"#, leaves.join(","));
    (0..20).fold(inner, |inner, _| format!(r#"{{"properties":{{"{}":{inner}}}}}"#, rng.hex().repeat(60)))
}

fn choices(rng: &mut Rng, count: usize) -> String {
    let choices: Vec<String> = (0..count).map(|_| format!("\"{}\"", rng.hex())).collect();
    format!(r#"{{"enum":[{}]}}"#, choices.join(","))
}
