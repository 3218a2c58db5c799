//! Nothing private reaches the operator or another caller: two callers send secrets in every place that takes one, well
//! formed and not, to an upstream that repeats them in every place of its own, at the most talkative log level.

use super::{Options, Secrets, nothing_private};
use crate::canary::leaks;
use crate::client::{Ask, Client, Era, post, quoted};
use crate::gateway::{Gateway, Kind, Settings, fault::FAULTS};
use crate::http::Wire;
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// Faults that take their whole deadline, which here only costs time.
const PATIENT: [&str; 6] =
    ["never-answers", "dribbles", "endless-progress", "comments-only", "after-deadline", "bomb"];

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let formats: &[&str] = if options.is_long { &["text", "json"] } else { &["json"] };
    for kind in Kind::ALL.into_iter().filter(|kind| kind.name().contains(&options.only)) {
        for format in formats {
            one_kind(kind, format, options, report).await?;
        }
    }
    nobody_there(options, report).await
}

async fn one_kind(kind: Kind, format: &str, options: &Options, report: &Report) -> io::Result<()> {
    let [alice, bob] = [0, 1].map(|more| Secrets::new(options.seed + more));
    // The gateway says what alice calls secret, in every text and with every fault; bob may hear it from there.
    let turn = Arc::new(AtomicU64::new(0));
    let turns = Arc::clone(&turn);
    let settings = Settings {
        canary: alice.upstream.clone(),
        plan: Box::new(move |asked| {
            let (name, fault) = FAULTS[usize::try_from(turns.load(Ordering::Relaxed)).ok()? % FAULTS.len()];
            (asked.tool() == "notes_3__write" && !PATIENT.contains(&name)).then_some(fault)
        }),
        ..Settings::new(kind, options.seed)
    };
    let gateway = Gateway::start(settings).await?;
    let flags = ["--log-format", format, "--upstream-timeout", "1s"];
    let proxy = Proxy::start(&options.proxy, gateway.address, &flags).await?;
    let mut sent = 0;
    for (name, _) in FAULTS {
        let both = [(&alice, &bob), (&bob, &alice)].map(|(own, other)| {
            let faulty = Ask::write("notes_3__write", &nonce(sent), &own.argument);
            ask_and_look(&gateway, proxy.mcp, own, other, faulty, report)
        });
        let [one, two] = both;
        tokio::join!(one, two);
        sent += 2;
        let _turn = (name, turn.fetch_add(1, Ordering::Relaxed));
    }
    for (own, other) in [(&alice, &bob), (&bob, &alice)] {
        for ask in asks(own, &gateway) {
            ask_and_look(&gateway, proxy.mcp, own, other, ask, report).await;
            sent += 1;
        }
        for request in odd_requests(proxy.mcp, own) {
            look(&raw(proxy.mcp, &request).await, own, other, report);
            sent += 1;
        }
    }
    println!("{} with {format} logs: {sent} requests", kind.name());
    nothing_private(&proxy, &alice, report).await?;
    nothing_private(&proxy, &bob, report).await
}

/// An upstream that can't be reached makes other lines.
async fn nobody_there(options: &Options, report: &Report) -> io::Result<()> {
    println!("nobody behind it:");
    let secrets = Secrets::new(options.seed);
    let proxy = Proxy::start(&options.proxy, SocketAddr::from(([127, 0, 0, 1], 9)), &[]).await?;
    let mut client = Client::new(proxy.mcp, &secrets.token, Era::Modern);
    for _ in 0..3 {
        let _told = client.ask(&Ask::search(&secrets.query)).await;
        let _told = client.ask(&Ask::write("any", &nonce(1), &secrets.argument)).await;
    }
    nothing_private(&proxy, &secrets, report).await
}

fn nonce(number: u64) -> String {
    format!("{NONCE}{}", Rng::new(number, 3).hex())
}

async fn ask_and_look(
    gateway: &Gateway,
    mcp: SocketAddr,
    own: &Secrets,
    other: &Secrets,
    ask: Ask,
    report: &Report,
) {
    for era in [Era::Modern, Era::Legacy] {
        let mut client = Client::new(mcp, &own.token, era);
        let answer = client.ask(&ask).await;
        let Ok(answer) = answer else { continue };
        look(&answer.raw, own, other, report);
        let mark = gateway.mark(&own.token);
        if let Some(foreign) = crate::mark::foreign(&answer.body, &mark) {
            report.fail("somebody else's answer", foreign);
        }
    }
}

/// No answer holds what another caller calls secret, and no answer repeats a token.
fn look(raw: &[u8], own: &Secrets, other: &Secrets, report: &Report) {
    let text = String::from_utf8_lossy(raw);
    // What the upstream says is for both.
    let mut forbidden = other.canaries();
    forbidden.retain(|canary| canary.name() != "upstream's text");
    forbidden.extend(own.canaries().into_iter().filter(|canary| canary.name() == "token"));
    for leak in leaks(&forbidden, &text) {
        report.fail("a secret in an answer", leak);
    }
}

