//! As a whole: starting (P9), size (P10), searches beside a bare handler (P3), calls beside nginx (P4).

use crate::catalogue;
use crate::load::{self, Load, Requests};
use crate::process::{Running, build_proxy, scratch};
use crate::report::Report;
use crate::stats::{Runs, millis};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A `tools/call` in the newest version.
pub fn call(tool: &str, arguments: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{META}}}}}"#
    )
}

pub fn search(token: &str, queries: &[String]) -> Requests {
    let bodies = queries.iter().map(|query| call("search_tools", &json!({ "query": query })));
    Requests { tokens: vec![token.to_owned()], tool: "search_tools".to_owned(), bodies: bodies.collect() }
}

/// # Errors
/// When the proxy can't be built or started.
pub fn start(report: &mut Report) -> Result<(), String> {
    let program = build_proxy()?;
    let upstream = Running::role("upstream", "100")?;
    let (mut times, mut idle) = (Runs::default(), Runs::default());
    for _ in 0..if report.is_quick { 3 } else { 21 } {
        let (proxy, took) = Running::proxy(&program, &upstream.address, &[])?;
        times.push(millis(took));
        idle.push(proxy.memory_kib("VmRSS")? / 1024.0);
    }
    report.row("P9", "start to ready with the built-in model", "ms", &times, Some(100.0));
    report.row("P9", "resident memory when idle", "MiB", &idle, Some(60.0));
    let bytes = std::fs::metadata(&program).map_err(|error| error.to_string())?.len();
    report.row("P10", "binary, stripped release", "MB", &Runs::from_iter([bytes as f64 / 1e6]), Some(40.0));
    Ok(())
}

/// Sends one request by itself and gives the body of the answer.
pub fn ask(address: &str, requests: &Requests, body: &str) -> Result<String, String> {
    let mut stream = std::net::TcpStream::connect(address).map_err(|error| error.to_string())?;
    let headers: String =
        requests.headers().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(|error| error.to_string())?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(format!("{address} answered: {}", answer.chars().take(500).collect::<String>())),
    }
}

/// More pairs of a caller and a query than the proxy remembers, in turn: each is forgotten before it comes again.
const CALLERS_OF_NEW_QUERIES: usize = 5;

/// # Errors
/// When a program is missing or fails.
pub fn searches(report: &mut Report) -> Result<(), String> {
    let program = build_proxy()?;
    let upstream = Running::role("upstream", "1000")?;
    let (proxy, _) = Running::proxy(&program, &upstream.address, &[])?;
    let queries = catalogue::queries()?;
    let mut new = search("c1-n1000", &queries);
    let known = search("c1-n1000", &queries[..200]);
    let mut answers = String::new();
    for (query, body) in queries.iter().zip(&new.bodies) {
        let answer = ask(&proxy.address, &new, body)?;
        answers.push_str(&json!([query, answer]).to_string());
        answers.push('\n');
    }
    let file = scratch("bare")?.join("answers");
    std::fs::write(&file, answers).map_err(|error| error.to_string())?;
    let bare = Running::role("bare", &file.display().to_string())?;
    new.tokens = (1..=CALLERS_OF_NEW_QUERIES).map(|caller| format!("c{caller}-n1000")).collect();
    for (requests, what) in
        [(&new, "queries that are not remembered"), (&known, "200 queries again and again")]
    {
        beside(report, [&proxy, &bare], requests, what)?;
    }
    Ok(())
}

/// Searches of the proxy beside those of the bare handler, one after the other, several times.
fn beside(
    report: &mut Report,
    [proxy, bare]: [&Running; 2],
    requests: &Requests,
    what: &str,
) -> Result<(), String> {
    let seconds = if report.is_quick { 1 } else { 4 };
    let (mut ours, mut theirs, mut shares) = (Runs::default(), Runs::default(), Runs::default());
    for round in 0..=if report.is_quick { 1 } else { 5 } {
        let (one, other) = (
            load::run(&proxy.address, requests, 16, seconds)?.per_second,
            load::run(&bare.address, requests, 16, seconds)?.per_second,
        );
        // The first round warms up.
        if round > 0 {
            ours.push(one);
            theirs.push(other);
            shares.push(one / other * 100.0);
        }
    }
    let measured = format!("{ours:.0} against {theirs:.0} a second: {shares:.0} %");
    let what =
        format!("`search_tools` over 1,000 tools on 16 connections, {what}, beside a bare axum handler");
    report.line("P3", &what, &measured, "at least 60 %", shares.median() >= 60.0);
    Ok(())
}

