//! What many callers cost in memory (P5, P6, P7), read from `/proc`.
//!
//! Each caller is a token of its own that searches once, on a connection of its own, sixteen at a time.

use crate::process::{Running, build_proxy};
use crate::report::Report;
use crate::serving;
use crate::stats::Runs;
use crate::upstream::{POOL, SUBSET};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: f64 = 1024.0;

/// # Errors
/// When a program fails.
pub fn callers(report: &mut Report) -> Result<(), String> {
    let program = build_proxy()?;
    let scale = if report.is_quick { 100 } else { 1 };
    shared(report, &program, scale)?;
    different(report, &program, scale)?;
    many(report, &program, scale)?;
    large(report, &program)
}

/// One search of each caller, sixteen at a time; every answer must have tools.
fn search(proxy: &Running, tokens: &[String]) -> Result<(), String> {
    let body = serving::call("search_tools", &json!({ "query": "open an issue about a failed deployment" }));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(token) = tokens.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = serving::ask(&proxy.address, &serving::search(token, &[]), &body)?;
            if !answer.contains(r#"{\"name\":"#) {
                return Err(format!("{token} got {answer}"));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a panic".to_owned())))
    })
}

fn tokens(callers: std::ops::Range<usize>, kind: impl Fn(usize) -> String) -> Vec<String> {
    let tokens: HashSet<String> = callers.map(|caller| format!("c{caller}-{}", kind(caller))).collect();
    let mut tokens: Vec<String> = tokens.into_iter().collect();
    tokens.sort_unstable();
    tokens
}

fn shared(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", &POOL.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 10_000 / scale;
    search(&proxy, &tokens(0..count, |caller| format!("s{}", caller % 20)))?;
    let after = proxy.memory_kib("VmRSS")?;
    let what = format!("{count} callers of {SUBSET} tools, 20 different listings among them, above idle");
    report.row("P5", &what, "MiB", &Runs::from_iter([(after - idle) / MIB]), Some(80.0));
    search(&proxy, &tokens(count..count * 2, |caller| format!("s{}", caller % 20)))?;
    let each = (proxy.memory_kib("VmRSS")? - after) / count as f64;
    report.row("P7", "one more caller with a known listing", "KiB", &Runs::from_iter([each]), Some(1.0));
    Ok(())
}

fn different(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", &POOL.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 10_000 / scale;
    search(&proxy, &tokens(0..count, |caller| format!("d{caller}")))?;
    let most = (proxy.memory_kib("VmHWM")? - idle) / MIB;
    let what = format!("{count} callers whose {SUBSET} tools of {POOL} all differ, most ever above idle");
    report.row("P6", &what, "MiB", &Runs::from_iter([most]), Some(256.0 * 1.1));
    // The first of them have long been evicted.
    search(&proxy, &tokens(0..20, |caller| format!("d{caller}")))?;
    report.line("P6", "callers whose index was evicted are answered", "yes", "answered", true);
    Ok(())
}

fn many(report: &mut Report, program: &Path, scale: usize) -> Result<(), String> {
    let upstream = Running::role("upstream", "1000")?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    let count = 100_000 / scale;
    search(&proxy, &tokens(0..count, |_| "n200".to_owned()))?;
    let above = (proxy.memory_kib("VmRSS")? - idle) / MIB;
    let what = format!("{count} callers of the same 200 tools, above idle");
    report.row("-", &what, "MiB", &Runs::from_iter([above]), None);
    Ok(())
}

fn large(report: &mut Report, program: &Path) -> Result<(), String> {
    let count = if report.is_quick { 2_000 } else { 20_000 };
    let upstream = Running::role("upstream", &count.to_string())?;
    let (proxy, _) = Running::proxy(program, &upstream.address, &[])?;
    let idle = proxy.memory_kib("VmRSS")?;
    search(&proxy, &tokens(0..1, |_| format!("n{}", count - 1)))?;
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