/// Requests of the five tools with secrets in them, most of them wrong.
fn asks(own: &Secrets, gateway: &Gateway) -> Vec<Ask> {
    let Secrets { query, argument, .. } = own;
    let mark = gateway.mark(&own.token);
    let write = |arguments: String| Ask { tool: "call_write_tool", arguments };
    let named = |name: &str, arguments: &str| {
        write(format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name)))
    };
    let secret = quoted(argument);
    let tool = format!("own_{mark}__write");
    vec![
        Ask::search(query),
        Ask::search(&format!("notes of {mark} {query}")),
        Ask {
            tool: "search_tools",
            arguments: format!(r#"{{"query":{},"limit":{}}}"#, quoted(query), quoted(query)),
        },
        Ask { tool: "search_tools", arguments: format!(r#"{{{}:1}}"#, quoted(query)) },
        Ask::describe(argument),
        Ask::describe(&format!("own_{mark}__read")),
        Ask::read(argument, &nonce(7)),
        Ask::read(&tool, &nonce(8)),
        Ask::write(&tool, &nonce(9), argument),
        Ask::reads(&[argument, &format!("own_{mark}__read")], &nonce(10)),
        named(&tool, &format!(r#"{{"nonce":{{"a":{secret}}}}}"#)),
        named(&tool, &format!(r#"{{"text":{secret}}}"#)),
        named(&tool, &format!(r#"{{"nonce":"x","text":[{secret}]}}"#)),
        named(&tool, &secret),
        named(argument, &format!(r#"{{{secret}:{secret}}}"#)),
        named("notes_3__write", &format!(r#"{{"nonce":"x","text":{}}}"#, quoted(&argument.repeat(2000)))),
    ]
}

/// Requests that are wrong as HTTP, as JSON or as a message, with secrets in them.
fn odd_requests(mcp: SocketAddr, own: &Secrets) -> Vec<Vec<u8>> {
    let Secrets { token, query, argument, .. } = own;
    let secret = quoted(argument);
    let bodies = [
        argument.clone(),
        format!("{{{secret}"),
        format!("{{{secret}:1,{secret}:2}}"),
        format!(r#"{{"jsonrpc":"2.0","id":{secret},"method":{secret}}}"#),
        format!(r#"{{"jsonrpc":{secret},"id":1,"method":"ping"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{secret}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{secret}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":{secret}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{argument}"}}"#),
        format!(r#"[{{"jsonrpc":"2.0","id":1,"method":{secret}}}]"#),
        format!("{}{secret}", "[".repeat(200)),
        argument.repeat(60_000),
    ];
    let mut requests: Vec<Vec<u8>> = bodies.iter().map(|body| post(mcp, token, "", body)).collect();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let headers = [
        // An unknown version is repeated to whoever asked for it, so it is no token here.
        format!("MCP-Protocol-Version: {argument}\r\n"),
        format!("Mcp-Method: {token}\r\nMcp-Name: {token}\r\nMCP-Protocol-Version: 2026-07-28\r\n"),
        format!("Origin: http://{}\r\n", token.replace('/', "")),
        format!("Authorization: Bearer {token}x\r\n"),
        format!("Cookie: a={token}\r\nX-Api-Key: {token}\r\ntraceparent: {token}\r\ntracestate: {token}\r\n"),
        format!("Content-Encoding: {token}\r\n"),
        format!("X-Long: {}\r\n", token.repeat(4000)),
        format!("{token}\r\n"),
    ];
    requests.extend(headers.iter().map(|headers| post(mcp, token, headers, ping)));
    let lines = [
        format!("{token}\r\n\r\n"),
        format!("GET /{token} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("POST /mcp?access_token={token} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\nHost: {token}\r\nContent-Length: 0\r\n\r\n"),
        format!("GET /.well-known/oauth-protected-resource/{token} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: {token}\r\nContent-Length: 0\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: {query}\r\n\r\n"),
    ];
    requests.extend(lines.into_iter().map(String::into_bytes));
    requests
}

/// What comes back for these bytes, however little.
async fn raw(mcp: SocketAddr, request: &[u8]) -> Vec<u8> {
    let Ok(stream) = TcpStream::connect(mcp).await else { return Vec::new() };
    let mut wire = Wire::new(stream);
    if wire.write(request).await.is_err() {
        return Vec::new();
    }
    match tokio::time::timeout(Duration::from_secs(2), wire.read()).await {
        Ok(Ok(Some(message))) => message.raw,
        _ => Vec::new(),
    }
}
