//! What many callers cost in memory (P5, P6, P7), read from `/proc`.
//!
//! Each caller is a token of its own that searches once, over a few connections kept alive.

use crate::process::{Running, build_proxy};
use crate::report::Report;
use crate::serving;
use crate::stats::Runs;
use crate::upstream::{POOL, SUBSET};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

const MIB: f64 = 1024.0;

/// # Errors
/// When a program fails.
pub fn callers(report: &mut Report) -> Result<(), String> {
    let program = build_proxy()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let scale = if report.is_quick { 100 } else { 1 };
    runtime.block_on(async {
        shared(report, &program, scale).await?;
        different(report, &program, scale).await?;
        many(report, &program, scale).await?;
        large(report, &program).await
    })
}

/// One search of each caller; every answer must have tools.
async fn search(proxy: &Running, tokens: Vec<String>) -> Result<(), String> {
    let client = reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())?;
    let url = format!("http://{}/mcp", proxy.address);
    let body = serving::call("search_tools", &json!({ "query": "open an issue about a failed deployment" }));
    let one = |token: String| {
        let mut request = client.post(&url).body(body.clone());
        for (name, value) in serving::search(&token, &[]).headers() {
            request = request.header(name, value);
        }
        async move {
            let answer = request.send().await.map_err(|error| error.to_string())?;
            let answer = answer.bytes().await.map_err(|error| error.to_string())?;
            let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            if text.contains(r#""tools":[{"#) { Ok(()) } else { Err(format!("{token} got {answer}")) }
        }
    };
    stream::iter(tokens).map(one).buffer_unordered(16).try_collect().await
}

fn tokens(callers: std::ops::Range<usize>, kind: impl Fn(usize) -> String) -> Vec<String> {
    let tokens: HashSet<String> = callers.map(|caller| format!("c{caller}-{}", kind(caller))).collect();
    let mut tokens: Vec<String> = tokens.into_iter().collect();
    tokens.sort_unstable();
    tokens
}

async fn shared(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", &POOL.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 10_000 / scale;
    search(&proxy, tokens(0..count, |caller| format!("s{}", caller % 20))).await?;
    let after = proxy.memory_kib("VmRSS")?;
    let what = format!("{count} callers of {SUBSET} tools, 20 different listings among them, above idle");
    report.row("P5", &what, "MiB", &Runs::from_iter([(after - idle) / MIB]), Some(80.0));
    search(&proxy, tokens(count..count * 2, |caller| format!("s{}", caller % 20))).await?;
    let each = (proxy.memory_kib("VmRSS")? - after) / count as f64;
    report.row("P7", "one more caller with a known listing", "KiB", &Runs::from_iter([each]), Some(1.0));
    Ok(())
}

async fn different(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", &POOL.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 10_000 / scale;
    search(&proxy, tokens(0..count, |caller| format!("d{caller}"))).await?;
    let most = (proxy.memory_kib("VmHWM")? - idle) / MIB;
    let what = format!("{count} callers whose {SUBSET} tools of {POOL} all differ, most ever above idle");
    report.row("P6", &what, "MiB", &Runs::from_iter([most]), Some(256.0 * 1.1));
    // The first of them have long been evicted.
    search(&proxy, tokens(0..20, |caller| format!("d{caller}"))).await?;
    report.line("P6", "callers whose index was evicted are answered", "yes", "answered", true);
    Ok(())
}

async fn many(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", "1000")?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 100_000 / scale;
    search(&proxy, tokens(0..count, |_| "n200".to_owned())).await?;
    let above = (proxy.memory_kib("VmRSS")? - idle) / MIB;
    let what = format!("{count} callers of the same 200 tools, above idle");
    report.row("-", &what, "MiB", &Runs::from_iter([above]), None);
    Ok(())
}

async fn large(report: &mut Report, program: &Path) -> Result<(), String> {
    let count = if report.is_quick { 2_000 } else { 20_000 };
    let upstream = Running::role("upstream", &count.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    search(&proxy, tokens(0..1, |_| format!("n{}", count - 1))).await?;
    let above = (proxy.memory_kib("VmRSS")? - idle) / MIB;
    report.row(
        "-",
        &format!("one caller of {count} tools, above idle"),
        "MiB",
        &Runs::from_iter([above]),
        None,
    );
    Ok(())
}
