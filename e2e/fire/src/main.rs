//! `fire`: runs a check against the proxy, or one part of the instrument by itself.

use fire::checks::{CHECKS, Options};
use fire::gateway::{Fault, Gateway, Kind, Settings, fault::FAULTS};
use fire::http::{Wire, response};
use fire::relay::{Break, Relay};
use fire::report::Report;
use fire::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const USAGE: &str = "usage: fire CHECK [--proxy FILE] [--seed N] [--requests N] [--long] [--only PART]
       fire gateway [--listen ADDRESS] [--control ADDRESS] [--kind KIND] [--tools N] [--takes MS] [--fault NAME] [--seed N]
       fire relay --upstream ADDRESS [--listen ADDRESS] [--break NAME[:BYTES-OR-MS]] [--permille N] [--seed N]

  --proxy FILE     the binary to hold under fire (target/release/toolsearch-proxy)
  --seed N         chance follows from it; printed with each run
  --requests N     instead of the check's own number
  --long           the long form
  --only PART      the parts of a check whose name contains it

gateway: an MCP server whose answers carry a keyed hash of the token they were asked with. Its control port answers
  GET /ledger, /revoke/TOKEN, /restore/TOKEN and /mark/TOKEN.
  KIND   modern-json, modern-sse, legacy-sessions or legacy-stateless
relay: passes bytes to an upstream and breaks what passes.
  NAME   delay, cut-request, reset-answer, truncate-answer, drip, extra, before, black-hole or deaf";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return wrong(&error.to_string()),
    };
    let Some((what, rest)) = arguments.split_first() else { return wrong("say what to run") };
    let flags = match Flags::read(rest) {
        Ok(flags) => flags,
        Err(problem) => return wrong(&problem),
    };
    match what.as_str() {
        "--help" | "-h" | "help" => {
            println!("{USAGE}\n\nchecks:");
            CHECKS.iter().for_each(|check| println!("  {:<12} {}", check.name, check.says));
            println!("\nfaults of the gateway:");
            FAULTS.chunks(8).for_each(|names| {
                println!("  {}", names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
            });
            ExitCode::SUCCESS
        }
        "gateway" => ended(runtime.block_on(gateway(&flags))),
        "relay" => ended(runtime.block_on(relay(&flags))),
        name => match CHECKS.iter().find(|check| check.name == name) {
            None => wrong(&format!("there is no check {name:?}")),
            Some(check) => {
                let options = match flags.options() {
                    Ok(options) => options,
                    Err(problem) => return wrong(&problem),
                };
                println!("{name}: {} (seed {})", check.says, options.seed);
                let report = Report::default();
                if let Err(error) = runtime.block_on((check.run)(&options, &report)) {
                    report.fail("the check could not run", error);
                }
                println!("{name}: {} failed, seed {}", report.failures(), options.seed);
                if report.failures() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
        },
    }
}

fn wrong(problem: &str) -> ExitCode {
    eprintln!("fire: {problem}\n{USAGE}");
    ExitCode::from(2)
}

fn ended(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => wrong(&problem),
    }
}

/// Flags with their values, in any order.
struct Flags(Vec<(String, String)>);

impl Flags {
    fn read(arguments: &[String]) -> Result<Self, String> {
        const KNOWN: [&str; 15] = [
            "--proxy",
            "--seed",
            "--requests",
            "--long",
            "--only",
            "--listen",
            "--control",
            "--kind",
            "--tools",
            "--takes",
            "--fault",
            "--upstream",
            "--break",
            "--permille",
            "--help",
        ];
        let mut flags = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            if !KNOWN.contains(&name.as_str()) {
                return Err(format!("there is no flag {name:?}"));
            }
            let value = match name.as_str() {
                "--long" | "--help" => String::new(),
                _ => arguments.next().ok_or_else(|| format!("{name} needs a value"))?.clone(),
            };
            flags.push((name.clone(), value));
        }
        Ok(Self(flags))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| format!("{name}: {value:?} can't be used")),
        }
    }

    fn options(&self) -> Result<Options, String> {
        let requests = self.get("--requests").map(|_| self.parsed("--requests", 0)).transpose()?;
        Ok(Options {
            proxy: PathBuf::from(self.get("--proxy").unwrap_or("target/release/toolsearch-proxy")),
            seed: self.parsed("--seed", 1)?,
            is_long: self.get("--long").is_some(),
            requests,
            only: self.get("--only").unwrap_or_default().to_owned(),
        })
    }
}