/// # Errors
/// When a program is missing or fails.
pub fn calls(report: &mut Report) -> Result<(), String> {
    let program = build_proxy()?;
    let upstream = Running::role("upstream", "1000")?;
    let (proxy, _) = Running::proxy(&program, &upstream.address, &[])?;
    let nginx = Running::nginx(&upstream.address)?;
    for (size, what) in [("small", "1 KB"), ("large", "1 MB")] {
        let inner = json!({ "what": format!("{size} result") });
        let requests = |tool: &str, arguments: &Value| Requests {
            tokens: vec!["c1-n1000".to_owned()],
            tool: tool.to_owned(),
            bodies: vec![call(tool, arguments)],
        };
        let direct = requests("bench__read", &inner);
        let through = requests("call_read_tool", &json!({ "name": "bench__read", "arguments": inner }));
        let peers = [(&upstream.address, &direct), (&nginx.address, &direct), (&proxy.address, &through)];
        let answer = ask(&proxy.address, &through, &through.bodies[0])?;
        if !answer.contains("xxxx") {
            return Err(format!("the call failed: {}", answer.chars().take(500).collect::<String>()));
        }
        for connections in [1, 16] {
            let runs = rounds(report, peers, connections)?;
            if size == "small" {
                added(report, what, connections, &runs);
            } else {
                throughput(report, what, connections, &runs);
            }
        }
    }
    nginx.stop();
    Ok(())
}

/// Loads on the upstream itself, nginx and the proxy, one after the other, several times.
fn rounds(
    report: &Report,
    peers: [(&String, &Requests); 3],
    connections: usize,
) -> Result<Vec<[Load; 3]>, String> {
    let seconds = if report.is_quick { 1 } else { 3 };
    let mut runs = Vec::new();
    for round in 0..=if report.is_quick { 1 } else { 3 } {
        let mut loads = Vec::new();
        for (address, requests) in peers {
            loads.push(load::run(address, requests, connections, seconds)?);
        }
        if let (true, [direct, nginx, proxy]) = (round > 0, loads.as_slice()) {
            runs.push([*direct, *nginx, *proxy]);
        }
    }
    Ok(runs)
}

fn added(report: &mut Report, what: &str, connections: usize, runs: &[[Load; 3]]) {
    for (name, at) in [("p50", (|load: &Load| load.p50) as fn(&Load) -> f64), ("p99", |load| load.p99)] {
        let column =
            |peer: usize| -> Runs { runs.iter().map(|loads| at(&loads[peer]) - at(&loads[0])).collect() };
        let (nginx, proxy) = (column(1), column(2));
        let direct: Runs = runs.iter().map(|loads| at(&loads[0])).collect();
        let ratio = proxy.median() / nginx.median().max(1.0);
        let measured =
            format!("{proxy:.0} µs, nginx {nginx:.0} µs, direct call {direct:.0} µs: {ratio:.1} times");
        let what = format!("added to a call with a {what} result, {name}, {connections} connections");
        report.line("P4", &what, &measured, "at most 2 times nginx", ratio <= 2.0);
    }
}

fn throughput(report: &mut Report, what: &str, connections: usize, runs: &[[Load; 3]]) {
    let column = |peer: usize| -> Runs { runs.iter().map(|loads| loads[peer].per_second).collect() };
    let (direct, nginx, proxy) = (column(0), column(1), column(2));
    let share = proxy.median() / nginx.median() * 100.0;
    let measured = format!("{proxy:.0} a second, nginx {nginx:.0}, direct {direct:.0}: {share:.0} %");
    let what = format!("calls with a {what} result, {connections} connections");
    report.line("P4", &what, &measured, "at least 70 % of nginx", share >= 70.0);
}

/// Whether a program is there to be measured.
pub fn is_there(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}
