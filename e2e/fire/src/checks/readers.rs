//! What the proxy lets through, every reader of JSON understands alike: CPython's, Node's, and one that keeps the first of
//! two equal keys. Otherwise arguments could be checked in one reading and executed in another.

use super::{Options, Secrets, nothing_private};
use crate::client::{Client, Era, post};
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::{NONCE, found};
use crate::process::Proxy;
use crate::relay::{Break, Relay};
use crate::report::Report;
use crate::rng::Rng;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const WORKERS: u64 = 16;
const CPYTHON: &str = include_str!("../readers/cpython.py");
const NODE: &str = include_str!("../readers/node.cjs");

/// Bodies by their nonce.
type Bodies = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Values that readers are known to disagree about, or that are no JSON.
const ODD: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1e2",
    "1E+2",
    "7e242",
    "1e400",
    "-1e400",
    "1e-400",
    "5e-324",
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "1_000",
    "9007199254740993",
    "18446744073709551616",
    "0.1000000000000000055511151231257827",
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    "True",
    "false",
    "undefined",
    "\"\"",
    "\"a\"",
    "'a'",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\u{2028}\"",
    "\"\u{feff}\"",
    "\"\\x41\"",
    "\"\\'\"",
    "\"\\/\"",
    "\"\t\"",
    "\"\n\"",
    "\"e\u{301}\"",
    "\"\\u00e9\"",
    "[]",
    "{}",
    "[1,]",
    "[,]",
    "{\"a\":1,}",
    "[1 2]",
    "/**/1",
    "1//",
    "{a:1}",
    "\"\\u12\"",
    "\"\\uD83D\"",
    "1e",
    "--1",
    "[[[[]]]]",
    "\"{}\"",
    "\u{a0}1",
    "\u{c}1",
    "1\u{feff}",
];
const KEYS: &[&str] = &[
    "\"a\"",
    "\"A\"",
    "\"\\u0061\"",
    "\"b\"",
    "\"\"",
    "\"__proto__\"",
    "\"constructor\"",
    "\"a\\u0000\"",
    "\"\\ud800\"",
    "\"1\"",
    "\"01\"",
    "\"\u{e9}\"",
    "\"e\u{301}\"",
    "\"\\u00e9\"",
    "\"text\"",
    "a",
    "'a'",
    "1",
];

/// A value, mostly right.
fn value(rng: &mut Rng, depth: u32) -> String {
    let parts = rng.index(4);
    match rng.below(if depth == 0 { 1 } else { 4 }) {
        0 | 1 => ODD[rng.index(ODD.len())].to_owned(),
        2 => format!("[{}]", (0..parts).map(|_| value(rng, depth - 1)).collect::<Vec<_>>().join(",")),
        _ => object(rng, parts, depth - 1),
    }
}