async fn gateway(flags: &Flags) -> Result<(), String> {
    let kind = flags.get("--kind").unwrap_or("modern-json");
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or("--kind: no such kind")?;
    let fault = match flags.get("--fault") {
        None => None,
        Some(name) => Some(Fault::named(name).ok_or("--fault: no such fault")?),
    };
    let settings = Settings {
        tools: flags.parsed("--tools", 12)?,
        page: 100,
        call_takes: Duration::from_millis(flags.parsed("--takes", 0)?),
        plan: Box::new(move |asked| fault.filter(|_| asked.method.starts_with("tools/"))),
        ..Settings::new(kind, flags.parsed("--seed", 1)?)
    };
    let listen: SocketAddr = flags.parsed("--listen", SocketAddr::from(([127, 0, 0, 1], 9100)))?;
    let gateway = Gateway::start_at(settings, listen).await.map_err(|error| format!("--listen: {error}"))?;
    let control: SocketAddr = flags.parsed("--control", SocketAddr::from(([127, 0, 0, 1], 9101)))?;
    let control = TcpListener::bind(control).await.map_err(|error| format!("--control: {error}"))?;
    let controlled = control.local_addr().map_err(|error| error.to_string())?;
    println!(
        "listening on http://{}/mcp as {}, control on http://{controlled}/ledger",
        gateway.address,
        kind.name()
    );
    let gateway = Arc::new(gateway);
    loop {
        let Ok((stream, _)) = control.accept().await else { continue };
        // One order at a time; a peer that says nothing has two seconds.
        let _slow = tokio::time::timeout(Duration::from_secs(2), obey(&gateway, Wire::new(stream))).await;
    }
}

/// One order from the control port.
async fn obey(gateway: &Gateway, mut wire: Wire) -> io::Result<()> {
    let Some(message) = wire.read().await? else { return Ok(()) };
    let path = message.first_line().split(' ').nth(1).unwrap_or_default();
    let answer = match path.trim_start_matches('/').split_once('/').unwrap_or((path, "")) {
        ("revoke", token) => {
            gateway.revoke(token);
            "{}".to_owned()
        }
        ("restore", token) => {
            gateway.restore(token);
            "{}".to_owned()
        }
        ("mark", token) => gateway.mark(token),
        _ => gateway.ledger().to_json(),
    };
    wire.write(&response(200, "Connection: close\r\n", &answer)).await
}

async fn relay(flags: &Flags) -> Result<(), String> {
    let upstream: SocketAddr = flags
        .get("--upstream")
        .ok_or("--upstream is missing")?
        .parse()
        .map_err(|_| "--upstream: no address")?;
    let listen: SocketAddr = flags.parsed("--listen", SocketAddr::from(([127, 0, 0, 1], 9102)))?;
    let (name, number) = flags
        .get("--break")
        .unwrap_or("pass")
        .split_once(':')
        .unwrap_or((flags.get("--break").unwrap_or("pass"), "0"));
    let number: usize = number.parse().map_err(|_| "--break: no number behind the colon")?;
    let time = Duration::from_millis(number as u64);
    let broken = match name {
        "pass" => Break::Pass,
        "delay" => Break::Delay(time),
        "cut-request" => Break::CutRequest(number),
        "reset-answer" => Break::ResetAnswer(number),
        "truncate-answer" => Break::TruncateAnswer(number),
        "drip" => Break::Drip(1, time),
        "extra" => Break::Extra(time),
        "before" => Break::Before,
        "black-hole" => Break::BlackHole,
        "deaf" => Break::Deaf,
        _ => return Err("--break: no such fault".to_owned()),
    };
    let (seed, chances) = (flags.parsed("--seed", 1)?, flags.parsed("--permille", 1000)?);
    let relay = Relay::start_at(listen, upstream, move |exchange| {
        if Rng::new(seed, exchange.number).permille(chances) { broken } else { Break::Pass }
    });
    let relay = relay.await.map_err(|error| format!("--listen: {error}"))?;
    println!(
        "listening on {} before {upstream}: {broken:?} in {chances} of 1000, seed {seed}",
        relay.address
    );
    std::future::pending().await
}