fn object(rng: &mut Rng, parts: usize, depth: u32) -> String {
    let members = (0..parts).map(|_| {
        let key = KEYS[rng.index(KEYS.len())];
        format!("{key}:{}", value(rng, depth))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A call whose arguments, or what stands around them, are odd.
fn body(rng: &mut Rng, tool: &str, nonce: &str) -> Vec<u8> {
    let parts = 1 + rng.index(3);
    let odd = object(rng, parts, 2);
    let members = odd.trim_start_matches('{').trim_end_matches('}');
    let nonce = format!(r#""nonce":"{nonce}""#);
    let arguments = match rng.below(8) {
        0 => format!(r#"{{{nonce},{members},{nonce}}}"#),
        1 => format!(r#"{{{members},{nonce}}}"#),
        _ => format!(r#"{{{nonce},"more":{odd}}}"#),
    };
    let call = |arguments: &str, more: &str, top: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call"{top},"params":{{"name":"call_read_tool","arguments":{{"name":"{tool}"{more},"arguments":{arguments}}}}}}}"#
        )
    };
    let text = match rng.below(12) {
        0 => call(&arguments, r#","arguments":{}"#, ""),
        1 => call(&arguments, "", r#","params":{}"#),
        2 => format!("\u{feff}{}", call(&arguments, "", "")),
        3 => format!("{}{}", call(&arguments, "", ""), ODD[rng.index(ODD.len())]),
        4 => format!("[{}]", call(&arguments, "", "")),
        _ => call(&arguments, "", ""),
    };
    let mut bytes = text.into_bytes();
    if rng.below(10) == 0 {
        let at = rng.index(bytes.len());
        bytes[at] = b"\0\xff\xc0\x80\"\\,:{}[]"[rng.index(12)];
    }
    bytes
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let count = options.count(8_000, 200_000);
    let secrets = Secrets::new(options.seed);
    let gateway = Gateway::start(Settings::new(Kind::LegacyStateless, options.seed)).await?;
    let forwarded = Bodies::default();
    let seen = Arc::clone(&forwarded);
    let relay = Relay::start(gateway.address, move |exchange| {
        let body = &exchange.request.body;
        let text = String::from_utf8_lossy(body);
        if let (true, Some(nonce)) = (text.contains("tools/call"), found(&text, NONCE).next()) {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(nonce.to_owned(), body.clone());
        }
        Break::Pass
    });
    let relay = relay.await?;
    let proxy = Proxy::start(&options.proxy, relay.address, &[]).await?;
    let tool = format!("own_{}__read", gateway.mark(&secrets.token));
    let workers: Vec<_> = (0..WORKERS)
        .map(|lane| {
            let rng = Rng::new(options.seed, 0x0dd << 32 | lane);
            tokio::spawn(send(proxy.mcp, secrets.token.clone(), tool.clone(), rng, count / WORKERS))
        })
        .collect();
    let mut sent = HashMap::new();
    for worker in workers {
        sent.extend(worker.await.map_err(io::Error::other)??);
    }
    let forwarded = std::mem::take(&mut *forwarded.lock().unwrap_or_else(PoisonError::into_inner));
    report.figure("bodies, of which went on", format!("{}, {}", sent.len(), forwarded.len()));
    report.must(
        "some went on and some did not",
        forwarded.len() > 100 && forwarded.len() < sent.len() / 2,
        "",
    );
    judge(&sent, &forwarded, report)?;
    nothing_private(&proxy, &secrets, report).await
}

async fn send(
    mcp: SocketAddr,
    token: String,
    tool: String,
    mut rng: Rng,
    count: u64,
) -> io::Result<HashMap<String, Vec<u8>>> {
    let mut client = Client::new(mcp, &token, Era::Legacy);
    let mut sent = HashMap::new();
    for _ in 0..count {
        let nonce = format!("{NONCE}{}", rng.hex());
        let body = body(&mut rng, &tool, &nonce);
        let head = post(mcp, &token, "MCP-Protocol-Version: 2025-11-25\r\n", &"x".repeat(body.len()));
        let request = [&head[..head.len() - body.len()], &body].concat();
        client.exchange(&request).await?;
        sent.insert(nonce, body);
    }
    Ok(sent)
}

fn judge(
    sent: &HashMap<String, Vec<u8>>,
    forwarded: &HashMap<String, Vec<u8>>,
    report: &Report,
) -> io::Result<()> {
    let mut lines = String::new();
    let mut pairs = Vec::new();
    for (nonce, out) in forwarded {
        let Some(body) = sent.get(nonce) else {
            report.fail("a call that nobody sent", nonce);
            continue;
        };
        pairs.push((body, out));
        writeln!(lines, "{} {}", hex(body), hex(out)).map_err(io::Error::other)?;
    }
    // Two bodies that readers do disagree about, so that a reader that says nothing is noticed.
    let twice = br#"{"params":{"arguments":{"a":1,"a":2,"arguments":{"a":1,"a":2}}}}"#;
    writeln!(lines, "{} {}", hex(twice), hex(twice)).map_err(io::Error::other)?;
    let cpython = reader("python3", &["-c", CPYTHON], &lines)?;
    let node = reader("node", &["-e", NODE], &lines)?;
    let (mut cpython, mut node) = (cpython.lines(), node.lines());
    let mut different = 0;
    for (body, out) in &pairs {
        let readings: Vec<&str> = [&mut cpython, &mut node]
            .into_iter()
            .flat_map(|reader| reader.next().unwrap_or("unread").split(' '))
            .collect();
        let is_one = readings.len() == 6 && readings.iter().all(|reading| *reading == readings[0]);
        if !is_one || readings[0].starts_with("unread") {
            different += 1;
            let texts = [body, out].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            report.fail("readers disagree", format!("{texts:?}: {readings:?}"));
        }
    }
    report.must("readings that differ", different == 0, format!("{different} of {}", pairs.len()));
    let control: Vec<&str> = cpython.next().unwrap_or_default().split(' ').collect();
    report.must(
        "readers that differ are noticed",
        control.len() == 4 && control[0] != control[1],
        control.len(),
    );
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _always_fits = write!(text, "{byte:02x}");
        text
    })
}

/// What a program prints for these lines.
fn reader(program: &str, arguments: &[&str], lines: &str) -> io::Result<String> {
    let missing = |error| io::Error::other(format!("{program} can't be run: {error}"));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let mut stdin = child.stdin.take().ok_or_else(|| io::Error::other("no way to write to a reader"))?;
    let lines = lines.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    writing.join().map_err(|_| io::Error::other("a reader ended early"))??;
    if !output.status.success() {
        return Err(io::Error::other(format!("{program} failed")));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
